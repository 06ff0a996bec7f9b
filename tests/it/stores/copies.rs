//! Copies: what goes from a store into a file and back is the same, keys and records; and of records
//! with the same key the right one is kept, wherever they lie.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind, Result,
    copy::{
        self, Copied, Counts, Errand, Follower, FromStore, Journal, KeyRule, OnDuplicate, Options,
        Reject, Source, Target, ToStore,
    },
    file::{Frames, Reading, Sink, Writing},
    format::{Format, Takes, Wrapped},
    marc::{Record, Trouble},
    record::{Document, Kind, Value, to_value},
    store::{Key, KeyRange, Layout, Row, Shape, Store, difference, one_by_one, open},
};
use tokio::runtime::Handle;

use super::places::{self, Fault, Outcome, Subject, Wrap, ensure};

/// Keys that some format or reader may take for something else.
const KEYS: [&str; 26] = [
    "ann",
    "42",
    "007",
    "-0",
    "1e5",
    "12345678901234567890123",
    "@00000000000000",
    "true",
    "null",
    " ",
    " 42 ",
    "a\nb",
    "a\r\nb",
    "\n",
    "a,b",
    "\"",
    "\"a\"",
    "'",
    "{}",
    "[1]",
    "_key",
    "001",
    "Lübeck",
    "😀",
    "\u{feff}a",
    "=1+1",
];

/// Ends a run with an error after so many batches, or has another program write in the middle of it; remembers why
/// records were rejected.
#[derive(Default)]
struct Watcher {
    batches: Option<usize>,
    another: Option<(Arc<dyn Store>, Row)>,
    reasons: Vec<String>,
}

impl Follower for Watcher {
    fn counts(&mut self, _: &Counts) {
        if let Some((store, row)) = self.another.take() {
            Handle::current().block_on(store.put(&[row])).expect("it is written");
        }
    }
    fn trouble(&mut self, _: &Trouble) {}
    fn reject(&mut self, reject: &Reject) -> Result<()> {
        self.reasons.push(reject.reason.clone());
        Ok(())
    }
    fn rejected_bytes(&mut self) -> Result<u64> {
        match &mut self.batches {
            Some(0) => Err(Error::new(ErrorKind::Io, "broken off")),
            Some(left) => {
                *left -= 1;
                Ok(0)
            }
            None => Ok(0),
        }
    }
}

async fn copied(
    source: Source,
    target: Target,
    set: impl FnOnce(&mut Options),
    mut watcher: Watcher,
) -> Result<(Copied, Vec<String>)> {
    let mut options = Options::new(source.form(), target.form());
    set(&mut options);
    let run = move || {
        let done = copy::copy(source, target, &options, &mut watcher)?;
        Ok((done, watcher.reasons))
    };
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

fn from_store(store: &Arc<dyn Store>) -> Source {
    let runtime = Handle::current();
    Source::Store(FromStore { store: store.clone(), name: "source".into(), part: None, runtime })
}

fn to_store(store: &Arc<dyn Store>) -> ToStore {
    ToStore {
        store: store.clone(),
        name: "target".into(),
        indexes: Vec::new(),
        batch: None,
        verify: true,
        journal: None,
        shared: false,
        runtime: Handle::current(),
    }
}

/// Copies records into a store; gives why some were rejected, too.
pub(super) async fn copied_rows(
    rows: &[Row],
    to: &Arc<dyn Store>,
    verify: bool,
) -> Result<(Copied, Vec<String>)> {
    let from = open("memory:").await?.store().clone();
    from.prepare(&Layout::plain()).await?;
    from.put(rows).await?;
    let target = Target::Store(Box::new(ToStore { verify, ..to_store(to) }));
    copied(from_store(&from), target, |_| (), Watcher::default()).await
}

fn from_file(path: &Path, format: &Wrapped) -> Result<Source> {
    let reading = Reading { format: Some(format.clone()), ..Reading::default() };
    Ok(Source::File(Box::new(Frames::open(path.to_str().expect("text"), &reading)?)))
}

fn to_file(path: &Path, format: &Wrapped) -> Result<Target> {
    let writing = Writing { format: Some(format.clone()), ..Writing::default() };
    Ok(Target::File(Box::new(Sink::create(path.to_str().expect("text"), &writing)?)))
}

/// All that is in a store, by key; none where it cannot list what it has.
async fn contents(store: &dyn Store) -> Result<Option<BTreeMap<Key, Document>>, Fault> {
    match store.scan(&KeyRange::all()).await {
        Ok(rows) => {
            let rows: Vec<Row> = one_by_one(rows).try_collect().await?;
            Ok(Some(rows.into_iter().map(|row| (row.key, row.record)).collect()))
        }
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Records that lie in every layout and every format.
fn plain() -> Vec<Row> {
    let record = |i: usize, key: &str| {
        let text = format!("number {i}, \"quoted\"\nand more");
        Document::from_iter([("id", Value::from(key)), ("text", Value::from(&*text))])
    };
    let rows = KEYS.iter().enumerate();
    rows.map(|(i, key)| Row { key: Key::new(*key).unwrap(), record: record(i, key) }).collect()
}

/// Documents, some of them with fields whose names are those of keys.
fn documents() -> Vec<Row> {
    let inner = Document::from_iter([("_key", Value::Int(1)), ("id", "x".into())]);
    let records = [
        Document::from_iter([("id", Value::Int(7)), ("n", Value::Float(0.5))]),
        Document::from_iter([("_key", Value::from("own")), ("n", 1.into())]),
        Document::from_iter([("n", Value::Int(1)), ("_key", Value::from("own"))]),
        Document::from_iter([("_key", Value::Int(5)), ("id", Value::Int(5))]),
        Document::from_iter([("_key", Value::from("e5")), ("id", "e5".into())]),
        Document::from_iter([("inner", Value::Map(inner))]),
        Document::from_iter([("list", Value::List(vec![1.into(), "a".into(), true.into()]))]),
        Document::from_iter([("leader", Value::from("no MARC record")), ("fields", 3.into())]),
    ];
    let rows = records.into_iter().enumerate();
    rows.map(|(i, record)| Row { key: Key::new(format!("e{i}")).unwrap(), record }).collect()
}

/// MARC records as documents: with the key in 001, with another there, and without.
fn catalogue() -> Vec<Row> {
    let records = [("10", Some("10")), ("b", Some("11")), ("c", None), ("d", Some(" d "))];
    let row = |(key, number): (&str, Option<&str>)| {
        let mut record = Record::new();
        if let Some(number) = number {
            record.push_plain(*b"001", number.as_bytes()).unwrap();
        }
        record.push_data(*b"245", *b"10", &[(b'a', "Wägen".as_bytes())]).unwrap();
        let Value::Map(record) = to_value(&record).unwrap() else { panic!("no map") };
        Row { key: Key::new(key).unwrap(), record }
    };
    records.map(row).to_vec()
}

/// Store, file, store: in every format that holds documents.
async fn there_and_back(subject: Arc<Subject>) -> Outcome {
    let folder = tempfile::tempdir().map_err(Fault::new)?;
    for (what, rows) in [("plain", plain()), ("documents", documents()), ("MARC", catalogue())] {
        let columns = subject.shape() == Shape::Columns;
        if columns && what != "plain" {
            continue;
        }
        let from = subject.ready(&rows).await?;
        let held: Vec<Row> = rows.into_iter().filter(|row| from.store.check(row).is_ok()).collect();
        from.store.put(&held).await?;
        let Some(want) = contents(&*from.store).await? else { return from.done().await };
        ensure!(want.len() == held.len(), "{what}: {} of {} there", want.len(), held.len());
        ensure!(what != "plain" || held.len() > 10, "{what}: only {} are held", held.len());
        for &format in Format::ALL {
            let rows_only = format.info().takes == Takes::Rows;
            if format.info().takes == Takes::Marc || (rows_only && what != "plain") {
                continue;
            }
            let name = format!("{what} through {}", format.name());
            let (path, format) = (folder.path().join(format.name()), Wrapped::from(format));
            let out = to_file(&path, &format)?;
            let (out, reasons) =
                copied(from_store(&from.store), out, |_| (), Watcher::default()).await?;
            ensure!(reasons.is_empty() && !out.kept_old, "{name}: {out:?}: {reasons:?}");
            let to = subject.open("").await?;
            let target = Target::Store(Box::new(to_store(&to.store)));
            let source = from_file(&path, &format)?;
            let (back, reasons) = copied(source, target, |_| (), Watcher::default()).await?;
            ensure!(reasons.is_empty(), "{name}: {back:?}: {reasons:?}");
            let found = contents(&*to.store).await?.unwrap_or_default();
            ensure!(
                found.keys().eq(want.keys()),
                "{name}: keys {:?} became {:?}",
                want.keys(),
                found.keys()
            );
            let both: Vec<Kind> = (to.store.abilities().keeps.iter().copied())
                .filter(|kind| format.format.info().keeps.contains(kind))
                .collect();
            for (key, record) in &want {
                let difference = difference(record, &found[key], &both);
                ensure!(difference.is_none(), "{name}: {}: {difference:?}", key.shown());
            }
            to.done().await?;
        }
        from.done().await?;
    }
    Ok(())
}

/// So many records make three batches of a file.
const COUNT: usize = 220;

/// The number of the key of each record: twice in a batch, in neighbouring ones, far apart.
fn number(i: usize) -> usize {
    match i {
        11 => 10,
        12 => 10,
        70 => 60,
        150.. => i - 150,
        _ => i,
    }
}

fn key(number: usize) -> Key {
    Key::new(format!("k{number}")).unwrap()
}

fn repeating(n: usize) -> Document {
    let fields = [
        ("id", Value::from(&*key(number(n)).to_string())),
        ("n", Value::Int(n as i64)),
        ("text", Value::from("x".repeat(2000).as_str())),
    ];
    Document::from_iter(fields)
}

/// What is there in the end, one record after another.
fn expected(rule: OnDuplicate) -> BTreeMap<Key, Document> {
    let mut there = BTreeMap::new();
    for n in 0..COUNT {
        let key = key(number(n));
        if rule == OnDuplicate::Last || !there.contains_key(&key) {
            there.insert(key, repeating(n));
        }
    }
    there
}

async fn duplicates(subject: Arc<Subject>) -> Outcome {
    let folder = tempfile::tempdir().map_err(Fault::new)?;
    let path = folder.path().join("repeating.json");
    let mut lines = Vec::new();
    for n in 0..COUNT {
        Format::Json.encode(&repeating(n), &mut lines)?;
        lines.push(b'\n');
    }
    std::fs::write(&path, lines).map_err(Fault::new)?;
    let json = Wrapped::from(Format::Json);
    for rule in OnDuplicate::ALL {
        for way in ["at once", "seven at a time", "beside others", "with others", "resumed"] {
            let what = format!("{rule}, {way}");
            let fresh = subject.open("").await?;
            let before = Row { key: key(3), record: repeating(1000) };
            let other = Row { key: Key::new("other").unwrap(), record: repeating(1001) };
            let beside = way == "beside others";
            if beside {
                let layout = places::layout(fresh.store.shape(), std::slice::from_ref(&other))?;
                fresh.store.prepare(&layout).await?;
                fresh.store.put(&[before, other.clone()]).await?;
            }
            let begin = |watcher: Watcher| {
                let mut to = to_store(&fresh.store);
                to.batch = ["seven at a time", "with others"].contains(&way).then_some(7);
                if way == "resumed" {
                    let text = String::from("the same");
                    let errand =
                        Errand { source: text.clone(), target: text.clone(), options: text };
                    to.journal = Some(Journal::open(&folder.path().join("journal"), &errand)?);
                }
                let set = |options: &mut Options| {
                    options.key = "id".parse().expect("a field");
                    options.on_duplicate = rule;
                };
                let target = Target::Store(Box::new(to));
                Ok::<_, Error>(copied(from_file(&path, &json)?, target, set, watcher))
            };
            if way == "resumed" {
                for batches in 0..2 {
                    let watcher = Watcher { batches: Some(batches), ..Watcher::default() };
                    let ended = begin(watcher)?.await;
                    ensure!(
                        ended.is_err_and(|e| e.to_string().contains("broken off")),
                        "{what}: it was not broken off"
                    );
                }
            }
            let another = (way == "with others").then(|| (fresh.store.clone(), other.clone()));
            let (done, reasons) = begin(Watcher { another, ..Watcher::default() })?.await?;
            let mut want = expected(rule);
            let (kept, counts) = (want.len() as u64, done.counts);
            let gone = COUNT as u64 - kept;
            let wanted = match rule {
                OnDuplicate::Reject => (gone, 0),
                _ => (0, gone),
            };
            let found = (counts.rejected, counts.duplicates);
            ensure!(found == wanted && counts.written == kept, "{what}: {counts}");
            ensure!(counts.verified >= kept, "{what}: only {} verified", counts.verified);
            let named = reasons.iter().all(|reason| reason.contains("duplicate key"));
            ensure!(named, "{what}: {reasons:?}");
            if beside || way == "with others" {
                want.insert(other.key.clone(), other.record.clone());
            }
            let keys: Vec<Key> = want.keys().cloned().collect();
            let there = fresh.store.get(&keys).await?;
            for ((key, record), there) in want.iter().zip(there) {
                let n = there.as_ref().and_then(|record| record.get("n")).cloned();
                ensure!(
                    n.as_ref() == record.get("n"),
                    "{what}: {} is {n:?} instead of {:?}",
                    key.shown(),
                    record.get("n")
                );
            }
            fresh.done().await?;
        }
    }
    Ok(())
}

#[test]
fn store_file_store_is_the_identity() {
    places::each(Wrap::Bare, there_and_back);
}

#[test]
fn one_rule_decides_about_equal_keys_whatever_lies_between_them() {
    places::each(Wrap::Bare, duplicates);
}

/// MARC records with keys of their own go through formats for MARC only as far as those hold them.
#[test]
fn formats_for_marc_hold_the_key_in_001_or_refuse() {
    places::run(async {
        let folder = tempfile::tempdir().unwrap();
        for marc in ["marc21", "marcxml", "line"] {
            let format: Wrapped = marc.parse().unwrap();
            let store = steelyard::open("memory:").await.unwrap().store().clone();
            store.put(&catalogue()).await.unwrap();
            let path = folder.path().join(marc);
            let target = to_file(&path, &format).unwrap();
            let (done, reasons) =
                copied(from_store(&store), target, |_| (), Watcher::default()).await.unwrap();
            assert_eq!((done.counts.written, done.counts.rejected), (2, 2), "{marc}: {reasons:?}");
            assert!(reasons.iter().all(|r| r.contains("is not its 001")), "{reasons:?}");
            let back = steelyard::open("memory:").await.unwrap().store().clone();
            let target = Target::Store(Box::new(to_store(&back)));
            let source = from_file(&path, &format).unwrap();
            copied(source, target, |_| (), Watcher::default()).await.unwrap();
            let there = contents(&*back).await.unwrap().unwrap();
            assert_eq!(there.keys().map(Key::as_str).collect::<Vec<_>>(), ["10", "d"]);
            // Without keys, all go.
            let target = to_file(&path, &format).unwrap();
            let without = |options: &mut Options| options.keys = false;
            let (done, _) =
                copied(from_store(&store), target, without, Watcher::default()).await.unwrap();
            assert_eq!(done.counts.written, 4, "{marc}");
        }
    });
}

/// The field that --key names is not written a second time, and has to be right.
#[test]
fn a_key_that_a_field_gives_is_not_written_beside_it() {
    places::run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = steelyard::open("memory:").await.unwrap().store().clone();
        let row = |key: &str, id: Value| Row {
            key: Key::new(key).unwrap(),
            record: Document::from_iter([("id", id)]),
        };
        store.put(&[row("7", 7.into()), row("8", 9.into())]).await.unwrap();
        let path = folder.path().join("a");
        let by = |key: KeyRule| move |options: &mut Options| options.key = key;
        let json = Wrapped::from(Format::Json);
        let target = to_file(&path, &json).unwrap();
        let rule = by("id".parse().unwrap());
        let (done, reasons) =
            copied(from_store(&store), target, rule, Watcher::default()).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"id\":7}\n");
        assert_eq!((done.counts.written, reasons.len()), (1, 1));
        assert!(reasons[0].contains("its key \"8\" is not what id gives"), "{reasons:?}");
    });
}
