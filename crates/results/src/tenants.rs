//! What a results file says of tenants: many customers in one table, or each in a database of its own.

use serde::{Deserialize, Serialize};

use super::{
    Figure, Results, Versus,
    stats::{FEWEST, median},
    stores::is_zero,
};

/// The arm that the others are compared with: one table for all tenants.
pub const SHARED: &str = "shared";
/// A database for each tenant.
pub const DATABASE: &str = "database";
/// A schema for each tenant, in one database.
pub const SCHEMA: &str = "schema";
/// A database for each tenant, behind the gateway.
pub const GATEWAY: &str = "gateway";

/// The published time with many databases over that with one: "5.3 % slower", and nothing else is known of it.
pub const PUBLISHED: f64 = 1.053;
/// An interval that is wider, as a ratio of its ends, says nothing of so small a difference.
const NARROW: f64 = 1.2;

/// What `bench tenants` ran with, and what it found beside the times of operations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tenants {
    /// Records of each tenant.
    pub documents: u64,
    /// How many databases are open at once, at most.
    pub open: u64,
    /// Records that an answer has: the mean.
    pub answer: f64,
    /// One for each store, arm and number of tenants, in the order of the run.
    pub held: Vec<Held>,
}

/// What it takes to hold so many tenants in one way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Held {
    /// The store, as it was typed.
    pub store: String,
    /// The way: a competitor's name.
    pub arm: String,
    /// How many tenants.
    pub tenants: u64,
    /// The tier of a write that was acknowledged, by the settings of the store: `t3`; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Why it was not measured; `None` where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Nanoseconds to make the tables or databases and to load the records, once; 0 where another arm has made them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub making_ns: u64,
    /// Bytes allocated on disk after a clean end of the server, data and logs, less what it had before; `None` where
    /// nobody could look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// What was seen in each round.
    pub seen: Vec<Seen>,
}

/// What was seen of the processes that hold the data, at the end of a turn, when each tenant was asked at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Which round of the run, from 0.
    pub round: u32,
    /// Bytes of memory, what is shared counted once (Pss).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Open files, sockets among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Nanoseconds from the start of the process to its first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_ns: Option<u64>,
}

/// The number of tenants, and the store, that a phase is of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tenancy {
    /// The store, as it was typed.
    pub store: String,
    /// How many tenants.
    pub tenants: u64,
}

impl Held {
    /// Bytes of memory: the median of the rounds.
    pub fn memory(&self) -> Option<f64> {
        self.middle(|seen| seen.memory)
    }

    /// Open files: the median of the rounds.
    pub fn files(&self) -> Option<f64> {
        self.middle(|seen| seen.files)
    }

    /// Nanoseconds from the start of the process to its first answer: the median of the rounds.
    pub fn restart_ns(&self) -> Option<f64> {
        self.middle(|seen| seen.restart_ns)
    }

    fn middle(&self, of: impl Fn(&Seen) -> Option<u64>) -> Option<f64> {
        let all: Vec<f64> = self.seen.iter().filter_map(of).map(|value| value as f64).collect();
        median(&all)
    }
}

impl Tenants {
    /// What was found of an arm.
    pub fn held(&self, store: &str, arm: &str, tenants: u64) -> Option<&Held> {
        let is = |held: &&Held| held.store == store && held.arm == arm && held.tenants == tenants;
        self.held.iter().find(is)
    }

    /// The stores, in the order of the run.
    pub fn stores(&self) -> Vec<&str> {
        let mut stores: Vec<&str> = Vec::new();
        for held in &self.held {
            if !stores.contains(&held.store.as_str()) {
                stores.push(&held.store);
            }
        }
        stores
    }

    /// The tier of a store's writes.
    pub fn tier(&self, store: &str) -> Option<&str> {
        self.held.iter().filter(|held| held.store == store).find_map(|held| held.tier.as_deref())
    }

    /// The numbers of tenants that a store was measured with, ascending.
    pub fn sizes(&self, store: &str) -> Vec<u64> {
        let own = self.held.iter().filter(|held| held.store == store);
        let mut sizes: Vec<u64> = own.map(|held| held.tenants).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The arms of a store, in the order of the run.
    pub fn arms(&self, store: &str) -> Vec<&str> {
        let mut arms: Vec<&str> = Vec::new();
        for held in self.held.iter().filter(|held| held.store == store) {
            if !arms.contains(&held.arm.as_str()) {
                arms.push(&held.arm);
            }
        }
        arms
    }

    /// The fewest and the most tenants of a store between which one more takes the same: of those numbers with which all
    /// databases stay open, where there are two of them, else of all.
    pub fn between(&self, store: &str) -> Option<(u64, u64)> {
        let sizes = self.sizes(store);
        let all_open = sizes.iter().filter(|size| **size <= self.open).count();
        let sizes = if all_open > 1 { &sizes[..all_open] } else { &sizes[..] };
        Some((*sizes.first()?, *sizes.last()?))
    }

    /// What one more tenant takes: the difference over the number of those [`between`](Tenants::between). `None`
    /// where there is one number only, or one of the two is not known.
    pub fn each(&self, store: &str, arm: &str, of: impl Fn(&Held) -> Option<f64>) -> Option<f64> {
        let (least, most) = self.between(store)?;
        let at = |size| of(self.held(store, arm, size)?);
        (most > least).then_some(())?;
        Some((at(most)? - at(least)?) / (most - least) as f64)
    }
}

/// What can be said of a ratio beside the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It lies within the interval.
    Within,
    /// The whole interval lies above it.
    Below,
    /// The whole interval lies below it.
    Above,
    /// There is no interval, or it is too wide to say.
    Unknown,
}

impl Published {
    /// Of an interval.
    pub fn of(ratio: &Figure) -> Published {
        match (ratio.low, ratio.high) {
            (Some(low), Some(_)) if low > PUBLISHED => Published::Below,
            (Some(_), Some(high)) if high < PUBLISHED => Published::Above,
            (Some(low), Some(high)) if high <= NARROW * low => Published::Within,
            _ => Published::Unknown,
        }
    }
}

impl Results {
    /// The id of the phase of this kind (`query`, `insert`, `touch`), on this store, with so many tenants.
    pub fn tenants_phase(&self, kind: &str, store: &str, tenants: u64) -> Option<&str> {
        let is = |own: &Tenancy| own.store == store && own.tenants == tenants;
        let phase = self.phases.iter();
        let mut phase = phase.filter(|p| p.kind == kind && p.tenants.as_ref().is_some_and(is));
        phase.next().map(|phase| phase.id.as_str())
    }

    /// The time of one arm over that of another; `None` where they were not compared.
    pub fn tenants_ratio(
        &self,
        (kind, store, tenants): (&str, &str, u64),
        of: &str,
        to: &str,
    ) -> Option<Versus> {
        self.answer(of, to, self.tenants_phase(kind, store, tenants)?)
    }

    /// In how many rounds the arms of a store took turns with so many tenants, and whether that is enough for an
    /// interval.
    pub fn tenants_rounds(&self, store: &str, tenants: u64) -> (u32, bool) {
        let phase = self.tenants_phase("query", store, tenants).unwrap_or_default();
        let cells = self.cells.iter().filter(|cell| cell.phase == phase);
        let rounds = cells.map(|cell| cell.rounds.len()).max().unwrap_or(0);
        (rounds as u32, rounds >= FEWEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(arm: &str, tenants: u64, memory: &[u64]) -> Held {
        let seen = |(round, memory): (usize, &u64)| Seen {
            round: round as u32,
            memory: Some(*memory),
            ..Seen::default()
        };
        Held {
            store: "sqlite".into(),
            arm: arm.into(),
            tenants,
            seen: memory.iter().enumerate().map(seen).collect(),
            ..Held::default()
        }
    }

    #[test]
    fn a_tenant_takes_what_the_last_ones_took() {
        let tenants = Tenants {
            held: vec![
                held(SHARED, 100, &[50]),
                held(DATABASE, 1, &[100, 90, 110]),
                held(DATABASE, 101, &[1100, 1100, 99_999]),
                held(SHARED, 1, &[40]),
            ],
            ..Tenants::default()
        };
        assert_eq!(tenants.sizes("sqlite"), [1, 100, 101]);
        assert_eq!(tenants.arms("sqlite"), [SHARED, DATABASE]);
        assert_eq!(tenants.each("sqlite", DATABASE, Held::memory), Some(10.0));
        // Of the most tenants nothing is known.
        assert_eq!(tenants.each("sqlite", SHARED, Held::memory), None);
        assert_eq!(tenants.each("sqlite", DATABASE, Held::files), None);
        assert_eq!(tenants.each("mariadb", DATABASE, Held::memory), None);
        let one = Tenants { held: vec![held(SHARED, 7, &[1])], ..Tenants::default() };
        assert_eq!(one.each("sqlite", SHARED, Held::memory), None);
        // With the last number not all databases are open.
        let held =
            [(1, 100), (100, 1090), (1000, 1100)].map(|(n, memory)| held(DATABASE, n, &[memory]));
        let many = Tenants { held: held.into(), open: 128, ..Tenants::default() };
        assert_eq!(
            (many.between("sqlite"), many.each("sqlite", DATABASE, Held::memory)),
            (Some((1, 100)), Some(10.0))
        );
    }

    #[test]
    fn the_published_ratio_is_within_an_interval_or_not() {
        let figure = |low, high| Figure { middle: 1.0, low, high };
        for (low, high, want) in [
            (Some(1.01), Some(1.10), Published::Within),
            (Some(1.053), Some(1.053), Published::Within),
            (Some(1.06), Some(1.10), Published::Below),
            (Some(0.9), Some(1.05), Published::Above),
            (Some(0.95), Some(1.4), Published::Unknown),
            (None, None, Published::Unknown),
        ] {
            assert_eq!(Published::of(&figure(low, high)), want, "{low:?} {high:?}");
        }
    }
}
