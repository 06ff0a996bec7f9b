//! `do = "settle"`: lets the store do what it has put off: checkpoint, vacuum, compaction.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        expected::Expected,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{Error, Result, workload::Phase};

pub(super) const INFO: Info = Info {
    name: "settle",
    about: "lets the store do what it has put off: checkpoint, vacuum, compaction. (Statistics for the \
            planner are gathered, untimed, after each `load` and `index`: `ANALYZE` of PostgreSQL, MariaDB \
            and SQLite.) A store that puts nothing off is not timed",
    options: &[],
    example: "",
    read: |_| Ok(Arc::new(Settle)),
};

#[derive(Debug)]
struct Settle;

#[async_trait(?Send)]
impl Kind for Settle {
    fn about(&self) -> String {
        "What the store had put off".into()
    }

    fn unit(&self) -> &'static str {
        "runs"
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    fn needs<'a>(&'a self, _: &'a str) -> Vec<&'a str> {
        Vec::new()
    }

    fn units(&self, _: u64, _: &Expected) -> Option<u64> {
        Some(1)
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        let store = Arc::clone(turn.table(&phase.table)?);
        let before = turn.before();
        match store.settle().await? {
            true => Ok(turn.after(before, 1)),
            false => Err(Error::unsupported("nothing to do")),
        }
    }
}
