//! The frame of every page, and the pages of errors.

use std::sync::LazyLock;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest, Sha256};

use super::{front, session, text};
use crate::{http::Seen, problem::Problem, random};

/// The address of the style sheet: another one for each, so that a browser may keep it.
static STYLE_URL: LazyLock<String> = LazyLock::new(|| {
    format!("/style.css?v={}", random::as_hex(&Sha256::digest(front::STYLE_SHEET)[..6]))
});

/// A page. `tenant` is that of whoever is signed in.
pub(super) fn page(title: &str, tenant: Option<&str>, main: Markup) -> Response {
    let who = html! {
        @if let Some(tenant) = tenant {
            form class="who" method="post" action="/logout" {
                span { span class="quiet" { "Tenant " } strong { (tenant) } }
                button class="plain" type="submit" { "Sign out" }
            }
        }
    };
    framed(title, who, main)
}

/// A page with something beside the name of the program.
pub(super) fn framed(title: &str, beside: Markup, main: Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (text::short(title, 80)) " · steelyard" }
                link rel="icon" type="image/svg+xml" href="/icon.svg";
                link rel="stylesheet" href=(*STYLE_URL);
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                header class="top" {
                    a class="brand" href="/" {
                        img src="/icon.svg" alt="" width="30" height="30";
                        "steelyard"
                    }
                    (beside)
                }
                main id="main" tabindex="-1" { (main) }
            }
        }
    };
    let mut response = Response::new(Body::from(page.into_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Nothing for other sites. With `no-referrer`, though, browsers send forms with `Origin: null`, as if they came from
    // anywhere (Fetch, "append a request Origin header").
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Where one is: links to what is above, and the name of the page.
pub(super) fn trail(above: &[(String, String)], here: &str) -> Markup {
    html! {
        nav class="trail" aria-label="Breadcrumb" {
            ol {
                @for (url, name) in above { li { a href=(url) { (name) } } }
                li { span aria-current="page" { (here) } }
            }
        }
    }
}

/// Whether a column of a table has numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Text,
    Number,
}

/// A table whose lines begin with what they are about. Its roles are said, as a phone shows it as blocks.
pub(super) fn table(
    label: &str,
    columns: &[(&str, Column)],
    lines: impl Iterator<Item = Vec<String>>,
) -> Markup {
    let class = |kind: Column| (kind == Column::Number).then_some("number");
    html! {
        div class="scroll" role="region" aria-label=(label) tabindex="0" {
            table role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        @for (name, kind) in columns {
                            th role="columnheader" scope="col" class=[class(*kind)] { (name) }
                        }
                    }
                }
                tbody role="rowgroup" {
                    @for line in lines {
                        tr role="row" {
                            @for (n, (cell, (name, kind))) in line.iter().zip(columns).enumerate() {
                                @if n == 0 { th role="rowheader" scope="row" { (cell) } }
                                @else {
                                    td role="cell" class=[class(*kind)] data-label=(name) { span { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A command to copy.
pub(super) fn command(curl: &str) -> Markup {
    html! {
        section aria-labelledby="command" {
            h2 id="command" { "The same with curl" }
            pre class="flow" tabindex="0" { code { (curl) } }
            p class="quiet" { "Put an API key in place of " code { "$KEY" } ", or set the variable." }
        }
    }
}

/// What went wrong. Where a place in a condition is pointed at, that keeps its columns.
pub(super) fn wrong(detail: &str) -> Markup {
    let (what, place) = detail.split_once('\n').unwrap_or((detail, ""));
    html! {
        div id="wrong" class="wrong" role="alert" {
            p { (what) }
            @if !place.is_empty() { pre tabindex="0" { (place) } }
        }
    }
}

/// A problem as a page. Where nobody is signed in, that is the form to do so.
pub(super) fn told(problem: Problem, seen: &Seen) -> Response {
    let (status, detail) = (problem.status(), text::sentence(problem.detail()));
    let page = match status {
        StatusCode::UNAUTHORIZED => front::sign_in(Some(&detail), false),
        _ => failed(status, &detail, seen),
    };
    // Its headers say when to try again, and the like.
    let mut response = problem.into_response();
    response.headers_mut().extend(page.headers().clone());
    if status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::SET_COOKIE, session::cookie(&seen.cookie, None, false));
    }
    response.map(|_| page.into_body())
}

fn failed(status: StatusCode, detail: &str, seen: &Seen) -> Response {
    let title = match status {
        StatusCode::BAD_REQUEST => "This was not understood",
        StatusCode::FORBIDDEN => "This is not allowed",
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::PAYLOAD_TOO_LARGE => "This is too large",
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::NOT_IMPLEMENTED => "This cannot be done",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
        StatusCode::GATEWAY_TIMEOUT => "This took too long",
        _ => "Something failed",
    };
    let main = html! {
        h1 { (title) }
        (wrong(detail))
        p { a href="/" { "To the collections" } }
        p class="quiet" { "Status " (status.as_u16()) }
    };
    page(title, (!seen.tenant.is_empty()).then_some(&*seen.tenant), main)
}
