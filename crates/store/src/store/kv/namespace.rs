//! Tables within one space of keys: `TABLE:key`.
//!
//! The first colon ends the table's name, whose own colons are spelled `%3A`: so the key `b:x` of
//! table `a` is not the key `x` of table `a:b`.

use crate::{
    Error, Result,
    store::{Key, abilities::Abilities},
};

/// A table's part of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    prefix: String,
}

impl Namespace {
    /// The part of the table of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for an empty name, one with NUL, one that leaves no
    /// room for keys.
    pub(crate) fn new(abilities: &Abilities, table: &str) -> Result<Namespace> {
        let driver = abilities.driver;
        if table.is_empty() || table.contains('\0') {
            return Err(Error::invalid(format!("{table:?} is not a valid table name in {driver}")));
        }
        let mut prefix = String::with_capacity(table.len() + 1);
        for c in table.chars() {
            match c {
                // Blanks too: in some protocols they end a key.
                '%' | ':' | ' ' | '\0'..='\x1f' | '\x7f' => {
                    prefix += &format!("%{:02X}", u32::from(c));
                }
                c => prefix.push(c),
            }
        }
        prefix.push(':');
        // Room for a UUID, at least.
        if prefix.len() + 40 > abilities.max_key {
            return Err(Error::invalid(format!(
                "the table's name {:?}… leaves no room for keys, which have {} bytes with it",
                table.chars().take(40).collect::<String>(),
                abilities.max_key
            )));
        }
        Ok(Namespace { prefix })
    }

    /// What all keys of the table begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key as the store has it.
    pub(crate) fn full(&self, key: &str) -> String {
        [&self.prefix, key].concat()
    }

    /// The key of a record, of one that the store has; none where it is of another table.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it is no text, or empty.
    pub(crate) fn own(&self, full: &[u8]) -> Result<Option<Key>> {
        let Some(key) = full.strip_prefix(self.prefix.as_bytes()) else { return Ok(None) };
        let wrong = || {
            let shown = String::from_utf8_lossy(full);
            Error::malformed(format!("{shown:?} is a key whose end is empty or not UTF-8"))
        };
        let text = std::str::from_utf8(key).map_err(|_| wrong())?;
        Key::new(text).map(Some).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(table: &str) -> Namespace {
        let abilities = Abilities {
            driver: "some",
            keeps: &[],
            loses: "",
            cannot: &[],
            joins: false,
            atomic: false,
            conditional: false,
            ordered: false,
            max_key: 100,
            max_record: 100,
        };
        Namespace::new(&abilities, table).unwrap()
    }

    #[test]
    fn tables_do_not_overlap() {
        let (outer, inner) = (space("a"), space("a:b"));
        assert_ne!(outer.full("b:x"), inner.full("x"));
        assert_eq!(outer.own(inner.full("x").as_bytes()).unwrap(), None);
        assert_eq!(inner.own(outer.full("b:x").as_bytes()).unwrap(), None);
        assert_ne!(space("a%3Ab"), inner);
        assert_eq!(space("my pets\n").prefix(), "my%20pets%0A:");
    }

    #[test]
    fn keys_come_back() {
        let space = space("größe*");
        for key in ["x", ":", "a:b", "%", "\r\n\0 ü"] {
            let full = space.full(key);
            assert_eq!(space.own(full.as_bytes()).unwrap().unwrap().as_str(), key);
        }
        for odd in [&b""[..], b"\xff"] {
            let full = [space.prefix().as_bytes(), odd].concat();
            assert!(space.own(&full).is_err());
        }
    }
}
