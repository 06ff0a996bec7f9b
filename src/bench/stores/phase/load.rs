//! Tables made, and all their records written, in each of the ways there are.

use std::sync::Arc;

use super::{
    super::{
        drive::{self, Op, Ops},
        statement,
    },
    Bout, Done,
};
use crate::{
    ErrorKind, Result,
    bench::workload::{Phase, Way},
    store::{Row, Store},
};

/// Records that are made at a time, outside of the window.
const CHUNK: u64 = 10_000;

impl Bout<'_> {
    /// Makes the table of a phase, without the indexes that its store cannot have.
    pub(super) async fn make(&mut self, phase: &Phase) -> Result<Done> {
        let (table, records) = (self.declared(&phase.table)?, self.records(&phase.table)?);
        let store = Arc::clone(self.table(&phase.table)?);
        let layout = records.layout(table, store.shape()).inspect_err(|e| {
            if e.kind() == ErrorKind::Unsupported {
                self.unmade.insert(phase.table.clone(), e.context().to_owned());
            }
        })?;
        let before = self.before();
        let made = store.prepare(&layout).await;
        let done = self.after(before, 1);
        self.prepared.insert(phase.table.clone());
        match made {
            Err(e) if e.kind() == ErrorKind::Unsupported && !layout.indexes.is_empty() => {
                let plain = crate::store::Layout { indexes: Vec::new(), ..layout };
                store.prepare(&plain).await?;
                self.unindexed.insert(phase.table.clone(), e.context().to_owned());
                Err(e)
            }
            made => made.map(|()| done),
        }
    }

    pub(super) async fn load(&mut self, phase: &Phase, way: Way, batch: usize) -> Result<Done> {
        let (store, records) = (Arc::clone(self.table(&phase.table)?), self.records(&phase.table)?);
        if !self.prepared.contains(&phase.table) {
            match self.make(phase).await {
                // Without its indexes; what needs them says so itself.
                Err(_) if self.unindexed.contains_key(&phase.table) => {}
                made => drop(made?),
            }
        }
        let count = records.count;
        let mut done = Done { settled: true, ..Done::default() };
        // One transaction is one call.
        let chunk = if way == Way::Transaction { count.max(1) } else { CHUNK.max(batch as u64) };
        let mut from = 0;
        while from < count {
            drive::going_on(&self.ended)?;
            let rows = records.rows(from, (from + chunk).min(count))?;
            if from == 0 && self.explains {
                done.statements = statement::of_load(&*store, way, batch, &rows).await;
            }
            from += rows.len() as u64;
            let part = match way {
                Way::Rows => self.rows(phase, rows.into_owned()).await?,
                Way::Batches | Way::Bulk => self.batches(&*store, way, batch, &rows).await?,
                Way::Transaction => {
                    let before = self.before();
                    store.put_each(&rows).await?;
                    self.after(before, rows.len() as u64)
                }
            };
            done.add(part);
        }
        self.same("records are there", store.count().await?, count)?;
        // Without statistics a database plans the first queries for an empty table.
        store.analyze().await?;
        self.there.insert(phase.table.clone(), count);
        self.as_loaded(&phase.table, 0).await?;
        Ok(done)
    }

    async fn batches(
        &self,
        store: &dyn Store,
        way: Way,
        batch: usize,
        rows: &[Row],
    ) -> Result<Done> {
        let before = self.before();
        for rows in rows.chunks(batch) {
            drive::going_on(&self.ended)?;
            match way {
                Way::Bulk => store.load(rows).await?,
                _ => store.put(rows).await?,
            }
        }
        Ok(self.after(before, rows.len() as u64))
    }

    /// Writes rows one by one.
    async fn rows(&self, phase: &Phase, rows: Vec<Row>) -> Result<Done> {
        let ops: Vec<Op> = rows.into_iter().map(|row| Op::Put(Box::new(row))).collect();
        let ops = Ops::from(ops);
        let (stores, crew) = (self.stores(phase)?, self.crew(phase)?);
        let before = self.before();
        let window = drive::closed(&crew, self.clock, &stores, &ops, None).await?;
        let done = self.after(before, window.tally.done);
        match window.first {
            // A table that lacks records is no table to go on with.
            Some(e) => Err(e),
            None => Ok(Done { window: Some(window), ..done }),
        }
    }
}
