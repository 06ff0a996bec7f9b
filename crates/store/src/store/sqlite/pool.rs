//! Connections of SQLite, and where its calls run: they block.
//!
//! Where the caller may wait ([`blocking`](crate::store::blocking)) they run in the caller's own
//! thread, as in any program that uses SQLite. Elsewhere they run on a thread of the runtime's pool
//! for blocking work. The time limit is the same in both cases: SQLite waits for a lock no longer
//! than `?timeout` (`sqlite3_busy_timeout`), and a statement that runs longer is interrupted by the
//! connection's own progress handler, which needs neither a second thread nor a clock reading for
//! each operation.

use std::{
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{error::error, times};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    link,
    store::{
        blocking,
        limits::{Limits, late},
        pool,
    },
};

/// Where the database is and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The file; empty for one in memory.
    pub path: String,
    pub tier: Option<Tier>,
    pub timeout: Duration,
    /// Bytes of pages that all connections together hold.
    pub cache: Option<u64>,
}

/// Some connections to one database.
pub(crate) struct Pool {
    settings: Settings,
    /// Boxed, as they are handed about for each operation.
    connections: Arc<pool::Pool<Box<Open>>>,
}

/// A connection, and the time limit of what it does.
struct Open {
    connection: Connection,
    limit: Arc<Limit>,
    /// The thread that used it last: that processor's cache holds its pages.
    by: ThreadId,
}

impl pool::Connection for Box<Open> {
    fn suits(&self) -> bool {
        self.by == this_thread()
    }

    fn rest(&mut self) {
        self.by = this_thread();
    }
}

/// The thread that asks. `thread::current` counts who has it, each time.
fn this_thread() -> ThreadId {
    thread_local! {
        static THIS: ThreadId = thread::current().id();
    }
    THIS.with(|id| *id)
}

/// When the operation of a connection takes too long. Its own thread counts and looks; nobody else
/// does, so relaxed order is enough.
#[derive(Default)]
struct Limit {
    /// The number of the operation that is under way.
    operation: AtomicU64,
    /// The operation that was interrupted last.
    interrupted: AtomicU64,
    /// How often all that is under way was to end ([`interrupt`](crate::store::interrupt)) when the operation began.
    before: AtomicU64,
}

impl Pool {
    pub(crate) fn new(settings: Settings, size: usize) -> Pool {
        // A database in memory is its connection.
        let size = if settings.path.is_empty() { 1 } else { size };
        let Settings { path, timeout, .. } = &settings;
        let limits = Limits { connect: *timeout, operation: *timeout, pool: size };
        let connections = Arc::new(pool::Pool::new(limits, path));
        Pool { settings, connections }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Does something with a connection.
    ///
    /// # Errors
    /// Its own; [`Unavailable`](ErrorKind::Unavailable) where it takes longer than an operation may.
    pub(crate) async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<R> {
        self.attempt(move |connection| act(connection).map_err(error)).await
    }

    /// The same for what has errors of its own.
    pub(crate) async fn attempt<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Connection) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.attempt_with(&(), move |connection, &()| act(connection)).await
    }

    /// The same with something of the caller's, which is copied only where another thread needs it.
    pub(crate) async fn attempt_with<I, R>(
        self: &Arc<Self>,
        input: &I,
        act: impl FnOnce(&mut Connection, &I) -> Result<R> + Send + 'static,
    ) -> Result<R>
    where
        I: ToOwned<Owned: Send + 'static> + ?Sized,
        R: Send + 'static,
    {
        let mut lease = pool::Pool::turn(Arc::clone(&self.connections)).await?;
        lease.fill(|| self.open())?;
        let timeout = self.settings.timeout;
        // The connection goes back when the work is done, also where nobody waits for it any more.
        blocking::work(input, move |input| {
            lease.limit.begin();
            let done = act(&mut lease.connection, input);
            let interrupted = lease.limit.has_interrupted();
            let to_end = lease.limit.is_to_end();
            lease.give_back();
            match interrupted {
                true if to_end => {
                    done.map_err(|_| Error::unavailable("a statement was interrupted"))
                }
                true => done.map_err(|_| late("a statement", timeout)),
                false => done,
            }
        })
        .await
    }

    /// Whether the database is there.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where it cannot be made either, for want of its folder.
    pub(crate) fn is_there(&self) -> Result<bool> {
        let path = Path::new(&self.settings.path);
        if self.settings.path.is_empty() || path.exists() {
            return Ok(true);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if !folder.is_dir() => {
                let what = format!("no folder {} for a database", folder.display());
                Err(Error::new(ErrorKind::NotFound, what))
            }
            _ => Ok(false),
        }
    }

    /// Makes the database, if it is not there.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub(crate) async fn make(self: &Arc<Self>) -> Result<()> {
        if self.is_there()? {
            return Ok(());
        }
        let mut lease = pool::Pool::turn(Arc::clone(&self.connections)).await?;
        let pool = Arc::clone(self);
        blocking::work(&(), move |&()| {
            lease.fill(|| pool.connect(OpenFlags::SQLITE_OPEN_CREATE))?;
            lease.give_back();
            Ok(())
        })
        .await
    }

    /// What [`kept_by`] will say of a database that is not there yet.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(crate) fn planned(&self) -> Result<(String, i64, i64)> {
        let plan = || {
            let mut connection = Connection::open_in_memory()?;
            set_up(&connection, &self.settings, CACHE)?;
            kept_by(&mut connection)
        };
        plan()
            .map(|(_, synchronous, checkpoint)| ("wal".into(), synchronous, checkpoint))
            .map_err(error)
    }

    /// A new connection to a database that is there.
    fn open(&self) -> Result<Box<Open>> {
        // Reading makes no database: only `make` does.
        if !self.is_there()? {
            let what = "no such database; `put` and `copy` create one";
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        self.connect(OpenFlags::empty())
    }

    /// A new connection; `more` are flags beyond the usual ones.
    fn connect(&self, more: OpenFlags) -> Result<Box<Open>> {
        let Settings { path, timeout, cache, .. } = &self.settings;
        let path = match path.is_empty() {
            true => PathBuf::new(),
            false => link::followed(Path::new(path))?,
        };
        let size = self.connections.limits().pool as u64;
        let cache = cache.map_or(CACHE, |all| all / size);
        // A name that looks like a URI is a name all the same.
        let flags = more | OpenFlags::SQLITE_OPEN_READ_WRITE | USUAL;
        let connection = match path.as_os_str().is_empty() {
            true => Connection::open_in_memory(),
            false => Connection::open_with_flags(&path, flags),
        };
        let set_up = |connection: Connection| {
            set_up(&connection, &self.settings, cache).map(|()| connection)
        };
        let connection = match connection.and_then(set_up) {
            Err(e) if is_read_only(&path, &e) => immutable(&path).and_then(set_up),
            connection => connection,
        };
        // SQLite says only that it cannot open the file.
        let refused = |e| match File::open(&path) {
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => Error::from(why),
            _ => error(e),
        };
        let mut connection = connection.map_err(refused)?;
        let limit = Limit::watch(&mut connection, *timeout).map_err(error)?;
        Ok(Box::new(Open { connection, limit, by: this_thread() }))
    }
}

/// The flags of every connection. Links are followed before, and none is that was made meanwhile.
const USUAL: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Whether a database could not be opened because it uses a write-ahead log and nothing can be written beside it. Such a
/// log that has something in it cannot be left out.
fn is_read_only(path: &Path, error: &rusqlite::Error) -> bool {
    let cannot_open = error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        || error.sqlite_error_code() == Some(ErrorCode::ReadOnly);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = std::fs::metadata(log).map_or(0, |meta| meta.len());
    let folder = path.parent().unwrap_or(path);
    let writable = nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok();
    cannot_open && log == 0 && path.is_file() && !writable
}

/// A connection to a database that nobody changes meanwhile, without locks and without a log.
fn immutable(path: &Path) -> rusqlite::Result<Connection> {
    let bytes = path.as_os_str().as_bytes();
    let path = percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | USUAL;
    Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)
}

impl Limit {
    /// After how many steps of its virtual machine SQLite asks whether to go on: about a tenth of a
    /// millisecond.
    const STEPS: i32 = 10_000;

    /// Interrupts what takes longer. Time counts from the first time that SQLite asks during an
    /// operation: short ones never read the clock.
    fn watch(connection: &mut Connection, timeout: Duration) -> rusqlite::Result<Arc<Limit>> {
        let limit = Arc::<Limit>::default();
        let shared = Arc::clone(&limit);
        let (mut seen, mut since) = (0, Instant::now());
        let is_over = move || {
            // Each time that it asks.
            blocking::give_way(0);
            let operation = shared.operation.load(Relaxed);
            if operation != seen {
                (seen, since) = (operation, Instant::now());
            }
            let over = shared.is_to_end() || since.elapsed() >= timeout;
            if over {
                shared.interrupted.store(operation, Relaxed);
            }
            over
        };
        connection.progress_handler(Limit::STEPS, Some(is_over))?;
        Ok(limit)
    }

    fn begin(&self) {
        self.operation.store(self.operation.load(Relaxed) + 1, Relaxed);
        self.before.store(blocking::interruptions(), Relaxed);
    }

    /// Whether all that was under way is to end, and this was.
    fn is_to_end(&self) -> bool {
        self.before.load(Relaxed) != blocking::interruptions()
    }

    fn has_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed) == self.operation.load(Relaxed)
    }
}

/// Bytes of pages that a connection holds, where nobody says how many.
const CACHE: u64 = 16 << 20;

/// The settings by which what was acknowledged is kept: the journal, when it is synced, and after how many pages it
/// is written to its place.
pub(super) fn kept_by(connection: &mut Connection) -> rusqlite::Result<(String, i64, i64)> {
    let journal = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let synchronous = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    let checkpoint = connection.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0))?;
    Ok((journal, synchronous, checkpoint))
}

/// Turns the write-ahead log on. Where another connection does the same, SQLite does not wait for it: its own busy timeout is
/// left out where a lock that is held has to be raised.
fn write_ahead(connection: &Connection, timeout: Duration) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(1);
    let until = Instant::now() + timeout;
    loop {
        let done = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        match &done {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < until =>
            {
                thread::sleep(PAUSE);
            }
            _ => return done,
        }
    }
}

/// `cache` is what this connection may hold.
fn set_up(connection: &Connection, settings: &Settings, cache: u64) -> rusqlite::Result<()> {
    let Settings { tier, timeout, .. } = *settings;
    connection.busy_timeout(timeout)?;
    connection.set_prepared_statement_cache_capacity(64);
    times::teach(connection)?;
    let new = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0;
    // A database that is there keeps its journal, which is a setting of the file, unless asked.
    if new || tier.is_some() {
        write_ahead(connection, timeout)?;
    }
    let synchronous = match tier {
        Some(Tier::T0 | Tier::T1) => "OFF",
        Some(Tier::T2) => "NORMAL",
        Some(Tier::T3) | None => "FULL",
    };
    connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}"))?;
    // Negative: KiB, not pages.
    let kib = (cache >> 10).max(1);
    connection.execute_batch(&format!("PRAGMA cache_size = -{kib}; PRAGMA temp_store = MEMORY;"))
}
