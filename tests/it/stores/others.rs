//! Tables that other programs made, of any type that a column can have.
//!
//! steelyard did not choose these columns: what is in them may be of another kind than they are declared
//! for, and what they take for the same may be different to steelyard. Whatever they are, either the table
//! is refused by name, or what is found by a condition, by a key and by an order is what the same
//! condition, key and order find among the records that a scan reads. `types.rs` has the types,
//! `program.rs` the other programs.

mod conditional;
mod fields;
mod keys;
mod program;
mod rules;
mod sorts;
mod sqlite;
mod triggers;
mod types;
mod values;
mod writes;

use std::sync::Arc;

use futures_util::TryStreamExt;
use steelyard::store::{self, Key, KeyRange, Query, Row, Shape, Store, one_by_one};

use super::places::{self, Fault, Outcome, Subject, Wrap};
use program::Program;

/// What is tried on the tables of one program.
struct Desk {
    subject: Arc<Subject>,
    program: Program,
}

impl Desk {
    /// Opens a table with more options to its URL.
    async fn open(&self, table: &str, more: &str) -> steelyard::Result<Arc<dyn Store>> {
        let url = self.program.url();
        let and = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{and}layout=columns&table={table}{more}");
        Ok(store::open(&url).await?.store().clone())
    }
}

/// Tries something on every relational database.
#[track_caller]
fn each<F: Future<Output = Outcome>>(attempt: impl Fn(Arc<Desk>) -> F) {
    let mut faults = Vec::new();
    for subject in places::subjects(Wrap::Bare) {
        // Of a driver that has typed columns once; not of its other engines.
        if subject.shape() != Shape::Columns || subject.name.contains("engine=") {
            continue;
        }
        let Some(program) = Program::beside(&subject) else { continue };
        let desk = Arc::new(Desk { subject: Arc::new(subject), program });
        if let Err(Fault(fault)) = places::run(attempt(desk.clone())) {
            faults.push(format!("{}: {fault}", desk.subject.name));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// All that went wrong, so that one run tells of every type.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn push(&mut self, fault: String) {
        self.0.push(fault);
    }

    fn done(self) -> Outcome {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Fault::new(format!("{} faults\n  {}", self.0.len(), self.0.join("\n  ")))),
        }
    }
}

async fn scanned(store: &dyn Store) -> steelyard::Result<Vec<Row>> {
    one_by_one(store.scan(&KeyRange::all()).await?).try_collect().await
}

async fn found(store: &dyn Store, query: &Query) -> steelyard::Result<Vec<Row>> {
    one_by_one(store.find(query).await?).try_collect().await
}

fn keys_of(rows: &[Row]) -> Vec<&Key> {
    rows.iter().map(|row| &row.key).collect()
}
