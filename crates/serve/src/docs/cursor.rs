//! Cursors: where the next page of a list begins. They are signed, and good for the tenant, collection and query they
//! were made for.
//!
//! A list in the order of ids goes on after the last id, whatever was written meanwhile. A sorted list goes on after so many
//! documents, and has a bound: between two pages documents can move.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;
use steelyard_store::store::Key;

use super::condition::Asked;
use crate::{catalog::Pepper, problem::Problem};

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageStart {
    First,
    /// After this id.
    After(Key),
    /// After so many.
    Skip(u64),
}

/// Documents that a sorted list goes through at most.
pub(super) const MOST_SORTED: u64 = 10_000;
/// Bytes of a signature.
const SIGNATURE: usize = 16;

/// What a cursor is good for.
pub(super) struct Scope<'a> {
    pub pepper: &'a Pepper,
    pub tenant: &'a str,
    pub collection: &'a str,
    pub asked: &'a Asked,
}

impl Scope<'_> {
    fn signature(&self, text: &[u8]) -> [u8; SIGNATURE] {
        let Asked { condition, sort, fields, .. } = self.asked;
        let parts = [self.tenant, self.collection, condition, sort, fields].map(str::as_bytes);
        let parts = [&parts[..], &[text]].concat();
        let whole = self.pepper.sign("cursor", &parts).finalize().into_bytes();
        whole.first_chunk().copied().unwrap_or_default()
    }

    pub(super) fn write(&self, from: &PageStart) -> Option<String> {
        let text = match from {
            PageStart::First => return None,
            PageStart::After(key) => format!("k{key}"),
            PageStart::Skip(n) => format!("n{n}"),
        };
        let bytes = [&self.signature(text.as_bytes())[..], text.as_bytes()].concat();
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub(super) fn read(&self) -> Result<PageStart, Problem> {
        let Some(cursor) = &self.asked.cursor else { return Ok(PageStart::First) };
        let wrong = || Problem::invalid("the cursor is not one of this list");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
        let (signature, text) = bytes.split_at_checked(SIGNATURE).ok_or_else(wrong)?;
        // It is no secret: with it, one reads what can be read without it.
        if signature != self.signature(text) {
            return Err(wrong());
        }
        let text = std::str::from_utf8(text).map_err(|_| wrong())?;
        match text.split_at_checked(1) {
            Some(("k", key)) => Ok(PageStart::After(Key::new(key).map_err(|_| wrong())?)),
            Some(("n", n)) => Ok(PageStart::Skip(n.parse().map_err(|_| wrong())?)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list() {
        let (pepper, other) = (Pepper::fresh().unwrap(), Pepper::fresh().unwrap());
        let asked = Asked { condition: "age>1".into(), ..Asked::default() };
        let scope = Scope { pepper: &pepper, tenant: "a", collection: "c", asked: &asked };
        for from in [PageStart::After(Key::new("ü/1").unwrap()), PageStart::Skip(200)] {
            let cursor = scope.write(&from);
            let with = |condition: &str| Asked {
                cursor: cursor.clone(),
                condition: condition.into(),
                ..Asked::default()
            };
            let (same, another) = (with("age>1"), with("age>2"));
            let read = |tenant: &str, collection: &str, asked: &Asked, pepper: &Pepper| {
                Scope { pepper, tenant, collection, asked }.read()
            };
            assert_eq!(read("a", "c", &same, &pepper).unwrap(), from);
            assert!(read("b", "c", &same, &pepper).is_err());
            assert!(read("a", "d", &same, &pepper).is_err());
            assert!(read("a", "c", &another, &pepper).is_err());
            assert!(read("a", "c", &same, &other).is_err());
        }
        for text in ["", "x", "AAAA", "!"] {
            let asked = Asked { cursor: Some(text.into()), ..asked.clone() };
            assert!(Scope { asked: &asked, ..scope }.read().is_err(), "{text}");
        }
    }
}
