//! Copies that must lose nothing: keys on the way into files and back, catalogues in any format, old
//! files where nothing new is made, journals that are in use, and what killed processes left behind.

use std::fs::File;

use serde_json::Value;

use super::{Desk, keeping::sorted};

/// A store with three people, of whom one has a name only.
fn people() -> Desk {
    let desk = Desk::new();
    let input = "{\"_key\":\"ann\",\"id\":1,\"name\":\"Ann\",\"age\":42}\n\
                 {\"_key\":\"bob\",\"id\":2,\"name\":\"Bob\",\"age\":65}\n\
                 {\"_key\":\"@00000000000000\",\"id\":3,\"name\":\"Cid\",\"age\":7}\n";
    desk.run_on("put sqlite:p.db", input.as_bytes()).well();
    desk
}

#[test]
fn keys_go_into_files_and_come_back() {
    let desk = people();
    let want = desk.run("each sqlite:p.db").well().out;
    for format in ["json", "sonic", "msgpack", "cbor", "bson", "marshal", "pickle"] {
        desk.run(&format!("copy sqlite:p.db p.x --to {format}")).well();
        desk.run(&format!("copy p.x sqlite:{format}.db --from {format}")).well();
        let back = desk.run(&format!("each sqlite:{format}.db")).well().out;
        assert_eq!(sorted(&back), sorted(&want), "{format}");
    }
    // A table has them in its first column.
    desk.run("copy sqlite:p.db p.csv --fields name,age").well();
    assert_eq!(
        sorted(&desk.read("p.csv")),
        ["@00000000000000,Cid,7", "_key,name,age", "ann,Ann,42", "bob,Bob,65"]
    );
    desk.run("copy p.csv sqlite:csv.db").well();
    let got = desk.run("get sqlite:csv.db bob").well();
    assert_eq!(got.text(), "{\"_key\":\"bob\",\"name\":\"Bob\",\"age\":\"65\"}\n");
    // Without, where that is asked for.
    for (args, want) in [
        ("--no-keys --fields name", "{\"name\":\"Ann\"}"),
        ("--fields _key,age", "{\"_key\":\"ann\",\"age\":42}"),
    ] {
        let ran = desk.run(&format!("copy sqlite:p.db - --to json -q {args}")).well();
        assert!(ran.text().lines().any(|line| line == want), "{args}: {}", ran.text());
    }
    for (args, says) in [
        ("copy p.csv q.json --no-keys", "--no-keys is for copies from a store into a file"),
        ("copy sqlite:p.db sqlite:q.db --no-keys", "--no-keys is for copies"),
        ("copy p.csv q.json --key name", "both places are files"),
        ("copy p.csv q.json --on-duplicate first", "--on-duplicate is for copies into a store"),
        ("copy p.csv sqlite:q.db --on-duplicate both", "known: first, last, reject"),
    ] {
        let ran = desk.run(args);
        assert!(ran.status == Some(2) && ran.err.contains(says), "{args}: {ran:?}");
    }
}

/// A `_key` in a file is the key of its record and no field of it, also where --key names another.
#[test]
fn the_key_of_a_file_is_no_field_in_a_store() {
    let desk = people();
    desk.run("copy sqlite:p.db p.json").well();
    desk.run("copy p.json sqlite:q.db --key id").well();
    let got = desk.run("get sqlite:q.db 2").well();
    assert_eq!(got.text(), "{\"_key\":\"2\",\"id\":2,\"name\":\"Bob\",\"age\":65}\n");
    desk.write(
        "bad.json",
        "{\"_key\":\"\",\"n\":1}\n{\"_key\":null,\"n\":2}\n{\"_key\":3,\"n\":3}\n",
    );
    let ran = desk.run("copy bad.json sqlite:bad.db");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("1 written, 2 rejected"), "{}", ran.err);
    assert_eq!(desk.run("each sqlite:bad.db").well().text(), "{\"_key\":\"3\",\"n\":3}\n");
}

/// The same catalogue in every place gives the same to the same conditions and fields.
#[test]
fn a_catalogue_is_one_in_every_format_and_store() {
    let desk = Desk::with_catalogue();
    let mut places: Vec<String> = ["json", "msgpack", "cbor", "bson", "marshal", "pickle"]
        .map(|format| format!("a.{format} --from {format}"))
        .into();
    for place in &places {
        let (file, from) = place.split_once(' ').unwrap();
        desk.run(&format!("copy a.mrc {file} {}", from.replace("from", "to"))).well();
    }
    for store in ["sqlite:a.db", "sqlite:b.db?format=marc21", "sqlite:c.db?format=msgpack"] {
        desk.run(&format!("copy a.mrc {store}")).well();
        places.push(store.into());
    }
    for args in [
        "--to json --fields 245a",
        "--to json --fields 001,245ab,6XX",
        "--to csv --fields 001,245a --where 008/35-37=eng",
        "--to json --fields 245a --where 245a^=A",
        "--to json --fields 245a,LDR/06 --where !650",
    ] {
        let want = desk.run(&format!("copy a.mrc - -q {args}")).well().out;
        assert!(sorted(&want).len() > 1 && !want.windows(3).any(|w| w == b"\n{}"), "{args}");
        for place in &places {
            let ran = desk.run(
                &format!("copy {place} - -q --no-keys {args}")
                    .replace("--no-keys", if place.contains(':') { "--no-keys" } else { "" }),
            );
            assert_eq!(sorted(&ran.well().out), sorted(&want), "{place} {args}");
        }
    }
    // Its key is 001, in whatever format it comes.
    for place in &places {
        desk.run(&format!("copy {place} sqlite:keys.db --where 245a")).well();
    }
    let wanted = desk.run("copy a.mrc sqlite:wanted.db --where 245a").well();
    let read = |db: &str| desk.run(&format!("each sqlite:{db}.db --fields _key")).well().out;
    assert_eq!(sorted(&read("keys")), sorted(&read("wanted")), "{}", wanted.err);
    // Without conditions it goes through as it is, whatever else stands in it.
    desk.write("more.json", "{\"leader\":\"00000nam a2200000 a 4500\",\"fields\":[],\"more\":1}\n");
    desk.run("copy more.json more.msgpack --where !880").well();
    assert_eq!(desk.run("copy more.msgpack - --to json -q").well().out, desk.read("more.json"));
}

#[test]
fn a_field_that_no_record_has_is_an_error() {
    let desk = Desk::with_catalogue();
    desk.write("p.json", "{\"name\":\"Ann\"}\n{\"name\":\"Bob\",\"age\":65}\n");
    desk.run("copy p.json sqlite:p.db").well();
    for (source, fields, missing) in [
        ("p.json", "245a", "field 245a"),
        ("p.json", "name,email", "field email"),
        ("p.json", "street,name,email", "fields street, email"),
        ("sqlite:p.db", "nmae", "field nmae"),
        ("a.mrc", "001,999z", "field 999z"),
    ] {
        for target in ["b.json", "b.csv", "b.msgpack.gz", "-"] {
            for quiet in ["", "-q", "--json"] {
                desk.write(target, "old");
                let to = if target == "-" { "--to json" } else { "" };
                let ran =
                    desk.run(&format!("copy {source} {target} {to} --fields {fields} {quiet}"));
                assert_eq!(ran.status, Some(1), "{source} {target} {fields}: {}", ran.err);
                assert!(ran.err.contains(&format!("no record has the {missing}")), "{}", ran.err);
                assert_eq!(desk.read(target), b"old", "{source} {target} {fields}");
            }
        }
    }
    // Where some records have it, the others have an empty cell.
    desk.run("copy p.json b.csv --fields age,name").well();
    assert_eq!(desk.read("b.csv"), b"age,name\n,Ann\n65,Bob\n");
    let ran = desk.run("copy p.json sqlite:q.db --fields name,email");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("the records were written without"), "{}", ran.err);
    // Records of which nothing is left do not take the place of a store's.
    let before = desk.run("each sqlite:q.db").well().out;
    for more in ["", "--resume"] {
        let ran = desk.run(&format!("copy p.json sqlite:q.db --fields nmae {more}"));
        assert_eq!(ran.status, Some(1));
        assert!(ran.err.contains("2 records read, 0 written"), "{}", ran.err);
        assert!(ran.err.contains("no record has the field nmae"), "{}", ran.err);
        assert_eq!(desk.run("each sqlite:q.db").well().out, before);
        assert!(!desk.names().contains(&"p.json.copying".into()));
    }
    // Nobody can tell of no records.
    desk.write("none.json", "");
    desk.run("copy none.json b.json --fields email").well();
    desk.run("copy p.json b.json --fields email --where age=1").well();
}

#[test]
fn a_copy_whose_records_are_all_rejected_leaves_the_old_file() {
    let desk = Desk::with_catalogue();
    desk.write("bad.mrc", "no record at all\x1d");
    desk.write("bad.json", "{\"a\":\n[\n");
    desk.write("p.json", "{\"list\":[1]}\n");
    for (source, more) in
        [("bad.mrc", ""), ("bad.json", "--rejects r"), ("p.json", "--to csv"), ("p.json", "")]
    {
        // What is no catalogue does not become one.
        for target in ["old.mrc", "old.xml.gz"] {
            for quiet in ["", "-q", "--json"] {
                desk.write(target, "old");
                let ran = desk.run(&format!("copy {source} {target} {more} {quiet}"));
                let what = format!("{source} {target} {more} {quiet}");
                assert_eq!(ran.status, Some(1), "{what}: {}", ran.err);
                assert!(ran.err.contains("all records were rejected"), "{what}: {}", ran.err);
                assert_eq!(desk.read(target), b"old", "{what}");
                assert!(!desk.names().iter().any(|name| name.ends_with(".part")), "{what}");
            }
        }
    }
    assert_eq!(desk.read("r"), b"{\"a\":\n[\n");
    let ran = desk.run("copy p.json sqlite:p.db --key id -q");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("all records were rejected; none was written"), "{}", ran.err);
    // An empty result that was asked for is one.
    desk.write("empty.json", "");
    for args in ["copy empty.json out.json", "copy a.mrc out.json --where 001=nobody"] {
        desk.write("out.json", "old");
        desk.run(args).well();
        assert_eq!(desk.read("out.json"), b"", "{args}");
    }
    // One that is rejected, and the others left out, is no such result.
    let mut mixed = super::CATALOGUE.clone();
    mixed.extend_from_slice(b"no record at all\x1d");
    desk.write("mixed.mrc", mixed);
    desk.write("out.json", "old");
    let ran = desk.run("copy mixed.mrc out.json --where 001=nobody");
    assert_eq!((ran.status, desk.read("out.json")), (Some(1), b"old".to_vec()), "{}", ran.err);
}

#[test]
fn duplicates_are_counted() {
    let desk = Desk::new();
    desk.write(
        "p.json",
        "{\"id\":1,\"n\":1}\n{\"id\":2}\n{\"id\":1,\"n\":2}\n{\"id\":1,\"n\":3}\n",
    );
    for (rule, kept, status, says) in [
        ("--on-duplicate first", 1, 0, "4 records read, 2 written, 2 duplicates"),
        ("--on-duplicate last", 3, 0, "4 records read, 2 written, 2 duplicates"),
        ("--on-duplicate reject", 1, 1, "4 records read, 2 written, 2 rejected"),
        ("", 1, 1, "duplicate key \"1\"\nhint: --on-duplicate first or last keeps"),
    ] {
        desk.run("delete sqlite:p.db --all");
        let ran = desk.run(&format!("copy p.json sqlite:p.db --key id {rule}"));
        assert_eq!(ran.status, Some(status), "{rule}: {}", ran.err);
        assert!(ran.err.contains(says), "{rule}: {}", ran.err);
        let got = desk.run("get sqlite:p.db 1").well();
        let got: Value = serde_json::from_str(got.text()).unwrap();
        assert_eq!(got["n"], kept, "{rule}");
    }
}

#[test]
fn a_journal_is_of_one_copy_at_a_time() {
    let desk = Desk::new();
    desk.write("p.json", "{\"id\":1}\n");
    let journal = File::create(desk.path().join("p.json.copying")).unwrap();
    journal.lock().unwrap();
    let ran = desk.run("copy p.json sqlite:p.db --key id --resume --rejects r.json");
    assert_eq!(ran.status, Some(3), "{}", ran.err);
    assert!(ran.err.contains("p.json.copying: another copy is using this journal"), "{}", ran.err);
    assert_eq!(desk.run("each sqlite:p.db").text(), "");
    desk.run("copy p.json sqlite:p.db --key id --resume --journal other").well();
    drop(journal);
    desk.run("copy p.json sqlite:p.db --key id --resume").well();
    assert!(!desk.names().contains(&"p.json.copying".into()));
}

#[test]
fn a_folder_of_records_is_swept_of_what_nobody_writes() {
    let desk = Desk::new();
    desk.run_on("put dir:d", b"{\"_key\":\"a\",\"n\":1}\n").well();
    let table = std::fs::read_dir(desk.path().join("d")).unwrap().next().unwrap().unwrap().path();
    let (left, held) = (table.join("+left"), table.join("+held"));
    std::fs::write(&left, "half").unwrap();
    let file = File::create(&held).unwrap();
    file.lock().unwrap();
    desk.run_on("put dir:d", b"{\"_key\":\"b\",\"n\":2}\n").well();
    assert!(!left.exists() && held.exists());
    let all = desk.run("each dir:d").well();
    assert_eq!(all.text(), "{\"_key\":\"a\",\"n\":1}\n{\"_key\":\"b\",\"n\":2}\n");
    drop(file);
    desk.run_on("put dir:d", b"{\"_key\":\"c\",\"n\":2}\n").well();
    assert!(!held.exists());
}
