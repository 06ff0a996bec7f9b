//! What is special about MongoDB as a store, on a real server: BSON's own kinds, its limits, its
//! errors, and what happens when the server does not answer.

mod lying;
mod queries;
mod trouble;

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use bson::{Bson, doc, spec::BinarySubtype};
use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind,
    durability::Tier,
    format::Format,
    record::{Document, Time, Value, dataset::Dataset},
    server::{self, Server, Wish},
    store::{self, Key, KeyRange, Layout, Place, Query, Row, one_by_one},
};

use crate::programs::{self, Missing, Need, need};

/// A server of one's own.
fn start() -> Need<Server> {
    // MongoDB's own where there is one.
    let own = server::named("mongodb").is_ok_and(|program| program.find().is_some());
    programs::server(if own { "mongodb" } else { "ferretdb" }, &Wish::default())
}

/// The server that most tests share, each with tables of its own.
static SHARED: LazyLock<Need<Server>> = LazyLock::new(start);

fn shared() -> Need<&'static Server> {
    SHARED.as_ref().map_err(Missing::clone)
}

/// The URL of the shared server, with options.
fn url(options: &str) -> Need<String> {
    Ok(format!("{}?{options}", shared()?.url()))
}

async fn open(options: &str) -> Need<Place> {
    let place = store::open(&url(options)?).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    Ok(place)
}

/// The same collection by the plain client.
async fn plain(place: &str) -> mongodb::Collection<bson::Document> {
    let client = mongodb::Client::with_uri_str(SHARED.as_ref().unwrap().url()).await.unwrap();
    client.database("test").collection(place)
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn row<V: Into<Value>>(text: &str, fields: impl IntoIterator<Item = (&'static str, V)>) -> Row {
    Row { key: key(text), record: Document::from_iter(fields) }
}

async fn all(place: &Place) -> Vec<Row> {
    one_by_one(place.scan(&KeyRange::all()).await.unwrap()).try_collect().await.unwrap()
}

/// One value of every kind that BSON has, and its type there.
fn kinds() -> Vec<(&'static str, Value, &'static str)> {
    let map = Document::from_iter([("b", Value::Int(1)), ("a", Value::List(vec![]))]);
    let oid = Document::from_iter([("$oid", "65a1b2c3d4e5f60718293a4b")]);
    vec![
        ("null", Value::Null, "null"),
        ("bool", Value::Bool(true), "bool"),
        ("int", Value::Int(i64::MIN), "long"),
        ("small int", Value::Int(1), "long"),
        ("float", Value::Float(-0.0), "double"),
        ("no number", Value::Float(f64::NAN), "double"),
        ("text", Value::from("NUL \0, ü, 😀"), "string"),
        ("bytes", Value::Bytes(vec![0, 255, 10]), "binData"),
        ("time", Value::Time(Time::from_unix(-5, 123_000_000).unwrap()), "date"),
        ("decimal", Value::Decimal("-12.50".into()), "decimal"),
        ("list", Value::List(vec![Value::Int(1), Value::Null, Value::Map(map.clone())]), "array"),
        ("map", Value::Map(map), "object"),
        ("object id", Value::Map(oid), "objectId"),
    ]
}

#[tokio::test]
async fn every_kind_is_bsons_own_and_comes_back() {
    let place = need!(open("table=kinds").await);
    let kinds = kinds();
    let fields = kinds.iter().map(|(name, value, _)| (*name, value.clone()));
    let whole = row("whole", fields);
    place.load(std::slice::from_ref(&whole)).await.unwrap();
    assert_eq!(place.get(&[key("whole")]).await.unwrap(), [Some(whole.record.clone())]);
    assert_eq!(all(&place).await, std::slice::from_ref(&whole));
    place.put(std::slice::from_ref(&whole)).await.unwrap();
    assert_eq!(all(&place).await, [whole]);

    let collection = plain("kinds").await;
    for (name, _, kind) in kinds {
        // An array is one by itself, whatever it holds.
        let found = collection.count_documents(doc! {name: {"$type": kind}}).await.unwrap();
        assert_eq!(found, 1, "{name} is no {kind}");
    }
    let stored = collection.find_one(doc! {}).await.unwrap().unwrap();
    assert_eq!(stored.iter().next().unwrap(), (&"_id".to_owned(), &Bson::from("whole")));
}

/// A view is none, nor is what MongoDB keeps for itself or `table` does not open.
#[tokio::test]
async fn tables_are_the_collections_of_the_database() {
    let server = need!(shared());
    let client = mongodb::Client::with_uri_str(server.url()).await.unwrap();
    let database = client.database("listing");
    for name in ["b", "C ü", "a.b"] {
        database.create_collection(name).await.unwrap();
    }
    client.database("listing_other").create_collection("elsewhere").await.unwrap();
    database.run_command(doc! {"create": "seen", "viewOn": "b", "pipeline": []}).await.unwrap();
    let mut want = vec!["C ü", "a.b", "b"];
    // FerretDB has no views, and makes a collection of it.
    let seen = database.list_collections().filter(doc! {"name": "seen"}).await.unwrap();
    let seen: Vec<_> = seen.try_collect().await.unwrap();
    if seen[0].collection_type == mongodb::results::CollectionType::Collection {
        want.push("seen");
    }
    let (base, _) = server.url().rsplit_once('/').unwrap();
    let url = format!("{base}/listing?authSource=test");
    let place = store::open(&url).await.unwrap();
    assert_eq!(place.tables().await.unwrap(), want);
    // More than a server sends at once.
    for n in 0..150 {
        database.create_collection(format!("many{n:03}")).await.unwrap();
    }
    let names = place.tables().await.unwrap();
    assert_eq!(names.len(), want.len() + 150);
    assert!(names.is_sorted(), "{names:?}");
}

#[tokio::test]
async fn blobs_are_binary_and_no_base64() {
    let place = need!(open("table=blobs&format=marshal").await);
    let some = row("k", [("text", "herring"), ("more", "salt")]);
    place.load(std::slice::from_ref(&some)).await.unwrap();
    place.put(&[row("put", [("n", 1i64)])]).await.unwrap();
    assert_eq!(place.get(&[key("k")]).await.unwrap(), [Some(some.record.clone())]);

    let mut bytes = Vec::new();
    Format::Marshal.encode(&some.record, &mut bytes).unwrap();
    let collection = plain("blobs").await;
    let stored = collection.find_one(doc! {"_id": "k"}).await.unwrap().unwrap();
    let binary = bson::Binary { subtype: BinarySubtype::Generic, bytes };
    assert_eq!(stored, doc! {"_id": "k", "v": Bson::Binary(binary)});
    let binaries = collection.count_documents(doc! {"v": {"$type": "binData"}}).await.unwrap();
    assert_eq!(binaries, 2);

    // And a blob that another program wrote.
    let theirs = bson::Binary {
        subtype: BinarySubtype::Generic,
        bytes: b"\x04\x08{\x06I\"\x06a\x06:\x06ETi\x06".into(),
    };
    collection.insert_one(doc! {"_id": "theirs", "v": theirs}).await.unwrap();
    let record = place.get(&[key("theirs")]).await.unwrap().remove(0).unwrap();
    assert_eq!(record, Document::from_iter([("a", 1i64)]));
}

#[tokio::test]
async fn what_cannot_be_held_is_refused_before_anything_is_written() {
    let place = need!(open("table=refused").await);
    let deep = (0..120)
        .fold(Value::Int(1), |inner, _| Value::Map(Document::from_iter([("deeper", inner)])));
    let decimal = "0.1234567890123456789012345678901234567890";
    for (bad, kind, want) in [
        (row("x", [("v", Value::Bytes(vec![7; 17_000_000]))]), ErrorKind::TooLarge, "17000"),
        (
            row("x", [("v", Value::BigInt("99999999999999999999".into()))]),
            ErrorKind::Unsupported,
            "beyond 64 bits",
        ),
        (row("x", [("v", Value::Decimal(decimal.into()))]), ErrorKind::Unsupported, "34 digits"),
        (
            row("x", [("v", Value::Time(Time::from_unix(1, 1).unwrap()))]),
            ErrorKind::Unsupported,
            "millisecond",
        ),
        (row("x", [("$where", "1")]), ErrorKind::Invalid, "begins with $"),
        (
            row("x", [("v", Value::Map(Document::from_iter([("$gt", 1i64)])))]),
            ErrorKind::Invalid,
            "v.$gt",
        ),
        (row("x", [("a\0b", 1i64)]), ErrorKind::Invalid, "NUL"),
        (row("x", [("_id", "y")]), ErrorKind::Invalid, "_id is not its key"),
        (row("x", [("v", deep)]), ErrorKind::TooLarge, "100 levels"),
        (row(&"x".repeat(1025), [("v", 1i64)]), ErrorKind::Invalid, "1024"),
    ] {
        let batch = [row("a", [("v", 1i64)]), bad.clone(), row("b", [("v", 1i64)])];
        for error in [
            place.check(&bad).unwrap_err(),
            place.put(&batch).await.unwrap_err(),
            place.load(&batch).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(want), "{error}");
            assert!(error.to_string().contains("key \"x"), "{error}");
        }
        assert_eq!(place.count().await.unwrap(), 0, "{want}");
    }
    // Up to the limit all is well, also for several that have no room in one command.
    let large = |name: &str| row(name, [("v", Value::Bytes(vec![7; (16 << 20) - 64]))]);
    let some = [large("a"), row("small", [("v", 1i64)]), large("b")];
    place.load(&some).await.unwrap();
    place.put(&some).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 3);
    assert_eq!(place.get(&[key("b")]).await.unwrap(), [Some(some[2].record.clone())]);
    assert_eq!(all(&place).await.len(), 3);
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn a_key_that_is_taken_is_named() {
    let place = need!(open("table=taken").await);
    let some = |names: &[&str]| -> Vec<Row> {
        names.iter().map(|name| row(name, [("v", 1i64)])).collect()
    };
    place.load(&some(&["a", "b"])).await.unwrap();
    let error = place.load(&some(&["c", "b", "d", "a", "e"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("key \"b\" already exists, and 1 more"), "{error}");
    let keys = async |place: &Place| -> Vec<String> {
        all(place).await.into_iter().map(|row| row.key.to_string()).collect()
    };
    // Not in order, the others are in.
    assert_eq!(keys(&place).await, ["a", "b", "c", "d", "e"]);
    let ordered = open("table=taken&ordered=true").await.unwrap();
    let error = ordered.load(&some(&["f", "b", "g", "a"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().ends_with("key \"b\" already exists"), "{error}");
    assert_eq!(keys(&ordered).await, ["a", "b", "c", "d", "e", "f"]);
    // Twice in one batch: put keeps the last.
    let twice = [row("z", [("v", 1i64)]), row("z", [("v", 2i64)])];
    place.put(&twice).await.unwrap();
    assert_eq!(place.get(&[key("z")]).await.unwrap(), [Some(twice[1].record.clone())]);
}

#[tokio::test]
async fn hostile_names_and_values_are_data() {
    let table = "we\"ird'); db.dropDatabase(); //  ü😀";
    let url = need!(url("table=hostile"));
    let first = store::open(&url).await.unwrap();
    let place = first.table(table).unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    for name in ["a$b", "system.users", "", "a\0b", &"x".repeat(300)] {
        let error = place.table(name).err().expect(name);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let texts = ["{\"$gt\": \"\"}", "'; return true; //", "$where", "\r\n\0", "😀\u{ffff}"];
    let rows: Vec<Row> = texts.iter().map(|text| row(text, [("v", *text)])).collect();
    place.load(&rows).await.unwrap();
    assert_eq!(place.count().await.unwrap(), texts.len() as u64);
    for text in texts {
        for path in ["v", "_key"] {
            let test = store::query::Test::Eq(Value::from(text));
            let query = Query::new(store::Filter::field(path, test).unwrap());
            let found: Vec<Row> =
                one_by_one(place.find(&query).await.unwrap()).try_collect().await.unwrap();
            assert_eq!(found, [row(text, [("v", text)])], "{path} {text:?}");
        }
    }
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn a_collection_of_the_other_layout_is_a_conflict() {
    let documents = need!(open("table=other").await);
    documents.put(&[row("a", [("v", 1i64)])]).await.unwrap();
    let blobs = store::open(&url("table=other&layout=blob").unwrap()).await.unwrap();
    let error = blobs.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    documents.drop_table().await.unwrap();
    blobs.prepare(&Layout::plain()).await.unwrap();
    blobs.put(&[row("a", [("v", 1i64)])]).await.unwrap();
    let error = documents.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[tokio::test]
async fn keys_of_others_are_not_passed_over() {
    let place = need!(open("table=others").await);
    place.put(&[row("a", [("v", 1i64)])]).await.unwrap();
    plain("others").await.insert_one(doc! {"v": 2}).await.unwrap();
    for done in [
        place.scan(&KeyRange::all()).await.unwrap().try_collect::<Vec<_>>().await.map(drop),
        place.split(2).await.map(drop),
    ] {
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("ObjectId"), "{error}");
    }
}

#[tokio::test]
async fn durability_is_the_write_concern() {
    need!(shared());
    for (tier, concern) in [(Tier::T3, "\"j\": true"), (Tier::T2, "\"j\": false")] {
        let place = open(&format!("table=tiers&durability={tier}")).await.unwrap();
        place.put(&[row("a", [("v", 1i64)])]).await.unwrap();
        place.load(&[row(tier.name(), [("v", 1i64)])]).await.unwrap();
        let about = place.describe().await.unwrap();
        println!("{about:?}");
        assert_eq!(about.asked, Some(tier));
        let is_set =
            |(name, value): &(String, String)| name == "write concern" && value.contains(concern);
        assert!(about.settings.iter().any(is_set), "{about:?}");
        // FerretDB does not tell what PostgreSQL does.
        assert!(
            about.set == Some(tier) || about.product.starts_with("FerretDB on PostgreSQL"),
            "{about:?}"
        );
        assert!(about.disk > Some(0) && about.version.starts_with(|c: char| c.is_ascii_digit()));
    }
    for tier in [Tier::T0, Tier::T1] {
        let url = url(&format!("durability={tier}")).unwrap();
        let error = store::open(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("it can: t3"), "{error}");
    }
}

#[tokio::test]
async fn two_hundred_thousand_people() {
    const COUNT: u64 = 200_000;
    let place = need!(open("table=people").await);
    let layout = Layout::plain().with_index("age".parse().unwrap(), steelyard::record::Kind::Int);
    place.prepare(&layout).await.unwrap();
    let mut rows: Vec<Row> = (0..COUNT)
        .map(|number| {
            let record = Dataset::People.document(7, number).unwrap();
            Row { key: Key::of(&record, "key").unwrap(), record }
        })
        .collect();
    let timed = |what: &str, begin: Instant| println!("{what}: {:?}", begin.elapsed());
    let begin = Instant::now();
    for batch in rows.chunks(1000) {
        place.load(batch).await.unwrap();
    }
    timed("200,000 people loaded, batches of 1,000, index on age", begin);
    let begin = Instant::now();
    assert_eq!(place.count().await.unwrap(), COUNT);
    timed("counted", begin);

    let age = |row: &Row| match row.record.get("age") {
        Some(Value::Int(age)) => *age,
        other => panic!("{other:?}"),
    };
    let by_date = "birthdate".parse().unwrap();
    let query = Query::new("age>=90".parse().unwrap())
        .sorted(by_date, store::query::Order::Ascending)
        .limited(1000);
    let begin = Instant::now();
    let found: Vec<Row> =
        one_by_one(place.find(&query).await.unwrap()).try_collect().await.unwrap();
    timed("age >= 90 by birthdate, the first 1,000", begin);
    let mut want: Vec<Row> = rows.iter().filter(|row| age(row) >= 90).cloned().collect();
    want.sort_by(|a, b| query.order(a, b));
    want.truncate(1000);
    assert!(found == want);

    let begin = Instant::now();
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert!(all(&place).await == rows);
    timed("scanned by key", begin);
    let begin = Instant::now();
    let parts = place.split(4).await.unwrap();
    timed("split into 4", begin);
    let sizes: Vec<_> = parts
        .iter()
        .map(|part| rows.iter().filter(|row| part.contains(&row.key)).count())
        .collect();
    assert_eq!(sizes, [50_000; 4]);

    let begin = Instant::now();
    let gone = rows.iter().filter(|row| age(row) >= 80).count() as u64;
    assert_eq!(place.delete(&"age>=80".parse().unwrap()).await.unwrap(), gone);
    timed("age >= 80 deleted", begin);
    assert_eq!(place.count().await.unwrap(), COUNT - gone);
    place.drop_table().await.unwrap();
}

/// An operation that has to fail for want of a server, within some seconds.
async fn unavailable(place: &Place, within: Duration) -> Error {
    let begin = Instant::now();
    let error = place.put(&[row("frozen", [("v", 1i64)])]).await.unwrap_err();
    assert!(error.is_outage(), "{error:?}");
    assert!(begin.elapsed() < within, "{:?}: {error}", begin.elapsed());
    error
}
