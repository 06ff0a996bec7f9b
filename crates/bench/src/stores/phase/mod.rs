//! The kinds of phases: everything about one, in a file of its own.
//!
//! A kind is a value with its options that implements [`Kind`]: what it needs, what must come out, how it
//! is done on one store, what the page says of it. [`KINDS`] is the table of what there is; the parser of
//! workloads, the runner, `--help` and the tests of the documentation go through it.
//!
//! To add one: a file here with an [`INFO`](get::INFO), its `mod` line and its line in [`KINDS`]. The
//! table in `docs/workloads.md` is written from it by the test that holds the two together (the test
//! says how). Only [`Kind::about`] has to be there, and either [`Kind::drawn`], for operations that are
//! sent one by one, or [`Kind::run`]; `scan.rs` is a short kind that is one operation, `get.rs` one that is
//! sent one by one, `relate.rs` one with an operation of its own.
//!
//! A kind is looked up once for a phase. Its operations are drawn before the clock runs, and the loops
//! that send them (`load_loop.rs`) are compiled for their type.

mod absent;
mod delete;
mod find;
mod get;
mod index;
mod load;
mod mix;
mod prepare;
mod recover;
mod relate;
mod rewrite;
mod scan;
mod settle;
mod update;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    draws::Draws,
    expected::{Counts, Expected},
    operation::Op,
    turn::{Done, Turn},
};
use crate::{
    Result,
    record::Document,
    results::Asked,
    store::{Filter, query::Path},
    workload::{Options, Phase, Spread},
};

/// Every kind of phase there is.
pub static KINDS: &[Info] = &[
    prepare::INFO,
    load::INFO,
    index::INFO,
    get::INFO,
    absent::INFO,
    find::INFO,
    relate::INFO,
    update::INFO,
    delete::INFO,
    scan::INFO,
    mix::INFO,
    settle::INFO,
    rewrite::INFO,
    recover::INFO,
];

/// A kind of phase, as the table has it.
#[derive(Debug)]
pub struct Info {
    /// The word for it in a workload: `do = "get"`.
    pub name: &'static str,
    /// What it does, for the documentation.
    pub about: &'static str,
    /// Its options beside those of all phases: the name of each, and what it is, with its default.
    pub options: &'static [(&'static str, &'static str)],
    /// The options that it has to have, as they may be written.
    pub example: &'static str,
    /// Takes its options out of those of a phase. Those that are left are errors.
    pub(crate) read: fn(&mut Options<'_>) -> Result<Arc<dyn Kind>>,
}

/// A kind of phase with its options.
#[async_trait(?Send)]
pub(crate) trait Kind: fmt::Debug + Send + Sync {
    /// What is inside its timed window, in a phrase, for the page.
    fn about(&self) -> String;

    /// What an operation of it is, in the plural.
    fn unit(&self) -> &'static str {
        "operations"
    }

    /// Whether its operations are sent and timed one by one.
    fn one_by_one(&self) -> bool {
        false
    }

    /// Whether it leaves everything as it was, so that it can be repeated.
    fn repeats(&self) -> bool {
        false
    }

    /// Whether records differ afterwards from what they were, so that answers to queries are no longer
    /// known beforehand.
    fn changes(&self) -> bool {
        false
    }

    /// Whether it writes the records of its table.
    fn loads(&self) -> bool {
        false
    }

    /// Whether it only serves other phases: it makes tables or indexes, loads, cleans up.
    fn is_upkeep(&self) -> bool {
        false
    }

    /// Whether the store joins its tables.
    fn joins(&self) -> bool {
        false
    }

    /// The other table of a kind that uses two.
    fn other_table(&self) -> Option<&str> {
        None
    }

    /// The tables whose records have to be there before it, of a phase with table `own`.
    fn needs<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        vec![own]
    }

    /// Which records it draws, where it follows `keys`.
    fn spread(&self) -> Option<&Spread> {
        None
    }

    /// The fields that it makes indexes of.
    fn indexes(&self) -> &[Path] {
        &[]
    }

    /// The fields that it reads: each has to be in some record.
    fn reads(&self) -> Vec<Path> {
        Vec::new()
    }

    /// The fields that it writes.
    fn sets(&self) -> Option<&Document> {
        None
    }

    /// The records that it deletes.
    fn deletes(&self) -> Option<&Filter> {
        None
    }

    /// What must come out of it, counted from the records.
    fn expected(&self, counts: &Counts<'_>) -> Expected {
        Expected::Records(counts.records.count)
    }

    /// Whether it can be done with these records; and what the report has to say of that, if anything.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the phase, where it cannot.
    fn check(
        &self,
        _phase: &Phase,
        _counts: &Counts<'_>,
        _expected: &Expected,
    ) -> Result<Option<String>> {
        Ok(None)
    }

    /// How many operations it has on a table of so many records, where that does not depend on `count`.
    fn units(&self, _records: u64, _expected: &Expected) -> Option<u64> {
        None
    }

    /// What its queries ask for.
    fn asked(&self, _expected: &Expected) -> Option<Asked> {
        None
    }

    /// Its operations, drawn; none of a kind that sends others, or none one by one. A kind that
    /// [changes](Kind::changes) records always gives them: from them follows what later phases may read.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where they cannot be drawn from these records.
    fn drawn(&self, _draws: &Draws<'_>) -> Result<Vec<Op>> {
        Ok(Vec::new())
    }

    /// Does it on one store.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the store cannot: the phase is then left out for
    /// it; [`Mismatch`](crate::ErrorKind::Mismatch) where counts or answers are wrong; those of the store.
    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, expected: &Expected) -> Result<Done> {
        let ops = self.drawn(&turn.draws(phase, expected)?)?;
        turn.one_by_one(phase, ops).await
    }
}

/// The fields that a filter tests.
fn fields(filter: &Filter) -> Vec<Path> {
    let mut paths = Vec::new();
    filter.tests(&mut |path, _| paths.push(path.clone()));
    paths
}
