//! `GET /v1/docs/{collection}` and `POST /v1/docs/{collection}:query`: a page of documents.

use axum::{
    http::{Method, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, TryStreamExt};
use steelyard_base::ErrorKind;
use steelyard_store::{
    record::Value,
    store::{
        Filter, Key, KeyRange, Row, Rows, Store,
        query::{self, Order, Path, Query, Test},
    },
};

use super::{
    condition::{Asked, FIELDS, WHERE},
    cursor::{From, MOST_SORTED, Scope},
    each::in_parts,
    give_way, item,
};
use crate::{
    http::{Answer, Call, Param, Route, Sent},
    problem::Problem,
    tenants::Access,
};

const ANSWERS: &[Answer] = &[Answer {
    status: 200,
    about: "A page of documents.",
    media: &[super::JSON],
    schema: Some("Page"),
}];

pub(super) const LIST: Route = Route {
    method: Method::GET,
    path: "/v1/docs/{collection}",
    name: "list",
    about: "Documents that fit a condition, a page at a time. Without a sort they come in the order of their ids.",
    access: Access::Read,
    params: &[
        WHERE,
        Param {
            name: "sort",
            place: "query",
            kind: "string",
            pattern: None,
            about: "Paths to sort by: -age,name",
        },
        FIELDS,
        Param {
            name: "limit",
            place: "query",
            kind: "integer",
            pattern: None,
            about: "Documents of a page at most.",
        },
        Param {
            name: "cursor",
            place: "query",
            kind: "string",
            pattern: None,
            about: "The next of the page before.",
        },
    ],
    sent: None,
    answers: ANSWERS,
    call: |call| list(call).boxed(),
};

pub(super) const QUERY: Route = Route {
    method: Method::POST,
    path: "/v1/docs/{collection}:query",
    name: "query",
    about: "As list, with the parameters in a body; where may be a map: {\"age\": {\"$gte\": 60}}.",
    access: Access::Read,
    params: &[],
    sent: Some(Sent { may_be_empty: false, media: &[super::JSON], schema: "Query" }),
    answers: ANSWERS,
    call: |call| query(call).boxed(),
};

/// Documents of a page, where nothing is said.
const USUAL: u64 = 100;
/// Bytes of a query.
const QUERY_BYTES: usize = 64 << 10;

async fn list(call: Call) -> Result<Response, Problem> {
    let text = |name| call.asked(name).unwrap_or_default().to_owned();
    let limit =
        call.asked("limit").map(|text| text.parse().map_err(|_| bad_limit(&call))).transpose()?;
    let cursor = call.asked("cursor").map(str::to_owned);
    let asked = Asked {
        condition: text("where"),
        sort: text("sort"),
        fields: text("fields"),
        limit,
        cursor,
    };
    page(call, asked).await
}

async fn query(mut call: Call) -> Result<Response, Problem> {
    let body = call.body(QUERY_BYTES).await?;
    super::strict::check(&body, 0)?;
    let asked = Asked::of(&steelyard_store::format::Format::Json.decode_document(&body)?)?;
    page(call, asked).await
}

fn bad_limit(call: &Call) -> Problem {
    Problem::invalid(format!("limit must be 1 to {}", call.gateway.config.limits.page_documents))
}

/// A page of a list.
pub(crate) struct Listed {
    pub rows: Vec<Row>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The page of the list that is asked for, of the collection in the path.
pub(crate) async fn listed(call: &Call, asked: &Asked) -> Result<Listed, Problem> {
    let collection = call.existing()?;
    let most = call.gateway.config.limits.page_documents;
    let limit = match asked.limit {
        None => USUAL.min(most),
        Some(limit) if (1..=most).contains(&limit) => limit,
        Some(_) => return Err(bad_limit(call)),
    };
    let scope = Scope {
        pepper: &call.gateway.pepper,
        tenant: call.tenant.principal().tenant(),
        collection: collection.name.as_str(),
        asked,
    };
    let from = scope.read()?;
    let Taken { rows, more } = match wanted(&*collection.store, asked, &from, limit).await {
        // A collection that is not there has nothing in it.
        Err(problem) if problem.status() == axum::http::StatusCode::NOT_FOUND => {
            Taken { rows: Vec::new(), more: false }
        }
        found => found?,
    };
    call.tenant.confirm(&call.gateway).await?;
    let skipped = if let From::Skip(n) = from { n } else { 0 };
    let next = match (more, asked.sort.trim().is_empty(), rows.last()) {
        (false, ..) | (.., None) => None,
        (true, true, Some(last)) => scope.write(&From::After(last.key.clone())),
        (true, false, Some(_)) => scope.write(&From::Skip(skipped + rows.len() as u64)),
    };
    Ok(Listed { rows, next })
}

async fn page(call: Call, asked: Asked) -> Result<Response, Problem> {
    let Listed { rows, next } = listed(&call, &asked).await?;
    let mut body = b"{\"items\":[".to_vec();
    for some in in_parts(rows) {
        for row in some {
            if !body.ends_with(b"[") {
                body.push(b',');
            }
            item(row, &mut body)?;
        }
        give_way().await;
    }
    body.extend_from_slice(b"],\"next\":");
    body.extend_from_slice(serde_json::json!(next).to_string().as_bytes());
    body.extend_from_slice(b"}");
    let body = call.counted(body)?;
    Ok(([(header::CONTENT_TYPE, super::JSON), (header::CACHE_CONTROL, "private, no-cache")], body)
        .into_response())
}

/// The documents of a page.
async fn wanted(
    store: &dyn Store,
    asked: &Asked,
    from: &From,
    limit: u64,
) -> Result<Taken, Problem> {
    let mut query = asked.query(store).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    if !query.sort.is_empty() {
        let skip = if let From::Skip(n) = from { *n } else { 0 };
        if skip + limit > MOST_SORTED {
            let what = format!(
                "a sorted list goes through {MOST_SORTED} documents at most; narrow it by a condition"
            );
            return Err(Problem::invalid(what));
        }
        let answer = query::find(store, &query.limited(skip + limit + 1)).await?;
        return Ok(taken(answer.rows, usize::try_from(skip).unwrap_or(usize::MAX), most).await?);
    }
    let after = if let From::After(key) = from { Some(key) } else { None };
    if !store.abilities().ordered {
        return Err(Problem::unsupported(
            "this store has no order of keys, so it cannot list in pages; use :each",
        ));
    }
    if query.filter == Filter::All {
        // The first key that may come after this one.
        let from = after.map(|key| Key::new(format!("{key}\0"))).transpose()?;
        let range = KeyRange { from, until: None };
        let taken = taken(store.scan(&range).await?, 0, most).await?;
        return Ok(Taken { rows: projected(taken.rows, &query), ..taken });
    }
    let key: Path = Path::KEY.parse()?;
    if let Some(after) = after {
        query.filter =
            query.filter.and(Filter::Field(key.clone(), Test::Gt(after.as_str().into())));
    }
    query = query.sorted(key, Order::Ascending).limited(limit + 1);
    let answer = query::find(store, &query).await.map_err(|e| match e.kind() {
        ErrorKind::Unsupported => {
            Problem::unsupported("this store cannot list what fits a condition in pages; use :each")
        }
        _ => e.into(),
    })?;
    Ok(taken(answer.rows, 0, most).await?)
}

fn projected(mut rows: Vec<Row>, query: &Query) -> Vec<Row> {
    for row in &mut rows {
        row.record = query.project(std::mem::take(&mut row.record));
    }
    rows
}

/// How much of documents a page has, about, in bytes of memory; one at least.
const WEIGHT: usize = 16 << 20;

/// The rows behind the first `skip`, `most` at most, and no more than a page may weigh.
async fn taken(mut rows: Rows<'_>, skip: usize, most: usize) -> steelyard_base::Result<Taken> {
    let (mut all, mut skip, mut weight) = (Vec::new(), skip, 0);
    while let Some(batch) = rows.try_next().await? {
        let gone = skip.min(batch.len());
        skip -= gone;
        for row in batch.into_iter().skip(gone) {
            if all.len() == most || (weight > WEIGHT && !all.is_empty()) {
                return Ok(Taken { rows: all, more: true });
            }
            weight +=
                row.record.iter().map(|(name, value)| name.len() + weight_of(value)).sum::<usize>();
            all.push(row);
        }
    }
    Ok(Taken { rows: all, more: false })
}

/// What was taken, and whether there is more.
struct Taken {
    rows: Vec<Row>,
    more: bool,
}

fn weight_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::BigInt(digits) | Value::Decimal(digits) => digits.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.iter().map(weight_of).sum(),
            Value::Map(map) => map.iter().map(|(name, value)| name.len() + weight_of(value)).sum(),
            _ => 0,
        }
}
