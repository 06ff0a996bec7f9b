//! Walks that go from page to page: a server that gives a place for the second time would be asked for
//! ever.

use crate::{Error, Result};

/// Finds that a walk goes in circles, however long they are, in the memory of one place: each place is
/// held against an earlier one, which moves on after 1, 2, 4, 8 … steps (Brent's way).
pub(crate) struct Onward<T> {
    earlier: Option<T>,
    steps: u64,
}

impl<T: PartialEq + Clone> Onward<T> {
    /// A walk that has not begun.
    pub fn new() -> Onward<T> {
        Onward { earlier: None, steps: 0 }
    }

    /// The walk has come to this place. `what` are the pages, for the error.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it has been there.
    pub fn at(&mut self, place: &T, what: &str) -> Result<()> {
        if self.earlier.as_ref() == Some(place) {
            return Err(Error::malformed(format!(
                "the pages of {what} go in circles: the server gives one place twice"
            )));
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.earlier = Some(place.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
