//! Benches in a store of the user's own: what was there is there after them, and nothing else,
//! however they end. Private servers play the user's.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use steelyard::{
    ErrorKind, Result,
    bench::{
        results::Results,
        run::Stage,
        schedule::StopRule,
        stop::Stop,
        stores::{self, Options, Target},
        workload::Workload,
    },
    record::Document,
    server::Wish,
    store::{
        Abilities, Description, Filter, Key, KeyRange, Layout, Query, Row, Rows, Scratch, Shape,
        Store,
    },
};

use crate::{
    programs::{self, need},
    stores::places,
};

/// A store that counts one record too many, as soon as there is any: found after the first load.
struct Miscounts(Arc<dyn Store>);

#[async_trait]
impl Store for Miscounts {
    fn abilities(&self) -> &Abilities {
        self.0.abilities()
    }
    fn shape(&self) -> Shape {
        self.0.shape()
    }
    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Miscounts(self.0.table(name)?)))
    }
    fn check(&self, row: &Row) -> Result<()> {
        self.0.check(row)
    }
    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.0.prepare(layout).await
    }
    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.0.put(rows).await
    }
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.0.get(keys).await
    }
    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.0.find(query).await
    }
    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.0.delete(filter).await
    }
    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }
    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.0.scan(range).await
    }
    async fn count(&self) -> Result<u64> {
        Ok(self.0.count().await? + 1)
    }
    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.0.split(parts).await
    }
    async fn drop_table(&self) -> Result<()> {
        self.0.drop_table().await
    }
    async fn describe(&self) -> Result<Description> {
        self.0.describe().await
    }
}

fn options<'a>(on: &str) -> Options<'a> {
    let mut options = Options::new(Workload::named("keep").unwrap().scaled(0.02));
    options.targets = vec![Target::parse(on).unwrap()];
    options.audit = false;
    options.plan.resamples = 200;
    options.plan.stop = StopRule { max_rounds: 2, budget: 600.0, ..StopRule::default() };
    options
}

type Names = BTreeSet<String>;

/// What a run told of what it makes, and what was there meanwhile.
struct Seen {
    told: String,
    meanwhile: Names,
    ended: Result<Results>,
}

/// What is there, asked by a client that is not ours, in a thread and a runtime of its own.
type List<'a> = &'a (dyn Fn() -> Names + Sync);

fn apart<T: Send>(ask: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| places::run(ask)).join().unwrap())
}

/// Runs, and looks what is there while it is timed.
fn run(options: &Options<'_>, list: List<'_>) -> Seen {
    let (mut told, mut meanwhile) = (String::new(), Names::new());
    let ended = stores::run(options, &mut |p| match p.stage {
        Stage::Making => told = p.phase.to_owned(),
        Stage::Timing if p.competitor != "null" && p.phase == "get" => meanwhile = list(),
        _ => {}
    });
    Seen { told, meanwhile, ended }
}

/// A run that ends well, one that fails half-way, one that is interrupted: each in a database of its
/// own, which is told and goes.
fn leaves_all_as_it_was(on: &str, list: List<'_>) {
    let before = list();
    let seen = run(&options(on), list);
    let results = seen.ended.unwrap();
    let new: Vec<_> = seen.meanwhile.difference(&before).collect();
    let [name] = &new[..] else { panic!("{new:?} were made") };
    assert!(name.contains("steelyard_bench_"), "{name}");
    let told = name.rsplit('.').next().unwrap();
    assert!(seen.told.starts_with(&format!("database {told},")), "{} for {name}", seen.told);
    assert!(results.settings.values().any(|said| *said == seen.told), "{:?}", results.settings);
    let cell = results.cells.iter().find(|c| c.phase == "get").unwrap();
    let told = (&results.stopped, &results.dataset.remarks);
    assert_eq!((cell.rounds.len(), &cell.refused), (2, &None), "{told:?}");
    assert_eq!(list(), before);

    let mut faulty = options(on);
    faulty.around = Some(|store| Arc::new(Miscounts(store)));
    let seen = run(&faulty, list);
    let error = seen.ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error:?}");
    assert!(error.to_string().contains("load, round 1"), "{error}");
    assert_eq!(list(), before, "after a run that failed");

    let stop = Stop::default();
    let mut interrupted = options(on);
    interrupted.stop = Some(&stop);
    let results = stores::run(&interrupted, &mut |p| {
        if p.phase == "get" && p.competitor != "null" {
            stop.set();
        }
    });
    let error = results.unwrap_err().to_string();
    assert!(error.contains("interrupted before the first round was done"), "{error}");
    assert_eq!(list(), before, "after a run that was interrupted");

    // What is there under the name is not touched.
    apart(async {
        let made = Scratch::make(on, "steelyard_taken").await.unwrap().unwrap();
        let error = Scratch::make(on, "steelyard_taken").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
        steelyard::store::open(made.url()).await.unwrap();
        made.drop().await.unwrap();
    });
    assert_eq!(list(), before);
}

/// A run by a user who may make no database: tables under a prefix, which is told, and why.
fn makes_do_with_tables(on: &str, list: List<'_>) {
    let before = list();
    let seen = run(&options(on), list);
    seen.ended.unwrap();
    let new: Vec<_> = seen.meanwhile.difference(&before).collect();
    // Folders write an underscore as its code.
    let ours = |name: &&String| name.replace("_5f", "_").starts_with("steelyard_bench_");
    assert!(!new.is_empty() && new.iter().all(ours), "{new:?}");
    assert!(seen.told.starts_with("tables steelyard_bench_"), "{}", seen.told);
    assert_eq!(list(), before);
    let mut faulty = options(on);
    faulty.around = Some(|store| Arc::new(Miscounts(store)));
    run(&faulty, list).ended.unwrap_err();
    assert_eq!(list(), before, "after a run that failed");
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_gets_a_file_beside_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let on = format!("sqlite:{}", file.display());
    apart(async {
        let place = steelyard::store::open(&on).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        place.settle().await.unwrap();
    });
    let list = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|f| f.unwrap().file_name().into_string().unwrap());
        // Of a database that is open: its log, and who reads it.
        names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect()
    };
    let bytes = std::fs::read(&file).unwrap();
    leaves_all_as_it_was(&on, &list);
    assert!(std::fs::read(&file).unwrap() == bytes, "the file was written to");
}

#[test]
fn memory_and_folders_get_tables_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let list = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        names.map(|f| f.unwrap().file_name().into_string().unwrap()).collect()
    };
    makes_do_with_tables(&format!("dir:{}", folder.path().display()), &list);
}

#[cfg(feature = "mysql")]
mod mysql {
    use mysql_async::prelude::Queryable;

    use super::*;

    fn ask(url: &str, what: &str) -> Names {
        apart(async {
            let options = mysql_async::Opts::from_url(url).unwrap();
            let options = mysql_async::OptsBuilder::from_opts(options).prefer_socket(false);
            let mut connection = mysql_async::Conn::new(options).await.unwrap();
            let names: Vec<String> = connection.query(what).await.unwrap();
            connection.disconnect().await.unwrap();
            names.into_iter().collect()
        })
    }

    #[test]
    fn mariadb_gets_a_database() {
        let server = need!(programs::server("mariadb", &Wish::default()));
        leaves_all_as_it_was(server.url(), &|| ask(server.url(), "SHOW DATABASES"));
    }

    #[test]
    fn who_may_make_no_database_is_told_so() {
        let server = need!(programs::server("mariadb", &Wish::default()));
        for statement in [
            "CREATE DATABASE shop",
            "CREATE USER clerk@'127.0.0.1'",
            "GRANT ALL ON shop.* TO clerk@'127.0.0.1'",
        ] {
            ask(server.url(), statement);
        }
        let (_, host) = server.url().split_once('@').unwrap();
        let host = host.split('/').next().unwrap();
        let on = format!("mysql://clerk@{host}/shop");
        let databases = ask(server.url(), "SHOW DATABASES");
        makes_do_with_tables(&on, &|| ask(&on, "SHOW TABLES"));
        let seen = run(&options(&on), &|| ask(server.url(), "SHOW DATABASES"));
        assert!(seen.told.contains("may make no database (Access denied"), "{}", seen.told);
        assert_eq!(seen.meanwhile, databases);
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use super::*;

    fn ask(url: &str, what: &str) -> Names {
        apart(async {
            let (client, connection) =
                tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            let rows = client.query(what, &[]).await.unwrap();
            rows.iter().map(|row| row.get::<_, String>(0)).collect()
        })
    }

    const DATABASES: &str = "SELECT CAST(datname AS text) FROM pg_database";

    #[test]
    fn postgres_gets_a_database() {
        let server = need!(programs::server("postgres", &Wish::default()));
        // 64 logins at once by SCRAM, which takes long in a program that is not optimised.
        let on = format!("{}?connect_timeout=60", server.url());
        leaves_all_as_it_was(&on, &|| ask(server.url(), DATABASES));
    }

    #[test]
    fn who_may_make_no_database_is_told_so() {
        let server = need!(programs::server("postgres", &Wish::default()));
        ask(server.url(), "CREATE ROLE clerk LOGIN PASSWORD 'open sesame'");
        ask(server.url(), "GRANT CREATE ON SCHEMA public TO clerk");
        let on = programs::with_login(server.url(), "clerk:open%20sesame");
        let tables = "SELECT CAST(relname AS text) FROM pg_class WHERE relkind = 'r'";
        makes_do_with_tables(&on, &|| ask(server.url(), tables));
        let seen = run(&options(&on), &|| ask(server.url(), DATABASES));
        assert!(seen.told.contains("may make no database (permission denied"), "{}", seen.told);
        assert!(seen.meanwhile.iter().all(|name| !name.contains("bench")), "{:?}", seen.meanwhile);
    }
}

#[cfg(feature = "mongodb")]
#[test]
fn ferretdb_gets_a_database() {
    let server = need!(programs::server("ferretdb", &Wish::default()));
    let list = || {
        apart(async {
            let client = mongodb::Client::with_uri_str(server.url()).await.unwrap();
            client.list_database_names().await.unwrap().into_iter().collect()
        })
    };
    leaves_all_as_it_was(server.url(), &list);
}
