//! What strangers may call things: tenants, collections, documents.
//!
//! A name is taken from one component of a path that was decoded once; nothing here decodes again. Names of databases are
//! never made from any of these ([`DatabaseId`](crate::catalog::DatabaseId)).

use std::fmt;

use steelyard_base::{Error, Result};
use steelyard_store::store::Key;

/// The longest name of a collection or tenant, in bytes.
const LONGEST: usize = 63;
/// The longest id of a document, in bytes.
const LONGEST_ID: usize = 512;

/// The name of a tenant: what operators call it, and no database does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantName(Box<str>);

/// The name of a collection: what a store calls a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Box<str>);

impl TenantName {
    /// # Errors
    /// [`Invalid`](steelyard_base::ErrorKind::Invalid) for anything but 1 to 63 letters, digits, `_` and `-`, of which
    /// the first is a letter or digit.
    pub fn new(text: &str) -> Result<TenantName> {
        plain(text, "tenant").map(TenantName)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CollectionName {
    /// # Errors
    /// As [`TenantName::new`].
    pub fn new(text: &str) -> Result<CollectionName> {
        let lower = text.to_ascii_lowercase();
        // What SQLite and PostgreSQL keep for themselves, and would take for one of their own.
        if ["sqlite_", "pragma_", "pg_"].iter().any(|own| lower.starts_with(own)) {
            return Err(Error::invalid(format!(
                "{text:?} is no name of a collection: sqlite_, pragma_ and pg_ are those of databases"
            )));
        }
        plain(text, "collection").map(CollectionName)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CollectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names that begin with `_` are the gateway's own tables, so the first character is a letter or digit.
fn plain(text: &str, what: &str) -> Result<Box<str>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    match first && text.len() <= LONGEST && text.chars().all(is_plain) {
        true => Ok(text.into()),
        false => Err(Error::invalid(format!(
            "{text:?} is no name of a {what}: 1 to {LONGEST} letters, digits, _ and -, the first a letter or digit"
        ))),
    }
}

/// The id of a document, from one component of a path.
///
/// # Errors
/// [`Invalid`](steelyard_base::ErrorKind::Invalid) where it is empty, too long, `.` or `..` (also encoded twice), or has a
/// control character or backslash in it.
pub(crate) fn id(text: &str) -> Result<Key> {
    let twice = text.replace("%2e", ".").replace("%2E", ".");
    let refused = |c: char| c.is_control() || c == '\\';
    match text.len() <= LONGEST_ID && !matches!(&*twice, "." | "..") && !text.contains(refused) {
        true => Key::new(text),
        false => Err(Error::invalid(format!(
            "an id is 1 to {LONGEST_ID} bytes without control characters and backslashes, and is not . or .."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let hostile = [
            "", ".", "..", "_keys", "-x", "a/b", "a\\b", "a\0", "a b", "%2e%2e", "ä", "a\n", "a.b",
            "a:b",
        ];
        for text in hostile {
            assert!(
                CollectionName::new(text).is_err() && TenantName::new(text).is_err(),
                "{text:?}"
            );
        }
        assert!(CollectionName::new(&"x".repeat(64)).is_err());
        for text in ["sqlite_master", "SQLite_x", "pragma_table_list"] {
            assert!(CollectionName::new(text).is_err(), "{text}");
        }
        for text in ["orders", "2026", "a_b-c"] {
            assert_eq!(CollectionName::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn ids_are_any_text_that_leads_nowhere() {
        for text in
            ["", ".", "..", "%2e", "%2E%2e", "a\\b", "a\0b", "\r\n", "\u{7f}", &"x".repeat(513)]
        {
            assert!(id(text).is_err(), "{text:?}");
        }
        for text in ["a/b", "bob@example.com", "100%", "ü", "...", "%2e%2e%2e", "a..b", "$where"] {
            assert_eq!(id(text).unwrap().as_str(), text);
        }
    }
}
