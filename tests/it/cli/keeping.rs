//! Keeping records: `put`, `get`, `each`, `delete`, and copies into stores and out of them.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::Desk;
use crate::{
    children::Command,
    programs::{self, need},
};

/// The lines of a text, in order of the alphabet.
pub(super) fn sorted(text: &[u8]) -> Vec<&str> {
    let mut lines: Vec<_> = std::str::from_utf8(text).unwrap().lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_is_put_is_got_listed_and_deleted() {
    for url in ["sqlite:a.db", "sqlite:a.db?table=b&format=msgpack", "dir:folder?format=cbor+zstd"]
    {
        let desk = Desk::new();
        let input =
            b"{\"_key\":\"a\",\"n\":1}\n{\"n\":2,\"list\":[true,null]}\n{\"_key\":\"c\",\"n\":3}\n";
        let put = desk.run_on(&format!("put {url}"), input).well();
        let fresh = put.text().trim().to_owned();
        assert!(put.err.contains("3 records stored") && fresh.len() == 36, "{put:?}");
        let got = desk.run(&format!("get {url} {fresh} a nobody"));
        assert_eq!(got.status, Some(1));
        let want = format!(
            "{{\"_key\":\"{fresh}\",\"n\":2,\"list\":[true,null]}}\n{{\"_key\":\"a\",\"n\":1}}\n"
        );
        assert_eq!(got.text(), want);
        assert!(got.err.contains("no record with key \"nobody\""), "{}", got.err);
        // Put again, a record takes the place of the other.
        desk.run_on(&format!("put {url}"), b"{\"_key\":\"a\",\"n\":10}").well();
        let large = desk.run(&format!("each {url} --where n>2")).well();
        assert_eq!(sorted(&large.out), [r#"{"_key":"a","n":10}"#, r#"{"_key":"c","n":3}"#]);
        let asked_by_key = desk.run(&format!("each {url} --where _key=c --fields _key")).well();
        assert_eq!(asked_by_key.text(), "{\"_key\":\"c\"}\n");
        let deleted = desk.run(&format!("delete {url} c nobody"));
        assert_eq!(deleted.status, Some(1));
        assert!(deleted.err.contains("1 record deleted"), "{}", deleted.err);
        desk.run(&format!("delete {url} --all")).well();
        assert_eq!(desk.run(&format!("each {url}")).well().text(), "");
    }
}

#[test]
fn queries_are_answered_in_their_order() {
    let desk = Desk::new();
    desk.run("generate people --count 500 --seed 3 p.json").well();
    desk.run("copy p.json sqlite:p.db --key key --index age,birthdate").well();
    let query = "each sqlite:p.db --where age>=50 --where {\"is_admin?\":true} --sort=-age,birthdate --limit 20";
    let found = desk.run(query).well();
    let ages: Vec<u64> = found
        .text()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["age"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(ages.len(), 20);
    assert!(ages.is_sorted_by(|a, b| a >= b) && ages[19] >= 50, "{ages:?}");
    let wrong = desk.run("each sqlite:p.db --where {\"age\":{\"$near\":1}}");
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("unknown operator \"$near\""), "{}", wrong.err);
}

#[test]
fn copies_into_a_store_and_out_of_it_lose_nothing() {
    let desk = Desk::with_catalogue();
    for (url, more) in [
        ("sqlite:c.db", ""),
        ("sqlite:c.db?table=blobs&format=marc21", ""),
        ("sqlite:c.db?table=packed&format=json+zstd+base64", ""),
        ("dir:c?format=marcxml", "--batch 7"),
    ] {
        let copied = desk.run(&format!("copy a.mrc {url} --verify {more}"));
        assert!(
            copied.err.contains("120 records read, 120 written, 120 verified"),
            "{}",
            copied.err
        );
        desk.run(&format!("copy {url} back.mrc")).well();
        let (before, after) = (desk.read("a.mrc"), desk.read("back.mrc"));
        let mut wanted = super::records(&before);
        let mut found = super::records(&after);
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted, "{url}");
    }
    // From store to store, in parts.
    for part in 1..=3 {
        desk.run(&format!("copy sqlite:c.db sqlite:d.db?format=msgpack --part {part}/3")).well();
    }
    desk.run("copy sqlite:d.db?format=msgpack back.mrc").well();
    assert_eq!(super::records(&desk.read("back.mrc")).len(), 120);
    // Columns.
    desk.run("copy a.mrc sqlite:t.db --layout columns --fields 001,245a --index 245a").well();
    let title = desk.run("each sqlite:t.db?layout=columns --where 245a^=A --limit 1").well();
    assert!(title.text().contains("\"245a\":\"A"), "{}", title.text());
}

#[test]
fn what_a_store_refuses_is_rejected_and_named() {
    let desk = Desk::new();
    desk.write("p.json", "{\"id\":1}\n{\"id\":\"x\",\"id2\":1}\n{\"name\":\"Ann\"}\n{\"id\":1,\"n\":2}\n{\"id\":1}\n");
    let done = desk.run("copy p.json sqlite:p.db --key id --rejects bad.json --json");
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains(r#""read":5,"written":2"#), "{}", done.err);
    assert_eq!(desk.read("bad.json"), b"{\"name\":\"Ann\"}\n{\"id\":1,\"n\":2}\n{\"id\":1}\n");
    let reasons = String::from_utf8(desk.read("bad.json.reasons")).unwrap();
    assert!(reasons.contains("record 3, byte 28: no field \"id\""), "{reasons}");
    assert!(reasons.contains("duplicate key \"1\""), "{reasons}");
    // Into a store that has records, a copy takes the place of what is there.
    desk.write("q.json", "{\"id\":1,\"n\":3}\n");
    desk.run("copy q.json sqlite:p.db --key id").well();
    assert_eq!(desk.run("get sqlite:p.db 1").well().text(), "{\"_key\":\"1\",\"id\":1,\"n\":3}\n");
    for (args, want) in [
        ("copy p.json q2.json --verify", "--verify is for copies into a store"),
        ("copy - sqlite:p.db --from json --resume", "cannot be read again"),
        ("copy p.json sqlite:p.db?tabel=x", "unknown option \"tabel\" of"),
        ("copy p.json sqlite:x.db --layout tree", "known: document, columns, blob"),
        ("copy nosql:x y.json", "unknown store scheme \"nosql\""),
        ("delete sqlite:p.db", "name the records"),
    ] {
        let failed = desk.run(args);
        assert_eq!(failed.status, Some(2), "{args}: {failed:?}");
        assert!(failed.err.contains(want), "{args}: {}", failed.err);
    }
}

/// A name that begins like the URL of a store, with a scheme that no store has, is no file that is missing
/// and none that is made.
#[test]
fn the_scheme_of_no_store_is_told_by_every_verb_that_takes_a_file() {
    let desk = Desk::new();
    desk.write("p.json", "{\"id\":1}\n");
    for args in [
        "copy nosql:x y.json",
        "copy nosql:x.json y.json",
        "copy nosql://h/x y.json",
        "copy p.json nosql:y.json",
        "copy p.json nosql://h/y.json",
        "copy nosql:x sqlite:p.db --key id",
        "show nosql:x.json",
        "check nosql:x.json",
        "generate people --count 3 nosql:y.json",
        "put sqlite:p.db nosql:x.json --key id",
        "get nosql:x a",
        "each nosql:x",
        "delete nosql:x a",
        "slabs nosql:x.json",
    ] {
        let failed = desk.run(args);
        assert_eq!(failed.status, Some(2), "{args}: {}", failed.err);
        assert!(failed.err.contains("unknown store scheme \"nosql\""), "{args}: {}", failed.err);
        assert!(!desk.names().iter().any(|name| name.starts_with("nosql")), "{args}");
    }
    let told = desk.run("copy p.json sqlte:p.json").err;
    assert!(
        told.contains("\"sqlte\"; did you mean sqlite?") && told.contains("./sqlte:p.json"),
        "{told}"
    );
    // A file may be called so.
    desk.run("copy p.json ./nosql:y.json").well();
    desk.run("copy nosql:y.json z.json").well();
    desk.run("copy p.json nosql:y.json").well();
    assert_eq!(desk.read("nosql:y.json"), desk.read("z.json"));
}

/// `servers run` keeps a server as long as it lives itself, however it ends.
#[test]
fn a_server_is_kept_until_its_end() {
    need!(programs::found("memcached"));
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let desk = Desk::new();
        let mut command = desk.command(["servers", "run", "memcached"]);
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        let mut lines = BufReader::new(running.stdout.take().unwrap());
        lines.read_line(&mut url).unwrap();
        let url = url.trim();
        desk.run_on(&format!("put {url}"), b"{\"_key\":\"a\",\"n\":1}").well();
        assert_eq!(desk.run(&format!("get {url} a")).well().text(), "{\"_key\":\"a\",\"n\":1}\n");
        kill(Pid::from_raw(running.id() as i32), signal).unwrap();
        running.wait().unwrap();
        let begin = Instant::now();
        while desk.run(&format!("get {url} a")).status != Some(3) {
            assert!(begin.elapsed() < Duration::from_secs(20), "it is still there");
        }
    }
}

/// The blobs of a Ruby program in its database, and ours in it.
#[test]
fn objects_of_ruby_are_restored_and_stored() {
    need!(programs::found("ruby"));
    need!(programs::found("python3"));
    let desk = Desk::new();
    let run = |program: &str, script: &str| {
        let done = Command::new(program)
            .args(["-"])
            .current_dir(desk.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = done.unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{program} failed");
        String::from_utf8(done.stdout).unwrap()
    };
    // What the original posts kept: an object, dumped, in a binary column.
    run(
        "ruby",
        r#"
        class Order; def initialize(item, price, tags) @item, @price, @tags = item, price, tags; end; end
        File.binwrite("1.bin", Marshal.dump(Order.new("herring", 12.5, [:salt, "fish"])))
        File.binwrite("2.bin", [Marshal.dump({"item" => "köl", "at" => Time.utc(2009, 2, 13, 23, 31, 30)})].pack("m"))
    "#,
    );
    run(
        "python3",
        r#"
import sqlite3
db = sqlite3.connect("app.db")
db.execute("create table pending_objects (id integer primary key, created_at text default 'now', object blob)")
db.execute("create table packed (id integer primary key, object text)")
db.execute("insert into pending_objects (id, object) values (7, ?)", (open("1.bin", "rb").read(),))
db.execute("insert into packed values (8, ?)", (open("2.bin").read(),))
db.commit()
    "#,
    );
    let order =
        desk.run("each sqlite:app.db?table=pending_objects&column=object&format=marshal").well();
    assert_eq!(
        order.text(),
        "{\"_key\":\"7\",\"^class\":\"Order\",\"item\":\"herring\",\"price\":12.5,\"tags\":[\"salt\",\"fish\"]}\n"
    );
    let packed = desk
        .run("get sqlite:app.db?table=packed&column=object&format=marshal+base64lines 8")
        .well();
    assert_eq!(
        packed.text(),
        "{\"_key\":\"8\",\"item\":\"köl\",\"at\":\"2009-02-13T23:31:30Z\"}\n"
    );
    // And what we store, Ruby restores.
    let put = "put sqlite:app.db?table=pending_objects&column=object&format=marshal";
    desk.run_on(put, b"{\"_key\":\"9\",\"item\":\"tar\",\"n\":[1,null,2.5]}").well();
    run(
        "python3",
        r#"
import sqlite3
blob, = sqlite3.connect("app.db").execute("select object from pending_objects where id = 9").fetchone()
open("9.bin", "wb").write(blob)
    "#,
    );
    let restored = run(
        "ruby",
        r#"p Marshal.load(File.binread("9.bin")) == {"item" => "tar", "n" => [1, nil, 2.5]}"#,
    );
    assert_eq!(restored, "true\n");
}

#[test]
fn a_query_of_your_own_is_measured_without_a_workload_file() {
    let desk = Desk::new();
    desk.run("generate people --count 300 --seed 3 p.json").well();
    let asked = "bench keep --records p.json --key key --index age --where age>=50 --sort=-age \
                 --limit 20 --on sqlite --rounds 1 --no-audit --format json --out r.json";
    desk.run(asked).well();
    let results: serde_json::Value = serde_json::from_slice(&desk.read("r.json")).unwrap();
    let phases = results["phases"].as_array().unwrap();
    let find = phases.iter().find(|phase| phase["name"] == "find").unwrap();
    let about = find["about"].as_str().unwrap();
    assert!(about.contains("sorted by age descending, the first 20"), "{about}");
    let cells = results["cells"].as_array().unwrap();
    let cell = |phase: &str| {
        let of = |c: &&serde_json::Value| c["phase"] == phase && c["competitor"] == "sqlite";
        cells.iter().find(of).unwrap()
    };
    assert_eq!(cell("find")["tally"]["missed"], 0);
    assert_eq!(
        cell("find")["items"].as_u64().unwrap(),
        20 * cell("find")["units"].as_u64().unwrap()
    );
    assert_eq!(cell("index")["rounds"][0]["index"]["writes"], 1000);
    let old = desk.run("bench keep --records p.json --limit 100 --on sqlite");
    assert_eq!(old.status, Some(2));
    assert!(old.err.contains("--sample N"), "{}", old.err);
    desk.run("generate users --count 20 u.json").well();
    let twice = desk.run("bench keep --records u.json --key pet --on sqlite --rounds 1");
    assert_eq!(twice.status, Some(2));
    assert!(twice.err.contains("have the same key"), "{}", twice.err);
}

/// What a store cannot load it is not asked for.
#[test]
fn phases_on_records_that_a_store_cannot_load_are_refused_with_the_reason() {
    let desk = Desk::new();
    desk.write(
        "own.toml",
        "name = \"own\"\nabout = \"Own.\"\n[table.records]\ndataset = \"people\"\ncount = 50\n\
         [[phase]]\nname = \"load\"\ndo = \"load\"\nway = \"transaction\"\n\
         [[phase]]\nname = \"get\"\ndo = \"get\"\ncount = 10\n",
    );
    let ran = desk.run("bench own.toml --on memory --on sqlite --rounds 1 --no-audit --full");
    assert!(matches!(ran.status, Some(0 | 1)), "{}", ran.err);
    let text = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("memory: memory cannot write records one by one in a"), "{text}");
    assert!(text.contains("table records is empty"), "{text}");
}

/// A workload's own dataset may have a key that records in its place have not.
#[test]
fn own_records_of_a_workload_need_no_key_that_it_does_not_name() {
    let desk = Desk::new();
    desk.write("own.jsonl", "{\"n\": 1}\n{\"n\": 2}\n");
    let get = "[[phase]]\nname = \"a\"\ndo = \"get\"\ncount = 10\n";
    let load = "[[phase]]\nname = \"load\"\ndo = \"load\"\n";
    let of = |key: &str| {
        let table = format!("[table.records]\ndataset = \"people\"\n{key}");
        format!("name = \"own\"\nabout = \"Own.\"\n{table}{load}{get}")
    };
    desk.write("own.toml", of(""));
    desk.write("key.toml", of("key = \"id\"\n"));
    desk.run("bench own.toml --records own.jsonl --on memory --rounds 1 --no-audit").well();
    let named = desk.run("bench key.toml --records own.jsonl --on memory --rounds 1 --no-audit");
    assert!(named.err.contains("no field \"id\" for the key"), "{}", named.err);
}

/// A slip in a name is no condition that every record fits, and no order.
#[test]
fn names_that_no_record_has_are_told() {
    let desk = Desk::new();
    let records = "{\"_key\":\"1\",\"status\":\"open\",\"x-y\":2}\n{\"_key\":\"2\",\"status\":\"done\",\"x-y\":1}\n";
    for url in ["sqlite:a.db", "sqlite:a.db?table=c&layout=columns", "dir:d"] {
        desk.run_on(&format!("put {url}"), records.as_bytes()).well();
        for slip in ["Status!=open", "Status!~open", "x-y<5 and Status!=open"] {
            let mut command = desk.command(["delete", url, "--where", slip]);
            let done = command.output().unwrap();
            let err = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(2), "{url} {slip}: {err}");
            assert!(err.contains("no record has the field Status"), "{url}: {err}");
        }
        // What is asked for outright is done.
        for condition in ["status!=done and nothing", "x-y>5 and !Status"] {
            let mut command = desk.command(["delete", url, "--where", condition]);
            assert_eq!(command.output().unwrap().status.code(), Some(0), "{url} {condition}");
        }
        assert_eq!(desk.run(&format!("each {url}")).well().text().lines().count(), 2);
        if url.starts_with("dir") {
            continue;
        }
        for (sort, first, status) in [
            ("x-y", "2", 0),
            ("\"x-y\"", "2", 0),
            ("-\"x-y\"", "1", 0),
            ("-x-y", "1", 0),
            ("x-y desc", "1", 1),
            ("nosuch", "1", 1),
        ] {
            let mut command = desk.command(["each", url, "--limit", "1"]);
            let done = command.arg(format!("--sort={sort}")).output().unwrap();
            let err = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(status), "{url} {sort}: {err}");
            assert_eq!(err.contains("no record has the field"), status == 1, "{url} {sort}: {err}");
            let out = String::from_utf8(done.stdout).unwrap();
            assert!(out.starts_with(&format!("{{\"_key\":\"{first}\"")), "{url} {sort}: {out}");
        }
    }
}

/// `put` and `copy` find keys in the same places.
#[test]
fn put_takes_keys_as_copy_does() {
    let desk = Desk::with_catalogue();
    desk.run("copy a.mrc b.mrc --where 001 -q");
    desk.write("s.json", "{\"_key\":\"a\",\"id\":1,\"in\":{\"no\":7}}\n");
    for (n, (file, key)) in [
        ("b.mrc", ""),
        ("b.mrc", "--key 001"),
        ("s.json", ""),
        ("s.json", "--key _key"),
        ("s.json", "--key id"),
        ("s.json", "--key in.no"),
    ]
    .into_iter()
    .enumerate()
    {
        desk.run(&format!("put sqlite:p{n}.db {file} {key}")).well();
        let copied = desk.run(&format!("copy {file} sqlite:c{n}.db {key}"));
        assert!(copied.err.contains("written"), "{}", copied.err);
        let of = |place: &str| desk.run(&format!("each sqlite:{place}{n}.db")).well().out;
        assert_eq!(of("p"), of("c"), "{file} {key}");
    }
}
