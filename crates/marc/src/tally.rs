//! Collects the troubles of one record, up to a limit.

use super::{Trouble, TroubleKind};

/// How many are told one by one; of the rest only the number is said. A record made of nothing but
/// faults would else take a hundred times its size.
const MOST: usize = 100;

/// Where the troubles of one record go.
pub(super) struct Tally<'a> {
    troubles: &'a mut Vec<Trouble>,
    told: usize,
}

impl<'a> Tally<'a> {
    pub(super) fn new(troubles: &'a mut Vec<Trouble>) -> Self {
        Tally { troubles, told: 0 }
    }

    pub(super) fn push(&mut self, kind: TroubleKind, offset: usize, detail: impl Into<String>) {
        if self.told < MOST {
            self.troubles.push(Trouble::new(kind, offset, detail));
        }
        self.told += 1;
    }

    /// Says how many were left out. They count as the worst there is, for they may be.
    pub(super) fn end(self, offset: usize) {
        if self.told > MOST {
            let rest = format!("and {} more in this record", self.told - MOST);
            self.troubles.push(Trouble::new(TroubleKind::Syntax, offset, rest));
        }
    }
}
