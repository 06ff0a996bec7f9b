//! Temporary databases and tables in a store of the user's own, dropped after the run: a database whose name is
//! reported, where the store has databases and the user may create one; otherwise tables under a prefix of the run's
//! own. Nothing else there is written or dropped.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::target::Target;
use crate::{
    Error, ErrorKind, Result,
    cleanup::{Due, stays},
    store::{Scratch, Store},
};

/// What a run made in stores of the user's own, by their labels.
#[derive(Default)]
pub(super) struct Made {
    databases: HashMap<String, Scratch>,
    /// What names of tables begin with where there is no database.
    prefixes: HashMap<String, String>,
    /// What is said of each of them where the process ends before it is dropped.
    left: Vec<Due>,
}

impl Made {
    /// Makes what a target needs, and says what that is; nothing where it is not the user's own.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where there is a database of that name; of the store.
    pub(super) async fn make(&mut self, target: &Target, seed: u64) -> Result<Option<String>> {
        // In one process several runs may have the same seed.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(url) = target.own_url() else { return Ok(None) };
        let mut name = format!("steelyard_bench_{}_{seed}", std::process::id());
        let n = NEXT.fetch_add(1, Relaxed);
        if n > 0 {
            name += &format!("_{n}");
        }
        let why = match Scratch::make(url, &name).await {
            Ok(Some(made)) => {
                self.databases.insert(target.label.clone(), made);
                self.left(target, &format!("database {name}"));
                return Ok(Some(format!(
                    "database {name}, made for this run and dropped after it"
                )));
            }
            Ok(None) => String::new(),
            Err(e) if [ErrorKind::Denied, ErrorKind::Unsupported].contains(&e.kind()) => {
                format!(", as it may make no database ({})", e.context())
            }
            Err(e) => return Err(e),
        };
        self.left(target, &format!("tables {name}_*"));
        let told = format!("tables {name}_*, made for this run and dropped after it{why}");
        self.prefixes.insert(target.label.clone(), name);
        Ok(Some(told))
    }

    fn left(&mut self, target: &Target, what: &str) {
        let label = &target.label;
        self.left.push(stays(format!("{label}: {what} of this run could not be dropped any more")));
    }

    /// Where the target is opened: in its database, if it has one.
    pub(super) fn at(&self, target: &Target) -> Target {
        match self.databases.get(&target.label) {
            Some(made) => target.at(made.url()),
            None => target.clone(),
        }
    }

    /// What a table is called in a store.
    pub(super) fn name(&self, target: &Target, table: &str) -> String {
        match self.prefixes.get(&target.label) {
            Some(prefix) => format!("{prefix}_{table}"),
            None => table.to_owned(),
        }
    }

    /// Before a table is used for the first time: what is there under its name is somebody else's.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where records are there.
    pub(super) async fn absent(
        &self,
        target: &Target,
        table: &str,
        store: &dyn Store,
    ) -> Result<()> {
        if !self.prefixes.contains_key(&target.label) {
            return Ok(());
        }
        match store.count().await {
            Ok(0) => Ok(()),
            Ok(n) => {
                let name = self.name(target, table);
                let what = format!("a table {name:?} is there already, with {n} records");
                Err(Error::new(ErrorKind::Conflict, what))
            }
            // It is not there; or nobody can tell what is, only what has been written.
            Err(e) if [ErrorKind::NotFound, ErrorKind::Unsupported].contains(&e.kind()) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Drops the databases.
    ///
    /// # Errors
    /// The first of what could not be dropped; the others are, all the same.
    pub(super) async fn drop_all(&mut self) -> Result<()> {
        let mut done = Ok(());
        for (_, made) in self.databases.drain() {
            let dropped = made.drop().await;
            done = done.and(dropped);
        }
        done
    }
}
