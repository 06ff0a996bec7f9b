//! The front door: the first page, signing in and out, and the files that pages load.

use axum::{
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use maud::html as markup;

use super::{MANNER, collections, guard, html, session};
use crate::{
    catalog::ApiKey,
    gateway::Gateway,
    http::{Open, Reached, Visit, let_in, parameters, whole},
    problem::Problem,
};

pub(super) static HOME: Open =
    Open { method: Method::GET, path: "/", name: "page", call: |visit| home(visit).boxed() };

pub(super) static SIGN_IN: Open = Open {
    method: Method::POST,
    path: "/login",
    name: "page-login",
    call: |visit| login(visit).boxed(),
};

pub(super) static SIGN_OUT: Open = Open {
    method: Method::POST,
    path: "/logout",
    name: "page-logout",
    call: |visit| logout(visit).boxed(),
};

pub(super) static STYLE: Open = Open {
    method: Method::GET,
    path: "/style.css",
    name: "page-style",
    // Another style sheet has another address.
    call: |_| {
        file(STYLE_SHEET, "text/css; charset=utf-8", "public, max-age=31536000, immutable").boxed()
    },
};

pub(super) static ICON: Open = Open {
    method: Method::GET,
    path: "/icon.svg",
    name: "page-icon",
    call: |_| file(include_str!("icon.svg"), "image/svg+xml", "public, max-age=86400").boxed(),
};

pub(super) const STYLE_SHEET: &str = include_str!("style.css");

async fn file(
    text: &'static str,
    media: &'static str,
    kept: &'static str,
) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, media), (header::CACHE_CONTROL, kept)], text).into_response())
}

async fn home(visit: Visit<'_>) -> Result<Response, Problem> {
    let Visit { gateway, reached, request, seen } = visit;
    let headers = request.headers();
    let asked = parameters(request.uri().query(), &["token"])?;
    if let Some((_, token)) = asked.first() {
        let _permit = gateway.gate.enter()?;
        // What only looks whether a link is good does not use it up.
        if request.method() != Method::GET {
            return Err(Problem::invalid("a link is opened by GET"));
        }
        seen.linked = true;
        let key = gateway.sessions.redeem(token).ok_or_else(|| {
            Problem::unauthorized(
                "This link was opened before, or is older than ten minutes. Sign in with a key, or ask for another link.",
            )
        })?;
        return signed_in(gateway, reached, headers, key);
    }
    if gateway.sessions.id(headers).is_none() {
        // From another site the browser sends no cookie, but it may have one.
        let from_elsewhere = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        return Ok(sign_in(None, from_elsewhere));
    }
    let_in(gateway, &MANNER, reached, &collections::ROUTE, Vec::new(), request, seen).await
}

async fn login(visit: Visit<'_>) -> Result<Response, Problem> {
    /// Bytes of the form.
    const MOST: usize = 1 << 10;
    let Visit { gateway, reached, request, seen } = visit;
    guard::is_own(request.headers())?;
    let (head, body) = request.into_parts();
    // Before it takes a place: a stranger can be slow.
    let body = whole(body, MOST, gateway.arrival(), |_| Ok(())).await?;
    let _permit = gateway.gate.enter()?;
    let form = std::str::from_utf8(&body).map_err(|_| Problem::invalid("the form is not UTF-8"))?;
    let form = parameters(Some(form), &["key"])?;
    let text = form.first().map_or("", |(_, key)| key.trim());
    let wrong =
        || Problem::unauthorized("This key is not valid. Look whether it was copied whole.");
    let key = ApiKey::read(text).ok_or_else(wrong)?;
    let principal = gateway.grants.principal(text, &gateway.gate).await.map_err(|problem| {
        match problem.status() {
            StatusCode::UNAUTHORIZED => wrong(),
            _ => problem,
        }
    })?;
    seen.tenant = principal.tenant().to_owned();
    seen.key = principal.key().to_owned();
    signed_in(gateway, reached, &head.headers, key)
}

async fn logout(visit: Visit<'_>) -> Result<Response, Problem> {
    let Visit { gateway, reached, request, .. } = visit;
    guard::is_own(request.headers())?;
    gateway.sessions.end(request.headers());
    Ok(to_home(session::cookie(&gateway.sessions.cookie(), None, reached.tls)))
}

/// A new session in the place of the one that there was, so that nobody goes on with an id from before.
fn signed_in(
    gateway: &Gateway,
    reached: Reached,
    headers: &HeaderMap,
    key: ApiKey,
) -> Result<Response, Problem> {
    gateway.sessions.end(headers);
    let id = gateway.sessions.begin(key)?;
    Ok(to_home(session::cookie(&gateway.sessions.cookie(), Some(&id), reached.tls)))
}

fn to_home(cookie: HeaderValue) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

/// The form to sign in.
pub(super) fn sign_in(wrong: Option<&str>, from_elsewhere: bool) -> Response {
    let main = markup! {
        div class="door" {
            h1 { "Sign in" }
            @if let Some(wrong) = wrong { (html::wrong(wrong)) }
            @if from_elsewhere {
                p { "A link led here. If you are signed in already, " a href="/" { "go to the collections" } "." }
            }
            form class="sheet" method="post" action="/login" {
                div class="field" {
                    label for="key" { "API key" }
                    input id="key" name="key" type="password" required autocomplete="current-password"
                        autocapitalize="off" spellcheck="false" aria-describedby="about-key";
                    p id="about-key" class="quiet" {
                        "16 characters, a dot, and 43 more. The operator of this gateway makes keys: steelyard tenant key add."
                    }
                }
                button type="submit" { "Sign in" }
            }
        }
    };
    html::page("Sign in", None, main)
}
