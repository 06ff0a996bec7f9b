//! `GET /v1/docs` and `GET /v1/docs/{collection}:count`.

use axum::{
    http::Method,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use serde_json::json;

use super::get::absent;
use crate::{
    http::{Answer, Call, Route},
    problem::Problem,
    tenants::Access,
};

pub(super) const LIST: Route = Route {
    method: Method::GET,
    path: "/v1/docs",
    name: "collections",
    about: "The names of the collections.",
    access: Access::Read,
    params: &[],
    sent: None,
    answers: &[Answer {
        status: 200,
        about: "Their names.",
        media: &[super::JSON],
        schema: Some("Collections"),
    }],
    call: |call| list(call).boxed(),
};

pub(super) const COUNT: Route = Route {
    method: Method::GET,
    path: "/v1/docs/{collection}:count",
    name: "count",
    about: "How many documents there are, counted.",
    access: Access::Read,
    params: &[],
    sent: None,
    answers: &[Answer {
        status: 200,
        about: "Their number.",
        media: &[super::JSON],
        schema: Some("Count"),
    }],
    call: |call| count(call).boxed(),
};

async fn list(call: Call) -> Result<Response, Problem> {
    let names = call.tenant.collections().await?;
    call.tenant.confirm(&call.gateway).await?;
    let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    Ok(axum::Json(json!({ "collections": names })).into_response())
}

async fn count(call: Call) -> Result<Response, Problem> {
    let collection = call.existing().await?;
    let count = absent(collection.store.count().await)?;
    call.tenant.confirm(&call.gateway).await?;
    Ok(axum::Json(json!({ "count": count.unwrap_or(0) })).into_response())
}
