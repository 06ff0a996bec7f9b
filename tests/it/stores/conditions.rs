//! Conditions mean the same whoever answers: the store, or steelyard, which goes through the records.

use std::sync::Arc;

use futures_util::TryStreamExt;
use steelyard::{
    marc::Record,
    record::{
        self, Document, Value,
        dataset::{catalogue::Catalogue, random::Random},
    },
    store::{
        Column, Filter, Key, Layout, Query, Row, Shape, Store, one_by_one,
        query::{self, Condition, Matcher, Test},
    },
};

use super::places::{self, Fault, Outcome, Subject, Wrap, ensure};

/// Tests of documents; each with parts that stores answer, that they do not, and both.
const TESTS: [&str; 31] = [
    "n>=30",
    "n<70",
    "n=41",
    "n in (1, 2, 41, 77)",
    "text=\"number 7\"",
    "text~\"er 4\"",
    "text!~\"er 4\"",
    "text~\"NUMBER 1\"i",
    "text=\"NUMBER 12\"i",
    "text~/ [13579]$/",
    "text~/NUMBER 2/i",
    "text^=\"number 3\"",
    "text!^=\"number 3\"",
    "text^=\"Number 3\"i",
    "len(text)=8",
    "len(text)>8",
    "count(text)=1",
    "count(none)=0",
    "none",
    "!none",
    "none~x",
    "none!~x",
    "_key~5",
    "_key^=k01",
    "_key in (k007, \"k008\", k999)",
    "_key not in (k007)",
    "at<time(2009-02-14)",
    "at>=time(2009-02-13T23:31:30.5Z)",
    "at=time(2009-02-14T00:31:30+01:00)",
    "at!=time(2009-02-13T23:31:30Z)",
    "n>=30 and at>time(2009-02-13T23:31:30Z)",
];

/// Texts of times as steelyard and as others write them, and others.
const MOMENTS: [&str; 6] = [
    "2009-02-13T23:31:30Z",
    "2009-02-13T23:31:30.500Z",
    "2009-02-14T00:31:30+01:00",
    "2009-02-14T09:00:00Z",
    "07",
    "1999 or so",
];

/// A condition of one to four tests.
fn condition(random: &mut Random) -> String {
    let one = |random: &mut Random| {
        let test = TESTS[random.below(TESTS.len() as u32) as usize];
        if random.chance(0.2) { format!("not {test}") } else { test.to_owned() }
    };
    let mut text = one(random);
    for _ in 0..random.below(4) {
        let word = if random.chance(0.6) { "and" } else { "or" };
        text = match random.chance(0.3) {
            true => format!("({text}) {word} {}", one(random)),
            false => format!("{text} {word} {}", one(random)),
        };
    }
    text
}

fn rows() -> Vec<Row> {
    let row = |n: i64| {
        let at = MOMENTS[n as usize % MOMENTS.len()];
        let fields = [
            ("n", Value::Int(n)),
            ("text", Value::from(format!("number {n}"))),
            ("at", Value::from(at)),
        ];
        Row {
            key: Key::new(format!("k{n:03}")).expect("not empty"),
            record: Document::from_iter(fields),
        }
    };
    (0..90).map(row).collect()
}

async fn found(store: &dyn Store, query: &Query) -> Result<Vec<Key>, Fault> {
    let rows: Vec<Row> = one_by_one(query::find(store, query).await?.rows).try_collect().await?;
    let mut keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
    keys.sort();
    Ok(keys)
}

async fn of_documents(subject: Arc<Subject>, seed: u64) -> Outcome {
    let mut rows = rows();
    let layout = match subject.shape() {
        Shape::Columns => {
            let columns = Column::infer(rows.iter().map(|row| &row.record))?;
            Layout::plain().with_columns(columns)
        }
        _ => Layout::plain(),
    };
    let fresh = subject.open("").await?;
    let store = &*fresh.store;
    store.prepare(&layout).await?;
    store.load(&rows).await?;
    // A name that could be a tag is asked of the store where no MARC record is.
    let plain = Filter::field("SKU", Test::Eq(7.into()))?;
    let asked = Condition::for_store(&["SKU=7".parse()?], store).await?;
    let can = store.abilities().can(&Query::new(plain.clone())).is_ok();
    ensure!(asked == plain || !can, "{asked}");
    for number in 0..60 {
        let text = condition(&mut Random::new(seed, 9, number));
        let filter = Condition::for_store(&[text.parse()?], store).await?;
        let mut query = Query::new(filter);
        let matcher = Matcher::new(query.filter.clone(), store.abilities().compared());
        let want: Vec<Key> = rows
            .iter()
            .filter(|row| matcher.fits(Some(&row.key), &row.record))
            .map(|row| row.key.clone())
            .collect();
        let keys = found(store, &query).await?;
        ensure!(keys == want, "{text}: {keys:?} instead of {want:?}");
        query.limit = Some(7);
        let some = found(store, &query).await?;
        let fits = some.iter().all(|key| want.contains(key));
        ensure!(fits && some.len() == want.len().min(7), "{text}, at most 7: {some:?}");
        // What is found is deleted, if it is little, and nothing else.
        if number % 5 == 0 && want.len() < 10 {
            let (deleted, _) = query::delete(store, &query.filter).await?;
            ensure!(deleted == want.len() as u64, "{text}: {deleted} of {} deleted", want.len());
            rows.retain(|row| !want.contains(&row.key));
            let left = found(store, &Query::new(Filter::All)).await?;
            ensure!(left.len() == rows.len(), "{text} left {} of {}", left.len(), rows.len());
        }
    }
    fresh.done().await
}

/// Tests of MARC records that some of the sample catalogue fit.
const MARC: [&str; 12] = [
    "650a~a",
    "count(650)>1",
    "count(650)=0 or 245/ind2=0",
    "008/35-37=eng and not 650x",
    "245a~/^[A-M]/ and len(245a)>20",
    "LDR/06=a",
    "!100 or 100a~\"A\"i",
    "650[2]a",
    "_key~1 and 245",
    "!880",
    "245a!~\"zzz\"",
    "245/ind1!=9",
];

async fn of_catalogues(subject: Arc<Subject>) -> Outcome {
    if subject.shape() == Shape::Columns {
        return Ok(());
    }
    let fresh = subject.open("").await?;
    let store = &*fresh.store;
    let catalogue = Catalogue::new(3).oddities(false);
    let records: Vec<Record> = (0..40).map(|number| catalogue.record(number)).collect();
    let row = |(i, record): (usize, &Record)| {
        let Value::Map(record) = record::to_value(&record.as_ref()).expect("a value") else {
            unreachable!("a MARC record is a map")
        };
        Row { key: Key::new(format!("{i:03}")).expect("not empty"), record }
    };
    let mut rows: Vec<Row> = records.iter().enumerate().map(row).collect();
    // What is no MARC record lies among them, before all others too.
    let other = |key: &str| Row {
        key: Key::new(key).expect("not empty"),
        record: Document::from_iter([("note", "no record of a catalogue")]),
    };
    rows.extend(["!", "015x", "~"].map(other));
    store.prepare(&Layout::plain()).await?;
    if rows.iter().any(|row| store.check(row).is_err()) {
        // It holds no lists.
        return fresh.done().await;
    }
    store.load(&rows).await?;
    for text in MARC {
        let condition: Condition = text.parse()?;
        let filter = Condition::for_store(std::slice::from_ref(&condition), store).await?;
        let marc = condition.marc_filter()?;
        let documents = condition.filter();
        let fits = |(i, row): (usize, &Row)| {
            let fits = match (records.get(i), &documents) {
                (Some(record), _) => marc.fits_marc(Some(&row.key), record.as_ref()),
                (None, Ok(filter)) => filter.fits_document(Some(&row.key), &row.record),
                // It is for MARC records only.
                (None, Err(_)) => false,
            };
            fits.then(|| row.key.clone())
        };
        let mut want: Vec<Key> = rows.iter().enumerate().filter_map(fits).collect();
        want.sort();
        ensure!(!want.is_empty(), "{text}: none of the sample fits");
        let keys = found(store, &Query::new(filter)).await?;
        ensure!(keys == want, "{text}: {keys:?} instead of {want:?}");
    }
    // What is deleted is what is found.
    let filter = Condition::for_store(&["!245".parse()?], store).await?;
    let (deleted, _) = query::delete(store, &filter).await?;
    let left = found(store, &Query::new(Filter::All)).await?.len();
    ensure!(
        deleted + left as u64 == rows.len() as u64 && left >= 30,
        "{deleted} deleted, {left} left"
    );
    fresh.done().await
}

#[test]
fn conditions_mean_the_same_in_every_store() {
    let seed = places::seed("conditions");
    places::each(Wrap::Bare, |subject| of_documents(subject, seed));
}

#[test]
fn conditions_mean_the_same_in_all_wrappers() {
    let seed = places::seed("conditions");
    places::each(Wrap::All, |subject| of_documents(subject, seed));
}

#[test]
fn conditions_on_catalogues_mean_the_same_in_every_store() {
    places::each(Wrap::Bare, of_catalogues);
}
