//! Connections, what they are set to, and errors of the server as ours.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use mysql_async::{
    DriverError, Opts, OptsBuilder, Params, PoolConstraints, PoolOpts, Row, SslOpts, Value,
    prelude::Queryable,
};
use rustls::ClientConfig;

use super::{
    CRATE,
    client::{OwnClient, Within},
    login::needs_crate,
    session::{Crated, Session},
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        Client, Common, Url,
        limits::{Limits, connected, late, unreached, within},
        net::{
            Address,
            tls::{self, Roots},
        },
        pool::{self, Turns},
    },
};

/// What the server said of itself when it was first asked.
pub(super) struct Server {
    pub version: String,
    pub comment: String,
    /// It is MariaDB; else MySQL, or what speaks like it.
    pub maria: bool,
    /// The largest packet it takes, in bytes.
    pub packet: usize,
    /// The collation that compares text by its bytes, spaces at the end and all.
    pub collation: &'static str,
    /// It takes `LOAD DATA LOCAL`; untrue as soon as it refuses one.
    pub takes_files: AtomicBool,
}

/// At most `?pool` connections to one server: connections of our own, or those of the crate, never both; and the database
/// in which they are asked. Several may have the same connections.
pub(super) struct Pool {
    of: Of,
    within: Within,
    limits: Limits,
    pub server: Arc<Server>,
}

enum Of {
    Own(Arc<OwnClient>),
    /// The crate's own pool looks after its connections; ours says how many are in use.
    Crate {
        pool: mysql_async::Pool,
        turns: Turns,
    },
}

impl Of {
    fn crates(options: Opts, limits: Limits) -> Of {
        let turns = Turns::new(limits, address(&options).to_string());
        Of::Crate { pool: mysql_async::Pool::new(options), turns }
    }
}

/// How connections are made.
pub(super) struct Connect {
    pub options: Opts,
    /// None where the URL does not say.
    pub client: Option<Client>,
    /// How our own encrypts.
    pub tls: Option<Arc<ClientConfig>>,
}

/// By how many bytes of a text the server sorts, unless a statement says otherwise: its own default.
pub(super) const SORTED: usize = 1024;
/// How many statements each connection keeps prepared.
const STATEMENTS: usize = 64;

impl Pool {
    /// Connects, and asks the server what it is.
    ///
    /// # Errors
    /// Of the connection; [`Unsupported`](ErrorKind::Unsupported) for a server that cannot compare
    /// text by its bytes.
    pub(super) async fn open(connect: Connect, common: &Common) -> Result<Pool> {
        const FACTS: &str = "SELECT version(), @@version_comment, @@max_allowed_packet, @@local_infile, \
             (SELECT min(collation_name) FROM information_schema.collations WHERE \
             collation_name IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin'))";
        let Connect { options, client, tls } = connect;
        let limits = Limits::of(common);
        let of = match client {
            Some(Client::Crate(_)) => Of::crates(options.clone(), limits),
            _ => Of::Own(Arc::new(OwnClient::new(&options, tls, limits))),
        };
        let within = Within { database: options.db_name().unwrap_or_default().into(), share: None };
        let server = Server {
            version: String::new(),
            comment: String::new(),
            maria: false,
            packet: 0,
            collation: "",
            takes_files: AtomicBool::new(false),
        };
        let mut pool = Pool { of, within, limits, server: Arc::new(server) };
        let mut facts = pool.rows(FACTS, Vec::new()).await;
        // The page says which client it is.
        if client.is_none() && facts.as_ref().is_err_and(needs_crate) {
            pool.of = Of::crates(options, limits);
            facts = pool.rows(FACTS, Vec::new()).await;
        }
        let facts = facts?;
        type Facts = (String, String, usize, i64, Option<String>);
        let facts = facts.into_iter().next().map(mysql_async::from_row_opt::<Facts>);
        let Some(Ok((version, comment, packet, files, collation))) = facts else {
            return Err(Error::unsupported("the server does not report its version"));
        };
        let collation = match collation.as_deref() {
            Some("utf8mb4_0900_bin") => "utf8mb4_0900_bin",
            Some(_) => "utf8mb4_nopad_bin",
            None => {
                return Err(Error::unsupported(format!(
                    "{version} cannot compare text by its bytes; MySQL 8.0.17 or MariaDB 10.2 can"
                )));
            }
        };
        if let Of::Own(client) = &pool.of {
            client.expect(packet);
        }
        pool.server = Arc::new(Server {
            maria: version.contains("MariaDB"),
            version,
            comment,
            packet,
            collation,
            takes_files: AtomicBool::new(files != 0),
        });
        Ok(pool)
    }

    /// The same connections, asked in this database, or in the same; none where they cannot be, as the crate's.
    pub(super) fn within_database(&self, database: Option<&str>) -> Option<Pool> {
        let Of::Own(own) = &self.of else { return None };
        let database = database.map_or_else(|| self.within.database.clone(), Arc::from);
        let within = Within { database, share: Some(own.share()) };
        let server = self.server.clone();
        Some(Pool { of: Of::Own(own.clone()), within, limits: self.limits, server })
    }

    /// Whose connections these are.
    pub(super) fn client(&self) -> Client {
        match self.of {
            Of::Own(_) => Client::Own,
            Of::Crate { .. } => CRATE,
        }
    }

    /// A connection for several statements.
    ///
    /// # Errors
    /// Of the connection.
    pub(super) async fn session(&self) -> Result<Session<'_>> {
        match &self.of {
            Of::Own(client) => client.session(&self.within).await.map(Session::Own),
            Of::Crate { .. } => self.crated().await.map(Session::Crate),
        }
    }

    async fn crated(&self) -> Result<Crated<'_>> {
        let Of::Crate { pool, turns } = &self.of else {
            unreachable!("connections are of one kind");
        };
        let turn = pool::Pool::turn(turns).await?;
        let connect = async {
            pool.get_conn().await.map_err(|e| match &e {
                mysql_async::Error::Io(io) => unreached(deepest(io)).with_source(e),
                _ => error(e),
            })
        };
        let connected = connected(self.limits.connect, connect).await;
        let connected = connected.map_err(|e| match e.is_outage() {
            true => e.in_place(turns.place()),
            false => e,
        });
        Ok(Crated::new(connected?, turn))
    }

    /// Waits for something to be done, but not longer than an operation may take.
    ///
    /// # Errors
    /// Its own; [`Timeout`](ErrorKind::Timeout) where it takes too long.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        done: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        within(self.limits.operation, what, done).await.map_err(|e| self.placed(e))
    }

    /// The same for who waits in the thread, where no clock breaks in: between statements.
    ///
    /// # Errors
    /// [`Timeout`](ErrorKind::Timeout) where what has begun then takes too long.
    pub(super) fn in_time(&self, what: &str, begun: Instant) -> Result<()> {
        let limit = self.limits.operation;
        match begun.elapsed() < limit {
            true => Ok(()),
            false => Err(self.placed(late(what, limit))),
        }
    }

    /// The error, naming the server where that is the trouble.
    pub(super) fn placed(&self, e: Error) -> Error {
        match (&self.of, e.is_outage() || e.kind() == ErrorKind::Malformed) {
            (_, false) => e,
            (Of::Own(client), true) => e.in_place(client.connections.place()),
            (Of::Crate { turns, .. }, true) => e.in_place(turns.place()),
        }
    }

    /// The rows that a statement answers with; values are bound.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn rows(&self, statement: &str, values: Vec<Value>) -> Result<Vec<Row>> {
        if let Of::Own(client) = &self.of {
            return client
                .run(&self.within, "a query", statement, &values)
                .await
                .map(|done| done.rows);
        }
        let rows = self.within("a query", async {
            let mut lent = self.crated().await?;
            let rows = lent.connection().exec(statement, bound(values)).await.map_err(error);
            Session::Crate(lent).settle(rows)
        });
        rows.boxed().await
    }

    /// Does a statement, and says how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn run(&self, statement: &str, values: Vec<Value>) -> Result<u64> {
        if let Of::Own(client) = &self.of {
            return client
                .run(&self.within, "a statement", statement, &values)
                .await
                .map(|done| done.touched);
        }
        let count = self.within("a statement", async {
            let mut session = self.session().await?;
            let count = session.exec(statement, values).await;
            session.settle(count)
        });
        count.boxed().await
    }

    /// Does a statement that cannot be prepared, and reads its rows.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn query(&self, statement: &str) -> Result<Vec<Row>> {
        self.within("a statement", async {
            let mut session = self.session().await?;
            let rows = session.query(statement).await;
            session.settle(rows)
        })
        .await
    }

    /// Does a statement that cannot be prepared.
    ///
    /// # Errors
    /// Of the connection and of the server.
    pub(super) async fn define(&self, statement: &str) -> Result<()> {
        self.query(statement).await.map(drop)
    }

    pub(super) fn takes_files(&self) -> bool {
        self.server.takes_files.load(Ordering::Relaxed)
    }
}

/// Where the server listens.
pub(super) fn address(options: &Opts) -> Address {
    match options.socket() {
        Some(path) => Address::Unix(path.into()),
        None => Address::Tcp(options.ip_or_hostname().to_owned(), options.tcp_port()),
    }
}

/// Values as the client wants them.
pub(super) fn bound(values: Vec<Value>) -> Params {
    match values.is_empty() {
        true => Params::Empty,
        false => Params::Positional(values),
    }
}

/// What a client needs to connect, from the URL. Of its options, `client`, `socket`, `tls` and `ca`
/// are taken.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a URL that makes no sense.
pub(super) fn connect(url: &mut Url, common: &Common) -> Result<Connect> {
    let client = url.take_client("mysql_async")?;
    let socket = url.take("socket");
    let tls = url.take_flag("tls")?;
    let ca = url.take("ca");
    let (host, port) = url.one_host(3306)?;
    if url.path.is_empty() {
        return Err(Error::invalid("no database in the URL: mysql://user@host:port/DATABASE"));
    }
    let (encrypt, config) = match (tls, &ca) {
        (Some(false), Some(_)) => return Err(Error::invalid("?ca= needs ?tls=true")),
        (_, Some(ca)) => {
            let roots = vec![PathBuf::from(ca).into()];
            (Some(SslOpts::default().with_root_certs(roots)), Some(Roots::File(ca)))
        }
        (Some(true), None) => (Some(SslOpts::default()), Some(Roots::Web)),
        _ => (None, None),
    };
    if encrypt.is_some() {
        tls::ready();
    }
    let size = PoolConstraints::new(common.pool, common.pool)
        .ok_or_else(|| Error::invalid("?pool=0: it must be at least 1"))?;
    // A statement prepared once stays prepared: connections are not reset between uses, and none is
    // closed (the client closes at once those above the least number; to close them later it has a
    // timer, and while one is set, each wait of the runtime costs a tenth of a point read more).
    let pool = PoolOpts::new().with_constraints(size).with_reset_connection(false);
    let options = OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port)
        .socket(socket)
        .prefer_socket(false)
        .user(url.user.clone())
        .pass(url.password.as_ref().map(|password| password.reveal()))
        .db_name(Some(&url.path))
        .ssl_opts(encrypt)
        .stmt_cache_size(STATEMENTS)
        // As in `login.rs`.
        .client_found_rows(true)
        .tcp_keepalive(Some(Duration::from_secs(30)))
        .pool_opts(pool)
        .setup(vec![session(common.timeout)]);
    let tls = config.map(tls::config).transpose()?.map(Arc::new);
    Ok(Connect { options: options.into(), client, tls })
}

/// What each connection is set to. Nothing is ever cut to fit, times are in UTC, and the server does not go on waiting
/// for locks, nor (MariaDB) working, when nobody waits for it any more. What is done is done at once and as a whole,
/// with all answers and all warnings, whatever the server's own settings are: a session begins with those. Settings that
/// end in an error, such as a default of read-only transactions, are left to who made them.
fn session(timeout: Duration) -> String {
    let seconds = timeout.as_secs().max(1);
    let exact = timeout.as_secs_f64();
    // Reading what others have not committed is no isolation to us; any other level is.
    let isolated = |name: &str| {
        format!("{name} = IF(@@{name} = 'READ-UNCOMMITTED', 'REPEATABLE-READ', @@{name})")
    };
    format!(
        "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,\
         ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', \
         lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}, \
         autocommit = 1, completion_type = 0, foreign_key_checks = 1, unique_checks = 1, \
         sql_select_limit = 18446744073709551615, sql_safe_updates = 0, sql_auto_is_null = 0, \
         sql_notes = 1, max_error_count = 65535, max_sort_length = {SORTED} \
         /*M!100101 , max_statement_time = {exact:.3} */ /*M!100201 , check_constraint_checks = 1 */ \
         /*M! , {} */ /*!50720 , {} */ \
         /*!80003 , information_schema_stats_expiry = 0 */",
        isolated("tx_isolation"),
        isolated("transaction_isolation")
    )
}

/// What an error comes from in the end.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

/// What the server says that it will not do: an error of ours has the same words, so that they are told once.
#[derive(Debug)]
struct Refusal {
    code: u16,
    message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

impl std::error::Error for Refusal {}

/// The number of an error that the server answered with.
pub(super) fn code(e: &Error) -> Option<u16> {
    let source = std::error::Error::source(e)?;
    source.downcast_ref().map(|refusal: &Refusal| refusal.code)
}

/// An error of the client or the server as one of ours.
pub(super) fn error(e: mysql_async::Error) -> Error {
    use mysql_async::Error as Theirs;
    if let Theirs::Server(e) = &e {
        let refusal = Refusal { code: e.code, message: e.message.clone() };
        return Error::new(kind_of(e.code), refusal.to_string()).with_source(refusal);
    }
    let (kind, what) = match &e {
        Theirs::Io(e) => (ErrorKind::Unavailable, format!("the connection broke: {}", deepest(e))),
        Theirs::Driver(DriverError::PacketTooLarge) => {
            (ErrorKind::TooLarge, "a packet larger than the server's max_allowed_packet".into())
        }
        Theirs::Driver(e @ (DriverError::ConnectionClosed | DriverError::PoolDisconnected)) => {
            (ErrorKind::Unavailable, e.to_string())
        }
        Theirs::Driver(DriverError::NoClientSslFlagFromServer) => (
            ErrorKind::Unsupported,
            "the server does not support TLS; try without ?tls=true".into(),
        ),
        other => (ErrorKind::Io, other.to_string()),
    };
    Error::new(kind, what).with_source(e)
}

/// Numbers of errors: <https://mariadb.com/kb/en/mariadb-error-code-reference/>, and the same in
/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>.
pub(super) fn kind_of(code: u16) -> ErrorKind {
    match code {
        // Databases and duplicate entries that are there.
        1007 | 1022 | 1062 | 1169 | 1586 => ErrorKind::Conflict,
        1044 | 1045 | 1130 | 1142 | 1143 | 1227 | 1251 | 1370 | 1410 | 1524 | 1698 | 3118 => {
            ErrorKind::Denied
        }
        // No such database, table.
        1049 | 1051 | 1146 => ErrorKind::NotFound,
        // Packets, rows, keys, values too long.
        1071 | 1117 | 1118 | 1153 | 1301 | 1406 => ErrorKind::TooLarge,
        // Names, numbers of columns, ranges, types, constraints, foreign keys, partitions, missing values.
        1048 | 1059 | 1060 | 1063 | 1103 | 1166 | 1216 | 1217 | 1264 | 1265 | 1292 | 1364
        | 1366 | 1367 | 1369 | 1451 | 1452 | 1526 | 3819 | 4025 => ErrorKind::Invalid,
        // Too many connections, shut down, killed, deadlocks.
        1040 | 1053 | 1158..=1161 | 1203 | 1213 | 1226 | 1317 | 1927 | 4031 => {
            ErrorKind::Unavailable
        }
        // The server's own limits, which are the client's: for locks, for statements (both names).
        1205 | 1969 | 3024 => ErrorKind::Timeout,
        // The disk, a table.
        1021 | 1114 => ErrorKind::Full,
        _ => ErrorKind::Io,
    }
}

/// The server could not do it because of somebody else, and did none of it: it may be tried again.
pub(super) fn is_deadlock(e: &Error) -> bool {
    code(e) == Some(1213)
}

/// A value that must be unique is in another row.
pub(super) fn is_duplicate(e: &Error) -> bool {
    matches!(code(e), Some(1022 | 1062 | 1169 | 1586))
}
