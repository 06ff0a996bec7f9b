//! `POST /v1/auth/login`.

use std::time::Duration;

use axum::{
    Json,
    http::{Method, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{UserName, token::SECONDS};
use crate::{
    http::{Open, Visit, whole},
    problem::Problem,
};

pub(crate) const PATH: &str = "/v1/auth/login";

/// What it does.
pub(crate) const ABOUT: &str =
    "Signs a user in: a token for the Authorization header, in place of an API key";

pub(crate) static OPEN: Open =
    Open { method: Method::POST, path: PATH, name: "login", call: |visit| Box::pin(login(visit)) };

/// Bytes of a request.
const MOST: usize = 4096;
/// Tries of one name: so many at once, and then so many a second.
const BURST: u32 = 10;
const PER_SECOND: f64 = 0.2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    user: String,
    password: String,
}

async fn login(visit: Visit<'_>) -> Result<Response, Problem> {
    let Visit { gateway, request, seen, .. } = visit;
    // Before it takes a place: a stranger can be slow.
    let body = whole(request.into_body(), MOST, gateway.arrival(), |_| Ok(())).await?;
    let Login { user, password } = serde_json::from_slice(&body)
        .map_err(|_| Problem::invalid("expected {\"user\":\"…\",\"password\":\"…\"}"))?;
    let wrong = || Problem::unauthorized("the user or the password is not right");
    let user = UserName::new(&user).map_err(|_| wrong())?;
    let place = gateway.logins.passwords.enter().await?;
    // Not before: those who wait leave the places of requests to others.
    let _permit = gateway.gate.enter()?;
    let tries = gateway.logins.tries(&user).take(gateway.clock.now(), PER_SECOND, BURST);
    tries.map_err(|after| {
        Problem::too_many("too many logins of this user").retry(after.max(Duration::from_secs(1)))
    })?;
    let grant = gateway.grants.known(&user.prefix(), &gateway.gate).await?;
    let hash = grant.as_ref().map(|grant| grant.key.mac.clone());
    // Unknown, revoked and wrong take the same time, and are told the same.
    let fits = gateway.logins.passwords.fits(place, password, hash).await?;
    let grant = grant.filter(|_| fits).ok_or_else(wrong)?;
    seen.tenant.clone_from(&grant.tenant.name);
    seen.key = user.prefix();
    let token = gateway.logins.tokens.fresh(&user, &grant.key)?;
    let answer = Json(json!({ "token": token, "expires_in": SECONDS }));
    Ok(([(header::CACHE_CONTROL, "no-store")], answer).into_response())
}

/// Its description.
pub(crate) fn operation() -> Value {
    let text = json!({ "type": "string" });
    json!({ "post": {
        "operationId": "login",
        "summary": ABOUT,
        "security": [],
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
            "type": "object", "required": ["user", "password"], "additionalProperties": false,
            "properties": { "user": text, "password": text },
        } } } },
        "responses": { "200": {
            "description": "A token, and for how many seconds it is good",
            "content": { "application/json": { "schema": {
                "type": "object", "required": ["token", "expires_in"],
                "properties": { "token": text, "expires_in": { "type": "integer" } },
            } } },
        } },
    } })
}
