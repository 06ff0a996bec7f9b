//! Reading changes nothing: no file, no folder, no database comes into being.

use std::process::Command;

use super::{Desk, STEELYARD};

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
    assert_eq!(ran.err, "steelyard: sqlite:none.db: no such database; `put` and `copy` make one\n");
}

#[test]
fn a_database_on_a_read_only_file_system_can_be_read() {
    let desk = Desk::new();
    desk.run("generate people --count 20 p.json").well();
    std::fs::create_dir(desk.path().join("there")).unwrap();
    desk.run("copy p.json sqlite:there/p.db --key key -q").well();
    // A file system of this process alone, which only root can have.
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
            return crate::programs::skip(why);
        }
    };
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{err}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout).lines().count(), 20, "{err}");
}
