//! Makes the indexes of the configuration in the databases of all tenants: some at a time, and again where it was ended
//! before, as what is there stays.

use futures_util::{StreamExt, stream};
use steelyard_base::{Error, ErrorKind, Result};

use super::Tenants;
use crate::{
    catalog::{State, TenantRow},
    config::Layouts,
};

/// What was done.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Applied {
    /// Tenants whose collections have what the configuration says.
    pub done: u64,
    /// Tenants whose collections do not, and why.
    pub failed: Vec<(String, Error)>,
}

impl Tenants {
    /// Prepares the collections that the configuration names, in each tenant that has them: so many tenants at a time.
    ///
    /// # Errors
    /// Of the catalog and the configuration. What fails in one tenant is told, and the others go on.
    pub async fn apply(&self, at_once: usize) -> Result<Applied> {
        let layouts = self.config.layouts()?;
        let there = |row: &TenantRow| matches!(row.state, State::Active | State::Frozen);
        let (rows, others): (Vec<_>, Vec<_>) = self.list().await?.into_iter().partition(there);
        let mut applied = Applied::default();
        for row in others.into_iter().filter(|row| row.state != State::Removed) {
            let why =
                Error::new(ErrorKind::Conflict, "it is being moved; its new database gets them");
            applied.failed.push((row.name, why));
        }
        let layouts = &layouts;
        let work = stream::iter(rows).map(|row| async move {
            let done = self.prepared(&row, layouts).await;
            (row.name, done)
        });
        let mut work = work.buffer_unordered(at_once.max(1));
        while let Some((name, done)) = work.next().await {
            match done {
                Ok(()) => applied.done += 1,
                Err(e) => applied.failed.push((name, e)),
            }
        }
        applied.failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(applied)
    }

    async fn prepared(&self, row: &TenantRow, layouts: &Layouts) -> Result<()> {
        let database = self.database(row).await?;
        let there = database.tables().await?;
        for name in layouts.names().filter(|name| there.iter().any(|table| table == name)) {
            let table = database.prepared(name, &layouts.of(name)).await.map_err(|e| {
                Error::new(e.kind(), format!("collection {name}: {}", e.reason())).with_source(e)
            })?;
            table.analyze().await?;
        }
        Ok(())
    }
}
