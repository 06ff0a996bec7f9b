//! A server that says there is more, and sends nothing.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use super::*;

/// A server that answers commands so; the answer to those it does not know is `ok`.
fn serving(answer: fn(&str) -> Option<bson::Document>) -> String {
    const MESSAGE: i32 = 2013;
    const QUERY: i32 = 2004;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = TcpListener::local_addr(&listener).unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || -> std::io::Result<()> {
                loop {
                    let mut head = [0; 16];
                    stream.read_exact(&mut head)?;
                    let number =
                        |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().unwrap());
                    let (length, id, kind) = (number(0), number(4), number(12));
                    let mut body = vec![0; length as usize - 16];
                    stream.read_exact(&mut body)?;
                    // Flags and, of a message, the kind of its section; of a query, what is asked and two numbers.
                    let begin = match kind {
                        MESSAGE => 5,
                        _ => 4 + memchr::memchr(0, &body[4..]).unwrap() + 1 + 8,
                    };
                    let size = i32::from_le_bytes(body[begin..begin + 4].try_into().unwrap());
                    let asked = &body[begin..begin + size as usize];
                    let asked = bson::Document::from_reader(asked).unwrap();
                    let name = asked.keys().next().unwrap().to_lowercase();
                    let mut document = doc! {
                        "ok": 1.0, "isWritablePrimary": true, "ismaster": true, "minWireVersion": 0,
                        "maxWireVersion": 21, "maxBsonObjectSize": 16_777_216,
                        "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
                    };
                    document.extend(answer(&name).unwrap_or_default());
                    let document = document.to_vec().unwrap();
                    let (kind, before) = match kind {
                        // A reply: flags, a cursor, where it begins, how many documents.
                        QUERY => (1, vec![0i32, 0, 0, 0, 1]),
                        _ => (MESSAGE, vec![0]),
                    };
                    let mut reply: Vec<u8> =
                        before.iter().flat_map(|number| number.to_le_bytes()).collect();
                    if kind == MESSAGE {
                        reply.push(0);
                    }
                    reply.extend(document);
                    let head = [reply.len() as i32 + 16, 1, id, kind];
                    let head: Vec<u8> =
                        head.iter().flat_map(|number| number.to_le_bytes()).collect();
                    stream.write_all(&[head, reply].concat())?;
                }
            });
        }
    });
    format!("mongodb://127.0.0.1:{port}/test")
}

#[tokio::test]
async fn batches_without_an_end_and_without_records_end_in_time() {
    let url = serving(|command| {
        let batch = match command {
            "find" => "firstBatch",
            "getmore" => "nextBatch",
            _ => return None,
        };
        Some(doc! {"cursor": {"id": 77i64, "ns": "test.records", batch: []}})
    });
    let place = store::open(&format!("{url}?timeout=1&table=records")).await.unwrap();
    let found = async {
        let filter = store::Filter::field("n", store::query::Test::Gt(1i64.into()))?;
        let rows = place.find(&Query::new(filter)).await?;
        rows.try_collect::<Vec<_>>().await
    };
    let found = tokio::time::timeout(Duration::from_secs(60), found).await.expect("it ends");
    let error = found.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("empty pages") && said.starts_with("127.0.0.1:"), "{said}");
}

#[tokio::test]
async fn counts_that_cannot_be_are_refused() {
    let url = serving(|command| match command {
        "delete" => Some(doc! {"n": -5i64}),
        "aggregate" => {
            let count = bson::Bson::Array(vec![doc! {"n": -5i64}.into()]);
            Some(doc! {"cursor": {"id": 0i64, "ns": "test.records", "firstBatch": count}})
        }
        _ => None,
    });
    let place = store::open(&format!("{url}?timeout=5&table=records")).await.unwrap();
    for counted in [place.remove(&[key("a")]).await, place.count().await] {
        let error = counted.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error:?}");
    }
}
