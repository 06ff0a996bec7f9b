//! What every request of a tenant goes through, in this order: a place among all requests, its key, its limits, its
//! tenant, the database, the operation; and then metrics and log.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter},
};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{
    Call, RequestId, Route,
    call::parameters,
    log::{REQUEST_ID, trace},
};
use crate::{
    ROUTES, gateway::Gateway, limits::Permit, metrics::Outcome, problem::Problem, tenants::TenantDb,
};

/// Routes of one path and method, by the verb behind a colon.
type Verbs = Vec<(Option<&'static str>, &'static Route)>;

/// The router of all that tenants can ask for.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    let mut paths: BTreeMap<&'static str, BTreeMap<String, Verbs>> = BTreeMap::new();
    for route in ROUTES.iter().copied() {
        let (path, verb) = route.split();
        let methods = paths.entry(path).or_default();
        methods.entry(route.method.to_string()).or_default().push((verb, route));
    }
    let mut router = Router::new();
    for (path, methods) in paths {
        let mut answering = MethodRouter::new();
        for (method, verbs) in methods {
            let method = Method::from_bytes(method.as_bytes())
                .ok()
                .and_then(|m| MethodFilter::try_from(m).ok());
            let Some(method) = method else { continue };
            let verbs: Arc<Verbs> = verbs.into();
            let answer = move |State(gateway): State<Arc<Gateway>>,
                               params: RawPathParams,
                               request: Request| {
                let params = params
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                answered(gateway, verbs.clone(), params, request)
            };
            answering = answering.on(method, answer);
        }
        router = router.route(path, answering.fallback(no_method));
    }
    router.fallback(no_path).with_state(gateway)
}

async fn no_path(request: Request) -> Response {
    plain(&request, Problem::not_found("there is nothing at this path; see /openapi.json"))
}

async fn no_method(request: Request) -> Response {
    let mut response =
        plain(&request, Problem::invalid("this path has no such method; see /openapi.json"));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

fn plain(request: &Request, problem: Problem) -> Response {
    let id = RequestId::of(request.headers());
    let mut response = problem.into_response();
    response.headers_mut().insert(REQUEST_ID, id.value());
    response
}

/// What is known of a request by the time it is logged.
#[derive(Default)]
struct Seen {
    tenant: String,
    key: String,
}

async fn answered(
    gateway: Arc<Gateway>,
    verbs: Arc<Verbs>,
    mut path: Vec<(String, String)>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let trace = trace(request.headers()).map(str::to_owned);
    let mut seen = Seen::default();
    let route = chosen(&verbs, &mut path);
    let done = match route {
        Some(route) => let_in(&gateway, route, path, request, &mut seen).await,
        None => Err(Problem::not_found("there is nothing at this path; see /openapi.json")),
    };
    let (problem, cause, mut response) = match done {
        Ok(response) => (None, None, response),
        Err(problem) => (Some(problem.name()), problem.cause.clone(), problem.into_response()),
    };
    response.headers_mut().insert(REQUEST_ID, id.value());
    let (name, status) = (route.map_or("none", |route| route.name), response.status().as_u16());
    let elapsed = started.elapsed();
    gateway.metrics.answered(&Outcome { route: name, status, elapsed });
    tracing::info!(
        target: "access",
        id = %id, trace, route = name, tenant = seen.tenant, key = seen.key, status,
        ms = elapsed.as_secs_f64() * 1e3, problem, cause,
    );
    response
}

/// The route of the verb in the last part of the path, which is taken off it.
fn chosen(verbs: &Verbs, path: &mut [(String, String)]) -> Option<&'static Route> {
    let verb_of = |text: &str| text.rsplit_once(':').map(|(_, verb)| verb.to_owned());
    let last = path.last_mut();
    let verb = last.as_ref().and_then(|(_, value)| verb_of(value));
    let with_verb = verb.and_then(|verb| {
        let route = verbs.iter().find(|(known, _)| *known == Some(&*verb))?.1;
        Some((route, verb.len() + 1))
    });
    match (with_verb, last) {
        (Some((route, cut)), Some((_, value))) => {
            value.truncate(value.len() - cut);
            Some(route)
        }
        _ => verbs.iter().find(|(verb, _)| verb.is_none()).map(|(_, route)| *route),
    }
}

async fn let_in(
    gateway: &Arc<Gateway>,
    route: &'static Route,
    path: Vec<(String, String)>,
    request: Request,
    seen: &mut Seen,
) -> Result<Response, Problem> {
    let mut permit = gateway.gate.enter()?;
    let principal = gateway.grants.principal(&key(&request)?, &gateway.gate).await?;
    seen.tenant = principal.tenant().to_owned();
    seen.key = principal.key().to_owned();
    let rate = principal.grant().tenant.limits.requests_per_second;
    let rate = rate.unwrap_or(gateway.config.limits.requests_per_second);
    gateway.gate.admit(&mut permit, principal.tenant(), principal.key(), rate)?;
    TenantDb::may(&principal, route.access)?;
    let known: Vec<&str> =
        route.params.iter().filter(|p| p.place == "query").map(|p| p.name).collect();
    let (head, body) = request.into_parts();
    let query = parameters(head.uri.query(), &known)?;
    let work = async {
        let tenant = gateway.tenant(principal).await?;
        let call = Call {
            gateway: gateway.clone(),
            tenant,
            headers: head.headers,
            body: body.into(),
            path,
            query,
        };
        (route.call)(call).await
    };
    let response = tokio::time::timeout(gateway.patience(), work).await;
    let response = response.unwrap_or_else(|_| {
        Err(Problem::timeout(
            "no answer within the time limit; a write may or may not have been done",
        ))
    })?;
    Ok(response.map(|body| Body::new(Held { body, _permit: permit })))
}

/// The key of a request.
fn key(request: &Request) -> Result<String, Problem> {
    let given = request.headers().get_all(header::AUTHORIZATION);
    let mut given = given.iter().filter_map(|value| value.to_str().ok());
    let needed = || Problem::unauthorized("a key is needed: Authorization: Bearer KEY");
    let (Some(one), None) = (given.next(), given.next()) else { return Err(needed()) };
    match one.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(key.trim().to_owned()),
        _ => Err(needed()),
    }
}

/// A body that holds its request's place until it is sent.
struct Held {
    body: Body,
    _permit: Permit,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
