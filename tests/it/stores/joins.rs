//! A join answers in every store that has one what it answers in memory: owners and what belongs to
//! them, with keys and names that are told apart with difficulty. A store that has none refuses.

use std::sync::Arc;

use steelyard::{
    ErrorKind,
    record::{Document, Value},
    store::{Filter, Index, Join, Joined, Key, Layout, Row, Shape, query::Test},
};

use super::places::{self, Fault, Outcome, Subject, Wrap, ensure};

fn key(text: &str) -> Key {
    Key::new(text).expect("not empty")
}

/// Keys of owners: some differ in case, in a space at the end, after 200 characters, in quotes.
fn owners() -> Vec<String> {
    let long = "k".repeat(200);
    let mut keys: Vec<String> =
        ["0", "1", "01", "a", "A", "ä", "a\u{308}", "o'b", "o\"b", "o`b", "$1", "%", "3.0", "x y"]
            .map(str::to_owned)
            .into();
    keys.extend([long.clone(), format!("{long}1"), "k".repeat(191), "k".repeat(190)]);
    keys
}

/// Names of fields that have to be quoted, and one that does not.
const FIELDS: [&str; 3] = ["owner", "o w'n\"er", "group"];

fn rows(shape: Shape, field: &str) -> (Vec<Row>, Vec<Row>) {
    let keys = owners();
    let owner = |(i, text): (usize, &String)| Row {
        key: key(text),
        record: Document::from_iter([
            ("n", Value::Int(i as i64)),
            ("town", Value::from(["Lübeck", "Bergen"][i % 2])),
        ]),
    };
    let own: Vec<Row> = keys.iter().enumerate().map(owner).collect();
    let mut others = Vec::new();
    for (i, text) in keys.iter().enumerate() {
        // The first owner has none.
        for n in 0..i % 6 {
            let mut record = Document::from_iter([(field, Value::from(text.as_str()))]);
            record.push("town", Value::from(["Lübeck", "London"][n % 2]));
            record.push("same", Value::from(format!("{}", n % 3).as_str()));
            others.push(Row { key: key(&format!("pet {i} {n}")), record });
        }
    }
    // What belongs to nobody: another owner, and no text at all.
    let stray = |name: &str, value: Option<Value>| {
        let mut record = Document::from_iter([("same", Value::from("1"))]);
        if let Some(value) = value {
            record.insert(field, value);
        }
        Row { key: key(name), record }
    };
    others.push(stray("stray", Some(Value::from("nobody"))));
    others.push(stray("lonely", None));
    if shape == Shape::Document {
        others.push(stray("number", Some(Value::Int(1))));
        others.push(stray("list", Some(Value::List(vec![Value::from("1")]))));
        others.push(stray("null", Some(Value::Null)));
    }
    (own, others)
}

fn join(filter: Filter, on: &str, table: &str, field: &str) -> Join {
    let path = |name: &str| steelyard::store::query::Path::new([name]);
    Join { filter, on: path(on), table: table.into(), field: path(field) }
}

/// In an order of its own, as none is promised.
fn sorted(mut all: Vec<Joined>) -> Vec<Joined> {
    all.iter_mut().for_each(|one| one.others.sort_by(|a, b| a.key.cmp(&b.key)));
    all.sort_by(|a, b| a.row.key.cmp(&b.row.key));
    // Names of some stores lose their order.
    let fields = |row: &mut Row| {
        let mut all: Vec<_> = row.record.iter().map(|(n, v)| (n.to_owned(), v.clone())).collect();
        all.retain(|(_, value)| *value != Value::Null);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        row.record = Document::from_iter(all);
    };
    for one in &mut all {
        fields(&mut one.row);
        one.others.iter_mut().for_each(fields);
    }
    all
}

fn joins(field: &str, other: &str, own: &str) -> Vec<(Arc<str>, bool, Join)> {
    let test = |name: &str, test| Filter::Field(steelyard::store::query::Path::new([name]), test);
    let mut all: Vec<(Arc<str>, bool, Join)> = Vec::new();
    for text in owners() {
        let filter = test("_key", Test::Eq(Value::from(text.as_str())));
        all.push((format!("of {text:?}").into(), true, join(filter, "_key", other, field)));
    }
    let town = test("town", Test::Eq(Value::from("Lübeck")));
    let few = test("n", Test::Lt(Value::Int(5)));
    all.push(("of all".into(), true, join(Filter::All, "_key", other, field)));
    all.push(("of a town".into(), true, join(town.clone().and(few), "_key", other, field)));
    all.push(("by town".into(), true, join(Filter::All, "town", other, "town")));
    all.push(("by what is not there".into(), true, join(Filter::All, "none", other, field)));
    all.push(("by a number".into(), true, join(Filter::All, "n", other, field)));
    all.push(("from a field to keys".into(), false, join(town.clone(), field, own, "_key")));
    all.push(("with itself".into(), false, join(town, "same", other, "same")));
    all
}

async fn compared(subject: Arc<Subject>) -> Outcome {
    let shape = subject.shape();
    let fresh = subject.open("").await?;
    let store = &*fresh.store;
    if !store.abilities().joins {
        let asked = join(Filter::All, "_key", "other", "owner");
        let Err(error) = store.join(&asked).await else {
            return Err(Fault::new("a join, which it says it cannot"));
        };
        ensure!(error.kind() == ErrorKind::Unsupported, "{error:?}");
        return Ok(());
    }
    let memory = steelyard::store::open("memory:").await?;
    for field in FIELDS {
        for indexed in [false, true] {
            let (own, others) = rows(shape, field);
            let names = [places::name("own"), places::name("other")];
            let mut tables = Vec::new();
            for (name, rows) in names.iter().zip([&own, &others]) {
                let (table, meaning) = (store.table(name)?, memory.table(name)?);
                let mut layout: Layout = places::layout(shape, rows)?;
                if indexed && *name == names[1] {
                    let path = steelyard::store::query::Path::new([field]);
                    layout.indexes.push(Index { path, kind: steelyard::record::Kind::Text });
                }
                table.prepare(&layout).await?;
                table.load(rows).await?;
                meaning.put(rows).await?;
                tables.push((table, meaning));
            }
            for (what, from_own, join) in joins(field, &names[1], &names[0]) {
                let (table, meaning) = &tables[usize::from(!from_own)];
                let (found, want) = (table.join(&join).await?, meaning.join(&join).await?);
                let (found, want) = (sorted(found), sorted(want));
                ensure!(
                    found == want,
                    "{field:?}, indexed {indexed}, {what}: {found:?} instead of {want:?}"
                );
            }
            for (table, meaning) in &tables {
                table.drop_table().await?;
                meaning.drop_table().await?;
            }
        }
    }
    fresh.done().await
}

#[test]
fn joins_answer_what_memory_answers() {
    places::each(Wrap::Bare, compared);
}

#[test]
fn joins_pass_replicas() {
    places::each(Wrap::Replicas, compared);
}

#[test]
fn prefixes_and_shards_refuse_joins() {
    places::each(Wrap::Prefix, compared);
    places::each(Wrap::Shards, compared);
}

/// There is more than refusals.
#[test]
fn those_that_should_can() {
    places::each(Wrap::Bare, |subject| async move {
        let can = ["sqlite", "mysql", "postgres", "mongodb", "memory"];
        let meant = can.contains(&subject.driver()) && subject.shape() != Shape::Blob;
        let can = subject.open("").await?.store.abilities().joins;
        ensure!(can == meant, "{}: {can}", subject.name);
        Ok(())
    });
}

#[test]
fn too_many_at_once_are_refused() {
    places::run(async {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("many.db").display());
        for place in ["memory:", &url] {
            let place = steelyard::store::open(place).await.unwrap();
            let row = |i: usize| Row {
                key: key(&format!("{i}")),
                record: Document::from_iter([("same", "x")]),
            };
            let rows: Vec<Row> = (0..101).map(row).collect();
            place.prepare(&Layout::plain()).await.unwrap();
            place.put(&rows).await.unwrap();
            let table = "records";
            let all = place.join(&join(Filter::All, "same", table, "same")).await;
            assert_eq!(all.unwrap_err().kind(), ErrorKind::TooLarge);
            let key = Filter::Field("_key".parse().unwrap(), Test::Eq("7".into()));
            let one = place.join(&join(key, "same", table, "same")).await.unwrap();
            assert_eq!((one.len(), one[0].others.len()), (1, 101));
        }
    });
}
