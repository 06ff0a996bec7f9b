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
    cursor::{MOST_SORTED, PageStart, Scope},
    each::PART,
    get, give_way, item,
};
use crate::{
    http::{Answer, Call, Memory, Param, Route, Sent},
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
    /// The memory that the rows take.
    pub memory: Memory,
}

/// The page of the list that is asked for, of the collection in the path.
pub(crate) async fn listed(call: &Call, asked: &Asked) -> Result<Listed, Problem> {
    let collection = call.existing().await?;
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
    let mut memory = call.memory();
    let wanted = wanted(&*collection.store, asked, &from, limit, &mut memory).await;
    let Taken { rows, more } = match wanted {
        // A collection that is not there has nothing in it.
        Err(problem) if problem.status() == axum::http::StatusCode::NOT_FOUND => {
            Taken { rows: Vec::new(), more: false }
        }
        found => found?,
    };
    call.tenant.confirm(&call.gateway).await?;
    let skipped = if let PageStart::Skip(n) = from { n } else { 0 };
    let next = match (more, asked.sort.trim().is_empty(), rows.last()) {
        (false, ..) | (.., None) => None,
        (true, true, Some(last)) => scope.write(&PageStart::After(last.key.clone())),
        (true, false, Some(_)) => scope.write(&PageStart::Skip(skipped + rows.len() as u64)),
    };
    Ok(Listed { rows, next, memory })
}

async fn page(call: Call, asked: Asked) -> Result<Response, Problem> {
    let Listed { rows, next, mut memory } = listed(&call, &asked).await?;
    let mut body = b"{\"items\":[".to_vec();
    let mut counted = 0;
    for (n, row) in rows.into_iter().enumerate() {
        if n > 0 {
            body.push(b',');
        }
        item(row, &mut body)?;
        // In JSON a document can be many times what it is in memory.
        if body.len() - counted > STRETCH || n % PART == PART - 1 {
            memory.add(body.len() - counted)?;
            counted = body.len();
            give_way().await;
        }
    }
    body.extend_from_slice(b"],\"next\":");
    body.extend_from_slice(serde_json::json!(next).to_string().as_bytes());
    body.extend_from_slice(b"}");
    let body = memory.until_sent(body);
    Ok(([(header::CONTENT_TYPE, super::JSON), (header::CACHE_CONTROL, "private, no-cache")], body)
        .into_response())
}

/// The documents of a page.
async fn wanted(
    store: &dyn Store,
    asked: &Asked,
    from: &PageStart,
    limit: u64,
    memory: &mut Memory,
) -> Result<Taken, Problem> {
    let query = asked.query(store).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    if !query.sort.is_empty() {
        let skip = if let PageStart::Skip(n) = from { *n } else { 0 };
        if skip + limit > MOST_SORTED {
            let what = format!(
                "a sorted list goes through {MOST_SORTED} documents at most; narrow it by a condition"
            );
            return Err(Problem::invalid(what));
        }
        let answer = query::find(store, &query.limited(skip + limit + 1)).await?;
        let mut all =
            Taking { skip: usize::try_from(skip).unwrap_or(usize::MAX), ..Taking::new(most) };
        all.take(answer.rows, memory).await?;
        return Ok(all.taken());
    }
    let after = if let PageStart::After(key) = from { Some(key) } else { None };
    if !store.abilities().ordered {
        return Err(Problem::unsupported(
            "this store has no order of keys, so it cannot list in pages; use :each",
        ));
    }
    let mut all = Taking::new(most);
    let in_order = by_key(&query, after)?.limited(1);
    if query.filter == Filter::All && store.abilities().can(&in_order).is_err() {
        // The first key that may come after this one.
        let from = after.map(|key| Key::new(format!("{key}\0"))).transpose()?;
        all.fields = query.fields.is_some().then_some(query);
        all.take(store.scan(&KeyRange { from, until: None }).await?, memory).await?;
        return Ok(all.taken());
    }
    // Some at a time, few at first: nothing is known of how large they are.
    let (mut portion, mut after) = (FIRST.min(limit + 1), after.cloned());
    loop {
        let mut some = by_key(&query, after.as_ref())?;
        some.limit = Some(portion);
        let answer = query::find(store, &some).await.map_err(|e| match e.kind() {
            ErrorKind::Unsupported => Problem::unsupported(
                "this store cannot list what fits a condition in pages; use :each",
            ),
            _ => e.into(),
        })?;
        let (rows, weight) = (all.rows.len(), all.weight);
        all.take(answer.rows, memory).await?;
        let came = (all.rows.len() - rows) as u64;
        if all.more || came < portion {
            return Ok(all.taken());
        }
        after = all.rows.last().map(|row| row.key.clone());
        let fit = (PORTION * (all.rows.len() - rows) / (all.weight - weight).max(1)) as u64;
        portion = fit.clamp(1, portion * 8).min(limit + 1 - all.rows.len() as u64).max(1);
    }
}

/// What fits a query behind a key, in the order of keys.
fn by_key(query: &Query, after: Option<&Key>) -> Result<Query, Problem> {
    let (mut query, key): (Query, Path) = (query.clone(), Path::KEY.parse()?);
    if let Some(after) = after {
        let behind = Filter::Field(key.clone(), Test::Gt(after.as_str().into()));
        query.filter = query.filter.and(behind);
    }
    Ok(query.sorted(key, Order::Ascending))
}

/// How much of documents a page has, about, in bytes of memory; one at least.
const WEIGHT: usize = 16 << 20;

/// Documents that are asked for first, and how much of them at once after that, about.
const FIRST: u64 = 26;
const PORTION: usize = 4 << 20;
/// Bytes that are written at a stretch.
const STRETCH: usize = 256 << 10;

/// The rows of a page, as they come.
struct Taking {
    rows: Vec<Row>,
    /// How many there may be.
    most: usize,
    /// Rows that are passed over before the first.
    skip: usize,
    weight: usize,
    /// There is one more than there may be.
    more: bool,
    /// The query whose fields are taken of each.
    fields: Option<Query>,
}

impl Taking {
    fn new(most: usize) -> Taking {
        Taking { rows: Vec::new(), most, skip: 0, weight: 0, more: false, fields: None }
    }

    /// Takes rows, no more than a page may weigh.
    async fn take(&mut self, mut rows: Rows<'_>, memory: &mut Memory) -> Result<(), Problem> {
        while let Some(batch) = rows.try_next().await.map_err(get::unread)? {
            let (mut counted, mut looked) = (self.weight, 0);
            for mut row in batch {
                looked += 1;
                if self.skip > 0 {
                    self.skip -= 1;
                    continue;
                }
                if self.rows.len() == self.most || (self.weight > WEIGHT && !self.rows.is_empty()) {
                    self.more = true;
                    return Ok(());
                }
                let weigh = |(name, value): (&str, &Value)| name.len() + weight_of(value);
                self.weight += row.record.iter().map(weigh).sum::<usize>();
                if let Some(query) = &self.fields {
                    row.record = query.project(std::mem::take(&mut row.record));
                }
                self.rows.push(row);
                if self.weight - counted > STRETCH || looked % PART == 0 {
                    memory.add(self.weight - counted)?;
                    counted = self.weight;
                    give_way().await;
                }
            }
            memory.add(self.weight - counted)?;
        }
        Ok(())
    }

    fn taken(self) -> Taken {
        Taken { rows: self.rows, more: self.more }
    }
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
