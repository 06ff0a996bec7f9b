//! For tests: a server that answers as none in its senses does.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use futures_util::TryStreamExt;

use crate::{
    ErrorKind, Result,
    store::{self, Key, KeyRange},
};

/// A server that answers each of these commands so, and all others with OK; gone when the test is over.
fn lying(answers: &'static [(&'static str, &'static [u8])]) -> String {
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
                        command.push(part);
                    }
                    let name = String::from_utf8_lossy(&command[0]).trim().to_owned();
                    let known = answers.iter().find(|answer| answer.0 == name);
                    // Of its settings it says nothing.
                    let usual: &[u8] = if name == "CONFIG" { b"*0\r\n" } else { b"+OK\r\n" };
                    output.write_all(known.map_or(usual, |known| known.1))?;
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
        (b"*1\r\n$-99\r\n", "is none"),
        (b"*-99\r\n", "is none"),
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
    assert!(error.to_string().contains("SCAN go in circles"), "{error}");
}
