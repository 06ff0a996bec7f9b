//! Reading changes nothing: no file, no folder, no database comes into being.

use super::{Desk, STEELYARD};
use crate::{
    children::Command,
    programs::{self, need},
};

#[test]
fn reading_makes_nothing() {
    let desk = Desk::new();
    desk.write("empty.json", "");
    desk.write("bad.json", "{\"a\": \n");
    let before = desk.names();
    for place in
        ["sqlite:none.db", "sqlite:none/none.db", "dir:none", "sqlite:none.db?format=msgpack"]
    {
        for (args, status) in [
            (format!("get {place} key"), None),
            (format!("each {place}"), None),
            (format!("each {place} --where n>5"), None),
            (format!("delete {place} key"), None),
            (format!("delete {place} --where n>5"), None),
            (format!("copy {place} out.json"), None),
            (format!("put {place} bad.json"), Some(3)),
            (format!("put {place} missing.json"), Some(3)),
        ] {
            let ran = desk.run(&args);
            if status.is_some() {
                assert_eq!(ran.status, status, "{args}: {}", ran.err);
            }
            if place.starts_with("sqlite:") {
                assert_eq!(ran.status, Some(3), "{args}: {}", ran.err);
            }
            let mut names = desk.names();
            names.retain(|name| name != "out.json");
            assert_eq!(names, before, "{args}: {}", ran.err);
        }
    }
    let ran = desk.run("each sqlite:none.db");
    assert_eq!(ran.err, "error: sqlite:none.db: no such database; `put` and `copy` create one\n");
}

#[test]
fn a_database_on_a_read_only_file_system_can_be_read() {
    let desk = Desk::new();
    desk.run("generate people --count 20 p.json").well();
    std::fs::create_dir(desk.path().join("there")).unwrap();
    desk.run("copy p.json sqlite:there/p.db --key key -q").well();
    need!(programs::root("a file system of this process alone"));
    let script = "mount --bind there there && mount -o remount,ro,bind there || exit 77
        touch there/x 2>/dev/null && exit 77
        exec \"$0\" each sqlite:there/p.db --where 'age>0'";
    let ran = Command::new("unshare")
        .args(["-m", "sh", "-c", script, STEELYARD])
        .current_dir(desk.path())
        .output();
    let ran = match ran {
        Ok(ran) if ran.status.code() != Some(77) && ran.status.code() != Some(1) => ran,
        other => {
            let why = format!("no read-only file system can be made here: {other:?}");
            return programs::skip(why);
        }
    };
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{err}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout).lines().count(), 20, "{err}");
}

/// A download that failed, and a file that is cut off where one record ends, are no sound files without records; the target
/// stays as it was.
#[test]
fn what_is_no_file_of_its_format_is_not_taken_for_an_empty_one() {
    let desk = Desk::with_catalogue();
    let before = desk.read("a.mrc");
    let diagnostics = "<?xml version=\"1.0\"?><searchRetrieveResponse><diagnostics><diagnostic/></diagnostics></searchRetrieveResponse>";
    for (name, text) in [
        ("d.xml", "<html><body>503 Service Unavailable</body></html>\n"),
        ("d.mrc", "<html><body>503 Service Unavailable</body></html>\n"),
        ("d.xml", "503\n"),
        ("d.xml", "<collection"),
        ("d.xml", "<Record><leader/></Record>"),
        ("d.xml", diagnostics),
        ("d.csv", "a,b\r1,2\r3,4\r"),
        ("d.json", "[{\"a\":1},\n{\"a\":2},\n"),
        ("d.json", "[{\"a\":1},\n{\"a\":2}\n"),
        ("d.json", "[{\"a\":1}"),
    ] {
        desk.write(name, text);
        let checked = desk.run(&format!("check {name}"));
        assert_eq!(checked.status, Some(1), "{name} {text:?}: {}", checked.text());
        let copied = desk.run(&format!("copy {name} a.mrc"));
        assert_eq!(copied.status, Some(1), "{name} {text:?}: {}", copied.err);
        assert_eq!(desk.read("a.mrc"), before, "{name} {text:?}");
    }
    for (name, text) in [
        ("e.xml", "<collection/>"),
        ("e.xml", "<m:collection xmlns:m=\"http://www.loc.gov/MARC21/slim\"></m:collection>"),
        ("e.xml", " \n"),
        ("e.json", "[]"),
        ("e.json", "[\n]\n"),
        ("e.csv", "a,b"),
        ("e.csv", "a,b\r\n"),
        ("e.mrc", "\r\n"),
    ] {
        desk.write(name, text);
        let checked = desk.run(&format!("check {name}"));
        assert_eq!(checked.status, Some(0), "{name} {text:?}: {}{}", checked.text(), checked.err);
    }
}

/// Other programs lose what lies behind a record that is longer than the format can say.
#[test]
fn records_that_are_too_long_for_iso2709_are_named() {
    let desk = Desk::new();
    let record = |n: usize| {
        let field = format!(
            "{{\"500\":{{\"ind1\":\" \",\"ind2\":\" \",\"subfields\":[{{\"a\":\"{}\"}}]}}}}",
            "x".repeat(n)
        );
        format!(
            "{{\"leader\":\"00000cam a2200000 a 4500\",\"fields\":[{{\"001\":\"{n}\"}},{field}]}}\n"
        )
    };
    for (n, long) in [(9_990, false), (10_010, true), (120_000, true), (20, false)] {
        desk.write("o.json", record(n));
        for (target, told) in [("o.mrc", long), ("o.xml", false), ("sqlite:o.db", false)] {
            let copied = desk.run(&format!("copy o.json {target}"));
            assert_eq!(copied.status, Some(i32::from(told)), "{n} {target}: {}", copied.err);
            assert_eq!(copied.err.contains("record 1, byte 0: too-long: "), told, "{}", copied.err);
            assert!(copied.err.contains("1 written"), "{}", copied.err);
        }
        let strict = desk.run("copy o.json s.mrc --strict");
        assert_eq!(strict.err.contains("the limit of ISO 2709 is"), long, "{}", strict.err);
    }
}
