//! Errors have bounds, however long what they quote is: a record, a key, a name, a server's answer.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use steelyard::{
    format::{Coder, Format, Wrapped, framing::Glue},
    record::{Document, Value},
};

use super::{Desk, Ran, ran};
use crate::children::Command;

/// How long what is quoted is, and the longest line that may be told of it.
const LONG: usize = 300_000;
const LINE: usize = 20_000;

/// Runs it, and sees that no line is too long.
#[track_caller]
fn tells_briefly(desk: &Desk, args: &[&str]) -> Ran {
    let mut command: Command = desk.command(args);
    let ran = ran(command.output().unwrap());
    let mut said: Vec<usize> = ran.err.lines().map(str::len).collect();
    // What others print there are records, which are whole.
    if args[0] == "check" {
        said.extend(ran.text().lines().map(str::len));
    }
    let longest = said.iter().max().copied().unwrap_or(0);
    assert!(longest <= LINE, "{:.200?}: a line of {longest} bytes", args);
    assert!(said.len() < 200, "{:.200?}: {} lines", args, said.len());
    ran
}

/// A file of this format whose one record has a long name and a long value; none where it takes no such records.
fn long(format: Format, name: &str, value: &str) -> Option<Vec<u8>> {
    let wrapped = Wrapped::from(format);
    let (mut coder, mut glue) = (Coder::new(wrapped.clone()).ok()?, Glue::new(&wrapped));
    let mut file = Vec::new();
    let record = Document::from_iter([(name, Value::from(value)), ("b", Value::Int(7))]);
    for _ in 0..2 {
        glue.put(&mut file, |out| coder.encode(&record, out)).ok()?;
    }
    glue.finish(&mut file);
    Some(file)
}

#[test]
fn what_is_wrong_with_a_long_record_is_told_briefly() {
    let desk = Desk::with_catalogue();
    let text = "x\u{9b}".repeat(LONG / 3);
    let mut seen = 0;
    for &format in Format::ALL {
        let name = format.name();
        for (field, value) in [("a", &*text), (&*text, "a")] {
            let Some(file) = long(format, field, value) else { continue };
            seen += 1;
            // As it is, cut off at several places, and with bytes in it that have no place there.
            let mut files = vec![file.clone()];
            files.extend([1, LONG / 2].map(|n| file[..file.len() - n.min(file.len())].to_vec()));
            for at in [3, LONG / 2] {
                for byte in [0xff, b'}'] {
                    let mut odd = file.clone();
                    odd[at] = byte;
                    files.push(odd);
                }
            }
            for (n, file) in files.into_iter().enumerate() {
                desk.write("long", file);
                tells_briefly(&desk, &["check", "--pedantic", "long", "--from", name]);
                if n > 1 {
                    continue;
                }
                for to in ["out.json", "out.mrc"] {
                    tells_briefly(&desk, &["copy", "long", to, "--from", name, "--strict"]);
                }
                for key in ["a", "c"] {
                    let to = ["sqlite:x.db", "--key", key, "--on-duplicate", "reject"];
                    tells_briefly(&desk, &[&["copy", "long", "--from", name][..], &to].concat());
                }
                tells_briefly(&desk, &["put", "sqlite:y.db", "--key", "a", "long", "--from", name]);
            }
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn a_long_argument_is_told_briefly() {
    let desk = Desk::with_catalogue();
    desk.run("copy a.mrc sqlite:a.db --key 001 -q").well();
    // The longest argument that Linux passes on is 128 KiB.
    let long = "k".repeat(100_000);
    let field = format!("{long}=1");
    let url = format!("sqlite:{long}");
    let server = format!("redis://127.0.0.1:1/0?table={long}");
    let cut_off = format!("{long}=1 and");
    for args in [
        &["each", "sqlite:a.db", "--where", &cut_off][..],
        &["get", "sqlite:a.db", &long],
        &["delete", "sqlite:a.db", &long],
        &["each", "sqlite:a.db", "--where", &field],
        &["each", "sqlite:a.db", "--fields", &long],
        &["each", "sqlite:a.db", "--sort", &long],
        &["each", &url],
        &["each", &server],
        &["show", &long],
        &["check", &long],
        &["copy", &long, "out.json"],
        &["copy", "a.mrc", &long],
        &["copy", "a.mrc", "sqlite:b.db", "--key", &long],
        &["copy", "a.mrc", "out.json", "--where", &field],
        &["report", &long],
    ] {
        tells_briefly(&desk, args);
    }
}

/// Answers whoever asks with the same bytes; `first`, before it is asked.
fn server(answer: Vec<u8>, first: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move |mut to: TcpStream| {
        let mut asked = [0; 4096];
        if first {
            let _ = to.write_all(&answer);
        }
        while to.read(&mut asked).is_ok_and(|n| n > 0) && to.write_all(&answer).is_ok() {}
    };
    std::thread::spawn(move || {
        for to in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(to));
        }
    });
    port
}

#[test]
fn a_long_refusal_of_a_server_is_told_briefly() {
    let (desk, mut quoted) = (Desk::new(), 0);
    let long = "no".repeat(LONG / 2);
    let http = |kind: &str, body: String| {
        let length = body.len();
        format!("HTTP/1.1 400 Bad Request\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let postgres = {
        let body = format!("SERROR\0C42601\0M{long}\0D{long}\0\0");
        [&b"E"[..], &(body.len() as u32 + 4).to_be_bytes(), body.as_bytes()].concat()
    };
    let mysql = {
        let body = [&b"\xff\x10\x04#08004"[..], long.as_bytes()].concat();
        [&(body.len() as u32).to_le_bytes()[..3], b"\0", &body].concat()
    };
    for (scheme, path, answer) in [
        ("redis", "/0", format!("-ERR {long}\r\n").into_bytes()),
        ("memcached", "", format!("SERVER_ERROR {long}\r\n").into_bytes()),
        ("postgres", "/d", postgres.clone()),
        ("postgres", "/d?client=crate", postgres),
        ("mysql", "/d", mysql.clone()),
        ("mysql", "/d?client=crate", mysql),
        (
            "couchdb",
            "/d",
            http("application/json", format!("{{\"error\":\"bad\",\"reason\":\"{long}\"}}")),
        ),
        ("couchdb", "/d", http("text/html", long.clone())),
        (
            "s3",
            "",
            http(
                "application/xml",
                format!("<Error><Code>X</Code><Message>{long}</Message></Error>"),
            ),
        ),
        ("s3", "", http("text/plain", long.clone())),
    ] {
        let port = server(answer, scheme == "mysql");
        let url = match scheme {
            "s3" => format!(
                "s3://b/p?endpoint=http://127.0.0.1:{port}&region=r&access_key_id=u&secret_access_key=pass&timeout=5"
            ),
            _ => {
                let mark = if path.contains('?') { '&' } else { '?' };
                format!("{scheme}://127.0.0.1:{port}{path}{mark}timeout=5")
            }
        };
        let ran = tells_briefly(&desk, &["get", &url, "k"]);
        assert!(matches!(ran.status, Some(2 | 3)), "{url}: {ran:?}");
        quoted += usize::from(ran.err.contains("nono"));
    }
    assert!(quoted > 4, "{quoted}");
}
