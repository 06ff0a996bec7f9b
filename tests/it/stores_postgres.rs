//! What is special about PostgreSQL, on a private server; what every store does, the contract suite
//! tests.

mod tables;
mod tenants;
mod trouble;
mod values;

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt};
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Kind, Time, Value, dataset::Dataset},
    server::{Server, Wish},
    store::{
        self, Column, Filter, Key, KeyRange, Layout, Place, Query, Row,
        query::{Order, Test},
    },
};

use crate::programs::{self, Missing, Need, need};

/// A private server.
fn start(wish: &Wish) -> Need<Server> {
    programs::server("postgres", wish)
}

/// One for all tests that leave it as it is; a watchman ends it with this process.
static SHARED: LazyLock<Need<Server>> = LazyLock::new(|| start(&Wish::default()));

fn shared() -> Need<&'static Server> {
    SHARED.as_ref().map_err(Missing::clone)
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn row(text: &str, record: Document) -> Row {
    Row { key: key(text), record }
}

fn one(text: &str, value: impl Into<Value>) -> Row {
    row(text, Document::from_iter([("v", value)]))
}

fn people(from: u64, until: u64) -> Vec<Row> {
    (from..until)
        .map(|n| {
            let record = Dataset::People.document(1, n).unwrap();
            Row { key: Key::of(&record, "key").unwrap(), record }
        })
        .collect()
}

async fn ready(server: &Server, options: &str) -> Place {
    let place = store::open(&format!("{}?{options}", server.url())).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    place
}

async fn all(place: &Place, query: &Query) -> Vec<Row> {
    place.find(query).await.unwrap().try_concat().await.unwrap()
}

/// A connection that is not the driver's.
async fn client(server: &Server) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
