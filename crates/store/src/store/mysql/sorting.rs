//! Sorting by texts that are longer than the prefix by which the server sorts.
//!
//! It sorts by so many bytes of each value (`max_sort_length`), and what is alike in them is in any order. An answer
//! that has no longer value is the right one: a record that belongs before one of its own could have been left out only
//! for a value that both have the beginning of. Where it has a longer one the statement is sent again, to be sorted by
//! more bytes. That takes memory and time of the server, so it is not done before; from then on it is, for this table.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{dialect::quote, pool::SORTED, schema::Schema};
use crate::{
    Error, Result,
    record::{Kind, Value},
    store::{
        Key, Query,
        query::Path,
        sql::{Body, Dialect as _, column},
    },
};

/// How many bytes of a value statements are sorted by; the last is what servers have at most.
const STEPS: [usize; 4] = [SORTED, 64 << 10, 1 << 20, 8 << 20];
/// How many values have to fit into the memory for sorting, at least: so many runs are merged at once.
const MERGED: usize = 16;
/// How much of that memory is asked for at most.
const MEMORY: usize = 1 << 30;

/// How far statements of a table are sorted.
#[derive(Default)]
pub(super) struct Reach(AtomicUsize);

/// One of the [`STEPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step(usize);

impl Reach {
    pub(super) fn step(&self) -> Step {
        Step(self.0.load(Ordering::Relaxed))
    }

    /// More than this step, after an answer with a longer value.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the server has no more.
    pub(super) fn further(&self, than: Step, key: &Key) -> Result<()> {
        let next = than.0 + 1;
        if next == STEPS.len() {
            let what = format!(
                "key {}: it, or its sort value, is longer than the {} characters that the server \
                 sorts by; leave out the order, or narrow the condition",
                key.shown(),
                than.characters()
            );
            return Err(Error::unsupported(what));
        }
        self.0.fetch_max(next, Ordering::Relaxed);
        Ok(())
    }
}

impl Step {
    /// The first, which is what the session is set to.
    pub(super) const FIRST: Step = Step(0);

    /// How many characters of a text are sorted by in any case: each may have four bytes, and some bytes are the
    /// server's own.
    fn characters(self) -> usize {
        STEPS[self.0] / 4 - 2
    }

    /// Whether this text is sorted by as a whole.
    pub(super) fn holds(self, text: &str) -> bool {
        let most = self.characters();
        // Most need no counting.
        text.len() <= most || text.chars().nth(most).is_none()
    }

    /// Whether all that a record is sorted by is.
    pub(super) fn holds_all(
        self,
        query: &Query,
        key: &Key,
        record: &crate::record::Document,
    ) -> bool {
        let holds = |path: &Path| match path.value_in(record) {
            _ if path.is_key() => true,
            Some(Value::Text(text)) => self.holds(text),
            Some(Value::Bytes(bytes)) => bytes.len() <= self.characters(),
            _ => true,
        };
        self.holds(key) && query.sort.iter().all(|(path, _)| holds(path))
    }

    /// A statement that is sorted so far, by so many values.
    pub(super) fn statement(self, known: &Schema, text: String, values: usize) -> String {
        if self == Step::FIRST {
            return text;
        }
        let bytes = STEPS[self.0];
        let memory = (bytes * MERGED * (values + 1)).min(MEMORY);
        match (known.dialect.maria, text.strip_prefix("SELECT ")) {
            (false, Some(rest)) => format!(
                "SELECT /*+ SET_VAR(max_sort_length = {bytes}) SET_VAR(sort_buffer_size = {memory}) */ {rest}"
            ),
            _ => format!(
                "SET STATEMENT max_sort_length = {bytes}, sort_buffer_size = {memory} FOR {text}"
            ),
        }
    }

    /// The condition that a value which rows are sorted by is longer; none where no value can be.
    ///
    /// # Errors
    /// Where a path cannot be said.
    pub(super) fn is_longer(self, known: &Schema, query: &Query) -> Result<Option<String>> {
        let (dialect, most) = (&known.dialect, self.characters());
        let mut any = Vec::new();
        for (path, _) in query.sort.iter().filter(|(path, _)| !path.is_key()) {
            match &known.table.body {
                Body::Document(name) => {
                    let (name, text) = (quote(name), dialect.text(&quote(name), path)?);
                    // No text is longer than the document that it is in, which is quicker to tell.
                    any.push(format!("(LENGTH({name}) > {most} AND CHAR_LENGTH({text}) > {most})"));
                }
                Body::Columns(columns) => match column(columns, path) {
                    Some(column) if column.kind == Kind::Text => {
                        any.push(format!("CHAR_LENGTH({}) > {most}", dialect.compared(column)));
                    }
                    Some(column) if column.kind == Kind::Bytes => {
                        any.push(format!("LENGTH({}) > {most}", quote(&column.name)));
                    }
                    _ => {}
                },
            }
        }
        Ok((!any.is_empty()).then(|| format!("({}) IS TRUE", any.join(" OR "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_held_by_their_characters() {
        for text in ["x", "ä", "\u{1f600}"] {
            let most = Step::FIRST.characters();
            assert!(Step::FIRST.holds(&text.repeat(most)));
            assert!(!Step::FIRST.holds(&text.repeat(most + 1)));
            assert!(Step(1).holds(&text.repeat(most + 1)));
        }
        assert!(Step::FIRST.characters() * 4 < SORTED);
    }

    #[test]
    fn there_is_an_end() {
        let (reach, key) = (Reach::default(), Key::new("k").unwrap());
        for _ in 1..STEPS.len() {
            reach.further(reach.step(), &key).unwrap();
        }
        assert_eq!(reach.step(), Step(STEPS.len() - 1));
        assert!(reach.further(reach.step(), &key).unwrap_err().to_string().contains("\"k\""));
    }
}
