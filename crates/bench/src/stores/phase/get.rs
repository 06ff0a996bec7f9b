//! `do = "get"`: reads records by key, one or several at a time.

use std::sync::Arc;

use super::{
    super::{draws::Draws, operation::Op},
    Info, Kind,
};
use crate::{Result, workload::Spread};

pub(super) const INFO: Info = Info {
    name: "get",
    about: "reads records by key",
    options: &[
        ("keys", "which keys, see below (default `random`)"),
        ("batch", "how many keys at a time (default 1)"),
    ],
    example: "",
    read: |options| Ok(Arc::new(Get { spread: options.spread()?, batch: options.batch(1)? })),
};

/// Operations of a trace, at most, where nobody says how many.
const TRACED: u64 = 1_000_000;

#[derive(Debug)]
struct Get {
    spread: Spread,
    batch: usize,
}

impl Kind for Get {
    fn about(&self) -> String {
        match self.batch {
            1 => "Records read by key".into(),
            batch => format!("Records read by key, {batch} at a time"),
        }
    }

    fn unit(&self) -> &'static str {
        if self.batch == 1 { "records" } else { "operations" }
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn spread(&self) -> Option<&Spread> {
        Some(&self.spread)
    }

    fn drawn(&self, draws: &Draws<'_>) -> Result<Vec<Op>> {
        let records = draws.records;
        let usual = match records.trace(&self.spread) {
            // A long trace says the same from its beginning.
            Some(trace) => (trace.len() as u64).min(TRACED),
            None => records.count.clamp(1, 10_000),
        };
        let mut draw = draws.of(&self.spread);
        draws.all(usual, || {
            let keys = (0..self.batch).map(|_| records.key(draw.draw()));
            Ok(Op::Get(keys.collect::<Result<_>>()?))
        })
    }
}
