//! Connections of SQLite, and where its calls run: they block.
//!
//! Where the caller may wait ([`blocking`](crate::store::blocking)) they run in the caller's own
//! thread, as in any program that uses SQLite. Elsewhere they run on a thread of the runtime's pool
//! for blocking work. The time limit is the same in both cases: SQLite waits for a lock no longer
//! than `?timeout` (`sqlite3_busy_timeout`), and a statement that runs longer is interrupted by the
//! connection's own progress handler, which needs neither a second thread nor a clock reading for
//! each operation.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;

use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    store::{
        blocking::{self, permit},
        limits::late,
    },
};

/// Where the database is and how it is used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file; empty for one in memory.
    pub path: String,
    pub tier: Option<Tier>,
    pub timeout: Duration,
    /// Bytes of pages that all connections together hold.
    pub cache: Option<u64>,
}

/// Some connections to one database.
pub struct Pool {
    settings: Settings,
    permits: Arc<Semaphore>,
    size: usize,
    /// Each with the thread that used it last: that processor's cache holds its pages.
    idle: Mutex<Vec<(ThreadId, Open)>>,
}

/// A connection, and the time limit of what it does.
struct Open {
    connection: Connection,
    limit: Arc<Limit>,
}

/// When the operation of a connection takes too long. Its own thread counts and looks; nobody else
/// does, so relaxed order is enough.
#[derive(Default)]
struct Limit {
    /// The number of the operation that is under way.
    operation: AtomicU64,
    /// The operation that was interrupted last.
    interrupted: AtomicU64,
}

impl Pool {
    pub fn new(settings: Settings, size: usize) -> Pool {
        // A database in memory is its connection.
        let size = if settings.path.is_empty() { 1 } else { size };
        Pool { settings, permits: Arc::new(Semaphore::new(size)), size, idle: Mutex::default() }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Does something with a connection.
    ///
    /// # Errors
    /// Its own; [`Unavailable`](ErrorKind::Unavailable) where it takes longer than an operation may.
    pub async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<R> {
        self.attempt(move |connection| act(connection).map_err(error)).await
    }

    /// The same for what has errors of its own.
    pub async fn attempt<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Connection) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.attempt_with(&(), move |connection, &()| act(connection)).await
    }

    /// The same with something of the caller's, which is copied only where another thread needs it.
    pub async fn attempt_with<I, R>(
        self: &Arc<Self>,
        input: &I,
        act: impl FnOnce(&mut Connection, &I) -> Result<R> + Send + 'static,
    ) -> Result<R>
    where
        I: ToOwned<Owned: Send + 'static> + ?Sized,
        R: Send + 'static,
    {
        let permit = permit(&self.permits, self.settings.timeout, self.size).await?;
        let (open, pool) = (self.open()?, Arc::clone(self));
        // Connection and permit go back when the work is done, also where nobody waits for it any
        // more.
        blocking::work(input, move |input| {
            let _permit = permit;
            pool.act(open, |connection| act(connection, input))
        })
        .await
    }

    /// Does something with a connection that is open, and puts it back.
    fn act<R>(&self, mut open: Open, act: impl FnOnce(&mut Connection) -> Result<R>) -> Result<R> {
        open.limit.begin();
        let done = act(&mut open.connection);
        let interrupted = open.limit.has_interrupted();
        self.idle().push((thread::current().id(), open));
        match interrupted {
            true => done.map_err(|_| late("a statement", self.settings.timeout)),
            false => done,
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(ThreadId, Open)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection: the one that this thread used last, another, or a new one.
    fn open(&self) -> Result<Open> {
        {
            let (mut idle, me) = (self.idle(), thread::current().id());
            let last = idle.iter().rposition(|(by, _)| *by == me);
            if let Some(at) = last.or(idle.len().checked_sub(1)) {
                return Ok(idle.swap_remove(at).1);
            }
        }
        let Settings { path, timeout, cache, .. } = &self.settings;
        // A name that looks like a URI is a name all the same.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match path.is_empty() {
            true => Connection::open_in_memory(),
            false => Connection::open_with_flags(path, flags),
        };
        let mut connection = connection.map_err(error)?;
        let cache = cache.map_or(CACHE, |all| all / self.size as u64);
        set_up(&connection, &self.settings, cache).map_err(error)?;
        let limit = Limit::watch(&mut connection, *timeout).map_err(error)?;
        Ok(Open { connection, limit })
    }
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
            let operation = shared.operation.load(Relaxed);
            if operation != seen {
                (seen, since) = (operation, Instant::now());
            }
            let over = since.elapsed() >= timeout;
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
    }

    fn has_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed) == self.operation.load(Relaxed)
    }
}

/// Bytes of pages that a connection holds, where nobody says how many.
const CACHE: u64 = 16 << 20;

/// `cache` is what this connection may hold.
fn set_up(connection: &Connection, settings: &Settings, cache: u64) -> rusqlite::Result<()> {
    let Settings { tier, timeout, .. } = *settings;
    connection.busy_timeout(timeout)?;
    connection.set_prepared_statement_cache_capacity(64);
    let new = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0;
    // A database that is there keeps its journal, which is a setting of the file, unless asked.
    if new || tier.is_some() {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
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

/// An error of SQLite as one of ours.
pub fn error(e: rusqlite::Error) -> Error {
    let kind = match &e {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::ConstraintViolation => ErrorKind::Conflict,
            // It has waited for the lock as long as an operation may take.
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Timeout,
            ErrorCode::OperationInterrupted => ErrorKind::Unavailable,
            ErrorCode::TooBig => ErrorKind::TooLarge,
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly => ErrorKind::Denied,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Malformed,
            _ => kind_of(&e),
        },
        _ => kind_of(&e),
    };
    Error::new(kind, e.to_string())
}

/// SQLite tells of its limits in words only.
fn kind_of(e: &rusqlite::Error) -> ErrorKind {
    let text = e.to_string();
    match ["too many", "too large"].iter().any(|words| text.contains(words)) {
        true => ErrorKind::TooLarge,
        false => ErrorKind::Io,
    }
}
