//! The `null` adapter, which does nothing: it measures the overhead of the adapter's loop (rule 11).

use std::{hint::black_box, sync::Arc};

use super::{Calls, Found, Goods, Tally};
use crate::{Result, cache::rows::STORED};

pub(super) struct Null {
    /// What is deleted is not there, as long as nothing is stored.
    there: bool,
}

impl Calls for Null {
    const BLOCKING: bool = true;

    fn open(_: &Arc<Goods>, _: &[String], connections: usize) -> Result<Vec<Null>> {
        Ok((0..connections).map(|_| Null { there: true }).collect())
    }

    async fn set(&mut self, k: usize) -> Result<()> {
        self.there = black_box(k) < usize::MAX;
        Ok(())
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        black_box(k);
        Ok(if self.there { Found::Hit } else { Found::Miss })
    }

    async fn get_all(&mut self) -> Result<Tally> {
        let stored = black_box(STORED as u64);
        Ok(Tally { hits: stored, misses: 6 - stored, wrong: 0 })
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        self.there = black_box(k) == usize::MAX;
        Ok(())
    }

    async fn flood(&mut self, keys: &[usize], operations: u64) -> Result<()> {
        for (_, k) in (0..operations).zip(keys.iter().cycle()) {
            black_box(k);
        }
        self.there = true;
        Ok(())
    }
}
