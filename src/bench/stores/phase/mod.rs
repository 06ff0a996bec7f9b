//! What a phase can do: each kind with all that is true of it before any store is asked.
//!
//! To add a kind: a variant of [`Act`] and its arms here, its keys as a line in `ACTS` of `parse.rs`, and
//! a file in `bench/stores/act/` that does it.

use std::fmt;

use super::{Spread, Word};
use crate::{
    record::Document,
    store::{
        Filter,
        query::{Order, Path},
    },
};

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
    Index {
        /// Of these fields.
        paths: Vec<Path>,
        /// How many writes are timed before and after, to see what the indexes cost a write; 0 for
        /// none.
        writes: u64,
    },
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
        /// How many records every answer is meant to have, where the workload says; one at least where
        /// it does not.
        expect: Option<u64>,
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
    /// Writes all records again, several times, and looks at the disk before and after.
    Rewrite {
        /// How often.
        times: u32,
        /// How many records at a time.
        batch: usize,
    },
    /// Kills the private server in the middle of writes and starts it again on its data.
    Recover,
}

impl Act {
    /// The word for it in a workload: `do = "get"`.
    pub fn kind(&self) -> &'static str {
        match self {
            Act::Prepare => "prepare",
            Act::Load { .. } => "load",
            Act::Index { .. } => "index",
            Act::Get { .. } => "get",
            Act::Find { .. } => "find",
            Act::Relate { .. } => "relate",
            Act::Update { .. } => "update",
            Act::Delete(_) => "delete",
            Act::Scan => "scan",
            Act::Mix { .. } => "mix",
            Act::Settle => "settle",
            Act::Rewrite { .. } => "rewrite",
            Act::Recover => "recover",
        }
    }

    /// What an operation of it is, in the plural.
    pub fn unit(&self) -> &'static str {
        match self {
            Act::Prepare => "tables",
            Act::Index { .. } => "indexes",
            Act::Load { .. }
            | Act::Delete(_)
            | Act::Scan
            | Act::Update { .. }
            | Act::Rewrite { .. }
            | Act::Get { batch: 1, .. } => "records",
            Act::Find { .. } => "queries",
            Act::Settle => "runs",
            Act::Recover => "restarts",
            Act::Get { .. } | Act::Relate { .. } | Act::Mix { .. } => "operations",
        }
    }

    /// Whether its operations are sent and timed one by one.
    pub fn one_by_one(&self) -> bool {
        match self {
            Act::Get { .. }
            | Act::Find { .. }
            | Act::Relate { .. }
            | Act::Update { .. }
            | Act::Mix { .. } => true,
            Act::Load { way, .. } => *way == Way::Rows,
            Act::Prepare
            | Act::Index { .. }
            | Act::Delete(_)
            | Act::Scan
            | Act::Settle
            | Act::Rewrite { .. }
            | Act::Recover => false,
        }
    }

    /// Whether it leaves everything as it was, so that it can be repeated.
    pub fn repeats(&self) -> bool {
        matches!(self, Act::Get { .. } | Act::Find { .. } | Act::Relate { .. } | Act::Scan)
    }

    /// Whether records differ afterwards from what they were, so that answers to queries are no longer
    /// known beforehand. (A rewrite ends with the records as they were.)
    pub fn changes(&self) -> bool {
        matches!(self, Act::Update { .. } | Act::Mix { .. })
    }

    /// The tables whose records have to be there before it, of a phase with table `own`. A mix of
    /// inserts alone needs none, nor does a crash, which writes its own.
    pub fn needs<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        match self {
            Act::Prepare | Act::Load { .. } | Act::Settle | Act::Recover => Vec::new(),
            Act::Index { writes: 0, .. } => Vec::new(),
            Act::Mix { shares, .. }
                if shares.iter().all(|(kind, share)| *kind == Kind::Insert || *share == 0.0) =>
            {
                Vec::new()
            }
            Act::Relate { by: Relation::Embedded, .. } => vec![own],
            Act::Relate { to, .. } => vec![own, to],
            Act::Index { .. }
            | Act::Get { .. }
            | Act::Find { .. }
            | Act::Update { .. }
            | Act::Delete(_)
            | Act::Scan
            | Act::Mix { .. }
            | Act::Rewrite { .. } => vec![own],
        }
    }

    /// Which records it touches, where it draws them.
    pub fn spread(&self) -> Option<&Spread> {
        match self {
            Act::Get { spread, .. } | Act::Update { spread, .. } | Act::Mix { spread, .. } => {
                Some(spread)
            }
            _ => None,
        }
    }

    /// What is inside its timed window, in a phrase.
    pub fn about(&self) -> String {
        match self {
            Act::Prepare => "The table and its indexes".to_owned(),
            Act::Load { way: way @ (Way::Rows | Way::Transaction), .. } => format!("Written {way}"),
            Act::Load { way, batch } => format!("Written {way}, {batch} records at a time"),
            Act::Index { .. } => "An index on records that are there".into(),
            Act::Get { batch: 1, .. } => "Records read by key".into(),
            Act::Get { batch, .. } => format!("Records read by key, {batch} at a time"),
            Act::Find { sort, most, .. } => {
                let mut text = "Queries, their answers read in full".to_owned();
                let by = |(path, order): &(Path, Order)| match order {
                    Order::Ascending => path.to_string(),
                    Order::Descending => format!("{path} descending"),
                };
                if !sort.is_empty() {
                    let sort: Vec<String> = sort.iter().map(by).collect();
                    text += &format!(", sorted by {}", sort.join(", "));
                }
                match most {
                    Some(most) => text + &format!(", the first {most}"),
                    None => text,
                }
            }
            Act::Relate { by, .. } => {
                let how = match by {
                    Relation::Embedded => "which lie in it",
                    Relation::References => "by the keys it names, in two questions",
                    Relation::Index => "by a field of theirs, in two questions",
                    Relation::Join => "by a field of theirs, joined in one question",
                    Relation::Pairs => {
                        "put together of rows of a key/value table joined with itself"
                    }
                };
                format!("From a record to those that belong to it, {how}")
            }
            Act::Update { .. } => "Records written again with fields changed".into(),
            Act::Delete(_) => "All that fits deleted, counted before and after".into(),
            Act::Scan => "All records read".into(),
            Act::Mix { .. } => "Operations drawn by their shares".into(),
            Act::Settle => "What the store had put off".into(),
            Act::Rewrite { times, batch } => {
                format!("All records written again {times} times, {batch} at a time")
            }
            Act::Recover => {
                "The server killed (SIGKILL) in the middle of writes and started again, until it \
                 answers a client"
                    .into()
            }
        }
    }
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
