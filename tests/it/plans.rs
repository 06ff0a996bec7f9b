//! Queries use the index they were given: every statement of every built-in workload, and "the newest
//! 20 by an indexed field" in all its forms, explained by the database itself. What a database cannot
//! do is named here, with the reason.

mod read;
mod shared;

use std::time::Duration;

use futures_util::TryStreamExt;
use steelyard::{
    bench::{
        results::{Phase, Results},
        schedule::{Limit, StopRule},
        stores::{self, Options, Target},
        workload::{BUILT_IN, Workload},
    },
    durability::Tier,
    record::{Document, Kind, Value, dataset::Dataset},
    server::{Server, Wish},
    store::{
        Column, Filter, Key, Layout, Query, Request, Row, Shape, Store, one_by_one, open,
        query::{Order, Path, Test},
    },
};

use self::read::Plan;
use crate::{
    programs::{self, Need, need},
    stores::places,
};

/// A database whose plans are looked at.
struct Database {
    driver: &'static str,
    /// The private server, where it has one.
    server: Option<&'static str>,
    /// It is written as fast as it can.
    tier: Tier,
    shapes: &'static [Shape],
}

const DATABASES: [Database; 4] = [
    Database {
        driver: "sqlite",
        server: None,
        tier: Tier::T1,
        shapes: &[Shape::Document, Shape::Columns],
    },
    Database {
        driver: "postgres",
        server: Some("postgres"),
        tier: Tier::T0,
        shapes: &[Shape::Document, Shape::Columns],
    },
    Database {
        driver: "mysql",
        server: Some("mariadb"),
        tier: Tier::T1,
        shapes: &[Shape::Document, Shape::Columns],
    },
    Database {
        driver: "mongodb",
        server: Some("ferretdb"),
        tier: Tier::T2,
        shapes: &[Shape::Document],
    },
];

/// What a plan may do all the same.
#[derive(Default)]
struct May {
    sort: bool,
    scan: bool,
}

/// What a statement of a built-in workload may do, and why.
fn may(database: &Database, workload: &str, phase: &Phase) -> May {
    let mut may = May::default();
    let sorts = phase.query.as_ref().map(|query| !query.sort.is_empty());
    let limited = phase.query.as_ref().is_some_and(|query| query.limit.is_some());
    match (&*phase.kind, sorts) {
        // "documents" sorts what it finds by age by a date that has no index.
        ("find", Some(true)) if workload == "documents" => may.sort = true,
        // MySQL's driver finds the keys of an answer of any length page by page, in their order, so that
        // no cursor is held open. What the index found is sorted by key.
        ("find", Some(false)) if !limited && database.driver == "mysql" => may.sort = true,
        // A fifth of all records: to go through them costs less than to look each up.
        ("delete", _) => may.scan = true,
        _ => {}
    }
    // DocumentDB, which FerretDB is made of, sorts what it finds by a secondary index, at its default
    // settings: only `_id` has the order of a query.
    if database.driver == "mongodb" {
        may.sort = true;
        // All records in key order: of a few thousand, reading the table and sorting costs as much as the
        // index does, and the statistics of the moment decide.
        may.scan |= phase.kind == "scan";
    }
    may
}

/// The results; none where a layout has no room for the records of any table.
fn explained(workload: &Workload, url: &str, shape: Shape) -> Option<Results> {
    let mut options = Options::new(workload.clone());
    options.targets = vec![Target::parse(&laid_out(url, shape)).unwrap()];
    options.audit = false;
    options.explain = true;
    options.plan.resamples = 200;
    options.plan.stop = StopRule {
        max_rounds: 1,
        budget: Duration::from_secs(600).as_secs_f64(),
        ..StopRule::default()
    };
    match stores::run(&options, &mut |_| {}) {
        Err(e) if e.to_string().contains("use layout document") => None,
        results => Some(results.unwrap()),
    }
}

fn workloads_use_their_indexes(database: &Database) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = need!(started(database, folder.path()));
    let (mut faults, mut looked) = (Vec::new(), 0);
    for (name, _) in BUILT_IN {
        let mut workload = Workload::named(name).unwrap().scaled(0.1);
        // A plan is that of the first operation: neither the size of a cache nor how many are sent matters.
        workload.phases.retain(|phase| phase.room.is_none());
        for phase in &mut workload.phases {
            match &mut phase.limit {
                Some(Limit::Count(count)) => *count = (*count).min(50),
                Some(Limit::Seconds(seconds)) => *seconds = seconds.min(0.1),
                None => {}
            }
        }
        for shape in database.shapes {
            let Some(results) = explained(&workload, &url, *shape) else { continue };
            for phase in &workload.phases {
                let cell = results.cell(&results.baseline, &phase.name).unwrap();
                let may = may(database, name, results.phase(&phase.name).unwrap());
                for statement in &cell.statements {
                    let Some(text) = &statement.plan else { continue };
                    let plan = Plan::read(database.driver, text);
                    looked += 1;
                    let fine =
                        (may.scan || plan.indexed && !plan.whole) && (may.sort || !plan.sorts);
                    if !fine {
                        faults.push(format!(
                            "{name}, {shape}, {}: {plan:?}\n{}\n{text}",
                            phase.name, statement.text
                        ));
                    }
                }
            }
        }
    }
    println!("{}: {looked} plans", database.driver);
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(looked >= 12, "only {looked} statements had a plan");
}

#[test]
fn workloads_use_their_indexes_on_sqlite() {
    workloads_use_their_indexes(&DATABASES[0]);
}

#[test]
fn workloads_use_their_indexes_on_postgres() {
    workloads_use_their_indexes(&DATABASES[1]);
}

#[test]
fn workloads_use_their_indexes_on_mariadb() {
    workloads_use_their_indexes(&DATABASES[2]);
}

#[test]
fn workloads_use_their_indexes_on_ferretdb() {
    workloads_use_their_indexes(&DATABASES[3]);
}

fn path(name: &str) -> Path {
    Path::new([name])
}

/// People, more than a planner would rather go through than look up; some without a date.
fn people() -> Vec<Row> {
    let person = |n| {
        let mut record: Document = Dataset::People.document(1, n).unwrap();
        if n % 50 == 0 {
            record.remove("birthdate");
        }
        // Without an index; all but the last fit many people.
        let status = ["open", "held", "sent", "done"][n as usize % 4];
        record.insert("status", Value::from(status));
        record.insert("vip", Value::Bool(n % 3 == 0));
        record.insert("group", Value::Int(n as i64 % 7));
        record.insert("code", Value::from(format!("code {n}")));
        Row { key: Key::of(&record, "key").unwrap(), record }
    };
    (0..6_000).map(person).collect()
}

/// Sorted queries with a limit, with what their plans may do.
fn newest(rows: &[Row]) -> Vec<(Query, May)> {
    let value = |n: usize, name: &str| rows[n].record.get(name).unwrap().clone();
    let field = |name: &str, test: Test| Filter::Field(path(name), test);
    let mut all = Vec::new();
    for by in ["birthdate", "age", "email", Path::KEY] {
        for order in [Order::Ascending, Order::Descending] {
            let mut add = |filter: Filter, may: May| {
                let query = Query::new(filter).sorted(path(by), order).limited(20);
                all.push((query, may));
            };
            add(Filter::All, May::default());
            let from = match by {
                Path::KEY => Value::from("bob5"),
                by => value(77, by),
            };
            // From a value on, and up to it: the pages of a list.
            add(field(by, Test::Ge(from.clone())), May::default());
            add(field(by, Test::Lt(from)), May::default());
            // Few fit, of another field: either index will do, and few are quickly sorted.
            let few = if by == "age" {
                field("email", Test::Eq(value(7, "email")))
            } else {
                field("age", Test::Eq(Value::Int(33)))
            };
            add(few, May { sort: true, scan: false });
            // One fits, of a field without an index: all are gone through.
            add(field("code", Test::Eq(value(7, "code"))), May { sort: true, scan: true });
            // Many fit, of fields without an index: the first 20 of the order are soon found.
            let open = field("status", Test::Eq(Value::from("open")));
            let vip = field("vip", Test::Eq(Value::Bool(true)));
            add(open.clone(), May::default());
            add(vip.clone(), May::default());
            add(field("group", Test::Eq(Value::Int(3))), May::default());
            add(field("group", Test::Ge(Value::Int(2))), May::default());
            add(field("status", Test::Ge(Value::from("open"))), May::default());
            add(Filter::And(vec![open, vip]), May::default());
        }
    }
    all
}

/// What a database cannot do without sorting, and why: FerretDB, as for the workloads. Sorting all it
/// has, it goes through all, too.
fn must_sort(database: &Database) -> bool {
    database.driver == "mongodb"
}

/// A database of its own, with its URL.
fn started(database: &Database, folder: &std::path::Path) -> Need<(Option<Server>, String)> {
    match database.server {
        None => {
            let file = folder.join("people.db");
            Ok((None, format!("sqlite:{}?durability={}", file.display(), database.tier.name())))
        }
        Some(name) => {
            let wish = Wish { tier: Some(database.tier), ..Wish::default() };
            let server = programs::server(name, &wish)?;
            let url = server.url().to_owned();
            Ok((Some(server), url))
        }
    }
}

fn laid_out(url: &str, shape: Shape) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}layout={shape}")
}

async fn newest_by_an_index(database: &Database) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, base) = need!(started(database, folder.path()));
    let rows = people();
    let mut faults = Vec::new();
    for shape in database.shapes {
        let url = format!("{}&table=people_{shape}", laid_out(&base, *shape));
        let place = open(&url).await.unwrap();
        let store: &dyn Store = &**place.store();
        let moment = if *shape == Shape::Columns || database.driver == "mongodb" {
            Kind::Time
        } else {
            Kind::Text
        };
        let indexed = [path("birthdate"), path("age"), path("email"), path(Path::KEY)];
        let mut layout = Layout::plain()
            .with_index(path("birthdate"), moment)
            .with_index(path("age"), Kind::Int)
            .with_index(path("email"), Kind::Text);
        if *shape == Shape::Columns {
            layout =
                layout.with_columns(Column::infer(rows.iter().map(|row| &row.record)).unwrap());
        }
        store.prepare(&layout).await.unwrap();
        store.load(&rows).await.unwrap();
        store.analyze().await.unwrap();
        for (query, may) in newest(&rows) {
            // Times are texts in documents, and not compared there.
            if store.abilities().can(&query).is_err() {
                assert_eq!(*shape, Shape::Document, "{}: {query:?}", database.driver);
                continue;
            }
            let mut want: Vec<&Row> =
                rows.iter().filter(|row| query.matches(&row.key, &row.record)).collect();
            want.sort_by(|a, b| query.order(a, b));
            let found: Vec<Row> =
                one_by_one(store.find(&query).await.unwrap()).try_collect().await.unwrap();
            let keys: Vec<&Key> = found.iter().map(|row| &row.key).collect();
            let want: Vec<&Key> = want.iter().take(20).map(|row| &row.key).collect();
            assert_eq!(keys, want, "{} {shape}: {query:?}", database.driver);
            let explained = store.explain(Request::Find(&query)).await.unwrap().unwrap();
            let text = explained.plan.clone().unwrap();
            let plan = Plan::read(database.driver, &text);
            let no_index = !matches!(&query.filter, Filter::Field(at, _) if indexed.contains(at));
            let sorts_all = must_sort(database) && no_index;
            let by_index = may.scan || plan.indexed && !plan.whole || sorts_all;
            if !by_index || plan.sorts && !may.sort && !must_sort(database) {
                faults.push(format!("{shape}: {query:?}: {plan:?}\n{explained}\n{text}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}: {}", database.driver, faults.join("\n\n"));
}

#[test]
fn the_newest_are_found_by_their_index_on_sqlite() {
    places::run(newest_by_an_index(&DATABASES[0]));
}

#[test]
fn the_newest_are_found_by_their_index_on_postgres() {
    places::run(newest_by_an_index(&DATABASES[1]));
}

#[test]
fn the_newest_are_found_by_their_index_on_mariadb() {
    places::run(newest_by_an_index(&DATABASES[2]));
}

#[test]
fn the_newest_are_found_by_their_index_on_ferretdb() {
    places::run(newest_by_an_index(&DATABASES[3]));
}

/// An index takes at least what its keys are long, and more with more records, on every database that says
/// what its indexes take.
async fn index_sizes(database: &Database) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, base) = need!(started(database, folder.path()));
    let rows = people();
    let (first, second) = rows.split_at(rows.len() / 3);
    let long = |rows: &[Row]| -> u64 {
        rows.iter().map(|row| row.record.get("email").unwrap().as_str().unwrap().len() as u64).sum()
    };
    for shape in database.shapes {
        let url = format!("{}&table=sized_{shape}", laid_out(&base, *shape));
        let place = open(&url).await.unwrap();
        let store: &dyn Store = &**place.store();
        let mut layout = Layout::plain();
        if *shape == Shape::Columns {
            layout =
                layout.with_columns(Column::infer(rows.iter().map(|row| &row.record)).unwrap());
        }
        store.prepare(&layout).await.unwrap();
        store.load(first).await.unwrap();
        let size = async || {
            store.analyze().await.unwrap();
            store.index_bytes().await.unwrap()
        };
        let without = size().await;
        assert_eq!(without.is_some(), database.driver != "mongodb", "{}", database.driver);
        // Not a skip: it was checked above whose store this is.
        let Some(without) = without else { return };
        store.prepare(&layout.with_index(path("email"), Kind::Text)).await.unwrap();
        let few = size().await.unwrap() - without;
        store.put(second).await.unwrap();
        let all = size().await.unwrap() - without;
        println!("{} {shape}: {without}, {few} for {}, {all}", database.driver, long(first));
        assert!(few >= long(first) && all >= long(&rows) && all > few, "{few} {all}");
    }
}

#[test]
fn indexes_have_the_size_of_what_is_in_them() {
    for database in &DATABASES {
        places::run(index_sizes(database));
    }
}

/// Tables and paths of which a name put together without care is the same: each has its index all the same.
const COLLIDING: [(&str, &str); 3] = [("a", "b_c"), ("a_b", "c"), ("a_b_c", "b_c_key")];

async fn indexes_of_colliding_names(database: &Database) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, base) = need!(started(database, folder.path()));
    for shape in database.shapes {
        for (table, field) in COLLIDING {
            let url = format!("{}&table={table}_{shape}", laid_out(&base, *shape));
            let place = open(&url).await.unwrap();
            let store: &dyn Store = &**place.store();
            let row = |n: i64| {
                let record = Document::from_iter([(field, Value::Int(n))]);
                Row { key: Key::new(format!("{n:05}")).unwrap(), record }
            };
            let rows: Vec<Row> = (0..3_000).map(row).collect();
            let mut layout = Layout::plain().with_index(path(field), Kind::Int);
            if *shape == Shape::Columns {
                layout =
                    layout.with_columns(Column::infer(rows.iter().map(|row| &row.record)).unwrap());
            }
            store.prepare(&layout).await.unwrap();
            store.load(&rows).await.unwrap();
            store.analyze().await.unwrap();
            let query = Query::new(Filter::Field(path(field), Test::Eq(Value::Int(7))));
            let explained = store.explain(Request::Find(&query)).await.unwrap().unwrap();
            let text = explained.plan.clone().unwrap();
            let plan = Plan::read(database.driver, &text);
            assert!(plan.indexed && !plan.whole, "{} {url}: {plan:?}\n{text}", database.driver);
        }
    }
}

#[test]
fn names_that_collide_have_an_index_each() {
    for database in &DATABASES {
        places::run(indexes_of_colliding_names(database));
    }
}
