//! `do = "rewrite"`: writes all records again, several times: what stores that keep old versions, or write
//! behind the old ones, then take on disk, before and after they have cleaned up.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        expected::Expected,
        load_loop::going_on,
        turn::{Done, Turn},
    },
    Info, Kind,
    load::BATCH,
};
use crate::{Result, results::Bloat, workload::Phase};

pub(super) const INFO: Info = Info {
    name: "rewrite",
    about: "writes all records again, several times; measures the disk before, after, and after the store \
            has settled",
    options: &[
        ("times", "how often, 2 or more (default 2)"),
        ("batch", "how many records at a time (default 1,000)"),
    ],
    example: "",
    read: |options| {
        // The last pass writes records as they were, so there is one more at least: a store may skip what
        // is there already.
        let times = options.number("times", &(2..=1_000_000))?.unwrap_or(2);
        Ok(Arc::new(Rewrite { times, batch: options.batch(BATCH)? }))
    },
};

/// Records that are made at a time, outside of the window.
const CHUNK: u64 = 10_000;

#[derive(Debug)]
struct Rewrite {
    /// How often.
    times: u32,
    /// How many records at a time.
    batch: usize,
}

#[async_trait(?Send)]
impl Kind for Rewrite {
    fn about(&self) -> String {
        format!("All records written again {} times, {} at a time", self.times, self.batch)
    }

    fn unit(&self) -> &'static str {
        "records"
    }

    fn units(&self, records: u64, _: &Expected) -> Option<u64> {
        Some(records * u64::from(self.times))
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        turn.rewrite(phase, self.times, self.batch).await
    }
}

impl Turn<'_> {
    /// Writes every record `times` times. Before the last time each has what another one had, so that
    /// there is something to write, and as many bytes in all; after it all is as it was.
    async fn rewrite(&mut self, phase: &Phase, times: u32, batch: usize) -> Result<Done> {
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
