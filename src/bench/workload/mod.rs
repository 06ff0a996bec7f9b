//! Workloads: which records, how they lie, and what is done with them, phase by phase. Data, not
//! code: `workloads/*.toml` holds the built-in ones, and anybody's own file has the same shape
//! (`docs/workloads.md`).
//!
//! Pure: it parses, checks and draws keys, and knows no store and no clock.
//!
//! To add a built-in workload: a file in `workloads/` and its line in [`BUILT_IN`]. To add a kind of
//! phase: a variant of [`Act`], its keys in `parse.rs`, and what it does in `bench/stores/act.rs`.

mod draw;
mod parse;

use std::fmt;

pub use draw::{Draw, Spread};

use super::schedule::{Limit, Pace};
use crate::{
    Error, Result,
    record::{Document, dataset::Dataset},
    store::{
        Filter, Shape,
        query::{Order, Path},
    },
};

/// The workloads that are built in: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("documents", include_str!("../../../workloads/documents.toml")),
    ("inserts", include_str!("../../../workloads/inserts.toml")),
    ("relations", include_str!("../../../workloads/relations.toml")),
    ("objects", include_str!("../../../workloads/objects.toml")),
    ("mixed", include_str!("../../../workloads/mixed.toml")),
    ("keep", include_str!("../../../workloads/keep.toml")),
];

/// What is to be done with which records.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The one word it goes by.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Where it was published.
    pub source: Option<String>,
    /// The tables, in the order of their names. A phase that names none has the table `records`.
    pub tables: Vec<Table>,
    /// What is done, in order.
    pub phases: Vec<Phase>,
    /// The text it was read from.
    pub text: String,
}

/// Records under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Where its records come from, unless the user brings some.
    pub dataset: Dataset,
    /// How many.
    pub count: u64,
    /// How many the published test had.
    pub published: u64,
    /// The field that is the key; the number of the record where none is named.
    pub key: Option<String>,
    /// Paths that are indexed from the start.
    pub index: Vec<Path>,
    /// How records lie, where the store's URL does not say.
    pub layout: Option<Shape>,
}

/// A phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its name, unique in its workload.
    pub name: String,
    /// What is done.
    pub act: Act,
    /// With which table.
    pub table: String,
    /// How much, where the table does not say.
    pub limit: Option<Limit>,
    /// How many operations the published test had.
    pub published: Option<u64>,
    /// At which moments, where operations are sent one by one.
    pub pace: Pace,
    /// How many operations may be on their way at once.
    pub concurrency: u32,
}

/// What a phase does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Makes the table and its indexes.
    Prepare,
    /// Writes all records of the table.
    Load {
        /// In which way.
        way: Way,
        /// How many records at a time, where that is the way.
        batch: usize,
    },
    /// Makes indexes on records that are there.
    Index(Vec<Path>),
    /// Reads records by key.
    Get {
        /// Which keys.
        spread: Spread,
        /// How many at a time.
        batch: usize,
    },
    /// Asks queries and drains their answers.
    Find {
        /// Which records.
        filter: Filter,
        /// And of them those whose field lies in a range drawn anew for each query.
        range: Option<Range>,
        /// In which order.
        sort: Vec<(Path, Order)>,
        /// How many at most.
        most: Option<u64>,
    },
    /// Goes from a record to those that belong to it.
    Relate {
        /// How.
        by: Relation,
        /// The table of what belongs to it.
        to: String,
        /// The field with the keys: of what belongs to the record, or of whom it belongs to.
        field: Path,
    },
    /// Writes records again, with fields changed.
    Update {
        /// Which keys.
        spread: Spread,
        /// The fields and their new values.
        set: Document,
    },
    /// Deletes what fits.
    Delete(Filter),
    /// Reads all records.
    Scan,
    /// Operations of several kinds in turn, drawn by their shares.
    Mix {
        /// Each kind's share, of 1 together.
        shares: Vec<(Kind, f64)>,
        /// Which keys.
        spread: Spread,
    },
    /// Lets the store do what it has put off: checkpoint, vacuum, compaction.
    Settle,
}

/// In which way records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each one by itself, acknowledged before the next is sent.
    Rows,
    /// Some at a time, by the statement for several.
    Batches,
    /// Some at a time, by the fastest way the store has for new records.
    Bulk,
    /// Each one by itself, all in one transaction.
    Transaction,
}

/// A range of numbers, drawn anew for each query.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The field, which holds whole numbers.
    pub field: Path,
    /// How many numbers the range holds.
    pub width: u64,
}

/// How what belongs to a record is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It lies in the record.
    Embedded,
    /// The record names the keys.
    References,
    /// Each names the record, in an indexed field: asked for after it was read.
    Index,
    /// The same, asked for together with the record.
    Join,
    /// Each lies in rows of a key/value table, of `id`, `name` and `value`, one of which names the
    /// record: asked for by that table joined with itself.
    Pairs,
}

/// A kind of operation in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads one record.
    Read,
    /// Writes one that is there again.
    Update,
    /// Writes a new one.
    Insert,
    /// Reads up to 100 records in the order of keys.
    Scan,
    /// Reads one, changes it, writes it.
    ReadModifyWrite,
}

/// Names of things that stand in a workload as one word.
trait Word: Sized + Copy + 'static {
    /// All words, with what they mean.
    const WORDS: &[(&str, Self)];

    fn of(word: &str, what: &str) -> Result<Self> {
        let found = Self::WORDS.iter().find(|(w, _)| *w == word);
        found.map(|f| f.1).ok_or_else(|| {
            let known: Vec<&str> = Self::WORDS.iter().map(|w| w.0).collect();
            let near = parse::nearest(word, &known);
            let near = near.map_or(String::new(), |n| format!("; did you mean {n:?}?"));
            Error::invalid(format!("no {what} {word:?}; known: {}{near}", known.join(", ")))
        })
    }
}

impl Word for Way {
    const WORDS: &[(&str, Way)] = &[
        ("rows", Way::Rows),
        ("batches", Way::Batches),
        ("bulk", Way::Bulk),
        ("transaction", Way::Transaction),
    ];
}

impl Word for Relation {
    const WORDS: &[(&str, Relation)] = &[
        ("embedded", Relation::Embedded),
        ("references", Relation::References),
        ("index", Relation::Index),
        ("join", Relation::Join),
        ("pairs", Relation::Pairs),
    ];
}

impl Word for Kind {
    const WORDS: &[(&str, Kind)] = &[
        ("read", Kind::Read),
        ("update", Kind::Update),
        ("insert", Kind::Insert),
        ("scan", Kind::Scan),
        ("read-modify-write", Kind::ReadModifyWrite),
    ];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Rows => "one record at a time, each acknowledged",
            Way::Batches => "in batches",
            Way::Bulk => "by the store's bulk path",
            Way::Transaction => "one record at a time in one transaction",
        })
    }
}

impl Workload {
    /// The built-in workload of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming those there are.
    pub fn named(name: &str) -> Result<Workload> {
        let known: Vec<&str> = BUILT_IN.iter().map(|w| w.0).collect();
        let Some((name, text)) = BUILT_IN.iter().find(|w| w.0 == name) else {
            let near = parse::nearest(name, &known);
            let near = near.map_or(String::new(), |n| format!("; did you mean {n:?}?"));
            return Err(Error::invalid(format!(
                "no workload {name:?}; known: {}, or a file that ends in .toml{near}",
                known.join(", ")
            )));
        };
        Workload::parse(text).map_err(|e| e.in_place(*name))
    }

    /// A workload from its text.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the line, and the right key for one that is
    /// not known.
    pub fn parse(text: &str) -> Result<Workload> {
        parse::workload(text)
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Whether a table is there only to be joined: of no use to a store that cannot.
    pub fn only_joined(&self, table: &str) -> bool {
        let joins = |phase: &Phase| match &phase.act {
            Act::Relate { by, to, .. } if phase.table == table || to == table => {
                Some(matches!(by, Relation::Join | Relation::Pairs))
            }
            Act::Prepare | Act::Load { .. } | Act::Index(_) | Act::Settle => None,
            _ => (phase.table == table).then_some(false),
        };
        let all: Vec<bool> = self.phases.iter().filter_map(joins).collect();
        !all.is_empty() && all.iter().all(|joins| *joins)
    }

    /// The same with the counts of the published test.
    pub fn as_published(mut self) -> Workload {
        for table in &mut self.tables {
            table.count = table.published;
        }
        for phase in &mut self.phases {
            phase.limit = phase.published.map(Limit::Count).or(phase.limit);
        }
        self
    }

    /// The same with so many times the records, and as many times the operations.
    pub fn scaled(mut self, by: f64) -> Workload {
        let times = |n: u64| ((n as f64 * by).round() as u64).max(1);
        for table in &mut self.tables {
            table.count = times(table.count);
        }
        for phase in &mut self.phases {
            if let Some(Limit::Count(n)) = &mut phase.limit {
                *n = times(*n);
            }
        }
        self
    }
}

impl Phase {
    /// What an operation of it is, in the plural.
    pub fn unit(&self) -> &'static str {
        match &self.act {
            Act::Prepare => "tables",
            Act::Index(_) => "indexes",
            Act::Load { .. } | Act::Delete(_) | Act::Scan | Act::Update { .. } => "records",
            Act::Get { batch: 1, .. } => "records",
            Act::Find { .. } => "queries",
            Act::Settle => "times",
            Act::Get { .. } | Act::Relate { .. } | Act::Mix { .. } => "operations",
        }
    }

    /// Whether its operations are sent and timed one by one.
    pub fn one_by_one(&self) -> bool {
        match &self.act {
            Act::Get { .. }
            | Act::Find { .. }
            | Act::Relate { .. }
            | Act::Update { .. }
            | Act::Mix { .. } => true,
            Act::Load { way, .. } => *way == Way::Rows,
            Act::Prepare | Act::Index(_) | Act::Delete(_) | Act::Scan | Act::Settle => false,
        }
    }

    /// Whether it leaves everything as it was, so that it can be repeated.
    pub fn repeats(&self) -> bool {
        matches!(&self.act, Act::Get { .. } | Act::Find { .. } | Act::Relate { .. } | Act::Scan)
    }
}
