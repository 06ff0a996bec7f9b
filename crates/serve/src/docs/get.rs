//! `GET /v1/docs/{collection}/{id}`.

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use steelyard_base::ErrorKind;
use steelyard_store::{record::Document, store::Key};

use super::{
    accept::{self, Chosen, STORED},
    revision,
};
use crate::{
    http::{Answer, Call, Param, Route},
    problem::Problem,
    tenants::{Access, Collection},
};

pub(super) const ROUTE: Route = Route {
    method: Method::GET,
    path: "/v1/docs/{collection}/{id}",
    name: "get",
    about: "A document.",
    access: Access::Read,
    params: &[Param {
        name: "If-None-Match",
        place: "header",
        kind: "string",
        pattern: None,
        about: "An ETag that is known already.",
    }],
    sent: None,
    answers: &[
        Answer {
            status: 200,
            about: "The document; its ETag is its revision.",
            media: &[
                super::JSON,
                "application/vnd.msgpack",
                "application/cbor",
                "application/bson",
                STORED,
            ],
            schema: Some("Document"),
        },
        Answer { status: 304, about: "It is as it was.", media: &[], schema: None },
    ],
    call: |call| get(call).boxed(),
};

async fn get(call: Call) -> Result<Response, Problem> {
    let (collection, id) = (call.existing().await?, call.id()?);
    let chosen = accept::chosen(&call.headers, collection.store.blobs().is_some())?;
    if let (Chosen::AsStored, Some((blobs, _))) = (&chosen, collection.store.blobs()) {
        let found = blobs.get(std::slice::from_ref(&id)).await;
        call.tenant.confirm(&call.gateway).await?;
        let bytes = absent(found)?.and_then(|mut all| all.pop().flatten()).ok_or_else(none)?;
        return Ok(([(header::CONTENT_TYPE, STORED)], bytes).into_response());
    }
    let Chosen::Format(format, media) = chosen else { return Err(none()) };
    let mut document = document(&call, &collection, &id).await?;
    let revision = revision::taken(&mut document);
    let tag = revision::tag(revision.as_deref(), &document)?;
    let mut response = match revision::is_known(&call.headers, &tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let mut bytes = Vec::with_capacity(1024);
            format.encode_document(&document, &mut bytes)?;
            let mut response = Response::new(Body::from(call.counted(bytes)?));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(&tag)?);
    headers.insert(header::VARY, HeaderValue::from_static("authorization, accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(response)
}

fn none() -> Problem {
    Problem::not_found("no document of this id")
}

/// A document as it is kept, with its revision.
pub(crate) async fn document(
    call: &Call,
    collection: &Collection,
    id: &Key,
) -> Result<Document, Problem> {
    let found = collection.get(id).await;
    call.tenant.confirm(&call.gateway).await?;
    absent(found)?.flatten().ok_or_else(none)
}

/// A header's value, which is plain.
pub(super) fn value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text).map_err(|_| Problem::internal("a revision that fits no header"))
}

/// Of reading what is kept. Where that is not what it has to be, who asked can do nothing about it.
pub(crate) fn unread(e: steelyard_base::Error) -> Problem {
    match e.kind() {
        ErrorKind::Malformed => {
            let what = "a document that is kept cannot be read; the log of the gateway says why";
            Problem::internal(what).because(&e)
        }
        _ => e.into(),
    }
}

/// Nothing, where the collection is not there.
pub(crate) fn absent<T>(found: steelyard_base::Result<T>) -> Result<Option<T>, Problem> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unread(e)),
    }
}
