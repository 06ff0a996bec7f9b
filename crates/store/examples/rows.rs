//! Records one at a time, for `scripts/rows.py` to hold against other clients:
//! `rows URL load|get|put COUNT`, keys k0 to k9999. In layout columns a row is one text of 120
//! characters, as sysbench's; else a document of four fields.

use std::time::Instant;

use steelyard_store::{
    record::{Document, Value},
    store::{Column, Key, Layout, Row, Shape, blocking},
};

const KEYS: u64 = 10_000;

fn row(n: u64, shape: Shape) -> Row {
    if shape == Shape::Columns {
        let record = Document::from_iter([("c", Value::from(format!("{n:0120}")))]);
        return Row { key: key(n), record };
    }
    let record = Document::from_iter([
        ("name", Value::from("Bob Jones")),
        ("email", Value::from(format!("bob{}@example.com", n % 1000))),
        ("age", Value::Int((n % 100) as i64)),
        ("admin", Value::Bool(n.is_multiple_of(2))),
    ]);
    Row { key: key(n), record }
}

fn key(n: u64) -> Key {
    Key::new(format!("k{}", n % KEYS)).expect("a key")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> steelyard_store::Result<()> {
    // One after another, as the load generators ask. And as a task: what `main` itself awaits costs the
    // runtime one more look at its sockets.
    tokio::spawn(blocking(run())).await.expect("no panic")
}

async fn run() -> steelyard_store::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, url, what, count] = &args[..] else { panic!("rows URL load|get|put COUNT") };
    let count: u64 = count.parse().expect("a number");
    let place = steelyard_store::open(url).await?;
    let shape = place.store().shape();
    let begin = Instant::now();
    match &**what {
        "load" => {
            let rows: Vec<_> = (0..KEYS).map(|n| row(n, shape)).collect();
            let layout = match shape {
                Shape::Columns => {
                    Layout::plain().with_columns(Column::infer(rows.iter().map(|row| &row.record))?)
                }
                _ => Layout::plain(),
            };
            place.prepare(&layout).await?;
            place.put(&rows).await?;
        }
        "get" => {
            for n in 0..count {
                let found = place.get(&[key(n.wrapping_mul(7919))]).await?;
                assert!(found[0].is_some());
            }
        }
        "put" => {
            // Always the same record, as the others write.
            let mut one = row(7, shape);
            for n in 0..count {
                one.key = key(n.wrapping_mul(7919));
                place.put(std::slice::from_ref(&one)).await?;
            }
        }
        what => panic!("what is {what}?"),
    }
    println!("{:.2} µs each", begin.elapsed().as_secs_f64() * 1e6 / count as f64);
    Ok(())
}
