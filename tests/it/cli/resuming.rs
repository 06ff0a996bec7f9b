//! Copies that are killed, or whose server is, and go on where they were.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use steelyard::{
    ErrorKind,
    durability::Tier,
    server::{PROGRAMS, Server, Wish},
};

use super::{Desk, keeping::sorted, ran};
use crate::{children::Child, programs};

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
    let people = desk.run("generate people --count 150000 --seed 5").well().out;
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
        done.err.contains(
            r#""read":150150,"written":150000,"left_out":0,"repaired":0,"faulty":0,"rejected":150,"duplicates":0"#
        ),
        "{}",
        done.err
    );
    assert!(!desk.names().contains(&"p.json.copying".into()));
    let bad = String::from_utf8(desk.read("bad.json")).unwrap();
    assert_eq!((bad.lines().count(), bad.lines().next()), (150, Some("{\"no key\":999}")));
    assert_eq!(String::from_utf8(desk.read("bad.json.reasons")).unwrap().lines().count(), 150);
    desk.run("copy sqlite:p.db back.json --key key").well();
    assert_eq!(sorted(&desk.read("back.json")), sorted(&people));
    // A journal of another copy is not gone on with.
    desk.write(
        "p.json.copying",
        r#"{"copy":{"source":"x","target":"y","options":"z"}}"#.to_owned() + "\n",
    );
    let other = desk.run(args);
    assert_eq!(other.status, Some(3));
    assert!(other.err.contains("the journal belongs to another copy"), "{}", other.err);
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    Server,
    Client,
}

/// A server that acknowledges durably is killed in the middle of a copy, and so is who copies: what
/// was acknowledged is there, and resumed, every record is there once. `STEELYARD_KILLS` is how often on each
/// server, a multiple of three.
#[test]
fn a_copy_whose_server_is_killed_can_be_resumed() {
    let kills = std::env::var("STEELYARD_KILLS").map_or(3, |text| text.parse().expect("a number"));
    for program in PROGRAMS.iter().filter(|program| program.tiers.contains(&Tier::T3)) {
        // Where there is no MongoDB, FerretDB stands for it.
        if program.name == "mongodb" && program.find().is_none() {
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
        // A busy machine may let a copy end before it is seen to be under way: another then.
        let mut tables = 0..kills;
        for _ in 0..kills / 3 {
            let killed = tables.any(|table| killed_in_the_middle(program.name, &mut server, table));
            assert!(killed, "{}: copies are over before anything is killed", program.name);
        }
        println!("{}: {kills} kills", program.name);
    }
}

/// One copy with three kills, unless it was over before one of them.
fn killed_in_the_middle(name: &str, server: &mut Server, table: u32) -> bool {
    const COUNT: usize = 12_000;
    let text = "x".repeat(1000);
    let lines: String = (0..COUNT)
        .map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n},\"text\":\"{text}\"}}\n"))
        .collect();
    let desk = Desk::new();
    desk.write("p.json", &lines);
    let join = if server.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{join}table=p{table}&durability=t3&timeout=10", server.url());
    let args = format!("copy p.json {url} --key key --resume");
    for (batches, who) in [(2, Who::Server), (3, Who::Client), (5, Who::Server)] {
        let (mut child, in_the_middle) = under_way(&desk, &args, batches);
        if !in_the_middle {
            assert!(child.wait().unwrap().success(), "{name}");
            return false;
        }
        let pid = Pid::from_raw(child.id().cast_signed());
        match who {
            Who::Server => server.kill(),
            Who::Client => kill(pid, Signal::SIGKILL).unwrap(),
        }
        let _ = kill(pid, Signal::SIGCONT);
        let failed = ran(child.wait_with_output().unwrap());
        if who == Who::Server {
            assert_eq!(failed.status, Some(3), "{name}: {}", failed.err);
            assert!(failed.err.contains("--resume"), "{name}: {}", failed.err);
            server.restart().unwrap();
        }
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
    true
}

/// The name of a journal can be guessed: what somebody else put there is neither followed nor waited for.
#[test]
fn a_journal_that_is_a_link_or_a_pipe_is_refused() {
    let desk = Desk::new();
    desk.run("generate users p.json --count 20").well();
    desk.write("victim", "precious");
    let journal = desk.path().join("p.json.copying");
    for pipe in [false, true] {
        match pipe {
            true => nix::unistd::mkfifo(&journal, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            false => std::os::unix::fs::symlink(desk.path().join("victim"), &journal).unwrap(),
        }
        let ran = desk.run("copy p.json sqlite:t.db --key id --resume");
        assert_eq!(ran.status, Some(3), "{}", ran.err);
        assert!(ran.err.contains("p.json.copying: the journal is"), "{}", ran.err);
        assert_eq!(desk.read("victim"), b"precious");
        std::fs::remove_file(&journal).unwrap();
    }
    desk.run("copy p.json sqlite:t.db --resume").well();
}

/// The same of the files of rejected records: nothing is written to what is no file of this user.
#[test]
fn rejects_that_are_links_or_pipes_are_refused() {
    let desk = Desk::new();
    desk.write("p.json", "{\"id\":1}\n{\"no\":2}\n");
    desk.write("victim", "precious");
    for (name, pipe) in [("r", false), ("r.reasons", false), ("r", true), ("r.reasons", true)] {
        let planted = desk.path().join(name);
        match pipe {
            true => nix::unistd::mkfifo(&planted, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            false => std::os::unix::fs::symlink(desk.path().join("victim"), &planted).unwrap(),
        }
        let ran = desk.run("copy p.json sqlite:t.db --key id --resume --rejects r");
        assert_eq!(ran.status, Some(3), "{}", ran.err);
        let said = format!("{name}: the file of rejected records is");
        assert!(ran.err.contains(&said) && ran.err.contains("--rejects"), "{}", ran.err);
        assert_eq!(desk.read("victim"), b"precious");
        // The other one may be there by now.
        for made in ["r", "r.reasons"] {
            let _ = std::fs::remove_file(desk.path().join(made));
        }
    }
    let ran = desk.run("copy p.json sqlite:t.db --key id --resume --rejects r");
    assert_eq!((ran.status, &*desk.read("r")), (Some(1), &b"{\"no\":2}\n"[..]), "{}", ran.err);
}

/// What an earlier run has rejected and is gone would be missing, or be bytes that nobody wrote.
#[test]
fn rejects_that_are_gone_are_told() {
    let desk = Desk::new();
    let lines: String = (0..40_000)
        .map(|n| match n % 100 {
            7 => format!("{{\"no\":{n}}}\n"),
            _ => format!("{{\"id\":{n},\"text\":\"some words\"}}\n"),
        })
        .collect();
    desk.write("p.json", &lines);
    let args = "copy p.json sqlite:t.db --key id --resume --rejects r";
    let (mut child, in_the_middle) = under_way(&desk, args, 2);
    assert!(in_the_middle, "it was over before it was killed");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    for name in ["r", "r.reasons"] {
        let whole = desk.read(name);
        desk.write(name, &whole[..10]);
        let ran = desk.run(args);
        assert_eq!(ran.status, Some(3), "{}", ran.err);
        assert!(ran.err.contains(&format!("{name}: it lacks records")), "{}", ran.err);
        desk.write(name, &whole);
    }
    assert_eq!(desk.run(args).status, Some(1));
    assert_eq!(desk.read("r").split_inclusive(|b| *b == b'\n').count(), 400);
}

/// A copy that ends in the middle says how many records it has written, and how to go on.
#[test]
fn a_copy_that_breaks_off_says_how_far_it_came() {
    let desk = Desk::new();
    desk.run("generate people whole.json.gz --count 30000 --seed 5").well();
    let whole = desk.read("whole.json.gz");
    desk.write("p.json.gz", &whole[..whole.len() * 2 / 3]);
    let number = |err: &str, what: &str| -> usize {
        let line = err.lines().find(|line| line.contains("before it stopped")).expect(err);
        let at = line.find(&format!(" {what}")).expect(line);
        let digits = line[..at].rsplit(' ').next().unwrap().replace(',', "");
        digits.parse().expect(line)
    };
    for (args, advice) in [
        ("copy p.json.gz sqlite:a.db --key key", "with --resume to write all of them again"),
        (
            "copy p.json.gz sqlite:b.db --key key --resume",
            "to continue from there (journal p.json.gz.copying)",
        ),
    ] {
        let ran = desk.run(args);
        assert_eq!(ran.status, Some(3), "{}", ran.err);
        assert!(ran.err.contains(advice), "{}", ran.err);
        let there = desk.run(&format!("each {}", args.split(' ').nth(2).unwrap())).well();
        let there = there.text().lines().count();
        assert!(there > 1000);
        assert_eq!(number(&ran.err, "written"), there, "{}", ran.err);
        // A second one fails at the same place, and has not written less.
        assert_eq!(number(&desk.run(args).err, "written"), there);
    }
    let ran = desk.run("copy p.json.gz b.msgpack");
    assert_eq!(ran.status, Some(3));
    assert!(ran.err.contains("nothing was written to b.msgpack"), "{}", ran.err);
    assert!(!desk.names().contains(&"b.msgpack".into()));
    let ran = desk.run("copy p.json.gz - --to json");
    assert_eq!(ran.status, Some(3));
    let lines = ran.text().lines().count();
    assert_eq!(number(&ran.err, "written"), lines, "{}", ran.err);
}

/// Whatever became of a journal: what is told of it is for people, and nothing is copied as it says unless it is a
/// journal of this copy.
#[test]
fn a_journal_that_is_damaged_is_told_in_plain_words() {
    let desk = Desk::new();
    desk.run("generate people p.json --count 20000 --seed 5").well();
    let args = "copy p.json sqlite:t.db --key key --where age>=10 --resume --on-duplicate last";
    let (mut child, in_the_middle) = under_way(&desk, args, 2);
    assert!(in_the_middle, "it was over before it was killed");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let whole = String::from_utf8(desk.read("p.json.copying")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let mut damaged: Vec<String> = [
        "poem",
        "[]",
        "null",
        "7",
        "{}",
        r#"{"copy":5}"#,
        r#"{"copy":{"source":"x"}}"#,
        r#"{"version":2}"#,
        r#"{"trying":{"page":3}}"#,
        r#"{"done":[{"offset":"x"},{},1]}"#,
        r#"{"done":[{"offset":-1},{"read":1},1]}"#,
        r#"{"done":[1]}"#,
        r#"{"empty":"yes"}"#,
        "\u{0}\u{0}\u{0}",
    ]
    .iter()
    .flat_map(|line| [format!("{line}\n"), format!("{first}\n{line}\n{last}\n")])
    .collect();
    // Without its first line, with that twice, and with lines that end too early.
    damaged.push(lines[1..].join("\n") + "\n");
    damaged.push(format!("{first}\n{whole}"));
    damaged.extend((1..first.len()).step_by(7).map(|end| format!("{}\n{last}\n", &first[..end])));
    damaged.extend((1..last.len()).step_by(7).map(|end| format!("{first}\n{}\n", &last[..end])));
    for journal in damaged {
        desk.write("p.json.copying", &journal);
        let ran = desk.run(args);
        assert_eq!(ran.status, Some(3), "{journal}: {}", ran.err);
        let place = ran.err.starts_with("error: p.json.copying: line ");
        assert!(place && ran.err.contains("remove the file"), "{journal}: {}", ran.err);
        plain(&ran.err);
        assert_eq!(desk.read("p.json.copying"), journal.as_bytes(), "it is left as it is");
    }
    // Those that are of another copy, and say of which.
    for (other, said) in [
        (
            "copy p.json sqlite:t.db --key name --resume",
            "--where age>=10 --key key --on-duplicate last;",
        ),
        (
            "copy p.json sqlite:u.db --key key --where age>=10 --resume --on-duplicate last",
            "to sqlite:t.db,",
        ),
    ] {
        desk.write("p.json.copying", &whole);
        let other: Vec<&str> = other.split(' ').collect();
        let ran = ran(desk.command(other).output().unwrap());
        assert_eq!(ran.status, Some(3), "{}", ran.err);
        assert!(
            ran.err.contains("the journal belongs to another copy") && ran.err.contains(said),
            "{}",
            ran.err
        );
        plain(&ran.err);
    }
    // Cut in the middle of its last line, as by a crash, it is gone on with.
    desk.write("p.json.copying", &whole[..whole.len() - 5]);
    desk.run(args).well();
}

/// Nothing of how it is programmed.
#[track_caller]
fn plain(text: &str) {
    for inside in
        ["{", "Some(", "None", "struct ", "enum ", "variant", "kind:", "expected", "u64", "Error("]
    {
        assert!(!text.contains(inside), "{inside:?} in {text}");
    }
}
