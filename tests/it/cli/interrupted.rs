//! A run that is broken off: the old file stays, and nothing is left beside it.

use std::{
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{CATALOGUE, Desk, STEELYARD, ran};
use crate::children::{Child, Command};

/// A copy from a pipe that was fed some megabytes and is not closed, so that it cannot end.
fn in_mid_copy(desk: &Desk, args: &str) -> (Child, std::process::ChildStdin) {
    let mut command = desk.command(args.split(' '));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..40 {
        stdin.write_all(&CATALOGUE).unwrap();
    }
    // All was taken but what a pipe and the reader's buffers hold: it is at work.
    assert!(desk.names().iter().any(|n| n.ends_with(".part")), "{:?}", desk.names());
    (child, stdin)
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// Waits until `done`; a minute at most.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} did not come about");
        std::thread::yield_now();
    }
}

#[test]
fn a_signal_leaves_the_old_file_and_nothing_else() {
    for how in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        for args in [
            "copy - b.json --from marc21",
            "copy - b.json.gz --from marc21",
            "copy - b.xml.zst --from marc21 --rejects r.mrc",
        ] {
            let desk = Desk::new();
            let target = args.split(' ').nth(2).unwrap();
            desk.write(target, "old");
            let (mut child, stdin) = in_mid_copy(&desk, args);
            signal(&child, how);
            let status = child.wait().unwrap();
            drop(stdin);
            // By the signal, so that whoever runs it knows.
            assert_eq!(status.signal(), Some(how as i32), "{args}");
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(said, "", "{args}");
            assert_eq!(desk.read(target), b"old", "{args}");
            assert_eq!(desk.names(), [target], "{args} {how}");
        }
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let desk = Desk::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" copy - b.json --from marc21 -q", STEELYARD]);
    shell.current_dir(desk.path()).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&CATALOGUE).unwrap();
    wait_until("the copy's beginning", || !desk.names().is_empty());
    signal(&child, Signal::SIGHUP);
    stdin.write_all(&CATALOGUE).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(desk.read("b.json").split_inclusive(|b| *b == b'\n').count(), 240);
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
    for (args, target) in [
        ("copy a.mrc b.json", "b.json"),
        ("copy a.mrc b.json.gz --from marc21", "b.json.gz"),
        ("copy a.mrc b.json.zst", "b.json.zst"),
        ("generate catalogue b.mrc --count 20000", "b.mrc"),
    ] {
        let desk = Desk::new();
        desk.write("a.mrc", CATALOGUE.repeat(30));
        desk.write(target, "old");
        let before = desk.names();
        // As on a full disk: no file may be longer than 64 blocks.
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 64; exec \"$0\" \"$@\"", STEELYARD]).args(args.split(' '));
        let ran = ran(shell.current_dir(desk.path()).output().unwrap());
        assert_eq!(ran.status, Some(3), "{args}: {}", ran.err);
        assert!(ran.err.contains(&format!("{target}: File too large")), "{args}: {}", ran.err);
        assert_eq!(desk.read(target), b"old");
        assert_eq!(desk.names(), before, "{args}");
    }
}

#[test]
fn a_bench_ends_after_its_round_and_reports() {
    let desk = Desk::with_catalogue();
    let args = "bench formats a.mrc --formats json,marc21 --budget 600 --rounds 1000 \
                --no-compressed --out r.json";
    let mut command = desk.command(args.split_whitespace());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Results are kept after each round.
    wait_until("a round", || {
        desk.names().contains(&"r.json".into()) || child.try_wait().unwrap().is_some()
    });
    signal(&child, Signal::SIGINT);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.signal), (None, Some(Signal::SIGINT as i32)), "{}", ran.err);
    assert!(
        ran.text().contains("warning: interrupted; these are the rounds it had"),
        "{}",
        ran.text()
    );
    assert!(desk.run("report r.json").well().text().contains("Interrupted"));
}

/// Operations that take longer than the test waits, and records that do.
const LONG: [&str; 2] = [
    "[table.records]\ndataset = \"people\"\ncount = 100\n[[phase]]\nname = \"a\"\ndo = \"get\"\n\
     seconds = 9000\n",
    "[table.records]\ndataset = \"people\"\ncount = 1000000000\n[[phase]]\nname = \"a\"\ndo = \"find\"\n\
     where = \"age>=90\"\n",
];

#[test]
fn a_bench_without_a_round_ends_by_the_signal_and_leaves_the_old_file() {
    for (how, long) in
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().zip(LONG.into_iter().cycle())
    {
        let desk = Desk::new();
        let load = "[[phase]]\nname = \"load\"\ndo = \"load\"\n";
        let phases = long.replacen("[[phase]]", &format!("{load}[[phase]]"), 1);
        desk.write("long.toml", format!("name = \"long\"\nabout = \"Long.\"\n{phases}"));
        desk.write("r.json", "old");
        let args = "bench long.toml --on memory --no-audit --out r.json";
        let mut command = desk.command(args.split(' '));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has begun, and no signal ends it by itself, when it has a thread that looks for one.
        let tasks = format!("/proc/{}/task", child.id());
        wait_until("a thread that looks", || {
            std::fs::read_dir(&tasks).unwrap().flatten().any(|task| {
                let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                name.trim() == "bench stop"
            })
        });
        signal(&child, how);
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.signal), (None, Some(how as i32)), "{}", ran.err);
        assert_eq!(desk.read("r.json"), b"old");
        assert_eq!(ran.text(), "");
        assert!(ran.err.contains("interrupted before the first round was done"), "{}", ran.err);
    }
}

/// A bench that goes on for long, when it has made its folder in one for temporary files that is its own.
fn long_bench(desk: &Desk) -> Child {
    let temporary = desk.path().join("t");
    std::fs::create_dir(&temporary).unwrap();
    let args =
        "bench formats a.mrc --formats json,marc21 --budget 600 --rounds 1000 --no-compressed";
    let mut command = desk.command(args.split(' '));
    command.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("a folder", || !left(desk).is_empty());
    child
}

fn left(desk: &Desk) -> Vec<std::ffi::OsString> {
    let all = std::fs::read_dir(desk.path().join("t")).unwrap();
    all.map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_bench_says_at_once_that_it_ends_and_leaves_nothing() {
    const SAID: &str = "ending after this pass; Ctrl-C again quits\n";
    for signals in [&[Signal::SIGINT][..], &[Signal::SIGINT, Signal::SIGINT]] {
        let desk = Desk::with_catalogue();
        let child = long_bench(&desk);
        let begin = Instant::now();
        for how in signals {
            signal(&child, *how);
            let tasks = format!("/proc/{}/task", child.id());
            // The second one after the first was heard: the same signal is not kept twice.
            wait_until("an answer", || {
                let pending = std::fs::read_to_string(format!("{tasks}/../status"));
                let pending = pending.unwrap_or_default();
                let none =
                    |name| pending.lines().any(|l| l == format!("{name}:\t0000000000000000"));
                pending.is_empty() || none("ShdPnd")
            });
        }
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.signal), (None, Some(Signal::SIGINT as i32)), "{}", ran.err);
        assert!(signals.len() > 1 || ran.err.starts_with(SAID), "{}", ran.err);
        assert_eq!(left(&desk), [""; 0], "{}", ran.err);
        // Two seconds on a machine that has nothing else to do.
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    }
}

#[test]
fn what_a_killed_bench_left_is_swept_by_the_next() {
    let desk = Desk::with_catalogue();
    let mut child = long_bench(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left(&desk).len(), 1);
    let args = "bench formats a.mrc --formats json --rounds 1 --budget 1 --no-compressed";
    let mut next = desk.command(args.split(' '));
    let ran = ran(next.env("TMPDIR", desk.path().join("t")).output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert_eq!(left(&desk), [""; 0]);
}
