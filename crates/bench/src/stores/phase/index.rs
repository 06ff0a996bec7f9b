//! `do = "index"`: makes indexes on records that are there; says how long that takes and, where that is
//! asked for, what they take on disk and what they cost a write.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        draws,
        expected::Expected,
        load_loop::{self, Ops},
        operation::Op,
        turn::{Done, Turn},
        workers::Workers,
    },
    Info, Kind,
};
use crate::{
    Result,
    results::IndexCost,
    store::query::Path,
    workload::{Phase, bounds},
};

pub(super) const INFO: Info = Info {
    name: "index",
    about: "makes indexes on records that are there",
    options: &[
        ("index", "the fields"),
        (
            "writes",
            "so many writes are timed before and after, and the size of the indexes on disk is measured \
             (default 0: neither)",
        ),
    ],
    example: "index = [\"age\"]",
    read: |options| {
        let paths = options.paths("index")?;
        let writes = options.number("writes", &(0..=*bounds::COUNT.end()))?;
        Ok(Arc::new(MakeIndex { paths, writes: writes.unwrap_or(0) }))
    },
};

#[derive(Debug)]
struct MakeIndex {
    /// Of these fields.
    paths: Vec<Path>,
    /// How many writes are timed before and after, to see what the indexes cost a write; 0 for none.
    writes: u64,
}

#[async_trait(?Send)]
impl Kind for MakeIndex {
    fn about(&self) -> String {
        "An index on records that are there".into()
    }

    fn unit(&self) -> &'static str {
        "indexes"
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    fn needs<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        if self.writes == 0 { Vec::new() } else { vec![own] }
    }

    fn indexes(&self) -> &[Path] {
        &self.paths
    }

    fn reads(&self) -> Vec<Path> {
        self.paths.clone()
    }

    fn units(&self, _: u64, _: &Expected) -> Option<u64> {
        Some(self.paths.len() as u64)
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        turn.index(phase, &self.paths, self.writes).await
    }
}

impl Turn<'_> {
    async fn index(&mut self, phase: &Phase, paths: &[Path], writes: u64) -> Result<Done> {
        let store = Arc::clone(self.table(&phase.table)?);
        let (table, records) = (self.declared(&phase.table)?, self.records(&phase.table)?);
        let mut layout = records.layout(table, store.shape())?;
        for path in paths {
            layout.indexes.push(records.index(path)?);
        }
        if writes == 0 {
            let before = self.before();
            store.prepare(&layout).await?;
            let done = self.after(before, paths.len() as u64);
            store.analyze().await?;
            return Ok(done);
        }
        let ops = Ops::from(draws::in_place(records, writes, self.seed)?);
        let without = self.writes(phase, &ops).await?;
        store.settle().await?;
        store.analyze().await?;
        let (plain, own) = (self.disk(), store.index_bytes().await?);
        let before = self.before();
        store.prepare(&layout).await?;
        let done = self.after(before, paths.len() as u64);
        store.settle().await?;
        store.analyze().await?;
        // Before the writes, which leave old versions behind.
        let (indexed, owned) = (self.disk(), store.index_bytes().await?);
        let with = self.writes(phase, &ops).await?;
        // What a file grows by says little where it had room to spare.
        let grown = plain.zip(indexed).map(|(a, b)| b.total().saturating_sub(a.total()));
        let bytes = own.zip(owned).map(|(a, b)| b.saturating_sub(a)).or(grown);
        let index =
            IndexCost { bytes, writes: ops.len() as u64, without_ns: without, with_ns: with };
        Ok(Done { index: Some(index), ..done })
    }

    /// Sends these writes one after another, and says how many nanoseconds they took.
    async fn writes(&self, phase: &Phase, ops: &Ops<Op>) -> Result<u64> {
        let (stores, mut workers) = (self.stores(phase)?, Workers::tasks(1));
        workers.ended = self.ended.clone();
        // Once untimed: pages and statements are then where they are in the long run.
        let warm = ops.parts((ops.len() / 8).max(1) * 2).next().unwrap_or_else(|| ops.clone());
        for (ops, timed) in [(&warm, false), (ops, true)] {
            let at = self.clock.now();
            let window = load_loop::closed(&workers, self.clock, &stores, ops, None).await?;
            match window.first {
                Some(e) => return Err(e),
                None if timed => return Ok(self.clock.now() - at),
                None => {}
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{stores::data::Records, workload::Workload};

    #[test]
    fn writes_in_place_leave_every_record_as_it_was() {
        let workload = Workload::named("documents").unwrap().scaled(0.005);
        let records = Records::new(&workload.tables[0], None, 1).unwrap();
        let ops = draws::in_place(&records, 60, 7).unwrap();
        assert_eq!(ops.len(), 60);
        let mut last = std::collections::HashMap::new();
        let mut differ = 0;
        for op in &ops {
            let Op::Put(row) = op else { panic!("{op:?}") };
            let before = last.insert(row.key.clone(), row.record.clone());
            differ += usize::from(before.is_some_and(|before| before != row.record));
        }
        assert!(differ >= 30, "each is changed and changed back: {differ}");
        for n in 0..records.count {
            let row = records.row(n).unwrap();
            if let Some(record) = last.get(&row.key) {
                assert_eq!(*record, row.record);
            }
        }
    }
}
