//! The random inputs of a phase's operations: keys, queries and records, drawn from a seed before the clock runs, so
//! that they are ready when a window begins.

use super::{data::Records, expected::Expected, operation::Op};
use crate::{
    Result,
    schedule::Limit,
    store::{Key, Row},
    workload::{Draw, Phase, Spread},
};

/// Operations of a window that ends by the clock: drawn once, and sent again and again.
const ROUND: u64 = 20_000;

/// What the operations of a phase are drawn from.
pub(crate) struct Draws<'a> {
    pub phase: &'a Phase,
    /// The records of its table.
    pub records: &'a Records,
    pub expected: &'a Expected,
    /// How many records earlier phases have added to the table.
    pub grown: u64,
    /// The same operations follow from the same seed.
    pub seed: u64,
    /// They are for the competitor that keeps nothing.
    pub null: bool,
}

impl Draws<'_> {
    /// As many operations as the phase says, or `usual` where neither it nor the command line does.
    ///
    /// # Errors
    /// Those of `op`.
    pub(crate) fn all<O>(&self, usual: u64, mut op: impl FnMut() -> Result<O>) -> Result<Vec<O>> {
        let count = match self.phase.limit {
            Some(Limit::Count(n)) => n,
            Some(Limit::Seconds(_)) => ROUND,
            None => usual,
        };
        (0..count).map(|_| op()).collect()
    }

    /// Draws numbers of records: each as likely as any other.
    pub(crate) fn random(&self) -> Draw {
        Draw::new(Spread::Random, self.records.count, self.seed)
    }

    /// Draws numbers of records as a phase says.
    pub(crate) fn of(&self, spread: &Spread) -> Draw {
        self.records.draw(spread, self.seed)
    }
}

/// So many writes to records that are there: each is given what another one has, and then what it had.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for records without a key.
pub(super) fn in_place(records: &Records, writes: u64, seed: u64) -> Result<Vec<Op>> {
    let mut draw = Draw::new(Spread::Random, records.count, seed);
    let mut ops = Vec::with_capacity(writes as usize);
    for _ in 0..writes.div_ceil(2) {
        let (n, by) = (draw.draw(), 1 + draw.below(records.count.saturating_sub(1)));
        for by in [by, 0] {
            ops.push(Op::Put(Box::new(records.shifted(n, by)?)));
        }
    }
    Ok(ops)
}

/// The keys of rows, for reading them back.
pub(super) fn keys(rows: &[Row]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}

/// What the tests of several kinds need.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        stores::expected::{Counts, expected},
        workload::Workload,
    };

    /// A built-in workload, smaller, with the records of its tables and what must come out.
    pub(crate) fn small(name: &str, by: f64) -> (Workload, Vec<(String, Records)>, Vec<Expected>) {
        of(Workload::named(name).unwrap().scaled(by))
    }

    /// The same of a workload of the test's own.
    pub(crate) fn of(workload: Workload) -> (Workload, Vec<(String, Records)>, Vec<Expected>) {
        let records: Vec<_> = (workload.tables.iter())
            .map(|table| (table.name.clone(), Records::new(table, None, 1).unwrap()))
            .collect();
        let expected = expected(&workload, &records, &|| false);
        (workload, records, expected)
    }

    /// The operations of a phase, of a table that has grown by three records.
    pub(crate) fn drawn(name: &str, phase: &str) -> Vec<Op> {
        let (workload, records, expected) = small(name, 0.05);
        let at = workload.phases.iter().position(|p| p.name == phase).unwrap();
        let phase = &workload.phases[at];
        let records = &records.iter().find(|r| r.0 == phase.table).unwrap().1;
        let expected = &expected[at];
        let draws = Draws { phase, records, expected, grown: 3, seed: 7, null: false };
        phase.kind.drawn(&draws).unwrap()
    }

    /// What the check of one phase of a workload says.
    pub(crate) fn checked(workload: &str, phase: &str) -> Result<Option<String>> {
        let (workload, records, expected) = of(Workload::parse(workload).unwrap());
        let at = workload.phases.iter().position(|p| p.name == phase).unwrap();
        let phase = &workload.phases[at];
        let counts = Counts::new(&records, &phase.table, &|| false).unwrap();
        phase.kind.check(phase, &counts, &expected[at])
    }
}
