//! How much a tenant's database takes, as its store says, and what was written since.

use std::time::Duration;

use steelyard_base::Result;
use tokio::sync::Mutex;

use crate::problem::Problem;

/// How long the store's answer is good: what is written meanwhile is added to it.
const FRESH: Duration = Duration::from_secs(5);
/// When it is asked again before a write is refused: what was written may have replaced something.
const AGAIN: Duration = Duration::from_secs(1);

/// What is known of the size of one database.
#[derive(Default)]
pub(super) struct Size(Mutex<Option<Known>>);

#[derive(Clone, Copy)]
struct Known {
    at: Duration,
    /// None where the store does not say.
    bytes: Option<u64>,
}

impl Size {
    /// Whether so many bytes more fit, and counts them. `ask` asks the store, one request at a time.
    pub(super) async fn add(
        &self,
        bytes: u64,
        most: u64,
        now: Duration,
        ask: impl Future<Output = Result<Option<u64>>>,
    ) -> Result<(), Problem> {
        let mut known = self.0.lock().await;
        let fits = |there: Option<u64>| there.is_none_or(|there| there + bytes <= most);
        let is_good = known.is_some_and(|known| {
            let age = now.saturating_sub(known.at);
            age < if fits(known.bytes) { FRESH } else { AGAIN }
        });
        if !is_good {
            *known = Some(Known { at: now, bytes: ask.await? });
        }
        let Some(Known { bytes: Some(there), .. }) = &mut *known else { return Ok(()) };
        if !fits(Some(*there)) {
            return Err(Problem::quota(format!(
                "this tenant may have {most} bytes of data, and has {there}; delete documents, or ask for more"
            )));
        }
        *there += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    #[tokio::test]
    async fn the_store_is_asked_now_and_then_and_before_a_refusal() {
        let (size, asked, says) = (Size::default(), Cell::new(0), Cell::new(Some(100)));
        let add = async |bytes, now| {
            let ask = async {
                asked.set(asked.get() + 1);
                Ok(says.get())
            };
            size.add(bytes, 1000, Duration::from_millis(now), ask).await.is_ok()
        };
        assert!(add(800, 0).await && asked.get() == 1);
        // 900 by now, as far as is known.
        assert!(add(100, 999).await && asked.get() == 1);
        assert!(!add(1, 999).await && asked.get() == 1);
        // Most of it replaced something.
        assert!(add(1, 1000).await && asked.get() == 2);
        assert!(add(500, 5999).await && asked.get() == 2);
        says.set(Some(1001));
        assert!(!add(0, 6000).await && asked.get() == 3);
        says.set(None);
        assert!(add(1_000_000, 7000).await && asked.get() == 4);
    }

    #[tokio::test]
    async fn a_store_that_fails_is_asked_again() {
        let size = Size::default();
        let fails = ready(Err(steelyard_base::Error::invalid("broken")));
        assert!(size.add(1, 10, Duration::ZERO, fails).await.is_err());
        assert!(size.add(1, 10, Duration::ZERO, ready(Ok(Some(9)))).await.is_ok());
        assert!(size.add(1, 10, Duration::ZERO, ready(Ok(Some(0)))).await.is_err());
    }
}
