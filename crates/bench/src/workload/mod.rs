//! Workloads: which records, how they are laid out, and what is done with them, phase by phase. They are
//! data: `workloads/*.toml` has the built-in ones, and a file of your own has the same form
//! (`docs/workloads.md`).
//!
//! Pure: it parses, checks and draws keys, and uses no store and no clock. What a phase does is one of
//! the kinds of `bench/stores/phase`, which reads its own options.
//!
//! To add a built-in workload: a file in `workloads/` and its line in [`BUILT_IN`]. To add a kind of
//! phase: see `bench/stores/phase/mod.rs`.

pub mod bounds;
mod draw;
mod options;
mod parse;
mod trace;

use std::{collections::HashMap, sync::Arc};

pub use draw::{Draw, Spread};
pub(crate) use options::{Options, missing};
pub use trace::Trace;

pub use super::stores::phase::{Info, KINDS};
use super::{
    schedule::{Limit, Pace},
    stores::phase::Kind,
};
use crate::{
    Error, Result,
    record::dataset::Dataset,
    store::{Shape, query::Path},
};

/// The workloads that are built in: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("documents", include_str!("../../workloads/documents.toml")),
    ("inserts", include_str!("../../workloads/inserts.toml")),
    ("relations", include_str!("../../workloads/relations.toml")),
    ("objects", include_str!("../../workloads/objects.toml")),
    ("mixed", include_str!("../../workloads/mixed.toml")),
    ("upkeep", include_str!("../../workloads/upkeep.toml")),
    ("larger", include_str!("../../workloads/larger.toml")),
    ("keep", include_str!("../../workloads/keep.toml")),
];

/// What is to be done with which records.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The one word it goes by.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Where it was published.
    pub source: Option<String>,
    /// The tables, as they are written; records that a user brings are those of the first. A phase
    /// that names none has the table `records`.
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
    /// The field that is the key, where the workload names one; else the one its dataset has, and of
    /// records in its place, and where there is none, the number of the record.
    pub key: Option<String>,
    /// Paths that are indexed from the start.
    pub index: Vec<Path>,
    /// How records lie, where the store's URL does not say.
    pub layout: Option<Shape>,
}

/// A phase.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Its name, unique in its workload.
    pub name: String,
    /// What is done: which kind of phase …
    pub(crate) info: &'static Info,
    /// … and that kind with its options.
    pub(crate) kind: Arc<dyn Kind>,
    /// With which table.
    pub table: String,
    /// How much, where the table does not say.
    pub limit: Option<Limit>,
    /// How many operations the published test had.
    pub published: Option<u64>,
    /// At which moments, where operations are sent one by one.
    pub pace: Pace,
    /// How many operations may be in flight at once.
    pub concurrency: u32,
    /// The phase it was written as, where that stands for several: `get` of `get x16`.
    pub of: Option<String>,
    /// How much of the data the server's cache can hold, where that is limited.
    pub room: Option<Room>,
}

/// How much of the data a server's cache can hold in a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// The cache's size, as a share of what the data take on disk.
    pub share: f64,
    /// Whether the operations were sent once before, untimed; else the caches are empty.
    pub warm: bool,
}

/// Values that are written as one word in a workload.
pub(crate) trait Word: Sized + Copy + 'static {
    /// All words, with what they mean.
    const WORDS: &[(&str, Self)];

    fn of(word: &str, what: &str) -> Result<Self> {
        let found = Self::WORDS.iter().find(|(w, _)| *w == word);
        found.map(|f| f.1).ok_or_else(|| {
            let known: Vec<&str> = Self::WORDS.iter().map(|w| w.0).collect();
            let near = options::did_you_mean(word, &known);
            Error::invalid(format!("unknown {what} {word:?}; known: {}{near}", known.join(", ")))
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
            let near = options::did_you_mean(name, &known);
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
        let uses = |phase: &&Phase| {
            let other = phase.kind.other_table();
            !phase.kind.is_upkeep() && (phase.table == table || other == Some(table))
        };
        let mut uses = self.phases.iter().filter(uses).peekable();
        uses.peek().is_some() && uses.all(|phase| phase.kind.joins())
    }

    /// The phase that each one belongs to, by name: a part to what it was written as, a share of the
    /// capacity to the phase that measures that.
    pub fn families(&self) -> Vec<Option<String>> {
        let mut measured: HashMap<&str, &str> = HashMap::new();
        let mut families = Vec::with_capacity(self.phases.len());
        for phase in &self.phases {
            families.push(match phase.pace {
                Pace::Share(_) => measured.get(&*phase.table).map(|of| (*of).to_owned()),
                Pace::Free | Pace::Fixed(_) | Pace::Poisson(_) => phase.of.clone(),
            });
            if phase.one_by_one() && phase.pace == Pace::Free {
                measured.insert(&phase.table, phase.family());
            }
        }
        families
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
    /// The word for what it does: `get` of `do = "get"`.
    pub fn word(&self) -> &'static str {
        self.info.name
    }

    /// What an operation of it is, in the plural.
    pub fn unit(&self) -> &'static str {
        self.kind.unit()
    }

    /// Whether its operations are sent and timed one by one.
    pub fn one_by_one(&self) -> bool {
        self.kind.one_by_one()
    }

    /// Whether it leaves everything as it was, so that it can be repeated.
    pub fn repeats(&self) -> bool {
        self.kind.repeats()
    }

    /// Whether records differ afterwards from what they were.
    pub fn changes(&self) -> bool {
        self.kind.changes()
    }

    /// Whether it writes the records of its table.
    pub fn loads(&self) -> bool {
        self.kind.loads()
    }

    /// The name it was written under: of the phase that it is a part of, where it is one.
    pub fn family(&self) -> &str {
        self.of.as_deref().unwrap_or(&self.name)
    }

    /// What is inside its timed window, in a sentence.
    pub fn about(&self) -> String {
        let mut text = self.kind.about();
        if self.concurrency > 1 {
            text += &format!(", {} at once at most", self.concurrency);
        }
        match self.pace {
            Pace::Free => {}
            Pace::Fixed(rate) => text += &format!("; {rate} a second, evenly"),
            Pace::Poisson(rate) => text += &format!("; {rate} a second, at random moments"),
            Pace::Share(share) => {
                text += &format!("; {} % of the capacity, at random moments", 100.0 * share);
            }
        }
        if let Some(Room { share, warm }) = self.room {
            let state = if warm { "after the same operations once before" } else { "just started" };
            text += &format!("; the server's cache holds {} % of the data, {state}", 100.0 * share);
        }
        text + "."
    }
}
