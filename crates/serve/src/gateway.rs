//! A gateway: what all requests share, and the function that serves.

use std::{future::Future, sync::Arc, time::Duration};

use steelyard_base::{Error, ErrorKind, Result};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use crate::{
    catalog::{ApiKey, Catalog, Pepper},
    clock::Clock,
    config::{Config, Limits, Shard},
    http::{self, Socket},
    limits::Gate,
    login::{Logins, Tokens},
    metrics::{InUse, Metrics},
    page::Sessions,
    problem::Problem,
    tenants::{Grants, Opened, Principal, TenantDb},
};

/// A gateway before it listens.
pub struct Gateway {
    pub(crate) config: Config,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) pepper: Pepper,
    pub(crate) clock: Clock,
    pub(crate) gate: Gate,
    pub(crate) grants: Grants,
    pub(crate) logins: Logins,
    pub(crate) opened: Opened,
    pub(crate) metrics: Metrics,
    /// Places of connections.
    connections: Arc<Semaphore>,
    pub(crate) sessions: Sessions,
}

impl Gateway {
    /// A gateway of this configuration, with the secret of its file.
    ///
    /// # Errors
    /// Of the configuration, the file, and the catalog; [`Mismatch`](ErrorKind::Mismatch) where all keys in the catalog were
    /// made under another secret.
    pub async fn new(config: Config) -> Result<Gateway> {
        let pepper = Pepper::from_file(&config.secret_file)?;
        let catalog = Arc::new(Catalog::open(&config.catalog).await?);
        catalog.is_of(&pepper).await?;
        Gateway::with(config, catalog, pepper, Clock::system())
    }

    /// A gateway of these parts.
    ///
    /// # Errors
    /// Of the configuration.
    pub fn with(
        config: Config,
        catalog: Arc<Catalog>,
        pepper: Pepper,
        clock: Clock,
    ) -> Result<Gateway> {
        config.check()?;
        let tokens = Arc::new(Tokens::new(&pepper));
        let Limits { connections, requests_at_once, bodies_bytes, open_databases, .. } =
            config.limits;
        let limits = in_use(connections, requests_at_once, bodies_bytes, open_databases);
        let (keys, lease) = (pepper.clone(), config.lease());
        let grants = Grants::new(catalog.clone(), keys, tokens.clone(), clock.clone(), lease);
        Ok(Gateway {
            logins: Logins::new(&pepper, tokens),
            gate: Gate::new(clock.clone(), config.limits.clone()),
            opened: Opened::new(config.limits.open_databases, config.layouts()?),
            metrics: Metrics::new(limits),
            connections: Arc::new(Semaphore::new(connections)),
            sessions: Sessions::new(clock.clone()),
            grants,
            catalog,
            pepper,
            clock,
            config,
        })
    }

    /// What is in use of what is limited.
    pub(crate) fn in_use(&self) -> InUse {
        let connections = match self.connections.available_permits() {
            0 => self.config.limits.connections,
            // One is the next client's.
            free => (self.config.limits.connections - free).saturating_sub(1),
        };
        let (requests, bytes) = self.gate.in_use();
        in_use(connections, requests, bytes, self.opened.used())
    }

    pub(crate) fn arrival(&self) -> Duration {
        Duration::from_secs_f64(self.config.limits.arrival_seconds)
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.config.limits.request_seconds)
    }

    /// The database of a principal.
    pub(crate) async fn tenant(&self, principal: Principal) -> Result<TenantDb, Problem> {
        let row = &principal.grant().tenant;
        // Who asks cannot do anything about it.
        let shard = shard(&self.config, &row.shard).map_err(|e| {
            let what =
                "the database of this tenant cannot be reached; the log of the gateway says why";
            Problem::unavailable(what).retry(Duration::from_secs(30)).because(&e)
        })?;
        let db = self.opened.get(shard, row).await.map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::Mismatch | ErrorKind::Invalid => {
                // Where the lease has run out it may have been moved. Else there is a tenant, so its database has to be there.
                let problem = match principal.grant().holds(&self.clock) {
                    true => Problem::internal(
                        "the database of this tenant cannot be opened; the log of the gateway says why",
                    ),
                    false => Problem::unavailable("this tenant was moved meanwhile").retry(Duration::from_secs(1)),
                };
                problem.because(&e)
            }
            _ => e.into(),
        })?;
        Ok(TenantDb::new(principal, db, self.clock.clone(), &self.config.limits))
    }

    /// The path of the page, signed in with this key, for whoever opens it first within ten minutes.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn page_link(&self, key: &ApiKey) -> Result<String> {
        Ok(format!("/?token={}", self.sessions.token(key)?))
    }

    /// The description of its API, of OpenAPI 3.1, as JSON.
    pub fn description() -> String {
        http::description().to_string()
    }
}

fn in_use(connections: usize, requests: usize, bytes: usize, databases: u64) -> InUse {
    [
        ("connections", connections as u64),
        ("requests_at_once", requests as u64),
        ("bodies_bytes", bytes as u64),
        ("open_databases", databases),
    ]
}

/// The shard of this name.
pub(crate) fn shard<'c>(config: &'c Config, name: &str) -> Result<&'c Shard> {
    config.shards.get(name).ok_or_else(|| {
        let known: Vec<_> = config.shards.keys().map(String::as_str).collect();
        Error::invalid(format!(
            "no shard {name:?} in the configuration; known: {}",
            known.join(", ")
        ))
    })
}

/// Serves tenants on `listener`, and operators on `operators`, until `shutdown` is ready; then finishes what is in
/// flight. The caller owns the sockets and says when to stop.
///
/// Long requests are worked on in short parts, so that short ones go between them. A runtime of tokio looks for new requests
/// after 61 parts by default; `event_interval(4)` of its builder has them wait less (`steelyard serve` does that).
///
/// # Errors
/// Of the sockets.
pub async fn run(
    listener: impl Into<Socket>,
    operators: Option<TcpListener>,
    gateway: Arc<Gateway>,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let until = |mut stopped: watch::Receiver<bool>| async move {
        // Also where whoever would say so is gone.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let (connections, arrival) = (gateway.connections.clone(), gateway.arrival());
    let socket: Socket = listener.into();
    gateway.sessions.at(socket.port());
    let router = http::router(gateway.clone(), socket.reached());
    let tenants = http::serve(socket, router, connections, arrival, until(stopped.clone()));
    let operators = async {
        match operators {
            None => Ok(()),
            Some(listener) => {
                // Metrics answer while the last requests end.
                const CONNECTIONS: usize = 16;
                let socket = Socket::from(listener);
                let router = http::operators(gateway, socket.reached());
                let connections = Arc::new(Semaphore::new(CONNECTIONS));
                http::serve(socket, router, connections, arrival, until(stopped)).await
            }
        }
    };
    let signal = async {
        shutdown.await;
        let _ = stop.send(true);
        Ok(())
    };
    tokio::try_join!(tenants, operators, signal).map(drop)
}
