//! A store in this process is measured as its users call it: on the worker's own thread, with nothing
//! handed to another thread, and by as many threads as there are workers.

use std::{
    collections::HashSet,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    thread::{self, ThreadId},
};

use async_trait::async_trait;
use futures_util::{StreamExt, future::BoxFuture};
use steelyard::{
    Result,
    bench::{
        run::Stage,
        schedule::StopRule,
        stores::{self, Options, Target},
        workload::Workload,
    },
    record::Document,
    store::{
        self, Abilities, DRIVERS, Description, Filter, Join, Joined, Key, KeyRange, Layout, Query,
        Row, Rows, Shape, Store,
    },
};

use crate::stores::places::run;

/// What was seen of the operations of the phase that is timed.
#[derive(Default)]
struct Seen {
    /// The phase; empty outside of the timed phases of a store.
    phase: String,
    /// The threads that called.
    threads: HashSet<ThreadId>,
    /// Operations that were not done when they were first polled: somebody else worked on them.
    handed_over: Vec<String>,
    operations: u64,
}

static SEEN: Mutex<Option<Seen>> = Mutex::new(None);

fn seen() -> MutexGuard<'static, Option<Seen>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does an operation, and notes who called and whether it was done at once.
async fn watch<T>(operation: &str, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut first = true;
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if let Some(seen) = seen().as_mut().filter(|seen| first && !seen.phase.is_empty()) {
            seen.operations += 1;
            seen.threads.insert(thread::current().id());
            if polled.is_pending() {
                seen.handed_over.push(format!("{operation} in {}", seen.phase));
            }
        }
        first = false;
        match polled {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A store that is watched.
struct Watched(Arc<dyn Store>);

impl Watched {
    fn rows<'a>(&self, operation: &'static str, rows: Rows<'a>) -> Rows<'a> {
        let next = move |mut rows: Rows<'a>| async move {
            let batch = watch(operation, rows.next()).await?;
            Some((batch, rows))
        };
        futures_util::stream::unfold(rows, next).boxed()
    }
}

#[async_trait]
impl Store for Watched {
    fn abilities(&self) -> &Abilities {
        self.0.abilities()
    }
    fn shape(&self) -> Shape {
        self.0.shape()
    }
    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Watched(self.0.table(name)?)))
    }
    fn check(&self, row: &Row) -> Result<()> {
        self.0.check(row)
    }
    async fn prepare(&self, layout: &Layout) -> Result<()> {
        watch("prepare", self.0.prepare(layout)).await
    }
    async fn put(&self, rows: &[Row]) -> Result<()> {
        watch("put", self.0.put(rows)).await
    }
    async fn load(&self, rows: &[Row]) -> Result<()> {
        watch("load", self.0.load(rows)).await
    }
    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        watch("put_each", self.0.put_each(rows)).await
    }
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        watch("get", self.0.get(keys)).await
    }
    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        Ok(self.rows("found rows", watch("find", self.0.find(query)).await?))
    }
    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        watch("join", self.0.join(join)).await
    }
    async fn delete(&self, filter: &Filter) -> Result<u64> {
        watch("delete", self.0.delete(filter)).await
    }
    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        watch("remove", self.0.remove(keys)).await
    }
    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        Ok(self.rows("scanned rows", watch("scan", self.0.scan(range)).await?))
    }
    async fn count(&self) -> Result<u64> {
        watch("count", self.0.count()).await
    }
    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.0.split(parts).await
    }
    async fn drop_table(&self) -> Result<()> {
        watch("drop_table", self.0.drop_table()).await
    }
    async fn settle(&self) -> Result<bool> {
        watch("settle", self.0.settle()).await
    }
    async fn describe(&self) -> Result<Description> {
        watch("describe", self.0.describe()).await
    }
}

/// Every kind of phase, by one worker and by four, as fast as possible and at planned moments. What
/// writes does so by one: SQLite lets writers wait for each other.
const PHASES: &str = r#"
name = "threads"
about = "Every kind of phase."
[table.records]
dataset = "people"
count = 2500
[[phase]]
name = "batches"
do = "load"
way = "batches"
[[phase]]
name = "get"
do = "get"
count = 400
[[phase]]
name = "get by 4"
do = "get"
count = 400
concurrency = 4
[[phase]]
name = "get at its time"
do = "get"
pace = { fixed = 2000 }
seconds = 0.2
[[phase]]
name = "get by 4 at their time"
do = "get"
pace = { fixed = 2000 }
seconds = 0.2
concurrency = 4
[[phase]]
name = "find"
do = "find"
where = { age = { "$gt" = 40 } }
count = 4
[[phase]]
name = "mix"
do = "mix"
shares = { read = 0.5, update = 0.5 }
count = 100
[[phase]]
name = "scan"
do = "scan"
[[phase]]
name = "delete"
do = "delete"
where = { age = { "$gt" = 40 } }
[[phase]]
name = "settle"
do = "settle"
"#;

/// How many threads sent the operations of each timed phase of this store, this one apart: 0 where it
/// did so itself.
fn threads_of(on: &str) -> Vec<(String, usize)> {
    let mut options = Options::new(Workload::parse(PHASES).unwrap());
    options.targets = vec![Target::parse(on).unwrap()];
    options.audit = false;
    options.plan.resamples = 200;
    options.plan.stop = StopRule { max_rounds: 1, ..StopRule::default() };
    options.around = Some(|store| Arc::new(Watched(store)));
    let mut all = Vec::new();
    let mut note = |next: &str| {
        let before = seen().replace(Seen { phase: next.to_owned(), ..Seen::default() });
        // Not a skip: nothing was seen of what is not timed.
        let Some(before) = before.filter(|before| before.operations > 0) else { return };
        assert_eq!(before.handed_over, Vec::<String>::new(), "{on}");
        let mut others = before.threads;
        let here = others.remove(&thread::current().id());
        assert!(!here || others.is_empty(), "{on}, {}: by threads of both kinds", before.phase);
        all.push((before.phase, others.len()));
    };
    let results = stores::run(&options, &mut |p| match (p.stage, p.measured) {
        (Stage::Timing, None) if p.competitor != "null" => note(p.phase),
        _ => note(""),
    });
    note("");
    results.unwrap_or_else(|e| panic!("{on}: {e:?}"));
    all
}

/// The watch itself: an operation that waits for somebody else is seen, one that does not is not.
fn what_is_handed_over_is_seen() {
    let noted = |operation: BoxFuture<'static, ()>| {
        *seen() = Some(Seen { phase: "trial".into(), ..Seen::default() });
        run(watch("it", operation));
        seen().take().map_or(0, |seen| seen.handed_over.len())
    };
    assert_eq!(noted(Box::pin(tokio::task::yield_now())), 1);
    assert_eq!(noted(Box::pin(async {})), 0);
}

#[test]
fn its_operations_are_done_by_the_thread_that_counts_them() {
    what_is_handed_over_is_seen();
    let mut tried = 0;
    for driver in DRIVERS.iter().filter(|driver| driver.is_embedded()) {
        for shape in driver.shapes {
            let on = format!("{}?layout={shape}", driver.name);
            let phases = threads_of(&on);
            let of = |name: &str| phases.iter().find(|phase| phase.0 == name).map(|phase| phase.1);
            for alone in ["batches", "get", "mix", "scan"] {
                assert_eq!(of(alone), Some(0), "{on}, {alone}: {phases:?}");
            }
            // A thread that was slow to begin may have found no moment left.
            assert_eq!(of("get by 4"), Some(4), "{on}: {phases:?}");
            assert_eq!(of("get at its time"), Some(1), "{on}: {phases:?}");
            let planned = of("get by 4 at their time");
            assert!(matches!(planned, Some(2..=4)), "{on}: {phases:?}");
            tried += 1;
        }
    }
    assert!(tried >= 3, "{tried} layouts of stores in this process");
}

/// In a process of its own: it would end what SQLite does for the tests beside it.
#[test]
fn a_statement_that_runs_is_interrupted_and_what_follows_is_not() {
    if !crate::programs::alone(
        "in_process::a_statement_that_runs_is_interrupted_and_what_follows_is_not",
    ) {
        // Not a skip: the other process has tried it.
        return;
    }
    run(async {
        let place = store::open("sqlite:").await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        let row = |n: u64| Row {
            key: Key::new(n.to_string()).unwrap(),
            record: Document::from_iter([("n", n as i64)]),
        };
        let rows: Vec<Row> = (0..50_000).map(row).collect();
        place.load(&rows).await.unwrap();
        let none: Filter = "n<0".parse().unwrap();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let interrupts = thread::spawn(move || {
            while end.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                store::interrupt();
                thread::yield_now();
            }
        });
        for allowed in [false, true] {
            // It may end between two interruptions.
            let mut error = None;
            while error.is_none() {
                error = match allowed {
                    true => store::blocking(place.delete(&none)).await.err(),
                    false => place.delete(&none).await.err(),
                };
            }
            assert!(error.unwrap().to_string().contains("a statement was interrupted"));
        }
        drop(ended);
        interrupts.join().unwrap();
        assert_eq!(place.count().await.unwrap(), 50_000);
        assert_eq!(place.delete(&none).await.unwrap(), 0);
    });
}
