//! Connections to Redis, at most `?pool` of them, each for one operation at a time, which is
//! what costs least; or those of the crate (`?client=crate`), each of which carries several operations
//! at once. Never both.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind as Redis, FromRedisValue,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, ServerErrorKind,
    TlsCertificates, aio::MultiplexedConnection, cmd,
};
use rustls::ClientConfig;
use tokio::sync::Mutex;

use crate::{
    Error, ErrorKind, Result,
    store::{
        Client, Common, Secret, Url,
        limits::{Limits, connected, unreached, within},
        net::{
            Address, Connection, Connections, Opened, SAID, Stream,
            tls::{self, Roots},
        },
    },
};

use super::client::{Commands, LONGEST};

/// The client of `?client=crate`.
const CRATE: &str = "redis";

/// The connections to one server.
pub(super) struct Pool {
    of: Of,
    /// The server, for errors.
    address: String,
    limits: Limits,
}

enum Of {
    Own(Box<OwnClient>),
    Crate { client: Box<redis::Client>, slots: Vec<Slot> },
}

/// Connections, and what it takes to make one.
struct OwnClient {
    connections: Connections<()>,
    address: Address,
    /// How it is encrypted, and the name the server has to prove.
    tls: Option<(Arc<ClientConfig>, String)>,
    /// Commands that a connection begins with.
    login: Vec<Cmd>,
    /// What servers of before version 6 take, which had no users.
    password: Option<Cmd>,
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

/// What a URL says of the server and the way there.
struct To {
    host: String,
    port: u16,
    socket: Option<String>,
    tls: bool,
    ca: Option<String>,
    database: i64,
}

impl To {
    /// Takes the options `socket`, `tls` and `ca`.
    fn take(url: &mut Url) -> Result<To> {
        let socket = url.take("socket");
        let tls = url.take_flag("tls")?;
        let ca = url.take("ca");
        url.done()?;
        let tls = tls.unwrap_or(url.scheme == "rediss");
        let (host, port) = url.one_host(6379)?;
        let database = match &*url.path {
            "" => 0,
            number => number.parse().ok().filter(|n| *n >= 0).ok_or_else(|| {
                Error::invalid(format!("Redis databases are numbers, and {number:?} is not one"))
            })?,
        };
        if tls && socket.is_some() {
            return Err(Error::invalid("?socket= and TLS exclude each other"));
        }
        if !tls && ca.is_some() {
            return Err(Error::invalid("?ca= needs TLS; write rediss://"));
        }
        Ok(To { host, port, socket, tls, ca, database })
    }

    fn direct(&self, url: &Url, limits: Limits) -> Result<OwnClient> {
        let roots = self.ca.as_deref().map_or(Roots::System, Roots::File);
        let tls = match self.tls {
            true => Some((Arc::new(tls::config(roots)?), self.host.clone())),
            false => None,
        };
        let address = match &self.socket {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(self.host.clone(), self.port),
        };
        Ok(OwnClient {
            connections: Connections::new(limits, address.to_string()),
            address,
            tls,
            login: login(url, self.database),
            password: url.password.as_ref().map(|password| auth(None, password)),
        })
    }

    fn address(&self) -> ConnectionAddr {
        let (host, port) = (self.host.clone(), self.port);
        match &self.socket {
            Some(path) => ConnectionAddr::Unix(path.into()),
            None if self.tls => {
                ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
            }
            None => ConnectionAddr::Tcp(host, port),
        }
    }

    fn client(&self, url: &Url) -> Result<redis::Client> {
        let mut login = RedisConnectionInfo::default().set_db(self.database);
        if let Some(user) = &url.user {
            login = login.set_username(user);
        }
        if let Some(password) = &url.password {
            login = login.set_password(password.reveal());
        }
        let info: ConnectionInfo = self.address().into_connection_info().map_err(error)?;
        let info = info.set_redis_settings(login);
        let client = if self.tls {
            tls::ready();
            let read =
                |path: &String| std::fs::read(path).map_err(|e| Error::from(e).in_place(path));
            let root_cert = self.ca.as_ref().map(read).transpose()?;
            redis::Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
        } else {
            redis::Client::open(info)
        };
        client.map_err(error)
    }
}

impl Pool {
    /// A pool for this URL, without connections yet. Takes the options `client`, `socket`, `tls` and
    /// `ca`.
    pub(super) fn new(url: &mut Url, common: &Common) -> Result<Pool> {
        let client = url.take_client(CRATE)?.unwrap_or(Client::Own);
        let to = To::take(url)?;
        let limits = Limits::of(common);
        let of = match client {
            Client::Own => Of::Own(Box::new(to.direct(url, limits)?)),
            Client::Crate(_) => Of::Crate {
                client: Box::new(to.client(url)?),
                slots: (0..limits.pool).map(|_| Slot::default()).collect(),
            },
        };
        Ok(Pool { of, address: to.address().to_string(), limits })
    }

    /// Whose connections these are.
    pub(super) fn client(&self) -> Client {
        match self.of {
            Of::Own(_) => Client::Own,
            Of::Crate { .. } => Client::Crate(CRATE),
        }
    }

    /// Runs one command.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn ask<T: FromRedisValue>(&self, what: &str, command: &Cmd) -> Result<T> {
        if let Of::Own(direct) = &self.of {
            return self
                .directly(direct, what, async |connection| command.query_async(connection).await)
                .await;
        }
        let shared = async {
            let (_busy, mut connection) = self.connection().await?;
            let done = async { command.query_async(&mut connection).await.map_err(error) };
            within(self.limits.operation, what, done).await
        };
        self.settle(shared.boxed().await)
    }

    /// Runs several commands, sent at once.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        what: &str,
        commands: &Pipeline,
    ) -> Result<T> {
        if let Of::Own(direct) = &self.of {
            return self
                .directly(direct, what, async |connection| commands.query_async(connection).await)
                .await;
        }
        let shared = async {
            let (_busy, mut connection) = self.connection().await?;
            let done = async { commands.query_async(&mut connection).await.map_err(error) };
            within(self.limits.operation, what, done).await
        };
        self.settle(shared.boxed().await)
    }

    /// Waits for all the portions of an operation, no longer than one operation may take.
    ///
    /// # Errors
    /// Its own; [`Timeout`](crate::ErrorKind::Timeout) where it takes too long.
    pub(super) async fn in_time<T: Send>(
        &self,
        what: &str,
        portions: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        // Apart, so that what is usual stays small.
        self.settle(within(self.limits.operation, what, portions).boxed().await)
    }

    /// The error of an answer, which names the server.
    pub(super) fn placed(&self, e: Error) -> Error {
        e.in_place(self.address.clone())
    }

    /// Does something over a connection.
    async fn directly<T>(
        &self,
        direct: &OwnClient,
        what: &str,
        act: impl AsyncFnOnce(&mut Commands<'_>) -> redis::RedisResult<T>,
    ) -> Result<T> {
        let connect = async || direct.connect(self.limits.connect).await;
        let mut lease = match direct.connections.lease(connect).await {
            Ok(lease) => lease,
            Err(e) => return self.settle(Err(e)),
        };
        let limit = self.limits.operation;
        let connection = &mut lease.0;
        let mut commands = Commands { connection, what, limit, most: LONGEST, broken: None };
        let done = act(&mut commands).await;
        let done = commands.settle(done);
        if !done.as_ref().is_err_and(is_trouble) {
            lease.give_back();
        }
        self.settle(done)
    }

    /// The least busy connection of the crate.
    async fn connection(&self) -> Result<(Busy<'_>, MultiplexedConnection)> {
        let Of::Crate { client, slots } = &self.of else {
            unreachable!("connections are of one kind");
        };
        let slots = slots.iter();
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
                .set_connection_timeout(None)
                .set_response_timeout(None);
            let new = client.get_multiplexed_async_connection_with_config(&config).await;
            Ok(connection.insert(new.map_err(unreached_error)?).clone())
        };
        let connection = connected(self.limits.connect, connect).await;
        Ok((busy, connection.map_err(|e| e.in_place(self.address.clone()))?))
    }

    /// After trouble with one connection, none is trusted.
    fn settle<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && is_trouble(e)
        {
            match &self.of {
                Of::Own(direct) => direct.connections.forget(),
                Of::Crate { slots, .. } => {
                    for slot in slots {
                        // Where it is locked, somebody is connecting anew.
                        if let Ok(mut connection) = slot.connection.try_lock() {
                            *connection = None;
                        }
                    }
                }
            }
        }
        done.map_err(|e| e.in_place(self.address.clone()))
    }
}

impl OwnClient {
    async fn connect(&self, limit: Duration) -> Result<Opened<()>> {
        let mut stream = Stream::connect(&self.address).await?;
        if let Some((config, host)) = &self.tls {
            stream = tls::over(stream, host, config.clone()).await?;
        }
        let mut connection = Connection::new(stream)?;
        for command in &self.login {
            let (connection, what) = (&mut connection, "a login");
            let mut commands = Commands { connection, what, limit, most: SAID, broken: None };
            let mut done = command.query_async::<()>(&mut commands).await;
            if let (Err(e), Some(password)) = (&done, &self.password)
                && e.to_string().contains("wrong number of arguments")
            {
                done = password.query_async(&mut commands).await;
            }
            commands.settle(done)?;
        }
        Ok(Box::new((connection, ())))
    }
}

/// The commands that a connection begins with.
fn login(url: &Url, database: i64) -> Vec<Cmd> {
    let mut login = Vec::new();
    if let Some(password) = &url.password {
        login.push(auth(url.user.as_deref(), password));
    }
    if database != 0 {
        let mut select = cmd("SELECT");
        select.arg(database);
        login.push(select);
    }
    login
}

fn auth(user: Option<&str>, password: &Secret) -> Cmd {
    let mut auth = cmd("AUTH");
    if let Some(user) = user {
        auth.arg(user);
    }
    auth.arg(password.reveal());
    auth
}

/// After this a connection is not used again.
fn is_trouble(e: &Error) -> bool {
    e.is_outage() || e.kind() == ErrorKind::Malformed
}

/// An error of connecting as one of ours.
fn unreached_error(e: RedisError) -> Error {
    match e.is_io_error() {
        true => unreached(&e).with_source(e),
        false => error(e),
    }
}

/// An error of the client as one of ours.
pub(super) fn error(e: RedisError) -> Error {
    let text = e.to_string();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let kind = match e.kind() {
        Redis::AuthenticationFailed
        | Redis::Server(ServerErrorKind::NoPerm | ServerErrorKind::ReadOnly) => ErrorKind::Denied,
        Redis::InvalidClientConfig => ErrorKind::Invalid,
        // The end came in the middle of an answer.
        Redis::Parse if says(&["Unexpected end of input"]) => ErrorKind::Unavailable,
        Redis::Parse | Redis::UnexpectedReturnType => ErrorKind::Malformed,
        _ if says(&[
            "NOAUTH",
            "WRONGPASS",
            "NOPERM",
            "READONLY",
            "Authentication required",
            "without any password configured",
        ]) =>
        {
            ErrorKind::Denied
        }
        _ if says(&["WRONGTYPE"]) => {
            let what = "a key holds another type of value than this layout has";
            return Error::new(ErrorKind::Conflict, what).with_source(e);
        }
        _ if says(&["unknown command", "DB index is out of range"]) => ErrorKind::Unsupported,
        _ if says(&["exceeds", "too big", "invalid bulk length"]) => ErrorKind::TooLarge,
        _ if e.code() == Some("OOM") => ErrorKind::Full,
        // It cannot write its log.
        _ if says(&["MISCONF"]) => ErrorKind::Io,
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
