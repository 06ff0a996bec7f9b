//! `/`: the collections of the tenant.

use std::time::Duration;

use axum::{http::Method, response::Response};
use futures_util::{FutureExt, StreamExt, stream};
use maud::html;
use tokio::time::Instant;

use super::{guard, html::page, text};
use crate::{
    docs::absent,
    http::{Call, Route},
    names::CollectionName,
    problem::Problem,
    tenants::Access,
};

/// It is reached from the front door, which also stands at this path.
pub(super) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/",
    name: "page",
    about: "The collections, as a page.",
    access: Access::Read,
    params: &[],
    sent: None,
    answers: &[],
    call: |call| show(call).boxed(),
};

/// Collections of a page.
const MOST: usize = 100;
/// What can be counted in this time is, so many collections at once.
const COUNTING: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 4;

async fn show(call: Call) -> Result<Response, Problem> {
    let mut names = call.tenant.collections().await?;
    names.sort();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    let until = Instant::now() + COUNTING;
    let counts: Vec<_> = names.iter().map(|name| count(&call, name, until)).collect();
    let counts: Vec<Option<u64>> = stream::iter(counts).buffered(AT_ONCE).collect().await;
    call.tenant.confirm(&call.gateway).await?;
    let uncounted = counts.contains(&None);
    let main = html! {
        h1 { "Collections" }
        @if names.is_empty() {
            p { "There is none yet. The first document that is written makes its collection:" }
            pre class="flow" tabindex="0" {
                code { (text::first_write(guard::origin(&call.headers, call.reached).as_deref())) }
            }
        } @else {
            ul class="index" {
                @for (name, count) in names.iter().zip(counts) {
                    li {
                        a href=(format!("/c/{name}")) { (name.as_str()) }
                        span class="leader" aria-hidden="true" {}
                        span class="count" {
                            @match count {
                                Some(1) => "1 record",
                                Some(n) => { (text::grouped(n)) " records" }
                                None => { "… " span class="hidden" { "not counted" } }
                            }
                        }
                    }
                }
            }
        }
        @if uncounted { p class="quiet" { "…: counting takes too long here." } }
        @if more > 0 {
            p class="quiet" { "And " (text::grouped(more as u64)) " more, which the API lists." }
        }
        p class="quiet" { "For programs: " a href="/api" { "the API" } "." }
    };
    Ok(page("Collections", Some(call.tenant.principal().tenant()), main))
}

/// How many records there are; none where that takes too long, or cannot be told.
async fn count(call: &Call, name: &CollectionName, until: Instant) -> Option<u64> {
    if Instant::now() >= until {
        return None;
    }
    let collection = call.tenant.existing(name.clone()).await.ok()?;
    let count = tokio::time::timeout_at(until, collection.store.count()).await.ok()?;
    Some(absent(count).ok()?.unwrap_or(0))
}
