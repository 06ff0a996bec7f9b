//! Guards against endless pagination: a server that returns the same cursor twice, or one empty page after another,
//! would otherwise be asked for ever.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Finds that a walk goes in circles, however long they are, in the memory of one place: each place is
/// held against an earlier one, which moves on after 1, 2, 4, 8 … steps (Brent's way).
pub(super) struct Onward<T> {
    earlier: Option<T>,
    steps: u64,
}

impl<T: PartialEq + Clone> Onward<T> {
    /// A walk that has not begun.
    pub(super) fn new() -> Onward<T> {
        Onward { earlier: None, steps: 0 }
    }

    /// The walk has come to this place. `what` are the pages, for the error.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it has been there.
    pub(super) fn at(&mut self, place: &T, what: &str) -> Result<()> {
        if self.earlier.as_ref() == Some(place) {
            return Err(Error::malformed(format!(
                "the pages of {what} repeat: the server returned the same position twice"
            )));
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.earlier = Some(place.clone());
        }
        Ok(())
    }
}

/// The time that a reader has waited for a server since the last record came. What the caller does between two
/// pages does not count.
pub(super) struct Dry {
    limit: Duration,
    waited: Duration,
}

impl Dry {
    /// For a reader that waits so long for a record, over all pages.
    pub(super) fn new(limit: Duration) -> Dry {
        Dry { limit, waited: Duration::ZERO }
    }

    /// Waits for a page.
    ///
    /// # Errors
    /// Of the page.
    pub(super) async fn wait<T>(&mut self, page: impl Future<Output = Result<T>>) -> Result<T> {
        let begun = Instant::now();
        let page = page.await;
        self.took(begun.elapsed());
        page
    }

    fn took(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The page had so many records, and there are more pages.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout) where none came within the limit.
    pub(super) fn came(&mut self, records: usize) -> Result<()> {
        if records > 0 {
            self.waited = Duration::ZERO;
        }
        match self.waited < self.limit {
            true => Ok(()),
            false => Err(Error::timeout(format!(
                "no record within {} s; the server sends empty pages",
                self.limit.as_secs_f64()
            ))),
        }
    }
}

/// How many pages without a record a server may send in a row, where each is known to look at a stretch of what is
/// there: as many as it takes to look at all of it, several times over.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Barren {
    pages: u64,
    /// How many there may be, once it is known how many records the server has.
    most: Option<u64>,
}

impl Barren {
    /// So many are nothing to wonder at, however few records there are.
    #[cfg(not(test))]
    pub(super) const USUAL: u64 = 1 << 16;
    #[cfg(test)]
    pub(super) const USUAL: u64 = 1 << 8;
    /// No server has more records, whatever it says.
    pub(super) const RECORDS: u64 = 1 << 32;

    /// A page with so many records. Says whether it has to be [known](Barren::known) how many records there are.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) beyond what there may be.
    pub(super) fn came(&mut self, records: usize, what: &str) -> Result<bool> {
        if records > 0 {
            *self = Barren::default();
            return Ok(false);
        }
        self.pages += 1;
        match self.most {
            None => Ok(self.pages >= Barren::USUAL),
            Some(most) if self.pages <= most => Ok(false),
            Some(_) => Err(Error::malformed(format!(
                "{} pages of {what} in a row have no record: more than the server has by its own count",
                self.pages
            ))),
        }
    }

    /// The server has so many records, of which an empty page has looked at `each` at least.
    pub(super) fn known(&mut self, records: u64, each: u64) {
        self.most = Some(Barren::USUAL + records.min(Barren::RECORDS) / each);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_waited_for_the_server_without_a_record_counts_and_nothing_else() {
        let second = Duration::from_secs(1);
        let mut dry = Dry::new(10 * second);
        for round in 0..40 {
            dry.took(second);
            // Now and then there is a record.
            dry.came(usize::from(round % 9 == 8)).unwrap();
        }
        let mut pages = 0;
        let error = loop {
            dry.took(second);
            pages += 1;
            if let Err(e) = dry.came(0) {
                break e;
            }
        };
        // Four of them had come before.
        assert_eq!(pages, 6, "{error}");
        assert!(error.is_timeout());
        assert_eq!(error.to_string(), "no record within 10 s; the server sends empty pages");
    }

    #[test]
    fn a_table_with_few_matches_is_read_to_its_end_and_one_without_an_end_is_not() {
        let pages = |records: u64, pages: u64| {
            let mut barren = Barren::default();
            (0..pages).find(|_| match barren.came(0, "SCAN") {
                Ok(true) => {
                    barren.known(records, 100);
                    false
                }
                done => done.is_err(),
            })
        };
        // A thousand places to a page, and ten times as many of an empty one: 100 million keys, none of them ours.
        assert_eq!(pages(100_000_000, 100_000), None);
        // A table that was larger, and has not been made smaller yet.
        assert_eq!(pages(0, Barren::USUAL), None);
        assert_eq!(pages(5, 10 * Barren::USUAL), Some(Barren::USUAL));
        let mut barren = Barren::default();
        for round in 0..100 * Barren::USUAL {
            let came = usize::from(round % (Barren::USUAL / 2) == 0);
            assert!(!barren.came(came, "SCAN").unwrap());
        }
    }

    proptest! {
        #[test]
        fn every_circle_is_found_and_nothing_else(before in 0u64..300, circle in 1u64..300) {
            let mut walk = Onward::new();
            let place = |step: u64| match step < before {
                true => step,
                false => before + (step - before) % circle,
            };
            let found = (0..4_000).find(|step| walk.at(&place(*step), "SCAN").is_err());
            let found = found.expect("a circle is found");
            prop_assert!(found >= before + circle);
            let mut straight = Onward::new();
            prop_assert!((0..4_000).all(|step| straight.at(&step, "SCAN").is_ok()));
        }
    }
}
