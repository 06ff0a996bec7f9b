//! Connections to Redis: a few, each of which carries several operations at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind as Redis,
    FromRedisValue, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, ServerErrorKind,
    TlsCertificates, aio::MultiplexedConnection,
};
use tokio::sync::Mutex;

use crate::{
    Error, ErrorKind, Result,
    store::{Common, Url, tls, within},
};

/// The connections to one server.
pub struct Pool {
    client: Client,
    slots: Vec<Slot>,
    address: String,
    common: Common,
}

#[derive(Default)]
struct Slot {
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Operations under way on it.
    busy: AtomicUsize,
}

/// Counts an operation for as long as it is under way, also where it is given up.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Busy(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool for this URL, without connections yet. Takes the options `socket`, `tls` and `ca`.
    pub fn new(url: &mut Url, common: &Common) -> Result<Pool> {
        let socket = url.take("socket");
        let tls = url.take_flag("tls")?;
        let ca = url.take("ca");
        url.done()?;
        let tls = tls.unwrap_or(url.scheme == "rediss");
        let (host, port) = url.one_host(6379)?;
        let database = match &*url.path {
            "" => 0,
            number => number.parse().ok().filter(|n| *n >= 0).ok_or_else(|| {
                Error::invalid(format!("databases of Redis are numbers, and {number:?} is none"))
            })?,
        };
        let mut login = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = &url.user {
            login = login.set_username(user);
        }
        if let Some(password) = &url.password {
            login = login.set_password(password.reveal());
        }
        let address = match socket {
            Some(_) if tls => return Err(Error::invalid("?socket= and TLS: one of them")),
            Some(path) => ConnectionAddr::Unix(path.into()),
            None if tls => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        };
        let shown = address.to_string();
        let info: ConnectionInfo = address.into_connection_info().map_err(error)?;
        let info = info.set_redis_settings(login);
        let client = if tls {
            tls::ready();
            let read =
                |path: &String| std::fs::read(path).map_err(|e| Error::from(e).in_place(path));
            let root_cert = ca.as_ref().map(read).transpose()?;
            let certificates = TlsCertificates { client_tls: None, root_cert };
            Client::build_with_tls(info, certificates)
        } else if ca.is_some() {
            return Err(Error::invalid("?ca= is for TLS; write rediss://"));
        } else {
            Client::open(info)
        };
        Ok(Pool {
            client: client.map_err(error)?,
            slots: (0..common.pool).map(|_| Slot::default()).collect(),
            address: shown,
            common: common.clone(),
        })
    }

    /// Runs one command.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn ask<T: FromRedisValue>(&self, what: &str, command: &Cmd) -> Result<T> {
        let (_busy, mut connection) = self.connection().await?;
        let done = async { command.query_async(&mut connection).await.map_err(error) };
        self.settle(within(self.common.timeout, what, done).await)
    }

    /// Runs several commands, sent at once.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub async fn run<T: FromRedisValue>(&self, what: &str, commands: &Pipeline) -> Result<T> {
        let (_busy, mut connection) = self.connection().await?;
        let done = async { commands.query_async(&mut connection).await.map_err(error) };
        self.settle(within(self.common.timeout, what, done).await)
    }

    /// The least busy connection.
    async fn connection(&self) -> Result<(Busy<'_>, MultiplexedConnection)> {
        let slots = self.slots.iter();
        let slot =
            slots.min_by_key(|slot| slot.busy.load(Ordering::Relaxed)).expect("one at least");
        let busy = Busy::new(&slot.busy);
        let connect = async {
            // Who finds somebody connecting waits for that, no longer than it may take.
            let mut connection = slot.connection.lock().await;
            if let Some(connection) = &*connection {
                return Ok(connection.clone());
            }
            // Limits are set here, not there: what is too late is thrown away with its connection.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.common.connect_timeout))
                .set_response_timeout(None);
            let new = self.client.get_multiplexed_async_connection_with_config(&config).await;
            Ok(connection.insert(new.map_err(error)?).clone())
        };
        let connected = within(self.common.connect_timeout, "a call", connect).await;
        let connection = connected.map_err(|e| e.in_place(self.address.clone()))?;
        Ok((busy, connection))
    }

    /// After trouble with one connection, none is trusted.
    fn settle<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && matches!(e.kind(), ErrorKind::Unavailable | ErrorKind::Malformed)
        {
            for slot in &self.slots {
                // Where it is locked, somebody is connecting anew.
                if let Ok(mut connection) = slot.connection.try_lock() {
                    *connection = None;
                }
            }
        }
        done.map_err(|e| e.in_place(self.address.clone()))
    }
}

/// An error of the client as one of ours.
pub fn error(e: RedisError) -> Error {
    let text = e.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let kind = match e.kind() {
        Redis::AuthenticationFailed
        | Redis::Server(ServerErrorKind::NoPerm | ServerErrorKind::ReadOnly) => ErrorKind::Denied,
        Redis::InvalidClientConfig => ErrorKind::Invalid,
        // The end came in the middle of an answer.
        Redis::Parse if says(&["Unexpected end of input"]) => ErrorKind::Unavailable,
        Redis::Parse | Redis::UnexpectedReturnType => ErrorKind::Malformed,
        _ if says(&["NOAUTH", "WRONGPASS", "NOPERM", "READONLY", "Authentication required"]) => {
            ErrorKind::Denied
        }
        _ if says(&["WRONGTYPE"]) => {
            let what = "a key holds another type of value than this layout has";
            return Error::new(ErrorKind::Conflict, what).with_source(e);
        }
        _ if says(&["unknown command", "DB index is out of range"]) => ErrorKind::Unsupported,
        _ if says(&["exceeds", "too big", "invalid bulk length"]) => ErrorKind::TooLarge,
        // Full, or unable to write its log.
        _ if says(&["OOM", "MISCONF"]) => ErrorKind::Io,
        Redis::Io | Redis::Server(_) => ErrorKind::Unavailable,
        _ if e.is_connection_dropped() || says(&["LOADING"]) => ErrorKind::Unavailable,
        _ => ErrorKind::Io,
    };
    let what = match kind {
        ErrorKind::Unavailable => format!("the connection broke: {text}"),
        _ => text,
    };
    Error::new(kind, what).with_source(e)
}
