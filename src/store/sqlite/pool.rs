//! Connections of SQLite, and the threads they work on: its calls block.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;

use crate::{Error, ErrorKind, Result, durability::Tier};

/// Where the database is and how it is used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file; empty for one in memory.
    pub path: String,
    pub tier: Option<Tier>,
    pub timeout: Duration,
    /// Work on the thread of the caller, who does not mind being blocked.
    pub here: bool,
}

/// Some connections to one database.
pub struct Pool {
    settings: Settings,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub fn new(settings: Settings, size: usize) -> Pool {
        // A database in memory is its connection.
        let size = if settings.path.is_empty() { 1 } else { size };
        Pool { settings, permits: Semaphore::new(size), idle: Mutex::default() }
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
        let limit = self.settings.timeout;
        let late = || {
            let seconds = limit.as_secs_f64();
            Error::unavailable(format!(
                "not done within {seconds} s; somebody else may hold a lock"
            ))
        };
        let permit = tokio::time::timeout(limit, self.permits.acquire()).await;
        let _permit = permit.map_err(|_| late())?.expect("never closed");
        let spare = self.idle().pop();
        let connection = match spare {
            Some(connection) => connection,
            None => self.open()?,
        };
        if self.settings.here {
            let mut connection = connection;
            let done = act(&mut connection);
            self.idle().push(connection);
            return done;
        }
        let stop = connection.get_interrupt_handle();
        let pool = self.clone();
        // The connection goes back also where nobody waits for the result any more.
        let mut work = tokio::task::spawn_blocking(move || {
            let mut connection = connection;
            let done = act(&mut connection);
            pool.idle().push(connection);
            done
        });
        let done = match tokio::time::timeout(limit, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                stop.interrupt();
                work.await.ok();
                return Err(late());
            }
        };
        done.map_err(|e| {
            Error::new(ErrorKind::Io, "a thread of SQLite ended early").with_source(e)
        })?
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<Connection> {
        let Settings { path, tier, timeout, .. } = &self.settings;
        // A name that looks like a URI is a name all the same.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match path.is_empty() {
            true => Connection::open_in_memory(),
            false => Connection::open_with_flags(path, flags),
        };
        let connection = connection.map_err(error)?;
        set_up(&connection, *tier, *timeout).map_err(error)?;
        Ok(connection)
    }
}

fn set_up(connection: &Connection, tier: Option<Tier>, timeout: Duration) -> rusqlite::Result<()> {
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
    connection.execute_batch("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;")
}

/// An error of SQLite as one of ours.
pub fn error(e: rusqlite::Error) -> Error {
    let kind = match &e {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::ConstraintViolation => ErrorKind::Conflict,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Unavailable,
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
