//! The rows of the published test: which keys, which calls in an iteration, what must come of them.
//!
//! The test is `bench.rb` of Ruby's memcached client: 2,500 iterations, two servers, a value whose
//! Marshal dump has 4 bytes. Its keys and calls are kept exactly; what was wrong with it is not.

use crate::{
    Error, Result,
    results::{CacheRow, Published},
};

/// Its iterations.
pub(super) const ITERATIONS: u64 = 2_500;
/// How many keys have a value, from the first on; the others are never stored.
pub(super) const STORED: usize = 3;

/// The six keys.
pub(super) fn keys() -> [String; 6] {
    [
        "Short".into(),
        "Sym1-2-3::45".repeat(8),
        "Long".repeat(40),
        "Medium".repeat(8),
        "Medium2".repeat(8),
        "Long3".repeat(40),
    ]
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// Stores values.
    Set,
    /// Stores values and does not wait for the answers.
    Noblock,
    /// Reads values.
    Get,
    /// Reads three values and three that are not there, by one call.
    Multiget,
    /// Deletes what is not there and reads it.
    Missing,
    /// Writes and reads.
    Mixed,
}

/// What a script must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    /// Keys that are read and have their value.
    pub hits: u64,
    /// Keys that are read and have none.
    pub misses: u64,
}

impl Row {
    /// Every row, in the order of the original.
    pub const ALL: [Row; 6] =
        [Row::Set, Row::Noblock, Row::Get, Row::Multiget, Row::Missing, Row::Mixed];

    /// The one word for it.
    pub fn name(self) -> &'static str {
        match self {
            Row::Set => "set",
            Row::Noblock => "noblock",
            Row::Get => "get",
            Row::Multiget => "multiget",
            Row::Missing => "missing",
            Row::Mixed => "mixed",
        }
    }

    /// The steps of an iteration, as [`Task::script`](super::protocol::Task) spells them.
    pub fn script(self) -> &'static str {
        match self {
            Row::Set | Row::Noblock => "s1 s2 s3 s1 s2 s3",
            Row::Get => "g1 g2 g3 g1 g2 g3",
            Row::Multiget => "m",
            Row::Missing => "d1 g1 d2 g2 d3 g3",
            Row::Mixed => "s1 s2 s3 g1 g2 g3 s1 g1 s2 g2 s3 g3",
        }
    }

    /// Steps in an iteration.
    pub fn steps(self) -> u64 {
        self.script().split(' ').count() as u64
    }

    /// What is inside the window, in a phrase.
    pub fn about(self) -> &'static str {
        match self {
            Row::Set => "k1 k2 k3 k1 k2 k3 are stored, each answer waited for.",
            Row::Noblock => {
                "k1 k2 k3 k1 k2 k3 are stored and no answer is waited for; sending the rest, and \
                 proof that all was done (a barrier, or reads of the three keys), count."
            }
            Row::Get => "k1 k2 k3 k1 k2 k3 are read, and all values compared.",
            Row::Multiget => "k1 to k6 are read by one call: three are there, three are not.",
            Row::Missing => "k1 to k3 are deleted and read; they are not there.",
            Row::Mixed => "k1 k2 k3 are stored, read, then stored and read in turn.",
        }
    }

    /// What `operations` steps on so many connections must come to.
    pub fn expected(self, operations: u64, connections: u32) -> Expected {
        let one = |step: &str| match (step.as_bytes()[0], self) {
            (b'm', _) => Expected { hits: STORED as u64, misses: 6 - STORED as u64 },
            (b'g', Row::Missing) => Expected { hits: 0, misses: 1 },
            (b'g', _) => Expected { hits: 1, misses: 0 },
            _ => Expected::default(),
        };
        let steps: Vec<Expected> = self.script().split(' ').map(one).collect();
        let sum = |steps: &[Expected], times: u64| Expected {
            hits: times * steps.iter().map(|e| e.hits).sum::<u64>(),
            misses: times * steps.iter().map(|e| e.misses).sum::<u64>(),
        };
        let mut all = Expected::default();
        for share in shares(operations, connections) {
            let (whole, rest) = (share / self.steps(), (share % self.steps()) as usize);
            for part in [sum(&steps, whole), sum(&steps[..rest], 1)] {
                all = Expected { hits: all.hits + part.hits, misses: all.misses + part.misses };
            }
        }
        all
    }

    /// The published seconds: of the binding of libmemcached, and of the client in Ruby alone.
    pub fn published(self, object: bool) -> Published {
        let of =
            |binding: f64, pure: f64| Published { binding: (binding, binding), pure: Some(pure) };
        match (self, object) {
            (Row::Set, false) => of(1.25, 1.67),
            (Row::Set, true) => of(1.39, 1.71),
            (Row::Noblock, _) => Published { binding: (0.28, 0.31), pure: None },
            (Row::Get, false) => of(1.17, 1.89),
            (Row::Get, true) => of(1.23, 1.86),
            (Row::Multiget, _) => of(0.40, 0.90),
            (Row::Missing, _) => of(1.25, 1.47),
            (Row::Mixed, _) => of(2.61, 3.63),
        }
    }

    /// As it stands in the results.
    pub fn told(self, object: bool, value: &str, connections: u32) -> CacheRow {
        CacheRow {
            row: self.name().into(),
            object,
            value: value.into(),
            connections,
            calls: self.steps() * ITERATIONS,
            published: self.published(object),
        }
    }
}

/// How many steps each connection does.
pub(super) fn shares(operations: u64, connections: u32) -> impl Iterator<Item = u64> {
    let n = u64::from(connections.max(1));
    (0..n).map(move |i| operations / n + u64::from(i < operations % n))
}

/// A row as people name it: `get` for both kinds of it, `get-plain`, `get-object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Which row.
    pub row: Row,
    /// Which kind; both where none is named.
    pub object: Option<bool>,
}

impl std::str::FromStr for Wanted {
    type Err = Error;

    fn from_str(text: &str) -> Result<Wanted> {
        let (name, object) = match (text.strip_suffix("-plain"), text.strip_suffix("-object")) {
            (Some(name), _) => (name, Some(false)),
            (_, Some(name)) => (name, Some(true)),
            _ => (text, None),
        };
        let row = Row::ALL.into_iter().find(|row| row.name() == name);
        row.map(|row| Wanted { row, object }).ok_or_else(|| {
            let known = Row::ALL.map(Row::name).join(", ");
            Error::invalid(format!(
                "no row {text:?}; known: {known}, each also with -plain or -object"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_test() {
        assert_eq!(keys().map(|key| key.len()), [5, 96, 160, 48, 56, 200]);
    }

    #[test]
    fn counts_are_known_beforehand() {
        let of = |row: Row, n, c| {
            let Expected { hits, misses } = row.expected(n, c);
            (hits, misses)
        };
        assert_eq!(of(Row::Set, 15_000, 1), (0, 0));
        assert_eq!(of(Row::Get, 15_000, 1), (15_000, 0));
        assert_eq!(of(Row::Multiget, 2_500, 8), (7_500, 7_500));
        assert_eq!(of(Row::Missing, 15_000, 1), (0, 7_500));
        assert_eq!(of(Row::Mixed, 30_000, 1), (15_000, 0));
        // Of four steps of a mix, three sets and a get; of two on each of two connections, two sets.
        assert_eq!((of(Row::Mixed, 4, 1), of(Row::Mixed, 4, 2)), ((1, 0), (0, 0)));
        assert_eq!(of(Row::Missing, 5, 1), (0, 2));
        assert_eq!(shares(7, 3).collect::<Vec<_>>(), [3, 2, 2]);
    }

    #[test]
    fn rows_are_named_with_or_without_their_kind() {
        let wanted = |text: &str| text.parse::<Wanted>().unwrap();
        assert_eq!(wanted("get"), Wanted { row: Row::Get, object: None });
        assert_eq!(wanted("noblock-object"), Wanted { row: Row::Noblock, object: Some(true) });
        let error = "gets".parse::<Wanted>().unwrap_err().to_string();
        assert!(error.contains("multiget") && error.contains("-plain"), "{error}");
    }
}
