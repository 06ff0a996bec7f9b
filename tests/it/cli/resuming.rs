//! Copies that are killed, or whose server is, and go on where they were.

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use steelyard::{
    ErrorKind,
    durability::Tier,
    server::{PROGRAMS, Wish},
};

use super::{Desk, keeping::sorted, ran};
use crate::programs;

/// Starts a copy from `p.json`, and stops it (SIGSTOP) when its journal says that so many batches
/// are written, so that it cannot end before something is killed; false where it ended earlier.
fn under_way(desk: &Desk, args: &str, batches: usize) -> (Child, bool) {
    let mut command = desk.command(args.split(' '));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let done = || {
        let journal = std::fs::read_to_string(desk.path().join("p.json.copying"));
        journal.map_or(0, |text| text.matches("\"done\"").count())
    };
    while done() < batches {
        if child.try_wait().unwrap().is_some() {
            return (child, false);
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no progress");
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(child.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    let ended = child.try_wait().unwrap().is_some();
    (child, !ended && done() >= batches)
}

/// Killed again and again, a copy that is resumed loses and doubles nothing.
#[test]
fn a_copy_that_is_killed_can_be_resumed() {
    let desk = Desk::new();
    let people = desk.run("generate people --count 60000 --seed 5").well().out;
    // Some records are rejected: they are not to be doubled either.
    let mut source = Vec::new();
    for (i, line) in people.split_inclusive(|b| *b == b'\n').enumerate() {
        source.extend_from_slice(line);
        if i % 1000 == 999 {
            source.extend_from_slice(format!("{{\"no key\":{i}}}\n").as_bytes());
        }
    }
    desk.write("p.json", &source);
    let args = "copy p.json sqlite:p.db?durability=t3 --key key --resume --rejects bad.json --json";
    for batches in [2, 4, 6] {
        let (mut child, in_the_middle) = under_way(&desk, args, batches);
        assert!(in_the_middle, "it was over before it was killed");
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
        assert!(!child.wait().unwrap().success());
    }
    let done = desk.run(args);
    assert!(
        done.err
            .contains(r#""read":60060,"written":60000,"left_out":0,"repaired":0,"rejected":60"#),
        "{}",
        done.err
    );
    assert!(!desk.names().contains(&"p.json.copying".into()));
    let bad = String::from_utf8(desk.read("bad.json")).unwrap();
    assert_eq!((bad.lines().count(), bad.lines().next()), (60, Some("{\"no key\":999}")));
    assert_eq!(String::from_utf8(desk.read("bad.json.reasons")).unwrap().lines().count(), 60);
    desk.run("copy sqlite:p.db back.json").well();
    assert_eq!(sorted(&desk.read("back.json")), sorted(&people));
    // A journal of another copy is not gone on with.
    desk.write(
        "p.json.copying",
        r#"{"copy":{"source":"x","target":"y","options":"z"}}"#.to_owned() + "\n",
    );
    let other = desk.run(args);
    assert_eq!(other.status, Some(3));
    assert!(other.err.contains("the journal is of another copy"), "{}", other.err);
}

/// A server that acknowledges durably is killed in the middle of a copy, twice: what it has
/// acknowledged is there, and resumed, every record is there once.
#[test]
fn a_copy_whose_server_is_killed_can_be_resumed() {
    const COUNT: usize = 12_000;
    let text = "x".repeat(1000);
    let lines: String = (0..COUNT)
        .map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n},\"text\":\"{text}\"}}\n"))
        .collect();
    for program in PROGRAMS.iter().filter(|program| program.tiers.contains(&Tier::T3)) {
        let name = program.name;
        // Where there is no MongoDB, FerretDB stands for it.
        if name == "mongodb" && program.find().is_none() {
            continue;
        }
        let wish = Wish { tier: Some(Tier::T3), ..Wish::default() };
        let mut server = match program.start(&wish) {
            Ok(server) => server,
            // express-pouchdb speaks CouchDB's protocol, and promises nothing.
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                programs::skip(e);
                continue;
            }
            Err(e) => panic!("{e:?}"),
        };
        let desk = Desk::new();
        desk.write("p.json", &lines);
        let join = if server.url().contains('?') { '&' } else { '?' };
        let url = format!("{}{join}table=p&durability=t3&timeout=10", server.url());
        let args = format!("copy p.json {url} --key key --resume");
        for batches in [2, 5] {
            let (child, in_the_middle) = under_way(&desk, &args, batches);
            assert!(in_the_middle, "{name}: it was over before its server was killed");
            server.kill();
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGCONT).unwrap();
            let failed = ran(child.wait_with_output().unwrap());
            assert_eq!(failed.status, Some(3), "{name}: {}", failed.err);
            assert!(failed.err.contains("--resume"), "{name}: {}", failed.err);
            server.restart().unwrap();
        }
        let done = desk.run(&args).well();
        assert!(done.err.contains("12,000 records read, 12,000 written"), "{name}: {}", done.err);
        assert!(!desk.names().contains(&"p.json.copying".into()), "{name}");
        desk.run(&format!("copy {url} back.json")).well();
        let back = desk.read("back.json");
        let back: Vec<serde_json::Value> =
            sorted(&back).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut numbers: Vec<_> = back.iter().map(|record| record["n"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..COUNT as u64), "{name}: not every record once");
        assert!(back.iter().all(|record| record["text"] == *text), "{name}");
    }
}
