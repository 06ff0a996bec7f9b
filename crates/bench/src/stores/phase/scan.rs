//! `do = "scan"`: reads all records.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt;

use super::{
    super::{
        expected::{Counts, Expected},
        load_loop::going_on,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{
    Result,
    store::{KeyRange, Request},
    workload::Phase,
};

pub(super) const INFO: Info = Info {
    name: "scan",
    about: "reads all records",
    options: &[],
    example: "",
    read: |_| Ok(Arc::new(Scan)),
};

#[derive(Debug)]
struct Scan;

#[async_trait(?Send)]
impl Kind for Scan {
    fn about(&self) -> String {
        "All records read".into()
    }

    fn unit(&self) -> &'static str {
        "records"
    }

    fn repeats(&self) -> bool {
        true
    }

    fn expected(&self, counts: &Counts<'_>) -> Expected {
        Expected::Records(counts.there())
    }

    fn units(&self, _: u64, expected: &Expected) -> Option<u64> {
        expected.records()
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, expected: &Expected) -> Result<Done> {
        let store = Arc::clone(turn.table(&phase.table)?);
        let statements = turn.explained(&*store, Request::Scan(&KeyRange::all())).await;
        let before = turn.before();
        let mut rows = store.scan(&KeyRange::all()).await?;
        let (mut read, mut first, mut last) = (0, Vec::new(), Vec::new());
        while let Some(batch) = rows.try_next().await? {
            read += batch.len() as u64;
            going_on(&turn.ended)?;
            match first.is_empty() {
                true => first = batch,
                false => last = batch,
            }
        }
        drop(rows);
        let mut done = turn.after(before, read);
        first.append(&mut last);
        turn.scanned(&phase.table, first)?;
        (done.items, done.statements) = (read, statements);
        match turn.there.get(&phase.table) {
            Some(there) => turn.same("records were read", read, *there)?,
            None => turn.agree("records were read", read, expected)?,
        }
        Ok(done)
    }
}
