//! What every request of a tenant goes through, in this order: a place among all requests, its key, its limits, its
//! tenant, the database, the operation; and then metrics and log. Programs and browsers differ in their [`Manner`] alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter},
};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{
    Call, Manner, Open, Reached, RequestId, Route, Seen, Visit,
    call::{parameters, whole},
    log::{REQUEST_ID, trace},
};
use crate::{
    ROUTES, gateway::Gateway, limits::Permit, login, metrics::Outcome, page, problem::Problem,
    tenants::TenantDb,
};

/// What is served at a path by a method.
#[derive(Clone, Copy)]
pub(crate) enum Served {
    /// An operation of tenants.
    Tenants(&'static Route),
    /// What needs no tenant, or asks itself who is there.
    Anyone(&'static Open),
}

impl Served {
    fn method(self) -> Method {
        match self {
            Served::Tenants(route) => route.method.clone(),
            Served::Anyone(open) => open.method.clone(),
        }
    }

    fn split(self) -> (&'static str, Option<&'static str>) {
        match self {
            Served::Tenants(route) => route.split(),
            Served::Anyone(open) => (open.path, None),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Served::Tenants(route) => route.name,
            Served::Anyone(open) => open.name,
        }
    }
}

/// What is served at one path: by which method, and by the verb behind a colon.
type Offered = Vec<(Method, Option<&'static str>, Served)>;

/// The manner of programs: a key in a header, problems as JSON.
static PROGRAMS: Manner = Manner {
    first: |_, _, _| Ok(()),
    key: |_, request| key(request),
    told: |problem, _| problem.into_response(),
    last: |_| {},
};

/// The router of all that tenants can ask for.
pub(crate) fn router(gateway: Arc<Gateway>, reached: Reached) -> Router {
    let programs = ROUTES.iter().map(|route| (&PROGRAMS, Served::Tenants(route)));
    let programs = programs.chain([(&PROGRAMS, Served::Anyone(&login::OPEN))]);
    let browsers = page::SERVED.iter().map(|served| (&page::MANNER, *served));
    let mut paths: BTreeMap<&'static str, (&Manner, Offered)> = BTreeMap::new();
    for (manner, served) in programs.chain(browsers) {
        let (path, verb) = served.split();
        let (_, offered) = paths.entry(path).or_insert_with(|| (manner, Vec::new()));
        offered.push((served.method(), verb, served));
    }
    let mut router = Router::new();
    for (path, (manner, offered)) in paths {
        let methods: BTreeSet<String> =
            offered.iter().map(|(method, ..)| method.to_string()).collect();
        let offered: Arc<Offered> = offered.into();
        let answer = move |State(gateway): State<Arc<Gateway>>,
                           params: Result<RawPathParams, RawPathParamsRejection>,
                           request: Request| {
            let params = params.map(|params| {
                let part = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                params.iter().map(part).collect()
            });
            let params = params.map_err(|_| Problem::invalid("the path is not UTF-8"));
            answered(gateway, manner, reached, offered.clone(), params, request)
        };
        // By name too, so that `HEAD` goes the way of `GET`.
        let known = methods.iter().filter_map(|method| {
            MethodFilter::try_from(Method::from_bytes(method.as_bytes()).ok()?).ok()
        });
        let answering = known
            .fold(MethodRouter::new(), |answering, method| answering.on(method, answer.clone()));
        router = router.route(path, answering.fallback(answer));
    }
    router.fallback(no_path).with_state(gateway)
}

async fn no_path(request: Request) -> Response {
    // Who asks for HTML reads it.
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let manner = match accepted.is_some_and(|text| text.contains("text/html")) {
        true => &page::MANNER,
        false => &PROGRAMS,
    };
    plain(manner, &request, nothing())
}

fn nothing() -> Problem {
    Problem::not_found("there is nothing at this path; see /openapi.json")
}

fn plain(manner: &Manner, request: &Request, problem: Problem) -> Response {
    let id = RequestId::of(request.headers());
    let mut response = (manner.told)(problem, &Seen::default());
    (manner.last)(&mut response);
    response.headers_mut().insert(REQUEST_ID, id.value());
    response
}

async fn answered(
    gateway: Arc<Gateway>,
    manner: &'static Manner,
    reached: Reached,
    offered: Arc<Offered>,
    path: Result<Vec<(String, String)>, Problem>,
    request: Request,
) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let trace = trace(request.headers()).map(str::to_owned);
    let mut seen = Seen::default();
    let (mut path, broken) = match path {
        Ok(path) => (path, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let chosen = chosen(&offered, request.method(), &mut path);
    let served = chosen.as_ref().ok().copied();
    let (request, arrived) = arrived(request, gateway.arrival()).await;
    let large = matches!(arrived, Ok(false));
    let refused = broken
        .or(arrived.err())
        .or_else(|| (manner.first)(&gateway, request.headers(), reached).err());
    let done = match (refused, chosen) {
        (Some(problem), _) | (None, Err(problem)) => Err(problem),
        (None, Ok(Served::Tenants(route))) => {
            let_in(&gateway, manner, reached, route, path, request, &mut seen).await
        }
        (None, Ok(Served::Anyone(open))) => {
            (open.call)(Visit { gateway: &gateway, reached, request, seen: &mut seen }).await
        }
    };
    let (problem, cause, mut response) = match done {
        Ok(response) => (None, None, response),
        Err(problem) => {
            // Without a place among the requests, which is somebody else's meanwhile.
            if !problem.hold.is_zero() {
                tokio::time::sleep(problem.hold).await;
            }
            let allow = problem.allow.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
            let (name, cause) = (problem.name(), problem.cause.clone());
            // A link that is no good says nothing of the session.
            if problem.status() == StatusCode::UNAUTHORIZED && !seen.linked {
                seen.cookie = gateway.sessions.cookie();
            }
            let mut response = (manner.told)(problem, &seen);
            allow.map(|allow| response.headers_mut().insert(header::ALLOW, allow));
            (Some(name), cause, response)
        }
    };
    (manner.last)(&mut response);
    response.headers_mut().insert(REQUEST_ID, id.value());
    if large && !response.status().is_success() {
        // The rest of its body may not have been read, and the connection is closed then.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (name, status) = (served.map_or("none", Served::name), response.status().as_u16());
    let elapsed = started.elapsed();
    if let Some(shares) = &seen.shares {
        gateway.gate.answered(shares, status);
    }
    gateway.metrics.answered(&Outcome { route: name, status, elapsed });
    tracing::info!(
        target: "access",
        id = %id, trace, route = name, tenant = seen.tenant, key = seen.key, status,
        ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3, problem, cause,
    );
    response
}

/// The request with its body, where that is small: it is read before anything is decided, so that the connection can be used
/// again whatever is answered. Whether it was.
async fn arrived(request: Request, within: Duration) -> (Request, Result<bool, Problem>) {
    const SMALL: u64 = 8 << 10;
    match request.body().size_hint().exact() {
        Some(0) => (request, Ok(true)),
        Some(1..=SMALL) => {
            let (head, body) = request.into_parts();
            let (body, read) = match whole(body, SMALL as usize, within, |_| Ok(())).await {
                Ok(bytes) => (bytes.into(), Ok(true)),
                Err(problem) => (Body::empty(), Err(problem)),
            };
            (Request::from_parts(head, body), read)
        }
        _ => (request, Ok(false)),
    }
}

/// What a method is for at a path, by the verb in its last part, which is taken off it.
fn chosen(
    offered: &Offered,
    method: &Method,
    path: &mut [(String, String)],
) -> Result<Served, Problem> {
    // What is answered to `HEAD` is the head of what `GET` is answered.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut verb = None;
    if let Some((_, last)) = path.last_mut()
        && let Some(colon) = last.rfind(':')
    {
        verb = offered.iter().find_map(|(_, known, _)| known.filter(|v| *v == &last[colon + 1..]));
        if verb.is_some() {
            last.truncate(colon);
        }
    }
    let here = || offered.iter().filter(|(_, known, _)| *known == verb);
    if let Some((.., served)) = here().find(|(known, ..)| known == method) {
        return Ok(*served);
    }
    let mut allowed: Vec<&str> = here().map(|(method, ..)| method.as_str()).collect();
    if allowed.is_empty() {
        return Err(nothing());
    }
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.sort_unstable();
    let problem = Problem::no_method(format!("it has {}", allowed.join(", ")));
    Err(problem.allowing(allowed.join(", ")))
}

/// An operation of the tenant who is asking.
pub(crate) async fn let_in(
    gateway: &Arc<Gateway>,
    manner: &Manner,
    reached: Reached,
    route: &'static Route,
    path: Vec<(String, String)>,
    request: Request,
    seen: &mut Seen,
) -> Result<Response, Problem> {
    let mut permit = gateway.gate.enter()?;
    let principal = match (manner.key)(gateway, &request) {
        Ok(key) => gateway.grants.principal(&key, &gateway.gate).await,
        Err(problem) => Err(problem),
    };
    let principal = principal.map_err(|problem| match problem.status() {
        StatusCode::UNAUTHORIZED => gateway.gate.stranger(problem),
        _ => problem,
    })?;
    seen.tenant = principal.tenant().to_owned();
    seen.key = principal.key().to_owned();
    seen.shares = Some(principal.grant().shares.clone());
    let rate = principal.grant().tenant.limits.rate(&gateway.config.limits);
    gateway.gate.admit(&mut permit, &principal.grant().shares, rate)?;
    let weight = gateway.gate.weight(&principal.grant().shares);
    TenantDb::may(&principal, route.access)?;
    let known: Vec<&str> =
        route.params.iter().filter(|p| p.place == "query").map(|p| p.name).collect();
    let (head, body) = request.into_parts();
    let query = parameters(head.uri.query(), &known)?;
    let shared = gateway.clone();
    // A task of its own, which goes on where the client is gone: what a store has begun cannot be taken back, and holds its
    // place among the requests until it has ended.
    let work = tokio::spawn(async move {
        let tenant = shared.tenant(principal).await?;
        let (headers, body) = (head.headers, body.into());
        let asking = tenant.clone();
        let mut call = Call {
            gateway: shared.clone(),
            reached,
            tenant,
            headers,
            body,
            path,
            query,
            weight,
            turn: None,
        };
        if route.sent.is_none() {
            call.take_turn().await;
        }
        let response = match (route.call)(call).await {
            Err(problem) => asking.settled(&shared, Err(problem)).await?,
            Ok(response) => response,
        };
        Ok::<_, Problem>(response.map(|body| Body::new(Held { body, _permit: permit })))
    });
    match tokio::time::timeout(gateway.patience(), work).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(Problem::internal("the request could not be finished; the log says why")),
        Err(_) => Err(Problem::timeout(
            "no answer within the time limit; a write may or may not have been done",
        )),
    }
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
