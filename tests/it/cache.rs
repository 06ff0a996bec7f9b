//! `steelyard bench cache` on real servers, with our clients and those that are installed.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Output, Stdio},
};

use steelyard::{
    bench::{
        cache::protocol::{Done, Task},
        results::{Cell, Results, Verdict},
        save,
    },
    memcache::{Client, Expiry, Options},
    server::{Server, Wish},
};

use crate::{
    children::Command,
    programs::{self, need},
};

const OWN: [&str; 3] = ["floor", "steelyard", "steelyard-async"];

fn bench(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_steelyard");
    let output = Command::new(program).args(["bench", "cache", "--full"]).args(args).output();
    output.expect("our own program")
}

/// Runs a small bench and reads its results.
fn measured(args: &[&str]) -> (Results, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results.json");
    let shared = ["--rounds", "1", "--budget", "5", "--out", out.to_str().unwrap()];
    let output = bench(&[args, &shared[..]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}{text}", output.status);
    (save::read(&out).unwrap(), text)
}

/// Other clients that are on this machine.
fn others() -> Vec<&'static str> {
    let mut found = Vec::new();
    let python = |module: &str| {
        let import = format!("import {module}");
        Command::new("python3").args(["-c", &import]).output().is_ok_and(|o| o.status.success())
    };
    let header = std::path::Path::new("/usr/include/libmemcached/memcached.h");
    if programs::installed("cc") && header.exists() {
        found.push("libmemcached");
    }
    found.extend(["pymemcache", "pylibmc"].into_iter().filter(|module| python(module)));
    if found.is_empty() {
        programs::skip("no other client of memcached is on this machine");
    }
    found
}

fn clients<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().flat_map(|name| ["--client", name]).collect()
}

#[test]
fn every_row_is_measured_and_its_counts_are_right() {
    need!(programs::found("memcached"));
    let others = others();
    let names = [&OWN[..], &others].concat();
    let args = [&["--value", "4b", "--no-trace"], &clients(&names)[..]].concat();
    let (results, text) = measured(&args);
    assert_eq!((results.bench.as_str(), results.baseline.as_str()), ("cache", "floor"));
    assert_eq!(results.phases.len(), 12);
    for name in names {
        let contender = results.competitor(name).unwrap();
        assert_eq!(contender.refused, None);
        let client = contender.client.as_ref().unwrap();
        assert_eq!(client.stored.iter().sum::<u64>(), 3, "{name}: {client:?}");
        assert_eq!(client.asked.iter().sum::<u64>(), 6, "{name}: {client:?}");
        for phase in &results.phases {
            let row = phase.cache.as_ref().unwrap();
            let cell = results.cell(name, &phase.id).unwrap();
            if row.object && client.serializer.is_empty() {
                assert!(cell.refused.as_ref().unwrap().contains("objects"), "{name}");
                continue;
            }
            assert_eq!(
                (cell.rounds.len(), cell.refused.as_deref()),
                (1, None),
                "{name} {}",
                phase.id
            );
            let hits = match row.row.as_str() {
                "get" => cell.units,
                "multiget" => 3 * cell.units,
                "mixed" => cell.units / 2,
                _ => 0,
            };
            assert_eq!(cell.items, hits, "{name} {}", phase.id);
            assert_eq!(cell.latency.is_some(), row.row != "noblock");
        }
    }
    for part in
        ["The published test", "1.17", "3.63", "At a glance", "The clients", "2 private ones"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let null = results.competitors.iter().find(|c| c.null).unwrap();
    assert!(results.cells.iter().any(|c| c.competitor == null.name && !c.rounds.is_empty()));
}

#[test]
fn a_call_of_ours_is_one_send_and_one_receive() {
    need!(programs::found("memcached"));
    need!(programs::found("strace"));
    let args = ["--rows", "get-plain,set-plain,noblock-plain", "--value", "1kb"];
    let (results, _) = measured(&[&args[..], &clients(&["floor", "steelyard"])].concat());
    let calls = |name: &str, row: &str| {
        let cell = results.cell(name, &format!("{row} plain 1kb@1")).unwrap();
        cell.system_calls
    };
    let Some(floor) = calls("floor", "get") else {
        let client = results.competitor("floor").unwrap().client.as_ref().unwrap();
        return programs::skip(client.uncounted.as_deref().unwrap_or("nothing was counted"));
    };
    // A machine under load may make it look once more.
    for (name, row) in
        [("floor", "get"), ("floor", "set"), ("steelyard", "get"), ("steelyard", "set")]
    {
        let counted = calls(name, row).unwrap();
        assert!((2.0..2.3).contains(&counted), "{name} {row}: {counted}");
    }
    let quiet = calls("steelyard", "noblock").unwrap();
    assert!(quiet < 0.5 && floor >= 2.0, "{quiet} for each write that is not waited for");
}

#[test]
fn several_connections_and_planned_moments() {
    need!(programs::found("memcached"));
    let args = ["--rows", "mixed-plain,missing-plain,noblock-object", "--value", "100b"];
    let clients = clients(&OWN);
    let (results, _) =
        measured(&[&args[..], &["--connections", "8", "--no-trace"], &clients].concat());
    assert_eq!(results.phases.len(), 3);
    assert!(results.cells.iter().all(|c| c.refused.is_none() && c.rounds.len() == 1));

    let rate = ["--rows", "get-plain", "--value", "4b", "--rate", "400", "--no-trace"];
    let output = bench(&[&rate[..], &clients, &["--rounds", "1", "--budget", "5"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("response at a planned rate"), "{text}");
    assert!(text.contains("- floor: its adapter sends nothing at planned moments"), "{text}");
    assert!(text.contains("400"), "{text}");
}

/// `host:port` of a private server.
fn address(server: &Server) -> String {
    server.url().trim_start_matches("memcached://").to_owned()
}

#[test]
fn own_servers_and_records_are_used_and_left_as_they_were() {
    let server = need!(programs::server("memcached", &Wish::default()));
    let client = Client::new([address(&server)], Options::default()).unwrap();
    client.set("mine", b"kept", Expiry::Never).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.json");
    let lines: String =
        (0..50).map(|n| format!("{{\"id\":{n},\"text\":\"{}\"}}\n", "x".repeat(n))).collect();
    std::fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let on = ["--on", server.url(), "--records", file, "--as", "msgpack", "--no-trace"];
    let (results, _) = measured(&[&on[..], &clients(&["steelyard"])].concat());
    assert!(results.phases.iter().all(|p| p.name.ends_with(" records")), "{:?}", results.phases);
    assert!(results.settings["Servers"].contains("1 of your own"), "{:?}", results.settings);
    assert!(results.settings["Values"].contains("msgpack"), "{:?}", results.settings);
    assert_eq!(client.get("mine").unwrap().unwrap().bytes, b"kept");
    assert_eq!(client.get("Short").unwrap(), None);
}

#[test]
fn who_is_not_there_is_left_out_with_a_reason_and_found() {
    need!(programs::found("memcached"));
    let quick = ["--rows", "get-plain", "--value", "4b", "--rounds", "1", "--no-trace"];
    let output = bench(&[&quick[..], &clients(&["steelyard", "/no/such/client"])].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Not measured: /no/such/client"), "{text}");
    let output = bench(&[&quick[..], &clients(&["dalli"])].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) || output.status.code() == Some(3), "{said}");
    assert!(said.contains("pymemcache"), "{said}");
}

#[test]
fn what_is_not_waited_for_is_done_when_the_time_ends() {
    let server = need!(programs::server("memcached", &Wish::default()));
    let folder = tempfile::tempdir().unwrap();
    let mut values = Vec::new();
    for k in 0..3 {
        let path = folder.path().join(k.to_string());
        std::fs::write(&path, format!("value {k}")).unwrap();
        values.push(path.display().to_string());
    }
    for name in OWN {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steelyard"))
            .args(["bench", "cache-adapter", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("\"cache_client\":1"));
        let mut task = Task {
            row: "noblock".into(),
            script: "s1 s2 s3".into(),
            operations: 3000,
            connections: 1,
            noblock: true,
            format: "marshal".into(),
            servers: vec![address(&server)],
            keys: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
            values: values.clone(),
            ..Task::default()
        };
        let mut ask = |task: &Task| -> Done {
            writeln!(input, "{}", serde_json::to_string(task).unwrap()).unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        let done = ask(&task);
        assert_eq!((done.operations, done.errors, done.wrong), (3000, 0, 0), "{name}: {done:?}");
        // A server that stands still keeps the time from ending: nothing is called done that was
        // only sent. (The floor has no patience to lose.)
        if name != "floor" {
            server.freeze();
            task.operations = 6;
            let held = ask(&task);
            server.thaw();
            assert!(held.error.is_some() || held.errors > 0, "{name}: {held:?}");
        }
        drop(input);
        child.wait().unwrap();
    }
}

#[test]
fn a_verdict_needs_rounds() {
    need!(programs::found("memcached"));
    let args = ["--rows", "get-plain", "--value", "4b", "--no-trace"];
    let (results, text) = measured(&[&args[..], &clients(&["steelyard", "floor"])].concat());
    let versus = |c: &Cell| c.summary.as_ref().and_then(|s| s.versus);
    let called = results.cells.iter().filter_map(versus);
    assert!(called.into_iter().all(|v| v.verdict == Verdict::Untested));
    assert!(text.contains("1 round on 1 start with fresh data: too few to rank"), "{text}");
}
