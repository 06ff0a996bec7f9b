//! What is asked to say why a condition fits nothing: some records, and never all of them in order.

use std::sync::Arc;

use steelyard::{
    record::Document,
    store::{Key, Row, Shape, query},
};

use super::{
    places::{self, Outcome, Subject, Wrap, ensure},
    proxy::Proxy,
};

async fn unordered(subject: Arc<Subject>) -> Outcome {
    let Some(server) = subject.server().map(str::to_owned) else { return Ok(()) };
    let proxy = Proxy::before(&server).await;
    let row = |n: i64| Row {
        key: Key::new(format!("k{n}")).expect("not empty"),
        record: Document::from_iter([("n", n)]),
    };
    let rows: Vec<Row> = (0..20).map(row).collect();
    let fresh = subject.at(&proxy.url).ready(&rows[..1]).await?;
    fresh.store.put(&rows).await?;
    proxy.said();
    let told = query::hints(&*fresh.store, &"n=\"7\"".parse()?).await?;
    ensure!(told.len() == 1 && told[0].contains("without quotes"), "{told:?}");
    let said = String::from_utf8_lossy(&proxy.said()).to_lowercase();
    // Tables of bytes are always our own, with an index of their keys.
    if subject.shape() != Shape::Blob {
        ensure!(!said.contains("order by") && !said.contains("sort"), "it was asked: {said}");
    }
    fresh.done().await
}

#[test]
fn why_nothing_fits_is_said_without_an_order_of_records() {
    places::each(Wrap::Bare, unordered);
}
