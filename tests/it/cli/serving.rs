//! `steelyard serve PLACE`, from its start to its end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{Desk, Ran, ran};
use crate::children::Child;

/// A gateway that runs, and what it printed: where it is, and a key for each of its tenants.
struct Served {
    child: Child,
    address: String,
    keys: Vec<String>,
}

impl Served {
    /// Starts one that prints so many keys.
    fn start(desk: &Desk, args: &[&str], keys: usize) -> Served {
        let args = [&["serve", "--address", "127.0.0.1:0"], args].concat();
        let mut child =
            desk.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut found = Served { child, address: String::new(), keys: Vec::new() };
        while found.keys.len() < keys {
            let Some(line) = lines.next() else {
                panic!("{}", ran(found.child.wait_with_output().unwrap()).err)
            };
            let line = line.unwrap();
            if let Some((_, key)) = line.split_once("Bearer ") {
                found.keys.push(key.split_once('\'').unwrap().0.to_owned());
            } else if let Some(link) = line.strip_prefix("http://") {
                found.address = link.split_once('/').unwrap().0.to_owned();
            }
        }
        found
    }

    /// The status of the answer, and its body.
    fn ask(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Ends it by a signal: by none but that, once what was in flight is answered.
    fn end(self, signal: Signal) -> Ran {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        let ran = ran(self.child.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.signal), (None, Some(signal as i32)), "{}", ran.err);
        ran
    }
}

#[test]
fn a_store_that_is_not_there_yet_is_made_by_the_first_write() {
    let desk = Desk::new();
    let served = Served::start(&desk, &["sqlite:new.db", "--write"], 1);
    let key = &served.keys[0];
    let collections = served.ask(key, "GET", "/v1/docs", "");
    assert_eq!(collections, (200, r#"{"collections":[]}"#.to_owned()));
    assert_eq!(served.ask(key, "PUT", "/v1/docs/people/bob", r#"{"age":42}"#).0, 201);
    let got = served.ask(key, "GET", "/v1/docs/people/bob", "");
    assert_eq!(got, (200, r#"{"age":42}"#.to_owned()));
    served.end(Signal::SIGTERM);
    let each = desk.run("each sqlite:new.db?table=people --fields age").well();
    assert_eq!(each.text(), "{\"_key\":\"bob\",\"age\":42}\n");
}

#[test]
fn a_file_of_records_is_served_to_be_read() {
    let desk = Desk::with_catalogue();
    let served = Served::start(&desk, &["a.mrc"], 1);
    let key = &served.keys[0];
    assert_eq!(served.ask(key, "GET", "/v1/docs/a:count", "").1, r#"{"count":120}"#);
    assert_eq!(served.ask(key, "PUT", "/v1/docs/a/bob", "{}").0, 403);
    assert_eq!(served.ask("made.up", "GET", "/v1/docs", "").0, 401);
    for signal in [Signal::SIGHUP, Signal::SIGINT] {
        let served = Served::start(&desk, &["a.mrc"], 1);
        served.end(signal);
    }
    served.end(Signal::SIGINT);
}

#[test]
fn the_demonstration_keeps_its_tenants_apart_and_leaves_nothing() {
    let desk = Desk::new();
    let served = Served::start(&desk, &["--demo"], 2);
    let people = served.ask(&served.keys[0], "GET", "/v1/docs/people?limit=1", "").1;
    assert_ne!(people, served.ask(&served.keys[1], "GET", "/v1/docs/people?limit=1", "").1);
    let ran = served.end(Signal::SIGTERM);
    assert!(
        ran.err.contains("tenant austin:") && ran.err.contains("tenant dallas:"),
        "{}",
        ran.err
    );
    assert!(desk.names().is_empty(), "{:?}", desk.names());
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let desk = Desk::new();
    for (args, status, says) in [
        ("serve sqlite:none.db", 3, "sqlite:none.db: no such database"),
        ("serve none.json", 3, "none.json: No such file"),
        ("serve ftp://x", 2, "unknown store scheme \"ftp\""),
        ("serve --config none.toml", 3, "none.toml: No such file"),
    ] {
        let ran = desk.run(args);
        assert_eq!(ran.status, Some(status), "{args}: {}", ran.err);
        assert!(ran.err.contains(says), "{args}: {}", ran.err);
    }
    assert!(desk.names().is_empty(), "{:?}", desk.names());
}

/// Looking at a configuration makes nothing, and shows no password of it.
#[test]
fn a_configuration_is_checked_and_nothing_is_made() {
    let desk = Desk::new();
    let secret = desk.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, mode).unwrap();
    let check = |text: &str| {
        std::fs::write(desk.path().join("steelyard.toml"), text).unwrap();
        desk.run("serve --config steelyard.toml --check-config")
    };
    let head = "catalog = \"sqlite:catalog.db\"\nsecret_file = \"secret\"\n";
    let checked = check(&format!("{head}[shard.one]\nurl = \"sqlite:one.db\"\n"));
    assert!(
        checked.err.contains("no catalog here yet") && checked.status == Some(0),
        "{}",
        checked.err
    );
    for name in ["catalog.db", "one.db"] {
        assert!(!desk.path().join(name).exists(), "{name}");
    }
    // One that cannot be reached, and one whose line cannot be read.
    for line in ["url = ", "ulr = "] {
        let url = "mysql://gw:hush12@127.0.0.1:1/nosuch";
        let checked = check(&format!("{head}[shard.one]\n{line}\"{url}\"\n"));
        assert!(checked.status != Some(0) && !checked.err.contains("hush12"), "{}", checked.err);
    }
}
