//! `/api`: the description of the API as a page, from the table of routes; and `/openapi.json`, for programs.

use std::sync::LazyLock;

use axum::{
    http::{Method, header},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use maud::{Markup, html as markup};

use super::{
    guard,
    html::{self, Column},
    text,
};
use crate::{
    ROUTES,
    http::{Answer, Open, Param, Route, Sent, Visit, description},
    login,
    problem::Problem,
    tenants::Access,
};

pub(super) static PAGE: Open =
    Open { method: Method::GET, path: "/api", name: "page-api", call: |visit| show(visit).boxed() };

pub(super) static DESCRIPTION: Open = Open {
    method: Method::GET,
    path: "/openapi.json",
    name: "openapi",
    call: |_| {
        // Made once: anybody may ask for it, all the time.
        static TEXT: LazyLock<String> = LazyLock::new(|| description().to_string());
        let json = [(header::CONTENT_TYPE, "application/json")];
        async move { Ok((json, TEXT.as_str()).into_response()) }.boxed()
    },
};

async fn show(visit: Visit<'_>) -> Result<Response, Problem> {
    let origin = guard::origin(visit.request.headers(), visit.reached);
    let origin = origin.as_deref().unwrap_or(text::UNKNOWN);
    let main = markup! {
        h1 { "API" }
        p {
            "Each request has an API key, or the token of a login: "
            code { "Authorization: Bearer KEY" } ". A key is of one tenant, and reaches the documents of no other. "
            "For programs: " a href="/openapi.json" { "openapi.json" } " (OpenAPI 3.1)."
        }
        nav aria-label="Operations" {
            ul class="index operations" {
                @for route in ROUTES {
                    li {
                        a href={ "#" (route.name) } { (route.name) }
                        span class="leader" aria-hidden="true" {}
                        code class="count" { (route.method) " " (route.path) }
                    }
                }
                li {
                    a href="#login" { "login" }
                    span class="leader" aria-hidden="true" {}
                    code class="count" { "POST " (login::PATH) }
                }
            }
        }
        @for route in ROUTES { (operation(route, origin)) }
        section aria-labelledby="login" {
            h2 id="login" { "login" }
            p { code { "POST " (login::PATH) } }
            p { (login::ABOUT) ". It needs no key." }
            pre class="flow" tabindex="0" {
                code {
                    "curl " (origin) (login::PATH) " \\\n  -H \"Content-Type: application/json\" -d '{\"user\":\"ann\",\"password\":\"…\"}'"
                }
            }
        }
        section aria-labelledby="problems" {
            h2 id="problems" { "Problems" }
            p {
                "What was not done is answered as " code { "application/problem+json" }
                " (RFC 9457): " code { "type" } " is one of these, and " code { "detail" } " says what to do."
            }
            (problems())
        }
    };
    Ok(html::page("API", None, main))
}

fn problems() -> Markup {
    let columns = [("type", Column::Text), ("Status", Column::Number), ("Title", Column::Text)];
    let lines = Problem::KINDS.iter().map(|(name, status, title)| {
        vec![
            format!("urn:steelyard:problem:{name}"),
            status.as_u16().to_string(),
            (*title).to_owned(),
        ]
    });
    html::table("Kinds of problems", &columns, lines)
}

fn operation(route: &Route, origin: &str) -> Markup {
    let params = route.params;
    markup! {
        section aria-labelledby=(route.name) {
            h2 id=(route.name) { (route.name) }
            p { code { (route.method) " " (route.path) } }
            p {
                (route.about)
                @if route.access == Access::Write { " It needs a key that may write." }
            }
            @if !params.is_empty() {
                dl class="terms" {
                    @for Param { name, place, kind, about, .. } in params {
                        dt { code { (name) } " " span class="quiet" { (place) ", " (kind) } }
                        dd { (about) }
                    }
                }
            }
            @if let Some(Sent { media, .. }) = &route.sent { p { "Body: " (list(media)) } }
            ul {
                @for Answer { status, about, media, .. } in route.answers {
                    li {
                        (status) ": " (about)
                        @if !media.is_empty() { " As " (list(media)) "." }
                    }
                }
            }
            pre class="flow" tabindex="0" { code { (curl(route, origin)) } }
        }
    }
}

fn list(media: &[&str]) -> Markup {
    markup! {
        @for (n, media) in media.iter().enumerate() {
            @if n > 0 { ", " }
            code { (media) }
        }
    }
}

/// A request that can be made as it stands, with a key.
fn curl(route: &Route, origin: &str) -> String {
    let path = route.path.replace("{collection}", "people").replace("{id}", "bob");
    let method = match route.method {
        Method::GET => String::new(),
        ref other => format!("-X {other} "),
    };
    let sent = route.sent.as_ref().map_or(String::new(), |sent| {
        let body = match sent.schema {
            "Query" => "{\"where\":{\"age\":{\"$gte\":60}},\"limit\":10}",
            "Change" => "{\"id\":\"bob\",\"doc\":{\"name\":\"Bob\",\"age\":61}}",
            _ => "{\"name\":\"Bob\",\"age\":61}",
        };
        let media = sent.media.first().unwrap_or(&"application/json");
        format!(" \\\n  -H \"Content-Type: {media}\" -d '{body}'")
    });
    format!("curl {method}-H \"Authorization: Bearer $KEY\" \"{origin}{path}\"{sent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_body_that_the_operation_takes() {
        for route in ROUTES {
            let line = curl(route, "http://h");
            assert!(
                line.contains("http://h/v1/") && !line.contains('{') || route.sent.is_some(),
                "{line}"
            );
            let schemas = ["Document", "Query", "Change"];
            assert!(
                route.sent.as_ref().is_none_or(|sent| schemas.contains(&sent.schema)),
                "{line}"
            );
        }
    }
}
