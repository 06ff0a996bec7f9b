//! What is special about MySQL and MariaDB; what every store does, the contract suite tests.

mod fills;
mod login;
mod queries;
mod settings;
mod tables;
mod trouble;

use std::{
    sync::{LazyLock, Mutex},
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Kind, Value, dataset::Dataset},
    server::{Server, Wish},
    store::{
        Column, Filter, Key, KeyRange, Layout, Query, Row, Store, open,
        query::{Order, Path, Test},
    },
};

use crate::programs::{self, Missing, Need, need};

/// A server with these settings.
fn start(tier: Option<Tier>, settings: &[(&str, &str)]) -> Need<Server> {
    let settings = settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    programs::server("mariadb", &Wish { tier, settings, ..Wish::default() })
}

/// The URL of a server that most tests share, with a table of the test's own; it ends with this
/// process.
fn shared(table: &str) -> Need<String> {
    static SHARED: LazyLock<Mutex<Need<Server>>> =
        LazyLock::new(|| Mutex::new(start(Some(Tier::T1), &[])));
    let server = SHARED.lock().unwrap();
    let server = server.as_ref().map_err(Missing::clone)?;
    Ok(format!("{}?table={table}", server.url()))
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn row(key_text: &str, record: Document) -> Row {
    Row { key: key(key_text), record }
}

fn one(name: &str, value: impl Into<Value>) -> Document {
    Document::from_iter([(name, value.into())])
}

/// People whose times are text, as documents keep them.
fn people(range: std::ops::Range<u64>) -> Vec<Row> {
    let person = |n| {
        let record: Document = Dataset::People
            .document(1, n)
            .unwrap()
            .into_iter()
            .map(|(name, value)| match value {
                Value::Time(time) => (name, Value::from(time.to_string())),
                value => (name, value),
            })
            .collect();
        Row { key: Key::of(&record, "key").unwrap(), record }
    };
    range.map(person).collect()
}

async fn all(store: &dyn Store, query: &Query) -> Vec<Row> {
    store.find(query).await.unwrap().try_concat().await.unwrap()
}

async fn keys(store: &dyn Store, query: &Query) -> Vec<String> {
    let mut keys: Vec<_> =
        all(store, query).await.into_iter().map(|row| row.key.to_string()).collect();
    if query.sort.is_empty() {
        keys.sort();
    }
    keys
}

/// Fields by name: MySQL's JSON has an order of its own.
fn sorted(found: Vec<Option<Document>>) -> Vec<Option<Document>> {
    let sorted = |record: Document| {
        let mut fields: Vec<_> = record.into_iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.into_iter().collect()
    };
    found.into_iter().map(|record| record.map(sorted)).collect()
}

/// Whether the server is MariaDB, not MySQL.
async fn is_maria(store: &dyn Store) -> bool {
    store.describe().await.unwrap().product == "MariaDB"
}

/// A client without steelyard between, for what other programs see.
async fn other(url: &str) -> mysql_async::Conn {
    let url = url.split('?').next().unwrap();
    let options = mysql_async::Opts::from_url(url).unwrap();
    let options = mysql_async::OptsBuilder::from_opts(options).prefer_socket(false);
    mysql_async::Conn::new(options).await.unwrap()
}
