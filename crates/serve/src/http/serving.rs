//! Connections: so many at once, each with a time for the head of a request, until they are to end.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use steelyard_base::Result;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// The longest head of a request, in bytes.
const HEAD: usize = 32 << 10;
/// How long what is in flight may take after the signal to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Serves a router on a listener until `shutdown` is ready; then finishes what is in flight.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: usize,
    arrival: Duration,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let (places, graceful) = (Arc::new(Semaphore::new(connections)), GracefulShutdown::new());
    let mut shutdown = pin!(shutdown);
    loop {
        let place = places.clone().acquire_owned();
        let accepted = async {
            // Closed never: it is ours.
            let place = place.await.ok();
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // Of this one connection, or of no more files for any: that passes.
            Err(e) => {
                tracing::warn!(target: "gateway", error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let connection = connection(stream, router.clone(), arrival);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that hangs up is no error of ours.
            let _ = watched.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!(target: "gateway", "requests in flight did not end within {} s", GRACE.as_secs());
    }
    Ok(())
}

fn connection(
    stream: TcpStream,
    router: Router,
    arrival: Duration,
) -> hyper::server::conn::http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    let _ = stream.set_nodelay(true);
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(arrival).max_buf_size(HEAD);
    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}
