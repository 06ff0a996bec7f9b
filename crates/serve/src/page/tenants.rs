//! The page of operators, on their own listener: the tenants of the catalog, and what they asked of this process.

use axum::response::{IntoResponse, Response};
use maud::{Markup, html as markup};

use super::{
    MANNER,
    html::{self, Column},
    text,
};
use crate::{
    catalog::{State, TenantRow},
    gateway::Gateway,
    http::parameters,
    problem::Problem,
};

/// Tenants of a page.
const MOST: usize = 100;

const COLUMNS: [(&str, Column); 10] = [
    ("Tenant", Column::Text),
    ("Shard", Column::Text),
    ("State", Column::Text),
    ("Requests a second", Column::Number),
    ("at most", Column::Number),
    ("Requests", Column::Number),
    ("Refused", Column::Number),
    ("Failed", Column::Number),
    ("Collections at most", Column::Number),
    ("Bytes at most", Column::Number),
];

/// The page, from after the tenant that the query names.
pub(crate) async fn tenants(gateway: &Gateway, query: Option<&str>) -> Response {
    let mut response = match listed(gateway, query).await {
        Ok(main) => html::framed("Tenants", markup! {}, main),
        Err(problem) => problem.into_response(),
    };
    (MANNER.last)(&mut response);
    response
}

async fn listed(gateway: &Gateway, query: Option<&str>) -> Result<Markup, Problem> {
    let asked = parameters(query, &["after"])?;
    let after = asked.first().map_or("", |(_, name)| name.as_str());
    let reading = tokio::time::timeout(gateway.patience(), gateway.catalog.tenants());
    let late = |_| Problem::unavailable("the catalog does not answer");
    let mut all = reading.await.map_err(late)??;
    all.retain(|row| row.state != State::Removed);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let count = all.len();
    all.retain(|row| &*row.name > after);
    let more = all.len() > MOST;
    all.truncate(MOST);
    let open = gateway.opened.count();
    Ok(markup! {
        h1 { "Tenants" }
        dl class="facts" {
            div { dt { "Tenants" } dd { (text::grouped(count as u64)) } }
            div { dt { "Shards" } dd { (gateway.config.shards.len()) } }
            div { dt { "Databases open here" } dd { (text::grouped(open)) } }
            div { dt { "Version" } dd { (env!("CARGO_PKG_VERSION")) } }
        }
        @if all.is_empty() {
            p class="none" { "No tenants" @if !after.is_empty() { " after " (after) } "." }
        } @else {
            (html::table("Tenants", &COLUMNS, all.iter().map(|row| line(gateway, row))))
        }
        @if let (true, Some(last)) = (more, all.last()) {
            nav class="pages" aria-label="Pages" {
                a class="next" href={ "/?after=" (last.name) } { "Next " (MOST) }
            }
        }
        p class="quiet" {
            "Requests that this process answered since its start; refused: over a limit, with status 429 or 507; failed: with another status of 500 or more. The rate is that of "
            "the last full minute. Each gateway of this catalog counts its own requests. "
            a href="/metrics" { "Metrics" } " for Prometheus; " a href="/readyz" { "readiness" } "."
        }
    })
}

fn line(gateway: &Gateway, row: &TenantRow) -> Vec<String> {
    let limits = &gateway.config.limits;
    let counts = gateway.gate.counts(&row.name);
    let state = match &row.state {
        State::Moving { shard, .. } => format!("moving to {shard}"),
        state => state.name().to_owned(),
    };
    vec![
        row.name.clone(),
        row.shard.clone(),
        state,
        format!("{:.1}", counts.per_second),
        row.limits.rate(limits).to_string(),
        text::grouped(counts.requests),
        text::grouped(counts.refused),
        text::grouped(counts.failed),
        row.limits.collections(limits).to_string(),
        match row.limits.bytes(limits) {
            0 => "no limit".into(),
            most => text::grouped(most),
        },
    ]
}
