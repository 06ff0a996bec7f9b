//! Documents that several requests want at the same time, read together where the store takes longer for a command than for
//! a document: MongoDB (eight `find` of one key take FerretDB 2.6 times as long as one of eight keys).
//!
//! The first request reads for itself. Those that come meanwhile are read together when that has ended, or as soon as they are
//! many, so nobody waits for company. What a request gets was read after it came.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    record::Document,
    store::{Key, Store},
};
use tokio::sync::oneshot;

/// Reads of a collection that are under way at once, beyond the first of [`TOGETHER`] documents each.
const AT_ONCE: usize = 4;
/// Documents of one read. Each may be large.
const TOGETHER: usize = 16;

/// Reads of one collection.
pub(crate) struct Gather {
    store: Arc<dyn Store>,
    reads: Mutex<Reads>,
}

#[derive(Default)]
struct Reads {
    under_way: usize,
    waiting: Vec<Waiting>,
}

type Found = Result<Option<Document>>;

struct Waiting {
    key: Key,
    found: oneshot::Sender<Found>,
}

impl Gather {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Gather> {
        Arc::new(Gather { store, reads: Mutex::default() })
    }

    /// The document of a key.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn get(self: &Arc<Self>, key: &Key) -> Found {
        let Some(answer) = self.join(key) else {
            // Also where whoever asked goes away meanwhile.
            let _under_way = UnderWay(self.clone());
            return self.one(key).await;
        };
        answer.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unavailable, "the read of this document was given up"))
        })
    }

    /// Joins those that wait; none where nothing is under way, and then a read is.
    fn join(self: &Arc<Self>, key: &Key) -> Option<oneshot::Receiver<Found>> {
        let mut reads = self.reads();
        if reads.under_way == 0 {
            reads.under_way = 1;
            return None;
        }
        let (found, answer) = oneshot::channel();
        reads.waiting.push(Waiting { key: key.clone(), found });
        if reads.waiting.len() >= TOGETHER && reads.under_way < AT_ONCE {
            reads.under_way += 1;
            drop(reads);
            drop(UnderWay(self.clone()));
        }
        Some(answer)
    }

    async fn one(&self, key: &Key) -> Found {
        Ok(self.store.get(std::slice::from_ref(key)).await?.pop().flatten())
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are to be read next, in the place of a read that has ended; none where nobody waits.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut reads = self.reads();
        // Who went away needs nothing.
        reads.waiting.retain(|waiting| !waiting.found.is_closed());
        if reads.waiting.is_empty() {
            reads.under_way -= 1;
            return None;
        }
        let now = reads.waiting.len().min(TOGETHER);
        let later = reads.waiting.split_off(now);
        Some(mem::replace(&mut reads.waiting, later))
    }

    async fn read(&self, waiting: Vec<Waiting>) {
        let (keys, senders): (Vec<Key>, Vec<_>) =
            waiting.into_iter().map(|Waiting { key, found }| (key, found)).unzip();
        match self.store.get(&keys).await {
            Ok(found) => {
                for (sender, found) in senders.into_iter().zip(found) {
                    let _ = sender.send(Ok(found));
                }
            }
            // The same for each of them.
            Err(e) if e.is_outage() || e.kind() == ErrorKind::NotFound => {
                for sender in senders {
                    let _ = sender.send(Err(Error::new(e.kind(), e.reason())));
                }
            }
            // Of one of them: who wants another document gets it.
            Err(_) => {
                for (sender, key) in senders.into_iter().zip(&keys) {
                    let _ = sender.send(self.one(key).await);
                }
            }
        }
    }
}

/// A read that is under way. When it ends, those that wait are read, on a task of their own.
struct UnderWay(Arc<Gather>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(waiting) = self.0.next() else { return };
        let gather = self.0.clone();
        tokio::spawn(async move {
            let _under_way = UnderWay(gather.clone());
            gather.read(waiting).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use steelyard_store::{
        record::Value,
        store::{self, Blob, Layout, Row},
    };

    use super::*;

    async fn filled(name: &str, count: i64) -> Arc<dyn Store> {
        let place = store::open(&format!("memory:{name}")).await.unwrap();
        let table = place.table("t").unwrap();
        table.prepare(&Layout::plain()).await.unwrap();
        let row = |n| Row {
            key: Key::new(format!("k{n}")).unwrap(),
            record: Document::from_iter([("n", Value::Int(n))]),
        };
        table.put(&(0..count).map(row).collect::<Vec<_>>()).await.unwrap();
        // It is there as long as one has it.
        mem::forget(place);
        table
    }

    fn key(n: usize) -> Key {
        Key::new(format!("k{n}")).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everybody_gets_the_own_document() {
        let gather = Gather::new(filled("gather-own", 50).await);
        let reader = |reader: usize| {
            let gather = gather.clone();
            tokio::spawn(async move {
                for turn in 0..200 {
                    // Some are not there, and some are wanted by several.
                    let n = (reader * 7 + turn * 3) % 60;
                    let found = gather.get(&key(n)).await.unwrap();
                    let want = Value::Int(n as i64);
                    assert_eq!(found.as_ref().and_then(|d| d.get("n")), (n < 50).then_some(&want));
                }
            })
        };
        for done in join_all((0..40).map(reader)).await {
            done.unwrap();
        }
        let reads = gather.reads();
        assert_eq!((reads.under_way, reads.waiting.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_document_that_cannot_be_read_is_no_trouble_of_others() {
        let place = store::open("memory:gather-broken?layout=blob&format=json").await.unwrap();
        let table = place.table("t").unwrap();
        table.prepare(&Layout::plain()).await.unwrap();
        let (blobs, _) = table.blobs().unwrap();
        let blob = |n, bytes: &[u8]| Blob { key: key(n), bytes: bytes.to_vec() };
        blobs.put(&[blob(1, b"{\"n\":1}"), blob(2, b"{"), blob(3, b"{\"n\":3}")]).await.unwrap();
        let gather = Gather::new(table);
        gather.reads().under_way += 1;
        let held = UnderWay(gather.clone());
        let keys: Vec<Key> = (0..4).map(key).collect();
        let mut all = join_all(keys.iter().map(|key| gather.get(key)));
        assert!(futures_util::poll!(&mut all).is_pending());
        // Now they are read together.
        drop(held);
        let found = all.await;
        let n = |found: &Found| {
            found.as_ref().ok().map(|d| d.as_ref().and_then(|d| d.get("n")).cloned())
        };
        let found: Vec<_> = found.iter().map(n).collect();
        let want = [Some(None), Some(Some(Value::Int(1))), None, Some(Some(Value::Int(3)))];
        assert_eq!(found, want);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_others_theirs() {
        let gather = Gather::new(filled("gather-away", 5).await);
        // As many as there may be are under way and never end by themselves.
        let held: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                gather.reads().under_way += 1;
                UnderWay(gather.clone())
            })
            .collect();
        let (away, stays) = (key(1), key(2));
        let mut away = Box::pin(gather.get(&away));
        assert!(futures_util::poll!(&mut away).is_pending());
        let mut stays = Box::pin(gather.get(&stays));
        assert!(futures_util::poll!(&mut stays).is_pending());
        drop(away);
        drop(held);
        let found = stays.await.unwrap().unwrap();
        assert_eq!(found.get("n"), Some(&Value::Int(2)));
        tokio::task::yield_now().await;
        assert_eq!(gather.reads().under_way, 0);
    }
}
