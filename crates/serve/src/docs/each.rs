//! `GET /v1/docs/{collection}:each`: all documents, as lines of JSON, in steady memory.

use axum::{
    body::Body,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{FutureExt, TryStreamExt};
use steelyard_base::{Error, ErrorKind};
use steelyard_store::store::{KeyRange, query};
use tokio::sync::mpsc;

use super::{condition::Asked, item};
use crate::{
    http::{Answer, Call, Param, Route},
    problem::Problem,
    tenants::Access,
};

pub(super) const ROUTE: Route = Route {
    method: Method::GET,
    path: "/v1/docs/{collection}:each",
    name: "each",
    about: "All documents that fit a condition, as lines of JSON. The answer is whole only if it ends as HTTP says.",
    access: Access::Read,
    params: &[
        Param {
            name: "where",
            place: "query",
            kind: "string",
            about: "A condition: age>=60 and name~Bob",
        },
        Param {
            name: "fields",
            place: "query",
            kind: "string",
            about: "Only these fields: name,age",
        },
    ],
    sent: None,
    answers: &[Answer {
        status: 200,
        about: "A document a line.",
        media: &[super::LINES],
        schema: Some("Item"),
    }],
    call: |call| each(call).boxed(),
};

/// Batches that wait for a slow client.
const WAITING: usize = 2;

async fn each(call: Call) -> Result<Response, Problem> {
    let collection = call.existing()?;
    let text = |name| call.asked(name).unwrap_or_default().to_owned();
    let asked = Asked { condition: text("where"), fields: text("fields"), ..Asked::default() };
    let query = match asked.query(&*collection.store).await {
        Err(problem) if problem.status() == axum::http::StatusCode::NOT_FOUND => None,
        query => Some(query?),
    };
    let (send, receive) = mpsc::channel::<Result<Bytes, Error>>(WAITING);
    // A task of its own: it holds the store while the body is on its way, and ends when the client is gone.
    tokio::spawn(async move {
        let Some(query) = query else { return };
        let store = &*collection.store;
        let sent = async {
            let mut rows = match query == query::Query::default() {
                true => store.scan(&KeyRange::all()).await?,
                false => query::find(store, &query).await?.rows,
            };
            while let Some(batch) = rows.try_next().await? {
                let mut lines = Vec::with_capacity(256 * batch.len());
                for row in batch {
                    item(row, &mut lines)?;
                    lines.push(b'\n');
                }
                if let Err(problem) = call.tenant.confirm(&call.gateway).await {
                    return Err(Error::new(ErrorKind::Unavailable, problem.detail()));
                }
                if send.send(Ok(lines.into())).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        };
        match sent.await {
            // A collection that is not there has nothing in it.
            Err(e) if e.kind() != ErrorKind::NotFound => {
                tracing::warn!(target: "gateway", error = e.chain(), "a list was cut short");
                let _ = send.send(Err(e)).await;
            }
            _ => {}
        }
    });
    let lines = futures_util::stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|lines| (lines, receive))
    });
    Ok(([(header::CONTENT_TYPE, super::LINES)], Body::from_stream(lines)).into_response())
}
