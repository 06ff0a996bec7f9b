//! What must not pass without a word: queries that nothing answers, records that cannot be read, stores
//! that cannot be looked at, passwords, characters that give orders to a terminal.

use std::io::{Read, Write};

use super::Desk;

/// A desk with ten orders, of which three are open.
fn orders() -> Desk {
    let desk = Desk::new();
    let status = |n: usize| if n.is_multiple_of(4) { "open" } else { "sent" };
    let line =
        |n: usize| format!("{{\"id\":{n},\"status\":{:?},\"total\":{}}}\n", status(n), n * 7);
    desk.write("orders.jsonl", (0..10).map(line).collect::<String>());
    desk
}

const KEEP: &str = "bench keep --on memory --rounds 1 --no-audit --records orders.jsonl";

#[test]
fn the_page_says_what_a_query_asked_for_and_how_many_records_answer() {
    let desk = orders();
    let ran = desk
        .run(&format!("{KEEP} --full --where status=open --sort -total --limit 2 --out r.json"));
    let text = ran.well().text().to_owned();
    assert!(text.contains("What the queries asked for"), "{text}");
    let row = text.lines().find(|line| line.contains("status = \"open\"")).expect("a row");
    assert!(row.contains("-total") && row.trim_end().ends_with('2'), "{row}");
    let results = String::from_utf8(desk.read("r.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    let phases = results["phases"].as_array().unwrap();
    let query = phases.iter().find(|p| p["kind"] == "find").map(|p| p["query"].clone()).unwrap();
    assert_eq!(query["condition"], "status = \"open\"");
    assert_eq!(query["sort"], serde_json::json!(["-total"]));
    assert_eq!((query["limit"].as_u64(), query["records"].as_f64()), (Some(2), Some(2.0)));
    let all = desk.run(&format!("{KEEP} --full --where status=open")).well();
    let row = all.text().lines().find(|line| line.contains("status = \"open\"")).unwrap();
    assert!(row.trim_end().ends_with('3'), "{row}");
}

#[test]
fn a_query_that_nothing_answers_is_an_error_before_anything_is_started() {
    let desk = orders();
    for (args, says) in [
        ("--where stauts=open", "no record has a field stauts"),
        ("--where status=open --sort -created", "no record has a field created"),
        ("--index created", "no record has a field created"),
        ("--where status=lost", "no record fits status = \"lost\""),
        ("--where status=open --limit 0", "'--limit <N>'"),
    ] {
        // A server that cannot be reached would be told first.
        let keep = KEEP.replace("--on memory", "--on redis://127.0.0.1:1");
        let ran = desk.run(&format!("{keep} {args}"));
        assert_eq!(ran.status, Some(2), "{args}: {}", ran.err);
        assert!(ran.err.contains(says), "{args}: {}", ran.err);
    }
    let nothing = |expect: &str| {
        format!(
            "name = \"own\"\nabout = \"Own.\"\n[table.records]\ndataset = \"people\"\ncount = 50\n\
             [[phase]]\nname = \"load\"\ndo = \"load\"\n\
             [[phase]]\nname = \"find\"\ndo = \"find\"\nwhere = \"age>=900\"\n{expect}\n"
        )
    };
    desk.write("none.toml", nothing("expect = 0"));
    desk.write("some.toml", nothing("expect = 3"));
    desk.run("bench none.toml --on memory --rounds 1 --no-audit").well();
    let ran = desk.run("bench some.toml --on memory --rounds 1 --no-audit");
    assert!(ran.err.contains("phase find: an answer has 0 records, not 3"), "{}", ran.err);
}

#[test]
fn records_that_cannot_be_read_are_found() {
    let desk = orders();
    let mut text = desk.read("orders.jsonl");
    desk.write("good.jsonl", &text);
    text.extend_from_slice(b"{\"id\": \n");
    desk.write("orders.jsonl", text);
    for (args, bad) in [
        (KEEP.to_owned(), true),
        (KEEP.replace("orders", "good"), false),
        ("bench formats orders.jsonl --formats json --rounds 1 --budget 1".into(), true),
    ] {
        let ran = desk.run(&args);
        assert_eq!(ran.status, Some(i32::from(bad)), "{args}: {}", ran.err);
        assert_eq!(ran.text().contains("1 record could not be read"), bad, "{args}");
    }
}

#[test]
fn an_audit_has_a_line_for_each_store() {
    let desk = Desk::new();
    let ran = desk.run("audit --durability t3 memory sqlite redis://127.0.0.1:1 sqlite");
    assert_eq!(ran.status, Some(1), "{}", ran.err);
    let rows = |name: &str| ran.text().lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((rows("memory"), rows("redis://127.0.0.1:1"), rows("sqlite")), (1, 1, 2));
    assert!(ran.text().matches("not observed").count() > 1, "{}", ran.text());
}

#[test]
fn no_message_has_a_password() {
    let desk = orders();
    for url in [
        "redis://:MARKED@host:notaport",
        "postgres://u:p MARKED w@h/",
        "postgres://u:MARKED/x@h/",
        "mysql://u:MARKED?x@h/db",
        "mysql://u:12/MARKED@h/db",
        "mysql://u:%ff%feMARKED@h/db",
        "postgress://u:MARKED@h/db",
        "mongodb://u:a@MARKED:b@h:1:2/db",
        "redis://u:MARKED#1@[::1/0",
        "couchdb:u:MARKED@127.0.0.1:1/x",
        "redis://u:MARKED@127.0.0.1:1",
        "s3://b/x?secret=MARKED&nonsense=1",
        "s3://b/x?endpoint=http://u:MARKED@127.0.0.1:1",
        "mysql://127.0.0.1:1/d?passwd=MARKED",
        "mysql://127.0.0.1:1/d?pwd=MARKED",
        "postgres://127.0.0.1:1/d?sslpassword=MARKED",
        "postgres://127.0.0.1:1/d?Password=MARKED",
        "s3://b/x?secret_key=MARKED",
        "mongodb://127.0.0.1:1/d?authMechanismProperties=AWS_SESSION_TOKEN:MARKED",
    ] {
        for args in [
            vec!["bench", "keep", "--records", "orders.jsonl", "--rounds", "1", "--on", url],
            vec!["bench", "nothing.toml", "--on", url],
            vec!["audit", url],
            vec!["copy", "orders.jsonl", url, "--key", "id"],
            vec!["copy", url, "out.jsonl"],
            vec!["get", url, "key"],
        ] {
            let done = desk.command(&args).output().unwrap();
            let said = [done.stdout, done.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
            let said = said.concat();
            assert_ne!(done.status.code(), Some(0), "{args:?}");
            assert!(!said.contains("MARKED"), "{args:?}: {said}");
            assert!(!said.is_empty(), "{args:?}");
        }
    }
}

/// Passwords of files and variables are in no message, whatever a server answers.
#[test]
fn a_password_of_a_file_or_a_variable_is_in_no_message() {
    let (address, desk) = (echo(), Desk::new());
    desk.write("password", "MARKED-1\n");
    let file = format!("redis://me@{address}/0?password_file=password");
    let variable = format!("redis://me@{address}/0");
    for (url, sent) in [(file, "1"), (variable, "2")] {
        let mut command = desk.command(["get", &url, "k"]);
        let done = command.env("STEELYARD_PASSWORD", "MARKED-2").output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(3), "{said}");
        // What the server was sent, it answered with.
        assert!(
            said.contains("AUTH") && said.contains("***") && !said.contains("MARKED"),
            "{sent}: {said}"
        );
    }
}

#[test]
fn a_file_of_passwords_that_others_can_read_is_told_of() {
    let desk = Desk::new();
    desk.write(".pgpass", "*:*:*:*:MARKED\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(desk.path().join(".pgpass"), mode).unwrap();
    let mut command = desk.command(["get", "postgres://u@127.0.0.1:1/db", "k"]);
    let done = command.env("HOME", desk.path()).env_remove("PGPASSFILE").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains(".pgpass is ignored") && said.contains("0600"), "{said}");
}

/// A server of Redis that answers with what it was asked.
fn echo() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut asked = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut asked) {
                    let said = String::from_utf8_lossy(&asked[..n]).replace("\r\n", " ");
                    let answer =
                        format!("-ERR unknown command, with args beginning with: {said}\r\n");
                    let commands = said.matches('*').count().max(1);
                    let _ = stream.write_all(answer.repeat(commands).as_bytes());
                }
            });
        }
    });
    address.to_string()
}

#[test]
fn no_results_and_no_page_have_a_password() {
    let address = echo();
    for url in [
        format!("redis://me:MARKED@{address}/0"),
        format!("redis://:MARKED@{address}/0"),
        "s3://b/x?endpoint=http://u:MARKED@127.0.0.1:1&access_key_id=a&secret_access_key=MARKED"
            .into(),
        "mysql://127.0.0.1:1/d?passwd=MARKED".into(),
        "postgres://u:MARKED@127.0.0.1:1/d?sslpassword=MARKED".into(),
        "mongodb://127.0.0.1:1/d?authMechanismProperties=AWS_SESSION_TOKEN:MARKED".into(),
    ] {
        let desk = orders();
        let bench = KEEP.replace("--on memory", "--on memory --format html --out r.json --on");
        let (before, after) = bench.split_once("--on --rounds").unwrap();
        let args: Vec<&str> = (before.split_whitespace().chain(["--on", &url, "--rounds"]))
            .chain(after.split_whitespace())
            .collect();
        let done = desk.command(&args).output().unwrap();
        let said = [&*done.stdout, &*done.stderr, &desk.read("r.json")];
        let said = said.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(done.status.code(), Some(1), "{url}: {}", said[1]);
        assert!(said[0].contains("<html") && said[2].contains("\"refused\":\""), "{url}");
        for said in said {
            let at = said
                .find("MARKED")
                .map(|at| said[at.saturating_sub(200)..].chars().take(300).collect::<String>());
            assert_eq!(at, None, "{url}");
        }
    }
}

#[test]
fn an_audit_that_sees_nothing_has_found_something() {
    let desk = Desk::new();
    let done = desk.command(["audit", "sqlite"]).env("PATH", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("strace"), "{said}");
}

#[test]
fn numbers_that_are_slips_are_wrong_on_the_command_line() {
    let desk = orders();
    for slip in [
        "--concurrency 10001",
        "--sample 0",
        "--rate 1e300",
        "--rate 1e-9",
        "--scale 1e300",
        "--scale inf",
    ] {
        let ran = desk.run(&format!("{KEEP} {slip}"));
        assert_eq!(ran.status, Some(2), "{slip}: {}", ran.err);
    }
}

#[test]
fn messages_give_no_orders_to_a_terminal() {
    let desk = Desk::new();
    desk.write("bad\u{1b}[31m.json", "{\"schema\": 1}");
    let bad = "bad\u{1b}[31m\u{9b}2J\u{202e}";
    let file = format!("{bad}.json");
    desk.write(&format!("{bad}.mrc"), b"00005");
    desk.write(&format!("{bad}.jsonl"), "{\"a\":1}\n{\n");
    let (records, store) = (format!("{bad}.mrc"), format!("sqlite:{bad}/a.db"));
    let lines = format!("{bad}.jsonl");
    let [file, records, lines] = [&file, &records, &lines].map(|name| &**name);
    for args in [
        vec!["report", file],
        vec!["report", file, file],
        vec!["show", records],
        vec!["show", "nowhere", bad],
        vec!["check", records],
        vec!["check", lines],
        vec!["check", bad],
        vec!["copy", records, "out.json"],
        vec!["copy", lines, "sqlite:a.db", "--key", bad],
        vec!["copy", bad, "out.json"],
        vec!["copy", lines, bad],
        vec!["copy", lines, "out.json", "--to", bad],
        vec!["copy", lines, "memory:", "--where", bad],
        vec!["copy", lines, "out.json", "--rejects", &*format!("no/{bad}")],
        vec!["put", "sqlite:b.db", bad],
        vec!["put", "sqlite:b.db", lines, "--key", bad],
        vec!["put", &*store],
        vec!["get", "sqlite:c.db", bad],
        vec!["get", &*store, "k"],
        vec!["get", "sqlite:a.db?x\u{1b}[2J", "k"],
        vec!["each", "sqlite:c.db", "--where", bad],
        vec!["each", "sqlite:c.db", "--sort", bad],
        vec!["each", &*store],
        vec!["delete", "sqlite:c.db", bad],
        vec!["delete", &*store, "--all"],
        vec!["audit", bad],
        vec!["audit", &*store],
        vec!["bench", "formats", bad],
        vec!["bench", "formats", records, "--rounds", "1"],
        vec!["bench", bad],
        vec!["bench", "keep", "--records", bad],
        vec!["bench", "keep", "--on", bad],
        vec!["bench", "keep", "--nonsense", bad],
        vec!["generate", bad],
        vec!["generate", "people", &*format!("no/{bad}")],
        vec!["slabs", bad],
        vec!["slabs", lines, "--key", bad],
        vec!["servers", "run", bad],
        vec!["completions", bad],
        vec![bad],
    ] {
        let done = desk.command(&args).output().unwrap();
        for said in [&done.stdout, &done.stderr] {
            let said = String::from_utf8_lossy(said);
            let orders = said.contains(['\u{1b}', '\u{9b}', '\u{202e}']);
            assert!(!orders, "{args:?}: {said:?}");
        }
    }
    let done = desk.command(["report", file]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("bad\\u{1b}[31m\\u{9b}2J\\u{202e}.json"), "{said:?}");
}

#[test]
fn what_a_gate_compares_with_is_asked_for() {
    let desk = orders();
    let ran = desk.run(&format!("{KEEP} --fail-on-regression 5%"));
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("--against OLD_BINARY") && ran.err.contains("report NEW.json"));
    for (program, says) in [("/bin/true", "does not answer"), ("/nonexistent", "no such program")] {
        let ran = desk.run(&format!("{KEEP} --against {program}"));
        assert_eq!(ran.status, Some(2), "{}", ran.err);
        let said = &ran.err;
        assert!(said.contains(program) && said.contains(says), "{said}");
        assert!(said.contains("another build of steelyard"), "{said}");
    }
}
