//! `POST /v1/docs/{collection}:bulk`: many writes in one request, with a status for each.

use std::{collections::HashSet, sync::Arc};

use axum::{
    http::{Method, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::FutureExt;
use steelyard_store::{
    record::{Document, Value},
    store::{Key, Row, Store},
};

use super::{
    checked,
    delete::remove,
    each::PART,
    give_way, head,
    put::write,
    revision::{self, Found, Wanted},
    strict,
};
use crate::{
    http::{Answer, Call, Route, Sent},
    names,
    problem::Problem,
    tenants::{Access, Room},
};

pub(super) const ROUTE: Route = Route {
    method: Method::POST,
    path: "/v1/docs/{collection}:bulk",
    name: "bulk",
    about: "Writes many documents: a line {\"id\": …, \"doc\": {…}} keeps one, {\"id\": …, \"delete\": true} deletes one; \
            \"rev\" is the revision it must have, null for none. Each line has its own status in the answer.",
    access: Access::Write,
    params: &[],
    sent: Some(Sent { may_be_empty: true, media: &[super::LINES], schema: "Change" }),
    answers: &[Answer {
        status: 200,
        about: "A status a line, in their order.",
        media: &[super::LINES],
        schema: Some("Changed"),
    }],
    call: |call| bulk(call).boxed(),
};

/// Documents that are written at once.
const BATCH: usize = 500;

/// Documents that are to be written together, of different keys.
#[derive(Default)]
struct Waiting {
    rows: Vec<Row>,
    /// How many bytes each was sent as.
    bytes: Vec<usize>,
    keys: HashSet<Key>,
}

impl Waiting {
    fn push(&mut self, row: Row, bytes: usize) {
        self.keys.insert(row.key.clone());
        self.rows.push(row);
        self.bytes.push(bytes);
    }
}

/// A line of the request.
struct Change {
    id: Key,
    /// None to delete.
    document: Option<Document>,
    wanted: Wanted,
    /// How long the line is.
    bytes: usize,
}

async fn bulk(mut call: Call) -> Result<Response, Problem> {
    let (bytes, documents) =
        (call.gateway.config.limits.bulk_bytes, call.gateway.config.limits.bulk_documents);
    if let Some(name) = ["idempotency-key", "if-match", "if-none-match"]
        .iter()
        .find(|name| call.headers.contains_key(**name))
    {
        return Err(Problem::invalid(format!(
            "{name} is for one document; in bulk, each line has its own \"rev\""
        )));
    }
    let body = call.body(bytes).await?;
    let lines: Vec<(usize, Bytes)> = lines(&body).collect();
    if lines.len() > documents {
        return Err(Problem::too_large(format!("{documents} documents at most in a request")));
    }
    let largest = call.gateway.config.limits.document_bytes;
    let mut store = call.existing().await?.store;
    // With the first document that can be kept.
    let mut is_made = false;
    let mut out = Vec::with_capacity(lines.len() * 64);
    let mut waiting = Waiting::default();
    let mut lines = lines.into_iter();
    // Some at a time, as what is read takes more memory than its bytes.
    let mut changes = Vec::new().into_iter();
    loop {
        let change: Result<Change, Bad> = match changes.next() {
            Some(change) => change,
            None => {
                let some: Vec<(usize, Bytes)> = lines.by_ref().take(PART).collect();
                if some.is_empty() {
                    break;
                }
                give_way().await;
                let bytes = some.iter().map(|(_, line)| line.len()).sum();
                let read = move |(before, line): (usize, Bytes)| read(&line, before, largest);
                let read = move || some.into_iter().map(read).collect::<Vec<_>>();
                changes = super::apart(bytes, read).await?.into_iter();
                continue;
            }
        };
        // Those without a condition go together, until one comes that must not overtake them.
        match change {
            Ok(Change { id, document: Some(document), wanted: Wanted::Any, bytes }) => {
                if waiting.rows.len() == BATCH || waiting.keys.contains(&id) {
                    written(&call, &*store, &mut waiting, &mut out).await;
                }
                let record = revision::given(document, &revision::fresh()?);
                let row = Row { key: id, record };
                match checked(&*store, &row) {
                    Ok(()) => {
                        if !is_made && let Some(made) = made(&call, &Wanted::Any, bytes).await? {
                            (store, is_made) = (made, true);
                        }
                        waiting.push(row, bytes);
                    }
                    Err(e) => {
                        written(&call, &*store, &mut waiting, &mut out).await;
                        told(&call, Some(&row.key), Err(e), &mut out);
                    }
                }
            }
            change => {
                written(&call, &*store, &mut waiting, &mut out).await;
                match change {
                    Ok(change) => {
                        if change.document.is_some()
                            && !is_made
                            && let Some(made) = made(&call, &change.wanted, change.bytes).await?
                        {
                            (store, is_made) = (made, true);
                        }
                        let done = one(&call, &*store, &change).await;
                        told(&call, Some(&change.id), done, &mut out);
                    }
                    Err(Bad { id, problem }) => told(&call, id.as_ref(), Err(*problem), &mut out),
                }
            }
        }
    }
    written(&call, &*store, &mut waiting, &mut out).await;
    Ok(([(header::CONTENT_TYPE, super::LINES)], out).into_response())
}

/// The lines that are not blank, each with the number of those before it.
fn lines(body: &Bytes) -> impl Iterator<Item = (usize, Bytes)> {
    let lines = body.split(|&byte| byte == b'\n').map(|line| body.slice_ref(line));
    lines.enumerate().filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// Makes the collection for a document that is wanted so; none for a document that will be refused.
async fn made(
    call: &Call,
    wanted: &Wanted,
    bytes: usize,
) -> Result<Option<Arc<dyn Store>>, Problem> {
    let (mut is_refused, mut over) = (false, call.tenant.room(bytes).await.err());
    let would_be = |_: &dyn Store| {
        let refused = over.take().map_or_else(|| wanted.fits(&Found::Absent), Err);
        refused.inspect_err(|_| is_refused = true)
    };
    match call.made(would_be).await {
        Ok(made) => Ok(Some(made.store)),
        Err(_) if is_refused => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// A line that cannot be done, and whose it is, as far as that was read.
struct Bad {
    id: Option<Key>,
    problem: Box<Problem>,
}

fn read(line: &[u8], before: usize, largest: usize) -> Result<Change, Bad> {
    let nameless = |problem| Bad { id: None, problem: Box::new(problem) };
    if line.len() > largest {
        let what = format!("a document has {largest} bytes at most");
        return Err(nameless(Problem::too_large(what)));
    }
    strict::check(line, before).map_err(nameless)?;
    let line = steelyard_store::format::Format::Json.decode_document(line);
    let mut line = line.map_err(|e| nameless(e.into()))?;
    let id = match line.remove("id") {
        Some(Value::Text(id)) => names::id(&id).map_err(|e| nameless(e.into()))?,
        _ => return Err(nameless(Problem::invalid("a line has an \"id\", which is text"))),
    };
    let named = |problem| Bad { id: Some(id.clone()), problem: Box::new(problem) };
    change(id.clone(), line).map_err(named)
}

/// The change of an id that a line asks for.
fn change(id: Key, mut line: Document) -> Result<Change, Problem> {
    let wanted = match line.remove("rev") {
        None => Wanted::Any,
        Some(Value::Null) => Wanted::Absent,
        Some(Value::Text(revision)) => Wanted::OneOf(vec![revision]),
        Some(_) => return Err(Problem::invalid("\"rev\" is text or null")),
    };
    let document = match (line.remove("doc"), line.remove("delete")) {
        (Some(Value::Map(document)), None) => Some(document),
        (None, Some(Value::Bool(true))) if wanted != Wanted::Absent => None,
        _ => {
            return Err(Problem::invalid(
                "a line has either a \"doc\", which is a map, or \"delete\": true",
            ));
        }
    };
    if let Some((name, _)) = line.iter().next() {
        return Err(Problem::invalid(format!(
            "unknown name {name:?}; known: id, rev, doc, delete"
        )));
    }
    let document = document.map(super::accepted).transpose()?;
    let bytes = document.as_ref().map_or(0, super::kept_bytes) + id.len();
    Ok(Change { id, document, wanted, bytes })
}

async fn one(
    call: &Call,
    store: &dyn Store,
    change: &Change,
) -> Result<(u16, Option<String>), Problem> {
    call.tenant.confirm(&call.gateway).await?;
    let done = match &change.document {
        Some(document) => {
            let _room = call.tenant.room(change.bytes).await?;
            let done = write(store, &change.id, document.clone(), &change.wanted).await;
            done.map(|done| (if done.created { 201 } else { 200 }, Some(done.revision)))
        }
        None => remove(store, &change.id, &change.wanted).await.map(|()| (204, None)),
    };
    call.tenant.settled(&call.gateway, done).await
}

/// Writes what waits, all at once; where that fails, each by itself, so that each has its own status.
async fn written(call: &Call, store: &dyn Store, waiting: &mut Waiting, out: &mut Vec<u8>) {
    let Waiting { rows, bytes, .. } = std::mem::take(waiting);
    if rows.is_empty() {
        return;
    }
    let put = async |rows: &[Row]| {
        // Before too: a long request does not go on where the tenant is not any more.
        call.tenant.confirm(&call.gateway).await?;
        let done = store.put(rows).await.map_err(Problem::from);
        call.tenant.settled(&call.gateway, done).await
    };
    // Counted once, however often they are tried.
    let room = async |bytes| call.tenant.room(bytes).await;
    let (together, for_all) = match room(bytes.iter().sum()).await {
        Ok(room) => (put(&rows).await, Some(room)),
        Err(problem) => (Err(problem), None),
    };
    for (n, (mut row, bytes)) in rows.into_iter().zip(bytes).enumerate() {
        if n % PART == 0 {
            give_way().await;
        }
        let done = match &together {
            Ok(()) => Ok(()),
            Err(_) => {
                let room = if for_all.is_some() { Ok(Room::default()) } else { room(bytes).await };
                match room {
                    Ok(_room) => put(std::slice::from_ref(&row)).await,
                    Err(refused) => Err(refused),
                }
            }
        };
        let revision = revision::taken(&mut row.record);
        told(call, Some(&row.key), done.map(|()| (200, revision)), out);
    }
}

/// The line of an answer.
fn told(
    call: &Call,
    id: Option<&Key>,
    done: Result<(u16, Option<String>), Problem>,
    out: &mut Vec<u8>,
) {
    let (status, revision, problem) = match done {
        Ok((status, revision)) => (status, revision, None),
        Err(problem) => {
            let status = problem.status().as_u16();
            call.gateway.metrics.refused(status);
            (status, None, Some(problem.to_json()))
        }
    };
    match id {
        Some(id) => head(id, revision.as_deref(), out),
        None => out.extend_from_slice(b"{\"id\":null"),
    }
    out.extend_from_slice(format!(",\"status\":{status}").as_bytes());
    if let Some(problem) = problem {
        out.extend_from_slice(format!(",\"problem\":{problem}").as_bytes());
    }
    out.extend_from_slice(b"}\n");
}
