//! Revisions: what a document was when it was read, so that a write can say which one it changes.
//!
//! A revision is in the document, in a field that the server owns, and new with each write. A document that another program
//! wrote has none; it gets a weak `ETag` of its content, which tells that it changed, and cannot be written on a condition
//! until it was written once by the gateway.

use axum::http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};
use steelyard_base::Result;
use steelyard_store::{
    format::Format,
    record::{Document, Value},
    store::{Expected, query::Path},
};

use crate::{problem::Problem, random};

/// The field with the revision.
pub(crate) const FIELD: &str = "_rev";

/// What a write expects to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Anything, or nothing.
    Any,
    /// Nothing: `If-None-Match: *`.
    Absent,
    /// Something: `If-Match: *`.
    Present,
    /// One of these revisions: `If-Match: "…"`.
    OneOf(Vec<String>),
}

/// What is there before a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    /// Written by another program.
    Unversioned,
    Revision(String),
}

/// A new revision.
pub(super) fn fresh() -> Result<String> {
    random::hex::<12>()
}

/// Takes the revision out of a document.
pub(crate) fn taken(document: &mut Document) -> Option<String> {
    match document.get(FIELD) {
        Some(Value::Text(_)) => match document.remove(FIELD) {
            Some(Value::Text(revision)) => Some(revision),
            _ => None,
        },
        _ => None,
    }
}

/// The document with a revision.
pub(super) fn given(mut document: Document, revision: &str) -> Document {
    document.insert(FIELD, revision);
    document
}

/// That a client sent a field that the server owns.
pub(super) fn refused(document: &Document) -> Result<(), Problem> {
    match [FIELD, Path::KEY].into_iter().find(|name| document.get(name).is_some()) {
        Some(name) => {
            Err(Problem::invalid(format!("the field {name:?} is the server's own; leave it out")))
        }
        None => Ok(()),
    }
}

impl Found {
    pub(super) fn of(document: Option<&Document>) -> Found {
        match document.map(|document| document.get(FIELD)) {
            None => Found::Absent,
            Some(Some(Value::Text(revision))) => Found::Revision(revision.clone()),
            Some(_) => Found::Unversioned,
        }
    }

    /// As a conditional write has it; none where there is no such condition.
    pub(super) fn expected(&self) -> Option<Expected> {
        match self {
            Found::Absent => Some(Expected::Absent),
            Found::Unversioned => None,
            Found::Revision(revision) => Some(Expected::field(FIELD, &**revision)),
        }
    }
}

impl Wanted {
    /// Of the headers of a request.
    pub(super) fn of(headers: &HeaderMap) -> Result<Wanted, Problem> {
        let text = |name: header::HeaderName| {
            let mut all = headers.get_all(&name).iter();
            let one = all.next();
            match (one.map(HeaderValue::to_str), all.next()) {
                (None, _) => Ok(None),
                (Some(Ok(text)), None) => Ok(Some(text.trim())),
                _ => Err(Problem::invalid(format!("{name} is not understood"))),
            }
        };
        match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
            (None, None) => Ok(Wanted::Any),
            (None, Some("*")) => Ok(Wanted::Absent),
            (None, Some(_)) => Err(Problem::invalid("a write takes If-None-Match: * only")),
            (Some("*"), None) => Ok(Wanted::Present),
            (Some(tags), None) => Ok(Wanted::OneOf(revisions(tags)?)),
            // The one holds where there is a document, the other where there is none.
            (Some(_), Some(_)) => {
                Err(Problem::changed("If-Match and If-None-Match cannot both hold for a write"))
            }
        }
    }

    /// Whether what is there is what is wanted.
    pub(super) fn fits(&self, found: &Found) -> Result<(), Problem> {
        match (self, found) {
            (Wanted::Any, _) | (Wanted::Absent, Found::Absent) => Ok(()),
            (Wanted::Present, Found::Revision(_) | Found::Unversioned) => Ok(()),
            (Wanted::OneOf(all), Found::Revision(revision)) if all.contains(revision) => Ok(()),
            (Wanted::OneOf(_), Found::Unversioned) => Err(Problem::changed(
                "this document has no revision yet, as another program wrote it; write it once without If-Match",
            )),
            (Wanted::Absent, _) => Err(Problem::changed("there is a document of this id")),
            (_, Found::Absent) => Err(Problem::changed("there is no document of this id")),
            (_, Found::Revision(_)) => Err(Problem::changed("the document has another revision")),
        }
    }
}

/// Strong tags of a list; weak ones fit none (RFC 9110, section 13.1.1).
fn revisions(tags: &str) -> Result<Vec<String>, Problem> {
    let mut all = Vec::new();
    for tag in tags.split(',').map(str::trim) {
        let plain = |text: &str| {
            text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let strong = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        match (strong, tag.strip_prefix("W/")) {
            (Some(revision), _) if plain(revision) => all.push(revision.to_owned()),
            (None, Some(_)) => {}
            _ => {
                return Err(Problem::invalid(
                    "If-Match takes ETags as they were answered, in quotes",
                ));
            }
        }
    }
    Ok(all)
}

/// The `ETag` of a document without its revision field.
pub(super) fn tag(revision: Option<&str>, document: &Document) -> Result<String> {
    Ok(match revision {
        Some(revision) => format!("\"{revision}\""),
        None => {
            let mut bytes = Vec::new();
            Format::Msgpack.encode_document(document, &mut bytes)?;
            format!("W/\"{}\"", random::as_hex(&Sha256::digest(&bytes)[..12]))
        }
    })
}

/// Whether `If-None-Match` of a reading names this tag (compared weakly, RFC 9110, section 13.1.2).
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let given =
        headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given
        .flat_map(|text| text.split(','))
        .any(|given| given.trim() == "*" || bare(given) == bare(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_standard() {
        let of = |name: header::HeaderName, text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(text));
            Wanted::of(&headers)
        };
        assert_eq!(Wanted::of(&HeaderMap::new()).unwrap(), Wanted::Any);
        assert_eq!(of(header::IF_NONE_MATCH, "*").unwrap(), Wanted::Absent);
        assert_eq!(of(header::IF_MATCH, "*").unwrap(), Wanted::Present);
        let two = of(header::IF_MATCH, "\"a1\", W/\"b\", \"c\"").unwrap();
        assert_eq!(two, Wanted::OneOf(vec!["a1".into(), "c".into()]));
        for (name, text) in [
            (header::IF_MATCH, "a1"),
            (header::IF_MATCH, "\"a"),
            (header::IF_MATCH, "\"a b\""),
            (header::IF_NONE_MATCH, "\"a\""),
        ] {
            assert!(of(name, text).is_err(), "{text}");
        }
        // A weak tag fits nothing.
        assert!(
            of(header::IF_MATCH, "W/\"a\"").unwrap().fits(&Found::Revision("a".into())).is_err()
        );
    }

    #[test]
    fn a_document_without_a_revision_has_a_tag_of_its_content() {
        let (a, b) = (Document::from_iter([("n", 1)]), Document::from_iter([("n", 2)]));
        let tag_of = |document| tag(None, document).unwrap();
        assert!(
            tag_of(&a).starts_with("W/\"") && tag_of(&a) != tag_of(&b) && tag_of(&a) == tag_of(&a)
        );
        let mut versioned = given(a.clone(), "r1");
        assert_eq!(Found::of(Some(&versioned)), Found::Revision("r1".into()));
        assert_eq!((taken(&mut versioned).as_deref(), versioned), (Some("r1"), a));
    }
}
