//! `GET /v1/docs/{collection}:each`: all documents, as lines of JSON, in steady memory.

use axum::{
    body::Body,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{FutureExt, TryStreamExt};
use steelyard_base::{Error, ErrorKind};
use steelyard_store::store::{
    Row,
    query::{self, Query},
};
use tokio::sync::mpsc;

use super::{
    condition::{Asked, FIELDS, WHERE},
    give_way, item,
};
use crate::{
    http::{Answer, Call, Route},
    problem::Problem,
    tenants::{Access, Collection},
};

pub(super) const ROUTE: Route = Route {
    method: Method::GET,
    path: "/v1/docs/{collection}:each",
    name: "each",
    about: "All documents that fit a condition, as lines of JSON. The answer is whole only if it ends as HTTP says.",
    access: Access::Read,
    params: &[WHERE, FIELDS],
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
const WAITING: usize = 1;

/// Rows as they are sent.
pub(crate) trait Writer: Send + 'static {
    /// Appends a row.
    fn row(&mut self, row: Row, out: &mut Vec<u8>) -> steelyard_base::Result<()>;
    /// Appends what comes after the last row.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// Rows as the lines of the API.
struct Lines;

impl Writer for Lines {
    fn row(&mut self, row: Row, out: &mut Vec<u8>) -> steelyard_base::Result<()> {
        item(row, out)?;
        out.push(b'\n');
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

async fn each(call: Call) -> Result<Response, Problem> {
    let collection = call.existing().await?;
    let text = |name| call.asked(name).unwrap_or_default().to_owned();
    let asked = Asked { condition: text("where"), fields: text("fields"), ..Asked::default() };
    let query = match asked.query(&*collection.store).await {
        Err(problem) if problem.status() == axum::http::StatusCode::NOT_FOUND => None,
        query => Some(query?),
    };
    let body = streamed(call, collection, query, Lines);
    Ok(([(header::CONTENT_TYPE, super::LINES)], body).into_response())
}

/// Rows that are read or written at a stretch: no other request waits for more.
pub(super) const PART: usize = 16;

/// Rows, some at a time.
pub(super) fn in_parts(rows: Vec<Row>) -> impl Iterator<Item = Vec<Row>> {
    let mut rows = rows.into_iter();
    std::iter::from_fn(move || {
        let some: Vec<Row> = rows.by_ref().take(PART).collect();
        (!some.is_empty()).then_some(some)
    })
}

/// The rows that a query finds, in steady memory; none without a query. A body that cannot be sent whole does not end as
/// HTTP says.
pub(crate) fn streamed(
    mut call: Call,
    collection: Collection,
    query: Option<Query>,
    mut writer: impl Writer,
) -> Body {
    // None: that was all. Where it does not come, the body was cut short, whatever ended the task.
    let (send, receive) = mpsc::channel::<Result<Option<Bytes>, Error>>(WAITING);
    // A task of its own: it holds the store while the body is on its way, and ends when the client is gone.
    tokio::spawn(async move {
        let store = &*collection.store;
        let mut begun = false;
        let sent = async {
            let Some(query) = query else { return Ok(()) };
            let mut rows = query::find(store, &query).await?.rows;
            loop {
                let making = call.gateway.gate.making(call.shares()).await;
                call.take_turn().await;
                let Some(batch) = rows.try_next().await? else { break };
                let mut bytes = Vec::with_capacity(256 * batch.len());
                for some in in_parts(batch) {
                    for row in some {
                        writer.row(row, &mut bytes)?;
                    }
                    give_way().await;
                }
                call.end_turn();
                if let Err(problem) = call.tenant.confirm(&call.gateway).await {
                    return Err(Error::new(ErrorKind::Unavailable, problem.detail()));
                }
                begun = true;
                bytes.shrink_to_fit();
                let bytes = call.counted_in_time(bytes).await;
                drop(making);
                let bytes =
                    bytes.map_err(|e| Error::new(ErrorKind::Unavailable, e.detail().to_owned()))?;
                if send.send(Ok(Some(bytes))).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        };
        let sent: Result<(), Error> = sent.await;
        match sent {
            // A collection that is not there has nothing in it.
            Err(e) if e.kind() != ErrorKind::NotFound || begun => {
                tracing::warn!(target: "gateway", error = e.chain(), "a list was cut short");
                let _ = send.send(Err(e)).await;
            }
            _ => {
                let mut bytes = Vec::new();
                writer.end(&mut bytes);
                let _ = send.send(Ok(Some(bytes.into()))).await;
                let _ = send.send(Ok(None)).await;
            }
        }
    });
    let bytes = futures_util::stream::try_unfold(receive, |mut receive| async {
        match receive.recv().await {
            Some(Ok(Some(bytes))) => Ok(Some((bytes, receive))),
            Some(Ok(None)) => Ok(None),
            Some(Err(e)) => Err(e),
            None => Err(Error::new(ErrorKind::Io, "the list was cut short")),
        }
    });
    Body::from_stream(bytes)
}
