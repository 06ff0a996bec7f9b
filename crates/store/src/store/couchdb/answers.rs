//! What CouchDB answers, as JSON, and the records in it.

use serde::Deserialize;

use crate::{
    Error, Result,
    record::{Document, Value},
    store::Key,
};

use super::name;

/// The answer of `_all_docs`.
#[derive(Deserialize)]
pub(super) struct Listing {
    pub rows: Vec<Line>,
}

/// A document in a list of them, or that there is none.
#[derive(Deserialize)]
pub(super) struct Line {
    pub id: Option<String>,
    value: Option<Version>,
    doc: Option<Document>,
}

#[derive(Deserialize)]
struct Version {
    rev: String,
    #[serde(default)]
    deleted: bool,
}

/// What became of a document in `_bulk_docs`.
#[derive(Deserialize)]
pub(super) struct Written {
    pub id: String,
    pub error: Option<String>,
    pub reason: Option<String>,
}

/// A document that was found.
pub(super) struct Found {
    pub key: Key,
    pub revision: String,
    /// What is in it, but for CouchDB's own fields.
    pub record: Document,
}

impl Listing {
    /// The revisions of those that are there, by key.
    pub(super) fn revisions(self) -> impl Iterator<Item = (Key, String)> {
        self.rows.into_iter().filter_map(|line| match (line.id, line.value) {
            (Some(id), Some(Version { rev, deleted: false })) => Some((name::key(id)?, rev)),
            _ => None,
        })
    }
}

impl Line {
    /// The document, if there is one and it is no index.
    pub(super) fn found(self, script: bool) -> Result<Option<Found>> {
        match self.doc {
            Some(document) => found(document, script),
            None => Ok(None),
        }
    }

    /// Its key and revision, without what is in it.
    pub(super) fn named(self) -> Option<Found> {
        match (self.id, self.value) {
            (Some(id), Some(Version { rev, deleted: false })) => {
                Some(Found { key: name::key(id)?, revision: rev, record: Document::new() })
            }
            _ => None,
        }
    }
}

/// The record of a document; none where it holds an index, or is nobody's we know.
pub(super) fn found(document: Document, script: bool) -> Result<Option<Found>> {
    let (mut id, mut revision) = (None, None);
    let mut record = Document::with_capacity(document.len());
    for (name, value) in document {
        match (&*name, value) {
            ("_id", Value::Text(text)) => id = Some(text),
            ("_rev", Value::Text(text)) => revision = Some(text),
            (own, _) if own.starts_with('_') => {}
            (_, value) => record.push(name, if script { of_script(value) } else { value }),
        }
    }
    match (id, revision) {
        (Some(id), Some(revision)) => Ok(name::key(id).map(|key| Found { key, revision, record })),
        _ => Err(Error::malformed("a document of CouchDB's without _id or _rev")),
    }
}

/// JavaScript has only floating numbers. Whole ones beyond 2^53, which are not put here, were
/// floating ones, and are written with digits that they do not have.
fn of_script(value: Value) -> Value {
    match value {
        Value::Int(v) if v.unsigned_abs() > super::WHOLE => Value::Float(v as f64),
        Value::BigInt(digits) => digits.parse().map_or(Value::BigInt(digits), Value::Float),
        Value::List(list) => Value::List(list.into_iter().map(of_script).collect()),
        Value::Map(map) => {
            Value::Map(map.into_iter().map(|(name, value)| (name, of_script(value))).collect())
        }
        value => value,
    }
}
