//! Names of databases and of documents.
//!
//! Each table is a database.
//! CouchDB has small letters, digits and `_ $ ( ) + / -`, and a letter first. A place `shop` with a
//! table `orders` is the database `shop+orders`; without a place it is `orders`. Anything that is no
//! small letter, digit, `-` or `_` is written `$` and two hexadecimal digits for each of its bytes,
//! so that no two tables are one database; a name that would not begin with a letter begins with
//! `x$$`.
//!
//! A document's name is its key, but for two beginnings, as CouchDB keeps names with `_` first for
//! itself: `_` is written `^1`, and `^` is written `^0`, which leaves the order as it is.

use std::{borrow::Cow, fmt::Write};

use crate::{Error, Result, store::Key};

/// File systems have names of 255 bytes; CouchDB adds up to 17 to a database's.
const LONGEST: usize = 238;

/// The database of a table.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where it is too long.
pub(super) fn of(place: &str, table: &str) -> Result<String> {
    let mut name = String::new();
    if !place.is_empty() {
        encode(place, &mut name);
        name.push('+');
    }
    encode(table, &mut name);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "x$$");
    }
    match name.len() <= LONGEST {
        true => Ok(name),
        false => Err(Error::invalid(format!(
            "table {table:?} would be a database with a name of {} bytes; the limit of CouchDB is \
             {LONGEST}",
            name.len()
        ))),
    }
}

/// The table whose database this is; none where it is that of no table of this place.
pub(super) fn table(place: &str, database: &str) -> Option<String> {
    let name = database.strip_prefix("x$$").unwrap_or(database);
    let table = match place {
        "" => name,
        // No name that is written so has a `+` in it.
        _ => name.split_once('+')?.1,
    };
    let table = decode(table)?;
    // There may be databases whose names are nearly written so, but by others.
    (of(place, &table).ok()? == database).then_some(table)
}

/// The text that is written so; none where nothing is.
fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'$' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn encode(text: &str, name: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => write!(name, "${byte:02x}").expect("a string"),
        }
    }
}

/// The name of a key's document.
pub(super) fn id(key: &Key) -> Cow<'_, str> {
    match (key.strip_prefix('_'), key.strip_prefix('^')) {
        (Some(rest), _) => Cow::Owned(format!("^1{rest}")),
        (_, Some(rest)) => Cow::Owned(format!("^0{rest}")),
        _ => Cow::Borrowed(key),
    }
}

/// The key of a document; none where it is the server's own, or somebody's who begins names with
/// `^`.
pub(super) fn key(id: String) -> Option<Key> {
    let text = match (id.strip_prefix("^1"), id.strip_prefix("^0")) {
        (Some(rest), _) => format!("_{rest}"),
        (_, Some(rest)) => format!("^{rest}"),
        _ if id.starts_with(['^', '_']) => return None,
        _ => id,
    };
    Key::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_names_in_their_order() {
        let mut keys: Vec<Key> = [
            "_", "_a", "_^", "^", "^0", "^1", "^_", "^1_", "]z", "]", "`", "`_", "a", "A", "\0",
            "é",
        ]
        .map(|text| Key::new(text).unwrap())
        .into();
        keys.sort();
        let ids: Vec<String> = keys.iter().map(|key| id(key).into_owned()).collect();
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids.iter().all(|id| !id.starts_with('_')), "{ids:?}");
        let back: Vec<_> = ids.into_iter().map(|id| key(id).unwrap()).collect();
        assert_eq!(back, keys);
        assert_eq!(["_design/x", "^2", "^", ""].map(|id| key(id.into())), [const { None }; 4]);
    }

    #[test]
    fn plain_names_stay_and_no_two_are_one() {
        assert_eq!(of("shop", "pending-orders_2").unwrap(), "shop+pending-orders_2");
        assert_eq!(of("", "orders").unwrap(), "orders");
        assert_eq!(of("", "Örders").unwrap(), "x$$$c3$96rders");
        let pairs = [
            ("", "a+b"),
            ("a", "b"),
            ("a", "B"),
            ("a", "$42"),
            ("a+b", "c"),
            ("a", "b+c"),
            ("", "1"),
            ("", "x1"),
            ("", "x$31"),
            ("", "_users"),
            ("", "x$$1"),
            ("a/b", "x"),
            ("a", "b/x"),
        ];
        let names: Vec<_> = pairs.iter().map(|(place, table)| of(place, table).unwrap()).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name} twice");
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
            let known = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '$' | '+' | '-');
            assert!(name.chars().all(known), "{name}");
        }
        for (name, (place, table)) in names.iter().zip(pairs) {
            for (other, _) in pairs {
                let want = (other == place).then(|| table.to_owned());
                assert_eq!(super::table(other, name), want, "{name} in {other:?}");
            }
        }
        for other in [
            "_users", "a/b", "a+b+c", "a$", "a$4", "a$zz", "a$+1", "a$61", "a$C3$96", "x$$a",
            "a$ff",
        ] {
            assert_eq!(
                ["", "a"].map(|place| super::table(place, other)),
                [const { None }; 2],
                "{other}"
            );
        }
        assert!(of("", &"é".repeat(100)).is_err());
    }
}
