//! `DELETE /v1/docs/{collection}/{id}`.

use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use steelyard_store::store::{Key, Store};

use super::{
    get,
    idempotency::{self, Change},
    put::{IDEMPOTENCY_KEY, IF_MATCH, found},
    revision::{Found, Wanted},
};
use crate::{
    http::{Answer, Call, Route},
    problem::Problem,
    tenants::Access,
};

pub(super) const ROUTE: Route = Route {
    method: Method::DELETE,
    path: "/v1/docs/{collection}/{id}",
    name: "delete",
    about: "Deletes a document.",
    access: Access::Write,
    params: &[IF_MATCH, IDEMPOTENCY_KEY],
    sent: None,
    answers: &[Answer { status: 204, about: "It is deleted.", media: &[], schema: None }],
    call: |call| delete(call).boxed(),
};

async fn delete(call: Call) -> Result<Response, Problem> {
    let (collection, id) = (call.existing().await?, call.id()?);
    let store = &*collection.store;
    let wanted = match Wanted::of(&call.headers)? {
        Wanted::Absent => return Err(Problem::invalid("a deletion takes If-Match only")),
        wanted => wanted,
    };
    let deleted = match call.header(IDEMPOTENCY_KEY.name)? {
        Some(key) => {
            let request = [b"delete", collection.name.as_str().as_bytes(), id.as_bytes(), b""];
            let change = Change { store, id: &id, document: None, wanted: &wanted, over: None };
            idempotency::once(&call.tenant, key, &request, change).await.map(drop)
        }
        None => remove(store, &id, &wanted).await,
    };
    call.tenant.confirm(&call.gateway).await?;
    deleted?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Deletes a document if it is as wanted.
pub(super) async fn remove(store: &dyn Store, id: &Key, wanted: &Wanted) -> Result<(), Problem> {
    let none = || Problem::not_found("no document of this id");
    let Wanted::OneOf(_) = wanted else {
        let removed = get::absent(store.remove(std::slice::from_ref(id)).await)?;
        return if removed.unwrap_or(0) > 0 { Ok(()) } else { Err(none()) };
    };
    store.abilities().can_conditional()?;
    let found = found(store, id).await?;
    if found == Found::Absent {
        return Err(none());
    }
    wanted.fits(&found)?;
    // A revision that was there once is never there again: another one now is the answer.
    match found.expected() {
        Some(expected) if store.remove_if(id, &expected).await? => Ok(()),
        _ => Err(Problem::changed("the document has another revision")),
    }
}
