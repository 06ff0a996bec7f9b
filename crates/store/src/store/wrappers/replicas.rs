//! A store with copies that its servers keep: what is written goes to the primary, what is read comes from a replica.
//!
//! A replica is behind by what its server has not copied yet. Whoever writes through a [`Replicas`] reads from the primary
//! until a set time has passed since, and so reads what they wrote; another [`session`](Replicas::session) of the same
//! store may read older records meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;

use crate::{
    Error, ErrorKind, Result,
    format::Wrapped,
    record::Document,
    store::{
        Abilities, Blobs, Description, Expected, Explained, Filter, Join, Joined, Key, KeyRange,
        Layout, Part, Query, Request, Row, Rows, Shape, Store,
    },
};

/// A monotonic clock: the time since some fixed moment.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A primary and its replicas.
///
/// Nothing is ever written to a replica. Where one cannot be reached, or does not have the table yet, the primary is asked
/// instead; a stream that has begun ends with the error. Several tables of it are one session.
pub struct Replicas {
    primary: Arc<dyn Store>,
    replicas: Arc<[Arc<dyn Store>]>,
    session: Arc<Session>,
}

/// Whose reads have to see whose writes.
struct Session {
    clock: Clock,
    /// How long after a write the primary is read.
    pin: Duration,
    /// Writes under way.
    writing: AtomicUsize,
    /// Nanoseconds of the clock until which the primary is read.
    until: AtomicU64,
    /// Whose turn it is.
    turn: AtomicUsize,
}

/// A write under way; the time since it counts from its end, however it ends.
struct Writing<'s>(&'s Session);

impl Session {
    fn new(clock: Clock, pin: Duration) -> Arc<Session> {
        let (writing, until, turn) = Default::default();
        Arc::new(Session { clock, pin, writing, until, turn })
    }

    fn now(&self) -> u64 {
        u64::try_from((self.clock)().as_nanos()).unwrap_or(u64::MAX)
    }

    fn write(&self) -> Writing<'_> {
        self.writing.fetch_add(1, SeqCst);
        Writing(self)
    }

    fn may_read_a_replica(&self) -> bool {
        self.writing.load(SeqCst) == 0 && self.now() >= self.until.load(SeqCst)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let pin = u64::try_from(self.0.pin.as_nanos()).unwrap_or(u64::MAX);
        self.0.until.fetch_max(self.0.now().saturating_add(pin), SeqCst);
        self.0.writing.fetch_sub(1, SeqCst);
    }
}

impl Replicas {
    /// A primary with its replicas. For `pin` after a write, reads go to the primary.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where there is no replica, or where one is another kind of store.
    pub fn new(
        primary: Arc<dyn Store>,
        replicas: Vec<Arc<dyn Store>>,
        pin: Duration,
    ) -> Result<Replicas> {
        let begin = Instant::now();
        Replicas::timed(primary, replicas, pin, Arc::new(move || begin.elapsed()))
    }

    /// The same by another clock.
    ///
    /// # Errors
    /// As [`new`](Replicas::new).
    pub fn timed(
        primary: Arc<dyn Store>,
        replicas: Vec<Arc<dyn Store>>,
        pin: Duration,
        clock: Clock,
    ) -> Result<Replicas> {
        if replicas.is_empty() {
            return Err(Error::invalid("a primary without replicas"));
        }
        let what = |store: &Arc<dyn Store>| (store.abilities().driver, store.shape());
        if let Some(other) = replicas.iter().find(|replica| what(replica) != what(&primary)) {
            let ((of, shape), (driver, other)) = (what(&primary), what(other));
            return Err(Error::invalid(format!(
                "a replica in {driver}, layout {other}, of a primary in {of}, layout {shape}; both must be alike"
            )));
        }
        let (replicas, session) = (replicas.into(), Session::new(clock, pin));
        Ok(Replicas { primary, replicas, session })
    }

    /// The same store for somebody else, whose reads need not see what was written through this one.
    pub fn session(&self) -> Replicas {
        Replicas {
            primary: self.primary.clone(),
            replicas: self.replicas.clone(),
            session: Session::new(self.session.clock.clone(), self.session.pin),
        }
    }

    /// What is read now: a replica, or else the primary.
    fn read(&self) -> &dyn Store {
        match self.session.may_read_a_replica() {
            true => {
                let turn = self.session.turn.fetch_add(1, SeqCst);
                &*self.replicas[turn % self.replicas.len()]
            }
            false => &*self.primary,
        }
    }

    /// What a replica answered, or else the primary.
    async fn answer<'s, T, F: Future<Output = Result<T>> + Send>(
        &'s self,
        ask: impl Fn(&'s dyn Store) -> F,
    ) -> Result<T> {
        let of = self.read();
        match ask(of).await {
            Err(e)
                if is_the_replicas_own(&e) && !std::ptr::addr_eq(of, &raw const *self.primary) =>
            {
                ask(&*self.primary).await
            }
            answer => answer,
        }
    }
}

/// Whether the primary may answer what a replica did not.
fn is_the_replicas_own(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::NotFound)
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Store for Replicas {
    fn abilities(&self) -> &Abilities {
        self.primary.abilities()
    }

    fn shape(&self) -> Shape {
        self.primary.shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        let replicas = self.replicas.iter().map(|replica| replica.table(name));
        Ok(Arc::new(Replicas {
            primary: self.primary.table(name)?,
            replicas: replicas.collect::<Result<_>>()?,
            session: self.session.clone(),
        }))
    }

    /// Each of its stores is on a server of its own: they are opened one by one.
    fn part(&self, _part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(None)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.answer(|store| store.tables()).await
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.primary.check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        let _writing = self.session.write();
        self.primary.prepare(layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let _writing = self.session.write();
        self.primary.put(rows).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let _writing = self.session.write();
        self.primary.load(rows).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        let _writing = self.session.write();
        self.primary.put_each(rows).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let _writing = self.session.write();
        self.primary.put_if(row, expected).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        let _writing = self.session.write();
        self.primary.remove_if(key, expected).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.answer(|store| store.get(keys)).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.answer(|store| store.find(query)).await
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.answer(|store| store.join(join)).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let _writing = self.session.write();
        self.primary.delete(filter).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let _writing = self.session.write();
        self.primary.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.answer(|store| store.scan(range)).await
    }

    async fn count(&self) -> Result<u64> {
        self.answer(|store| store.count()).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.answer(|store| store.split(parts)).await
    }

    async fn drop_table(&self) -> Result<()> {
        let _writing = self.session.write();
        self.primary.drop_table().await
    }

    async fn settle(&self) -> Result<bool> {
        self.primary.settle().await
    }

    async fn analyze(&self) -> Result<()> {
        self.primary.analyze().await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        self.primary.index_bytes().await
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        self.primary.database_bytes().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.primary.explain(request).await
    }

    async fn describe(&self) -> Result<Description> {
        let mut description = self.primary.describe().await?;
        description.settings.push(("replicas".into(), self.replicas.len().to_string()));
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::store::open;

    fn row(key: &str, n: i64) -> Row {
        Row { key: Key::new(key).unwrap(), record: Document::from_iter([("n", n)]) }
    }

    async fn value(store: &dyn Store, key: &str) -> Option<i64> {
        let found = store.get(&[Key::new(key).unwrap()]).await.unwrap().pop().flatten()?;
        match found.get("n") {
            Some(crate::record::Value::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// Replicas that copy nothing: what comes from one is told from what comes from the primary.
    async fn three(pin: Duration) -> (Vec<Arc<dyn Store>>, Replicas, Arc<AtomicU64>) {
        let mut stores = Vec::new();
        for (n, place) in ["memory:", "memory:", "memory:"].iter().enumerate() {
            let store = open(place).await.unwrap().store().clone();
            store.prepare(&Layout::plain()).await.unwrap();
            store.put(&[row("whose", n as i64)]).await.unwrap();
            stores.push(store);
        }
        let seconds = Arc::new(AtomicU64::new(1000));
        let clock: Clock = {
            let seconds = seconds.clone();
            Arc::new(move || Duration::from_secs(seconds.load(Relaxed)))
        };
        let all = Replicas::timed(stores[0].clone(), stores[1..].to_vec(), pin, clock).unwrap();
        (stores, all, seconds)
    }

    #[tokio::test]
    async fn who_wrote_reads_it_and_replicas_are_never_written() {
        let (stores, all, seconds) = three(Duration::from_secs(5)).await;
        let other = all.session();
        // In turns, as long as nothing is written.
        assert_eq!((value(&all, "whose").await, value(&all, "whose").await), (Some(1), Some(2)));
        all.put(&[row("new", 7)]).await.unwrap();
        assert_eq!((value(&all, "new").await, value(&all, "whose").await), (Some(7), Some(0)));
        // Another table is the same session, another session is not.
        assert_eq!(all.table("records").unwrap().count().await.unwrap(), 2);
        assert_eq!((value(&other, "new").await, value(&other, "whose").await), (None, Some(2)));
        seconds.fetch_add(4, Relaxed);
        assert_eq!(value(&all, "whose").await, Some(0));
        seconds.fetch_add(1, Relaxed);
        assert_ne!(value(&all, "whose").await, Some(0));
        // Each kind of write, also one that fails.
        let key = Key::new("new").unwrap();
        let expected = Expected::Absent;
        for n in 0..6 {
            match n {
                0 => all.load(&[row("loaded", 1)]).await.unwrap(),
                1 => drop(all.remove(std::slice::from_ref(&key)).await.unwrap()),
                2 => drop(all.put_if(&row("if", 1), &expected).await.unwrap()),
                3 => drop(all.remove_if(&key, &expected).await.unwrap()),
                4 => drop(all.delete(&Filter::All).await.unwrap()),
                _ => drop(all.put_each(&[row("each", 1)]).await),
            }
            assert!(!all.session.may_read_a_replica(), "{n}");
            seconds.fetch_add(5, Relaxed);
            assert!(all.session.may_read_a_replica(), "{n}");
        }
        for replica in &stores[1..] {
            assert_eq!(replica.count().await.unwrap(), 1, "a replica was written");
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn the_primary_answers_for_a_replica_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
        let primary = open(&at("primary.db")).await.unwrap().store().clone();
        primary.prepare(&Layout::plain()).await.unwrap();
        primary.put(&[row("x", 1)]).await.unwrap();
        let replica = open(&at("missing.db")).await.unwrap().store().clone();
        assert_eq!(replica.count().await.unwrap_err().kind(), ErrorKind::NotFound);
        let all = Replicas::new(primary, vec![replica], Duration::ZERO).unwrap();
        assert_eq!((all.count().await.unwrap(), value(&all, "x").await), (1, Some(1)));
        assert!(!folder.path().join("missing.db").exists());
    }

    #[tokio::test]
    async fn what_is_no_replica_is_refused() {
        let (document, blob) =
            (open("memory:").await.unwrap(), open("memory:?format=json").await.unwrap());
        let new = |of: Vec<Arc<dyn Store>>| {
            Replicas::new(document.store().clone(), of, Duration::ZERO).err().map(|e| e.to_string())
        };
        assert!(new(vec![blob.store().clone()]).unwrap().contains("layout blob"));
        assert!(new(Vec::new()).unwrap().contains("without replicas"));
        assert_eq!(new(vec![document.store().clone()]), None);
    }
}
