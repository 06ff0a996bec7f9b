//! Keys as memcached takes them: 250 bytes at most, without blanks and control characters.
//!
//! A key that is not of that kind, or that begins with the mark, is there as the mark and its
//! Base64 (the URL-safe one). So every key comes back as it was, and none can hold a command.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};

use crate::{
    Error, Result,
    store::{Abilities, Key, kv::Namespace},
};

/// The longest key that memcached takes.
pub(super) const LONGEST: usize = 250;

/// What a key in Base64 begins with.
const MARK: char = '=';

/// A table's names for its keys.
#[derive(Debug, Clone)]
pub(super) struct Names(Namespace);

impl Names {
    /// The names for the table of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a name that leaves no room for keys.
    pub(super) fn new(abilities: &Abilities, table: &str) -> Result<Names> {
        let whole = Abilities { max_key: LONGEST, ..abilities.clone() };
        Namespace::new(&whole, table).map(Names)
    }

    /// The longest key there is room for, if it is plain.
    pub(super) fn room(&self) -> usize {
        LONGEST - self.0.prefix().len()
    }

    /// The key as memcached has it.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where it is too long.
    pub(super) fn full(&self, key: &Key) -> Result<String> {
        let odd = |b: u8| b <= b' ' || b == 0x7f;
        let full = match key.starts_with(MARK) || key.bytes().any(odd) {
            false => self.0.full(key),
            true => self.0.full(&format!("{MARK}{}", BASE64.encode(key.as_bytes()))),
        };
        match full.len() {
            0..=LONGEST => Ok(full),
            len => Err(Error::invalid(format!(
                "key {}: {len} bytes with its table{}; the limit of memcached is {LONGEST}",
                key.shown(),
                if full.len() > self.0.prefix().len() + key.len() { " and in Base64" } else { "" }
            ))),
        }
    }

    /// The key of a record; none where it is of another table.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it is no text, or no Base64 after the mark.
    pub(super) fn own(&self, full: &[u8]) -> Result<Option<Key>> {
        let Some(key) = self.0.own(full)? else { return Ok(None) };
        let Some(coded) = key.strip_prefix(MARK) else { return Ok(Some(key)) };
        let wrong = || {
            Error::malformed(format!(
                "key {}: the mark {MARK:?} and no Base64 after it",
                key.shown()
            ))
        };
        let bytes = BASE64.decode(coded).map_err(|_| wrong())?;
        let text = String::from_utf8(bytes).map_err(|_| wrong())?;
        Key::new(text).map(Some).map_err(|_| wrong())
    }
}

/// The bytes of a key that a listing shows with `%`-codes.
pub(super) fn listed(text: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &str) -> Result<Names> {
        Names::new(&super::super::ABILITIES, table)
    }

    #[test]
    fn every_key_comes_back_and_none_holds_a_command() {
        let names = names("my pets\r\n").unwrap();
        let mut seen = std::collections::HashSet::new();
        for key in
            ["a", "a:b", "=", "=YQ", "a b", "\r\nflush_all\r\n", "\0", "ü😀", "%41", "\u{7f}"]
        {
            let full = names.full(&Key::new(key).unwrap()).unwrap();
            assert!(full.bytes().all(|b| b > b' ' && b != 0x7f), "{full:?}");
            assert_eq!(names.own(full.as_bytes()).unwrap().unwrap().as_str(), key);
            assert!(seen.insert(full));
        }
        assert!(names.own(b"other:a").unwrap().is_none());
        assert!(names.own([names.0.prefix().as_bytes(), b"=???"].concat().as_slice()).is_err());
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let pets = names("pets").unwrap();
        let key = |n: usize, c: &str| Key::new(c.repeat(n)).unwrap();
        assert_eq!(pets.full(&key(pets.room(), "x")).unwrap().len(), LONGEST);
        assert!(pets.full(&key(pets.room() + 1, "x")).is_err());
        let error = pets.full(&key(200, " ")).unwrap_err();
        assert!(error.to_string().contains("in Base64"), "{error}");
        assert!(names(&"x".repeat(220)).is_err());
    }
}
