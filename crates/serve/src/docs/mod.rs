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
    record::{Document, Value},
    store::{Key, Row, Store},
};

use crate::{
    http::Route,
    problem::{Problem, for_clients},
    tenants::OF_A_DOCUMENT,
};

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
        ErrorKind::Unsupported => Problem::unprocessable(for_clients(&e.reason())),
        _ => e.into(),
    })
}

/// How many values a document may have: each takes more memory than the bytes that stand for it.
const VALUES: usize = 50_000;

/// A document that a client may send: without fields of the server, and within bounds.
fn accepted(document: Document) -> Result<Document, Problem> {
    fn count(value: &Value, depth: usize, values: &mut usize) -> Result<(), Problem> {
        *values += 1;
        if *values > VALUES {
            return Err(Problem::too_large(format!("a document has {VALUES} values at most")));
        }
        if depth > strict::DEPTH {
            return Err(Problem::invalid(format!("nested deeper than {}", strict::DEPTH)));
        }
        match value {
            Value::List(list) => list.iter().try_for_each(|value| count(value, depth + 1, values)),
            Value::Map(map) => {
                map.iter().try_for_each(|(_, value)| count(value, depth + 1, values))
            }
            _ => Ok(()),
        }
    }
    let mut values = 0;
    document.iter().try_for_each(|(_, value)| count(value, 1, &mut values))?;
    revision::refused(&document)?;
    Ok(document)
}

/// How many bytes a document takes in a store, about: those of JSON, in which some characters take six.
fn kept_bytes(document: &Document) -> usize {
    fn text(text: &str) -> usize {
        let escaped = |b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
            ..b' ' => 6,
            _ => 1,
        };
        2 + text.bytes().map(escaped).sum::<usize>()
    }
    fn fields(document: &Document) -> usize {
        document.iter().map(|(name, value)| text(name) + 2 + of(value)).sum()
    }
    fn of(value: &Value) -> usize {
        match value {
            Value::Text(value) => text(value),
            Value::BigInt(digits) | Value::Decimal(digits) => digits.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => 2 + list.iter().map(|value| 2 + of(value)).sum::<usize>(),
            Value::Map(map) => 2 + fields(map),
            _ => 8,
        }
    }
    OF_A_DOCUMENT + fields(document)
}

/// Between two parts of long work: what is short goes first. Other tasks of this thread do, and, where there are few
/// processors, the threads that work for those.
pub(crate) async fn give_way() {
    std::thread::yield_now();
    tokio::task::yield_now().await;
}

/// Work on so many bytes, on a thread of its own where they are many: no other request waits for it.
async fn apart<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    const MANY: usize = 32 << 10;
    if bytes < MANY {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::internal("the body could not be read; the log says why"))
}

/// A document as a client sent it, in JSON.
fn document(bytes: &[u8]) -> Result<Document, Problem> {
    strict::check(bytes, 0)?;
    accepted(Format::Json.decode_document(bytes)?)
}
