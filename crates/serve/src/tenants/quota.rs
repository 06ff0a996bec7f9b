//! How much a tenant's database takes, as its store says, what was written since, and what is being written.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use steelyard_base::Result;

use crate::problem::Problem;

/// How long the store's answer is good: what is written meanwhile is added to it.
const FRESH: Duration = Duration::from_secs(5);
/// When it is asked again where it said that there is no room: something may have been deleted.
const AGAIN: Duration = Duration::from_secs(1);
/// How long an answer may stay the same that is told late.
const LATE: Duration = Duration::from_secs(15);
/// What a document takes beside its own bytes, about: its row, its revision, its place in an index.
pub(crate) const OF_A_DOCUMENT: usize = 100;

/// What is known of the size of one database.
#[derive(Default)]
pub(super) struct Size {
    known: Mutex<Option<Known>>,
    writes: Arc<Writes>,
    /// Held by the one who asks.
    asking: tokio::sync::Mutex<()>,
    /// The store's answer may be of some time ago.
    is_late: bool,
}

#[derive(Clone, Copy)]
struct Known {
    at: Duration,
    /// None where the store does not say.
    bytes: Option<u64>,
    /// When the answer was another one last, or what was written since was last forgotten.
    moved: Duration,
}

/// Bytes of writes.
#[derive(Default)]
struct Writes {
    /// That are under way.
    now: AtomicU64,
    /// That have ended, and may not be in the store's answer.
    since: AtomicU64,
}

/// Room for a write, held until it has ended.
#[must_use = "the room is given back when this is dropped"]
#[derive(Default)]
pub(crate) struct Room(Option<(Arc<Writes>, u64)>);

impl Drop for Room {
    fn drop(&mut self) {
        if let Some((writes, bytes)) = self.0.take() {
            // In this order, so that they are counted at any moment.
            writes.since.fetch_add(bytes, SeqCst);
            writes.now.fetch_sub(bytes, SeqCst);
        }
    }
}

/// Whether a write fits.
#[derive(Clone, Copy)]
enum Answer {
    Fits,
    /// The store does not say what there is.
    NotKnown,
    Full {
        there: u64,
    },
    /// The store is to be asked; as far as is known it fits, or does not.
    Stale {
        fits: bool,
    },
}

impl Size {
    /// Of a store whose answer may be of some time ago, or not.
    pub(super) fn new(is_late: bool) -> Size {
        Size { is_late, ..Size::default() }
    }

    /// Room for so many bytes more. `ask` asks the store, one request at a time: now and then, and before a write is refused
    /// for what others wrote, as that may have replaced something.
    pub(super) async fn room(
        &self,
        bytes: u64,
        most: u64,
        now: Duration,
        ask: impl Future<Output = Result<Option<u64>>>,
    ) -> Result<Room, Problem> {
        let mut answer = self.answer(bytes, most, now);
        if let Answer::Stale { fits } = answer {
            // While one asks, others go on if there seems to be room.
            match self.asking.try_lock() {
                Ok(_asking) => answer = self.asked(bytes, most, now, ask).await?,
                Err(_) if fits => answer = Answer::Fits,
                Err(_) => {
                    let _asking = self.asking.lock().await;
                    answer = match self.answer(bytes, most, now) {
                        Answer::Stale { .. } => self.asked(bytes, most, now, ask).await?,
                        answer => answer,
                    };
                }
            }
        }
        match answer {
            Answer::Fits => {
                self.writes.now.fetch_add(bytes, SeqCst);
                Ok(Room(Some((self.writes.clone(), bytes))))
            }
            Answer::NotKnown => Ok(Room::default()),
            Answer::Full { there } => Err(Problem::quota(format!(
                "this tenant may have {most} bytes of data, and has {there}; delete documents, or ask for more"
            ))),
            Answer::Stale { .. } => Err(Problem::internal("the size of the database is not known")),
        }
    }

    /// Whether so many bytes fit, as far as is known.
    fn answer(&self, bytes: u64, most: u64, now: Duration) -> Answer {
        let Some(known) = *self.known.lock().unwrap_or_else(PoisonError::into_inner) else {
            return Answer::Stale { fits: false };
        };
        let age = now.saturating_sub(known.at);
        let Some(there) = known.bytes else {
            return if age < FRESH { Answer::NotKnown } else { Answer::Stale { fits: true } };
        };
        let since = self.writes.since.load(SeqCst);
        let written = since + self.writes.now.load(SeqCst);
        match there.saturating_add(written).saturating_add(bytes) <= most {
            true if age < FRESH => Answer::Fits,
            // What ended may have replaced something, unless it takes a while to be told.
            false if age < AGAIN && (since == 0 || self.is_late) => Answer::Full { there },
            fits => Answer::Stale { fits },
        }
    }

    /// The same once the store was asked.
    async fn asked(
        &self,
        bytes: u64,
        most: u64,
        now: Duration,
        ask: impl Future<Output = Result<Option<u64>>>,
    ) -> Result<Answer, Problem> {
        // Before it is asked: what ends meanwhile may not be in the answer.
        let since = self.writes.since.swap(0, SeqCst);
        let asked = ask.await;
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let same =
                known.filter(|known| asked.as_ref().is_ok_and(|&asked| asked == known.bytes));
            let moved = same.map_or(now, |known| known.moved);
            // Nor what ended before, where the answer is told late and is still the same.
            let is_old = same.is_some() && self.is_late && now.saturating_sub(moved) < LATE;
            if is_old || asked.is_err() {
                self.writes.since.fetch_add(since, SeqCst);
            }
            let moved = if is_old { moved } else { now };
            *known = Some(Known { at: now, bytes: asked?, moved });
        }
        match self.answer(bytes, most, now) {
            // It was asked just now.
            Answer::Stale { fits: true } => Ok(Answer::Fits),
            Answer::Stale { fits: false } => {
                let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                let there = known.and_then(|known| known.bytes).unwrap_or_default();
                Ok(Answer::Full { there })
            }
            answer => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    #[tokio::test]
    async fn the_store_is_asked_now_and_then_and_before_a_refusal() {
        let (size, asked, says) = (Size::default(), Cell::new(0), Cell::new(Some(100)));
        let room = async |bytes, now| {
            let ask = async {
                asked.set(asked.get() + 1);
                Ok(says.get())
            };
            size.room(bytes, 1000, Duration::from_millis(now), ask).await.ok()
        };
        assert!(room(800, 0).await.is_some() && asked.get() == 1);
        // 900 by now, as far as is known.
        assert!(room(100, 999).await.is_some() && asked.get() == 1);
        // All of it replaced something.
        assert!(room(801, 999).await.is_some() && asked.get() == 2);
        assert!(room(900, 1000).await.is_some() && asked.get() == 3);
        // What is under way is there, whatever the store says.
        let first = room(500, 2000).await;
        assert!(first.is_some() && asked.get() == 4);
        assert!(room(401, 2000).await.is_none() && asked.get() == 4);
        let second = room(400, 2000).await;
        assert!(second.is_some() && room(1, 2000).await.is_none() && asked.get() == 4);
        says.set(Some(500));
        drop(first);
        assert!(room(101, 2000).await.is_none() && asked.get() == 5);
        // It was asked just now, and nothing has ended since.
        assert!(room(101, 2999).await.is_none() && asked.get() == 5);
        assert!(room(101, 3000).await.is_none() && asked.get() == 6);
        drop(second);
        assert!(room(500, 3000).await.is_some() && asked.get() == 7);
        says.set(None);
        assert!(room(1_000_000, 8001).await.is_some() && asked.get() == 8);
        assert!(room(1_000_000, 13_000).await.is_some() && asked.get() == 8);
    }

    /// Its statistics are of some time ago: what was written is counted until they change.
    #[tokio::test]
    async fn a_store_that_tells_late_is_not_believed_at_once() {
        let (size, says) = (Size::new(true), Cell::new(100));
        let room = async |bytes, now| {
            let ask = async { Ok(Some(says.get())) };
            size.room(bytes, 1000, Duration::from_secs(now), ask).await.is_ok()
        };
        assert!(room(800, 0).await);
        assert!(!room(200, 2).await && !room(200, 5).await && !room(200, 10).await);
        says.set(900);
        assert!(!room(200, 11).await && room(100, 11).await);
        // The same answer for a long time is what there is.
        assert!(!room(100, 13).await && !room(100, 24).await && room(100, 26).await);
    }

    #[tokio::test]
    async fn a_store_that_fails_is_asked_again_and_nothing_is_forgotten() {
        let size = Size::default();
        let room = async |bytes, now, says| {
            let ask = ready(says);
            size.room(bytes, 10, Duration::from_secs(now), ask).await.is_ok()
        };
        let broken = || Err(steelyard_base::Error::invalid("broken"));
        assert!(!room(1, 0, broken()).await);
        assert!(room(5, 0, Ok(Some(2))).await);
        assert!(!room(5, 0, broken()).await);
        // 2 and 5 as before.
        assert!(room(3, 0, Ok(Some(11))).await);
        assert!(!room(1, 0, Ok(Some(10))).await);
        assert!(room(10, 1, Ok(Some(0))).await);
    }
}
