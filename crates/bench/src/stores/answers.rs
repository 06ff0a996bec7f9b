//! Samples of the answers from a timed window, kept to be checked after it.
//!
//! Inside a window only counts are checked: comparing records there would be timed with the store. Each worker keeps
//! some of its answers, spread over its operations, instead of dropping them; whether they are the records that were
//! asked for is checked once the clock has stopped (`check.rs`).

use crate::{
    record::Document,
    store::{Joined, Row},
};

/// How many answers each worker puts aside, at most.
const MOST: usize = 32;

/// What came for the operation `at` of a window.
#[derive(Debug)]
pub(super) struct Answer {
    pub at: usize,
    pub found: Found,
}

/// What came.
#[derive(Debug)]
pub(super) enum Found {
    /// The records of the operation's keys, in their order.
    Records(Vec<Option<Document>>),
    /// The first batch of the rows of a query.
    Rows(Vec<Row>),
    /// A record, and what belongs to it.
    Related(Document, Vec<Row>),
    /// Both of them at once.
    Joined(Vec<Joined>),
}

/// The answers that one worker has put aside.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// One in so many is kept.
    every: usize,
    /// How many operations are left before the next one that is.
    left: usize,
    /// The operation whose answer is wanted now.
    wanted: Option<usize>,
    answers: Vec<Answer>,
}

impl Aside {
    /// For one of so many workers that share so many operations.
    pub(super) fn of(operations: usize, workers: usize) -> Aside {
        // An odd number: what is wrong in one of two or of ten is met as well.
        let every = (operations / workers.max(1) / MOST) | 1;
        Aside { every, answers: Vec::with_capacity(MOST), ..Aside::default() }
    }

    /// Says which operation is sent next.
    #[inline]
    pub(super) fn next(&mut self, at: usize) {
        if self.left > 0 {
            self.left -= 1;
            self.wanted = None;
        } else {
            self.left = self.every - 1;
            self.wanted = (self.answers.len() < MOST).then_some(at);
        }
    }

    /// Whether the answer of this operation is wanted.
    #[inline]
    pub(super) fn wants(&self) -> bool {
        self.wanted.is_some()
    }

    /// Keeps what came, where it is wanted.
    #[inline]
    pub(super) fn put(&mut self, found: Found) {
        if let Some(at) = self.wanted.take() {
            self.answers.push(Answer { at, found });
        }
    }

    /// All that was put aside.
    pub(super) fn into_answers(self) -> Vec<Answer> {
        self.answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_from_all_over_a_window() {
        for (operations, workers) in [(1, 1), (5, 2), (100, 1), (10_000, 4), (1_000_000, 64)] {
            let mut aside = Aside::of(operations, workers);
            let mine: Vec<usize> = (0..operations).step_by(workers).collect();
            for at in &mine {
                aside.next(*at);
                if aside.wants() {
                    aside.put(Found::Rows(Vec::new()));
                }
            }
            let kept: Vec<usize> = aside.into_answers().iter().map(|answer| answer.at).collect();
            assert!(kept.len() <= MOST && kept.len() >= mine.len().min(MOST) / 2, "{kept:?}");
            assert!(kept.len() < MOST || kept[MOST - 1] > operations / 2, "{kept:?}");
            assert!(kept.windows(2).all(|w| w[0] < w[1]) && kept[0] == 0);
        }
    }
}
