//! What operators ask, on a listener of its own and without a key: their page, metrics and health.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{Reached, Seen, Visit};
use crate::{gateway::Gateway, page};

pub(crate) fn operators(gateway: Arc<Gateway>, reached: Reached) -> Router {
    // A page that a browser on this machine shows must not read them under a name of its own (DNS rebinding).
    let named = move |State(gateway): State<Arc<Gateway>>, request: Request, next: Next| async move {
        match page::is_named(&gateway, request.headers(), reached) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        }
    };
    let mut router = Router::new();
    for open in page::FILES {
        let file = move |State(gateway): State<Arc<Gateway>>, request: Request| async move {
            let (seen, reached) = (&mut Seen::default(), reached);
            (open.call)(Visit { gateway: &gateway, reached, request, seen }).await
        };
        router = router.route(open.path, get(file));
    }
    router
        .route("/", get(tenants))
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .layer(from_fn_with_state(gateway.clone(), named))
        .with_state(gateway)
}

async fn tenants(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    page::tenants(&gateway, request.uri().query()).await
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, TEXT)], gateway.metrics.text(&gateway.in_use())).into_response()
}

/// Whether requests can be answered: whether the catalog can be read.
async fn ready(State(gateway): State<Arc<Gateway>>) -> Response {
    match tokio::time::timeout(gateway.patience(), gateway.catalog.is_there()).await {
        Ok(Ok(())) => "ready\n".into_response(),
        Ok(Err(e)) => {
            tracing::warn!(target: "gateway", error = e.chain(), "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the catalog cannot be read\n").into_response()
        }
        Err(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the catalog does not answer\n").into_response()
        }
    }
}
