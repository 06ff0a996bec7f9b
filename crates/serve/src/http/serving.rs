//! Connections: so many at once, each with a time for its handshake and for the head of a request, until they are to end.
//!
//! Where few places are left, a connection ends with the answer it gets, and what comes then has less time: clients that keep
//! theirs open, or say nothing, lock nobody out.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{HeaderValue, Request, header},
    response::Response,
};
use futures_util::future::BoxFuture;
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use steelyard_base::Result;
use tokio::sync::Semaphore;

use super::{
    patient::Patient,
    socket::{Incoming as Accepted, Socket},
};

/// The longest head of a request, in bytes.
const HEAD: usize = 32 << 10;
/// How long what is in flight may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Serves a router on a socket, as many connections at once as there are places, until `shutdown` is ready; then finishes what is in flight.
pub(crate) async fn serve(
    socket: Socket,
    router: Router,
    places: Arc<Semaphore>,
    arrival: Duration,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let (graceful, mut shutdown) = (GracefulShutdown::new(), pin!(shutdown));
    // A quarter of them.
    let spare = places.available_permits() / 4;
    loop {
        let place = places.clone().acquire_owned();
        let accepted = async {
            // Closed never: it is ours.
            let place = place.await.ok();
            (socket.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        let incoming = match accepted {
            Ok(incoming) => incoming,
            // Of this one connection, or of no more files for any: that passes.
            Err(e) => {
                tracing::warn!(target: "gateway", error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, places, watcher) = (router.clone(), places.clone(), graceful.watcher());
        // Where few places are left, one who says nothing gives his back soon.
        let scarce = places.available_permits() < spare;
        let arrival = if scarce { arrival / 10 } else { arrival };
        tokio::spawn(async move {
            // A client that hangs up, or does not speak TLS, is no error of ours.
            if let Some(stream) = ready(incoming, arrival).await {
                let stream = Patient::new(stream, arrival);
                let service = Yielding { router: TowerToHyperService::new(router), places, spare };
                let _ = watcher
                    .watch(http(arrival).serve_connection(TokioIo::new(stream), service))
                    .await;
            }
            drop(place);
        });
    }
    drop(socket);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!(target: "gateway", "requests in flight did not end within {} s", GRACE.as_secs());
    }
    Ok(())
}

/// A router whose answers end their connections where few places are left for others.
struct Yielding {
    router: TowerToHyperService<Router>,
    places: Arc<Semaphore>,
    spare: usize,
}

impl Service<Request<Incoming>> for Yielding {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (answered, places, spare) =
            (self.router.call(request), self.places.clone(), self.spare);
        Box::pin(async move {
            let mut response = answered.await?;
            if places.available_permits() < spare {
                response
                    .headers_mut()
                    .insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        })
    }
}

async fn ready(incoming: Accepted, arrival: Duration) -> Option<Box<dyn super::socket::Io>> {
    tokio::time::timeout(arrival, incoming.ready()).await.ok()?.ok()
}

fn http(arrival: Duration) -> hyper::server::conn::http1::Builder {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(arrival).max_buf_size(HEAD);
    http
}
