//! The bounds of the numbers in a workload: beyond them a number is a mistake, and arithmetic of
//! nanoseconds would overflow.

use std::ops::RangeInclusive;

use super::{Phase, Table, Workload};
use crate::{
    Error, Result,
    schedule::{Limit, Pace},
};

/// Records of a table, operations of a phase.
pub const COUNT: RangeInclusive<u64> = 1..=10_000_000_000;
/// Seconds of a phase: about four months.
pub const SECONDS: f64 = 1e7;
/// Records in a batch.
pub const BATCH: RangeInclusive<usize> = 1..=1_000_000;
/// Operations at once.
pub const CONCURRENCY: RangeInclusive<u32> = 1..=10_000;
/// Operations a second of an open loop.
pub const RATE: RangeInclusive<f64> = 1e-3..=1e8;
/// What an open loop offers, as a share of the capacity.
const SHARE: RangeInclusive<f64> = 1e-6..=1e3;

/// One number that has its bounds.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) outside, with the name.
pub(super) fn within<T: PartialOrd + std::fmt::Display>(
    name: &str,
    n: T,
    bounds: &RangeInclusive<T>,
) -> Result<T> {
    match bounds.contains(&n) {
        true => Ok(n),
        false => {
            let (from, to) = (bounds.start(), bounds.end());
            Err(Error::invalid(format!("{name} = {n}: {from} to {to}")))
        }
    }
}

impl Table {
    /// Its counts are within bounds.
    pub(super) fn bounded(&self) -> Result<()> {
        // A table without records is sound.
        within("count", self.count.max(1), &COUNT)?;
        within("published", self.published.max(1), &COUNT).map(drop)
    }
}

impl Phase {
    /// Its counts, seconds and rates are within bounds.
    pub(super) fn bounded(&self) -> Result<()> {
        match self.limit {
            Some(Limit::Count(count)) => within("count", count, &COUNT).map(drop)?,
            Some(Limit::Seconds(seconds)) if !(seconds > 0.0 && seconds <= SECONDS) => {
                let what = format!("seconds = {seconds}: above 0, and {SECONDS} at most");
                return Err(Error::invalid(what));
            }
            Some(Limit::Seconds(_)) | None => {}
        }
        within("published", self.published.unwrap_or(1).max(1), &COUNT)?;
        match self.pace {
            Pace::Free => {}
            Pace::Fixed(rate) | Pace::Poisson(rate) => {
                within("a pace", rate, &RATE)?;
            }
            Pace::Share(share) => {
                within("a pace's share", share, &SHARE)?;
            }
        }
        within("concurrency", self.concurrency, &CONCURRENCY).map(drop)
    }
}

impl Workload {
    /// What it asks for is within bounds: also what it was scaled to.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the table or the phase.
    pub fn bounded(&self) -> Result<()> {
        for table in &self.tables {
            table.bounded().map_err(|e| e.in_place(format!("table {}", table.name)))?;
        }
        for phase in &self.phases {
            phase.bounded().map_err(|e| e.in_place(format!("phase {}", phase.name)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"x\"\nabout = \"y\"\n[table.records]\ndataset = \"people\"\n";

    /// The keys whose numbers have bounds, in place of `{}` in a table or a phase; and what they are
    /// at least and at most.
    const KEYS: [(&str, &str, &str); 12] = [
        ("count = {}\n[[phase]]\nname = \"a\"\ndo = \"scan\"\n", "0", "10000000000"),
        ("published = {}\n[[phase]]\nname = \"a\"\ndo = \"scan\"\n", "0", "10000000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\ncount = {}\n", "1", "10000000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\npublished = {}\n", "1", "10000000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\nseconds = {}\n", "1e-9", "1e7"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\nbatch = {}\n", "1", "1000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"load\"\nbatch = {}\n", "1", "1000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"rewrite\"\ntimes = {}\n", "2", "1000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"rewrite\"\nbatch = {}\n", "1", "1000000"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\npace = {fixed = {}}\n", "0.001", "1e8"),
        ("[[phase]]\nname = \"a\"\ndo = \"get\"\npace = {poisson = {}}\n", "0.001", "1e8"),
        (
            "[[phase]]\nname = \"a\"\ndo = \"index\"\nindex = [\"age\"]\nwrites = {}\n",
            "0",
            "10000000000",
        ),
    ];

    #[test]
    fn numbers_that_are_slips_are_refused_with_their_line() {
        for (body, least, most) in KEYS {
            // What works on records comes after what loads them.
            let loads = "[[phase]]\nname = \"l\"\ndo = \"load\"\n[[phase]]\n";
            let body = body.replacen("[[phase]]\n", loads, 1);
            let parsed = |n: &str| Workload::parse(&format!("{HEAD}{}", body.replace("{}", n)));
            for sound in [least, most] {
                let workload = parsed(sound).unwrap_or_else(|e| panic!("{body}, {sound}: {e}"));
                workload.bounded().unwrap();
            }
            let too_many = ["inf", "nan", "-1", "1e300", "10000000001", "9223372036854775807"];
            for slip in too_many {
                let error = parsed(slip).expect_err(slip);
                let line = error.place().name.clone();
                assert!(line.starts_with("line "), "{body}, {slip}: {error}");
                assert_eq!(error.kind(), crate::ErrorKind::Invalid, "{body}, {slip}");
            }
        }
    }

    #[test]
    fn a_trace_without_a_name_is_told_with_its_line() {
        let body = "[[phase]]\nname = \"a\"\ndo = \"get\"\nkeys = { trace = \"\" }\n";
        let error = Workload::parse(&format!("{HEAD}{body}")).unwrap_err();
        assert!(error.to_string().starts_with("line 8: keys = { trace"), "{error}");
    }

    #[test]
    fn what_is_scaled_beyond_bounds_is_named() {
        for (name, _) in crate::workload::BUILT_IN {
            let workload = Workload::named(name).unwrap();
            workload.clone().scaled(100.0).bounded().unwrap();
            workload.clone().as_published().bounded().unwrap();
            for by in [1e12, 1e300] {
                let error = workload.clone().scaled(by).bounded().unwrap_err();
                assert!(error.to_string().contains("count = "), "{error}");
            }
        }
    }
}
