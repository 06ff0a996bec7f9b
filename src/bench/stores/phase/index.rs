//! Indexes on records that are there: how long they take to make and, where that is asked for, what they
//! take on disk and what they cost a write.

use std::sync::Arc;

use super::{
    super::{
        crew::Crew,
        drive::{self, Ops},
        ops,
    },
    Bout, Done,
};
use crate::{
    Result,
    bench::{results::IndexCost, workload::Phase},
    store::query::Path,
};

impl Bout<'_> {
    pub(super) async fn index(
        &mut self,
        phase: &Phase,
        paths: &[Path],
        writes: u64,
    ) -> Result<Done> {
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
        let ops = Ops::from(ops::in_place(records, writes, self.seed)?);
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
    async fn writes(&self, phase: &Phase, ops: &Ops) -> Result<u64> {
        let (stores, mut crew) = (self.stores(phase)?, Crew::of_tasks(1));
        crew.ended = std::sync::Arc::clone(&self.ended);
        // Once untimed: pages and statements are then where they are in the long run.
        let warm = ops.parts((ops.len() / 8).max(1) * 2).next().unwrap_or_else(|| ops.clone());
        for (ops, timed) in [(&warm, false), (ops, true)] {
            let at = self.clock.now();
            let window = drive::closed(&crew, self.clock, &stores, ops, None).await?;
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
    use crate::bench::{
        stores::{data::Records, drive::Op},
        workload::Workload,
    };

    #[test]
    fn writes_in_place_leave_every_record_as_it_was() {
        let workload = Workload::named("documents").unwrap().scaled(0.005);
        let records = Records::new(&workload.tables[0], None, 1).unwrap();
        let ops = ops::in_place(&records, 60, 7).unwrap();
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
