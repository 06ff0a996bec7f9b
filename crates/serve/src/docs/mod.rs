//! Documents: the operations of tenants on their collections, a file each.
//!
//! To add one: a file with a [`Route`], and a line in [`ROUTES`].

mod accept;
mod bulk;
mod collections;
mod condition;
mod cursor;
mod delete;
mod each;
mod get;
mod idempotency;
mod list;
mod put;
mod revision;
mod strict;

use serde_json::json;
use steelyard_base::ErrorKind;
use steelyard_store::{
    format::Format,
    record::Document,
    store::{Key, Row, Store},
};

use crate::{http::Route, problem::Problem};

// What the page shows too.
pub(crate) use condition::Asked;
pub(crate) use each::{Writer, streamed};
pub(crate) use get::{absent, document as found};
pub(crate) use list::{Listed, listed};
pub(crate) use revision::taken as revision_taken;

/// All of them, as the description of the API has them.
pub(crate) const ROUTES: &[&Route] = &[
    &collections::LIST,
    &collections::COUNT,
    &get::ROUTE,
    &put::ROUTE,
    &delete::ROUTE,
    &list::LIST,
    &list::QUERY,
    &bulk::ROUTE,
    &each::ROUTE,
];

pub(crate) use revision::FIELD as REVISION;

pub(crate) const JSON: &str = "application/json";
pub(crate) const LINES: &str = "application/x-ndjson";

/// A document of a list, as a line of JSON: its id, its revision and itself. `out` gets no line end.
fn item(row: Row, out: &mut Vec<u8>) -> steelyard_base::Result<()> {
    let Row { key, mut record } = row;
    let revision = revision::taken(&mut record);
    head(&key, revision.as_deref(), out);
    out.extend_from_slice(b",\"doc\":");
    Format::Json.encode_document(&record, out)?;
    out.push(b'}');
    Ok(())
}

fn head(key: &Key, revision: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    out.extend_from_slice(json!(key.as_str()).to_string().as_bytes());
    if let Some(revision) = revision {
        out.extend_from_slice(b",\"rev\":");
        out.extend_from_slice(json!(revision).to_string().as_bytes());
    }
}

/// Whether the store can hold a row. What it cannot is the client's to mend.
fn checked(store: &dyn Store, row: &Row) -> Result<(), Problem> {
    store.check(row).map_err(|e| match e.kind() {
        ErrorKind::Unsupported => Problem::unprocessable(e.reason()),
        _ => e.into(),
    })
}

/// A document as a client sent it, in JSON.
fn document(bytes: &[u8]) -> Result<Document, Problem> {
    strict::check(bytes)?;
    let document = Format::Json.decode_document(bytes)?;
    revision::refused(&document)?;
    Ok(document)
}
