//! Tests with a fake Redis server that sends invalid answers.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use futures_util::TryStreamExt;

use crate::{
    ErrorKind, Result,
    record::Document,
    store::{self, Expected, Key, KeyRange, Row, onward::Barren},
};

/// A server that answers each of these commands so, and all others with OK; gone when the test is over.
fn lying(answers: &'static [(&'static str, &'static [u8])]) -> String {
    serving(|command, _| {
        let known = answers.iter().find(|answer| answer.0 == command);
        known.map(|known| known.1.to_vec())
    })
}

/// A server that answers commands so, each with its first argument, and those it does not know with OK.
fn serving(
    answer: impl Fn(&str, &str) -> Option<Vec<u8>> + Copy + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(std::result::Result::ok) {
            thread::spawn(move || -> std::io::Result<()> {
                let mut input = BufReader::new(stream.try_clone()?);
                let mut output = stream;
                loop {
                    let mut line = String::new();
                    if input.read_line(&mut line)? == 0 {
                        return Ok(());
                    }
                    let parts: usize = line[1..].trim().parse().unwrap();
                    let mut command = Vec::new();
                    for _ in 0..parts {
                        line.clear();
                        input.read_line(&mut line)?;
                        let mut part = vec![0; line[1..].trim().parse::<usize>().unwrap() + 2];
                        input.read_exact(&mut part)?;
                        command.push(String::from_utf8_lossy(&part).trim().to_owned());
                    }
                    let first = command.get(1).map_or("", String::as_str);
                    // Of its settings it says nothing.
                    let usual: &[u8] = if command[0] == "CONFIG" { b"*0\r\n" } else { b"+OK\r\n" };
                    let known = answer(&command[0], first);
                    output.write_all(known.as_deref().unwrap_or(usual))?;
                }
            });
        }
    });
    format!("redis://127.0.0.1:{port}/?timeout=20")
}

/// What reading 16 records, and then all of them, ends with.
async fn read(url: &str) -> [Result<()>; 2] {
    let place = store::open(url).await.unwrap();
    let keys: Vec<_> = (0..16).map(|n| Key::new(n.to_string()).unwrap()).collect();
    let found = place.get(&keys).await.map(drop);
    let all = async { place.scan(&KeyRange::all()).await?.try_collect::<Vec<_>>().await };
    [found, all.await.map(drop)]
}

#[tokio::test]
async fn answers_of_another_number_than_was_asked_for_end_a_read() {
    for (answer, said) in [
        (&b"*0\r\n"[..], "the answer to MGET has 0 values for 16 keys"),
        (b"*-1\r\n", "the answer to MGET has 0 values for 16 keys"),
        (b"*1\r\n$-1\r\n", "the answer to MGET has 1 values for 16 keys"),
        (b"*17\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n", "has 17 values for 16 keys"),
        (b"*1\r\n$-99\r\n", "unexpected answer to"),
        (b"*-99\r\n", "unexpected answer to"),
        (b"*1\r\n$8589934592\r\nabc", "8589934592 bytes"),
        (b"*16\r\n$9223372036854775807\r\nabc", "9223372036854775807 bytes"),
    ] {
        let answers = Box::leak(Box::new([("MGET", answer)]));
        let error = read(&lying(answers)).await.into_iter().next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn keys_that_come_in_circles_end_a_scan() {
    let url = lying(&[("SCAN", b"*2\r\n$2\r\n17\r\n*0\r\n")]);
    let [_, scanned] = read(&url).await;
    let error = scanned.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    assert!(error.to_string().contains("SCAN repeat"), "{error}");
}

/// The answer to SCAN: where to go on, and perhaps a key.
fn page(next: u64, key: Option<&str>) -> Vec<u8> {
    let next = next.to_string();
    let keys = key.map_or("*0\r\n".into(), |key| format!("*1\r\n${}\r\n{key}\r\n", key.len()));
    format!("*2\r\n${}\r\n{next}\r\n{keys}", next.len()).into_bytes()
}

/// However fast it answers, and though no cursor comes twice.
#[tokio::test]
async fn pages_without_an_end_and_without_keys_end_a_scan() {
    for size in ["-1", "5"] {
        let url = if size == "5" {
            serving(|command, cursor| match command {
                "SCAN" => Some(page(cursor.parse::<u64>().unwrap() + 1, None)),
                "DBSIZE" => Some(b":5\r\n".to_vec()),
                _ => None,
            })
        } else {
            serving(|command, cursor| match command {
                "SCAN" => Some(page(cursor.parse::<u64>().unwrap() + 1, None)),
                "DBSIZE" => Some(b":-1\r\n".to_vec()),
                _ => None,
            })
        };
        let place = store::open(&url).await.unwrap();
        for counted in [place.count().await.map(drop), place.drop_table().await] {
            let error = counted.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
            let said = if size == "5" { "in a row have no record" } else { "counts -1" };
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.to_string().starts_with("127.0.0.1:"), "{error}");
        }
    }
}

/// A true server with many keys, of which few are the table's.
#[tokio::test]
async fn many_empty_pages_of_a_large_server_are_no_end() {
    const PAGES: u64 = 10 * Barren::USUAL;
    let url = serving(|command, cursor| match command {
        "SCAN" => {
            let next = (cursor.parse::<u64>().unwrap() + 1) % PAGES;
            Some(page(next, (next == 0).then_some("records:last")))
        }
        // A thousand places to a page.
        "DBSIZE" => Some(format!(":{}\r\n", 1000 * PAGES).into_bytes()),
        "UNLINK" => Some(b":1\r\n".to_vec()),
        _ => None,
    });
    let place = store::open(&url).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 1);
    assert_eq!(place.delete(&store::Filter::All).await.unwrap(), 1);
}

/// A server that runs no scripts, or says something else than whether it wrote.
#[tokio::test]
async fn scripts_that_are_refused_or_answered_with_nonsense_are_errors() {
    let needs = "conditional writes need EVAL";
    for (answer, kind, said) in [
        (
            &b"-NOPERM User has no permissions to run the 'eval' command\r\n"[..],
            ErrorKind::Denied,
            needs,
        ),
        (
            b"-ERR unknown command 'EVAL', with args beginning with:\r\n",
            ErrorKind::Unsupported,
            needs,
        ),
        (b":2\r\n", ErrorKind::Malformed, "invalid: 2"),
        (b":-1\r\n", ErrorKind::Malformed, "invalid: -1"),
        (b"$3\r\nabc\r\n", ErrorKind::Malformed, ""),
        (b"*0\r\n", ErrorKind::Malformed, ""),
        (b"$-1\r\n", ErrorKind::Malformed, ""),
    ] {
        let answers = Box::leak(Box::new([("EVAL", answer)]));
        let place = store::open(&format!("{}&layout=document", lying(answers))).await.unwrap();
        let (key, expected) = (Key::new("a").unwrap(), Expected::field("rev", "1"));
        let row = Row { key: key.clone(), record: Document::new() };
        let done = [place.put_if(&row, &expected).await, place.remove_if(&key, &expected).await];
        for done in done {
            let error = done.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.to_string().starts_with("127.0.0.1:"), "{error}");
        }
    }
}
