//! `PUT /v1/docs/{collection}/{id}`.

use axum::{
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use sha2::{Digest, Sha256};
use steelyard_store::{
    format::Format,
    record::Document,
    store::{Key, Row, Store},
};

use super::{
    accept, get,
    idempotency::{self, Change, OF_A_KEY},
    revision::{self, Found, Wanted},
};
use crate::{
    http::{Answer, Call, Param, Route, Sent},
    problem::Problem,
    tenants::{Access, Room},
};

pub(super) const ROUTE: Route = Route {
    method: Method::PUT,
    path: "/v1/docs/{collection}/{id}",
    name: "put",
    about: "Keeps a document, in place of one of the same id. The collection is made if it is not there.",
    access: Access::Write,
    params: &[IF_MATCH, IF_NONE_MATCH, IDEMPOTENCY_KEY],
    sent: Some(Sent {
        may_be_empty: false,
        media: &[super::JSON, "application/vnd.msgpack", "application/cbor", "application/bson"],
        schema: "Document",
    }),
    answers: &[
        Answer {
            status: 200,
            about: "It took the place of another; its ETag is its revision.",
            media: &[],
            schema: None,
        },
        Answer {
            status: 201,
            about: "It is new; its ETag is its revision.",
            media: &[],
            schema: None,
        },
    ],
    call: |call| put(call).boxed(),
};

pub(super) const IF_MATCH: Param = Param {
    name: "If-Match",
    place: "header",
    kind: "string",
    pattern: Some(r#"^(\*|(W/)?"[A-Za-z0-9-]{0,64}"(, ?(W/)?"[A-Za-z0-9-]{0,64}")*)$"#),
    about: "The ETag that the document must have; * for any document.",
};
pub(super) const IF_NONE_MATCH: Param = Param {
    name: "If-None-Match",
    place: "header",
    kind: "string",
    pattern: Some(r"^\*$"),
    about: "*: there must be no document yet.",
};
pub(super) const IDEMPOTENCY_KEY: Param = Param {
    name: "Idempotency-Key",
    place: "header",
    kind: "string",
    pattern: Some("^[!-~]([ -~]{0,126}[!-~])?$"),
    about: "1 to 128 printable characters. A request that is repeated with the same key within 24 hours is done once.",
};

async fn put(mut call: Call) -> Result<Response, Problem> {
    let id = call.id()?;
    let format = accept::sent(&call.headers)?;
    let bytes = call.body(call.gateway.config.limits.document_bytes).await?;
    let sent = bytes.clone();
    let document = super::apart(bytes.len(), move || match format {
        Format::Json => super::document(&sent),
        other => super::accepted(other.decode_document(&sent)?),
    });
    let document = document.await??;
    // What is no document is refused whatever there is (RFC 9110, section 13.2.1).
    let wanted = Wanted::of(&call.headers)?;
    let key = call.header(IDEMPOTENCY_KEY.name)?;
    let kept = super::kept_bytes(&document) + id.len();
    let of_key = key.map_or(0, |key| key.len() + OF_A_KEY);
    let (_room, mut over) = match call.tenant.room(kept + of_key).await {
        Ok(room) => (room, None),
        Err(problem) => (Room::default(), Some(problem)),
    };
    // What would be refused makes no collection.
    let would_be = |store: &dyn Store| {
        if let Some(problem) = over.take() {
            return Err(problem);
        }
        let row = Row { key: id.clone(), record: document.clone() };
        super::checked(store, &row)?;
        wanted.fits(&Found::Absent)
    };
    let collection = call.made(would_be).await?;
    let store = &*collection.store;
    let done = match key {
        Some(key) => {
            let request = [
                b"put",
                collection.name.as_str().as_bytes(),
                id.as_bytes(),
                &Sha256::digest(&bytes),
            ];
            let document = Some(document);
            let change = Change { store, id: &id, document, wanted: &wanted, over };
            idempotency::once(&call.tenant, key, &request, change).await?
        }
        None => match over {
            Some(problem) => return Err(problem),
            None => write(store, &id, document, &wanted).await?,
        },
    };
    call.tenant.confirm(&call.gateway).await?;
    let status = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = status.into_response();
    let tag = format!("\"{}\"", done.revision);
    response.headers_mut().insert(header::ETAG, get::value(&tag)?);
    if done.repeated {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub revision: String,
    pub created: bool,
    /// It was done before.
    pub repeated: bool,
}

/// How often a condition is tried again that other writers make untrue.
const TRIES: usize = 100;

/// Writes a document if what is there is as wanted.
pub(super) async fn write(
    store: &dyn Store,
    id: &Key,
    document: Document,
    wanted: &Wanted,
) -> Result<Done, Problem> {
    let fresh = revision::fresh()?;
    let row = Row { key: id.clone(), record: revision::given(document, &fresh) };
    let done = |created| Done { revision: fresh.clone(), created, repeated: false };
    super::checked(store, &row)?;
    if *wanted != Wanted::Any {
        store.abilities().can_conditional()?;
    }
    for _ in 0..TRIES {
        let found = found(store, id).await?;
        wanted.fits(&found)?;
        let created = found == Found::Absent;
        match (wanted, found.expected()) {
            (Wanted::Any, _) | (Wanted::Present, None) => {
                store.put(&[row]).await?;
                return Ok(done(created));
            }
            (_, Some(expected)) => {
                if store.put_if(&row, &expected).await? {
                    return Ok(done(created));
                }
            }
            // What has no revision fits no list of them.
            (_, None) => break,
        }
    }
    Err(Problem::conflict("other writers kept changing the document"))
}

/// What is there.
pub(super) async fn found(store: &dyn Store, id: &Key) -> Result<Found, Problem> {
    let found = get::absent(store.get(std::slice::from_ref(id)).await)?;
    Ok(Found::of(found.and_then(|mut all| all.pop().flatten()).as_ref()))
}
