//! All records written again, several times: what stores that keep old versions, or write behind the
//! old ones, then take on disk, before and after they have cleaned up.

use std::sync::Arc;

use super::{super::drive::going_on, Bout, Done};
use crate::{
    Result,
    bench::{results::Bloat, workload::Phase},
};

/// Records that are made at a time, outside of the window.
const CHUNK: u64 = 10_000;

impl Bout<'_> {
    /// Writes every record `times` times. Before the last time each has what another one had, so that
    /// there is something to write, and as many bytes in all; after it all is as it was.
    pub(super) async fn rewrite(
        &mut self,
        phase: &Phase,
        times: u32,
        batch: usize,
    ) -> Result<Done> {
        let (store, records) = (Arc::clone(self.table(&phase.table)?), self.records(&phase.table)?);
        let there = store.count().await?;
        // What loading has put off is no part of it.
        store.settle().await?;
        let before = self.disk();
        let mut done = Done { settled: true, ..Done::default() };
        for time in 1..=u64::from(times) {
            let shift = if time == u64::from(times) { 0 } else { time };
            for from in (0..records.count).step_by(CHUNK as usize) {
                let until = (from + CHUNK).min(records.count);
                let rows: Vec<_> =
                    (from..until).map(|n| records.shifted(n, shift)).collect::<Result<_>>()?;
                let window = self.before();
                for rows in rows.chunks(batch) {
                    going_on(&self.ended)?;
                    store.put(rows).await?;
                }
                done.add(self.after(window, rows.len() as u64));
            }
            if time == 1 {
                self.as_loaded(&phase.table, shift).await?;
            }
        }
        let after = self.disk();
        let at = self.clock.now();
        let settles = store.settle().await?;
        let settle_ns = self.clock.now() - at;
        self.same("records are there", store.count().await?, there)?;
        self.as_loaded(&phase.table, 0).await?;
        done.bloat = before.zip(after).map(|(before, after)| Bloat {
            before,
            after,
            settled: self.disk().filter(|_| settles),
            settle_ns: if settles { settle_ns } else { 0 },
        });
        Ok(done)
    }
}
