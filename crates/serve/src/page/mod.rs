//! The page: what a gateway shows to browsers, on the listener of tenants.
//!
//! Operators have a page on theirs, of all tenants ([`tenants`]).
//!
//! It is HTML that is made here, without scripts. A page is an operation of a tenant like those of the API: a session holds
//! a key, and from there on the request goes the same way (`http/pipeline.rs`); lists and documents come from the functions
//! of the API (`docs`). This room makes pages of them and knows no store.

mod api;
mod collections;
mod export;
mod front;
mod guard;
mod html;
mod record;
mod records;
mod session;
mod tenants;
mod text;

use axum::http::{HeaderName, HeaderValue, header};

use crate::{
    http::{Manner, Open, Served},
    problem::Problem,
};

pub(crate) use guard::is_named;
pub(crate) use session::Sessions;
pub(crate) use tenants::tenants;

/// Files that pages load.
pub(crate) static FILES: &[&Open] = &[&front::STYLE, &front::ICON];

/// All of it.
pub(crate) static SERVED: &[Served] = &[
    Served::Anyone(&front::HOME),
    Served::Anyone(&front::SIGN_IN),
    Served::Anyone(&front::SIGN_OUT),
    Served::Anyone(&front::STYLE),
    Served::Anyone(&front::ICON),
    Served::Anyone(&api::PAGE),
    Served::Anyone(&api::DESCRIPTION),
    Served::Tenants(&records::ROUTE),
    Served::Tenants(&record::ROUTE),
    Served::Tenants(&export::ROUTE),
];

/// The manner of browsers: a session in a cookie, problems as pages.
pub(crate) static MANNER: Manner = Manner {
    first: guard::is_named,
    key: |gateway, request| {
        let key = gateway.sessions.key(request.headers());
        let key = key.map(|key| key.reveal());
        key.ok_or_else(|| Problem::unauthorized("Nobody is signed in here, or not any more."))
    },
    told: html::told,
    last: |response| {
        for (name, value) in HEADERS {
            let value = HeaderValue::from_static(value);
            response.headers_mut().entry(name).or_insert(value);
        }
    },
};

/// What is loaded comes from here, and forms go here; nothing runs, nothing is framed.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Headers of every answer that does not have them already.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
