//! What is said when something is wrong, word for word, and with which exit status.

use std::fmt::Write;

use super::{Desk, records};

/// A catalogue of one record, one whose directory is damaged, and one that is cut off.
fn damaged(catalogue: &[u8]) -> Vec<u8> {
    let all = records(catalogue);
    let mut second = all[1].to_vec();
    second[30] = b'x';
    [all[0], &second, &all[2][..all[2].len() / 2]].concat()
}

/// How far damaged packing can be read is the packer's affair, and may change with it.
fn without_place_in_packing(text: &str) -> String {
    match text.split_once(", byte ") {
        Some((file, rest)) if file.ends_with(".gz") || file.ends_with(".zst") => {
            format!("{file}, byte N{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => text.to_owned(),
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let desk = Desk::with_catalogue();
    let catalogue = desk.read("a.mrc");
    desk.write("damaged.mrc", damaged(&catalogue));
    desk.write("nothing.mrc", "");
    desk.write("riddle", "what am I?");
    desk.write("broken.json", "{\"a\": 1}\n{\"a\": \n{\"a\": 3}\n");
    desk.write("broken.xml", "<collection><record><leader>x</wrong></record></collection>");
    desk.write("results.json", "{\"schema\": 1}");
    desk.write("later.json", "{\"schema\": 1000}");
    std::fs::create_dir(desk.path().join("folder")).unwrap();
    desk.run("copy a.mrc a.json.gz -q").well();
    let packed = desk.read("a.json.gz");
    desk.write("cut.json.gz", &packed[..packed.len() / 2]);
    // The check sum stands before the length, at the very end.
    let mut flipped = packed.clone();
    let check_sum = flipped.len() - 8;
    flipped[check_sum] ^= 1;
    desk.write("flipped.json.gz", flipped);
    desk.run("copy a.mrc a.json.zst -q").well();
    let packed = desk.read("a.json.zst");
    desk.write("cut.json.zst", &packed[..packed.len() / 2]);

    let (mut said, mut unlike) = (String::new(), Vec::new());
    for (args, status) in [
        // The command line.
        ("weigh a.mrc", 2),
        ("copy a.mrc", 2),
        ("copy a.mrc b.json --from marc22", 2),
        ("copy a.mrc b.json --to json+lz4", 2),
        ("copy a.mrc b.unknown", 2),
        ("copy a.mrc b.json --where =x", 2),
        ("copy a.mrc b.json --where title=x", 2),
        ("copy a.mrc b.json --where 650*", 2),
        ("copy a.mrc b.json --where 245[1", 2),
        ("copy a.mrc b.json --where 245^1=1", 2),
        ("copy a.mrc b.json --where 650a!~Journalists,!880", 2),
        ("each sqlite:none.db --where age>=60~age<70", 2),
        ("each sqlite:none.db --where (age>=60", 2),
        ("each sqlite:none.db --where name~/(/", 2),
        ("copy a.mrc b.json --fields 245a,,100", 2),
        ("copy a.mrc b.json --part 5/4", 2),
        ("copy a.mrc b.json --part half", 2),
        ("copy a.mrc b.json --strict --tolerant", 2),
        ("copy a.mrc b.csv", 2),
        ("copy a.mrc b.json --encoding marc8", 2),
        ("show a.mrc 0", 2),
        ("show a.mrc 7-3", 2),
        ("show riddle", 2),
        ("generate novels", 2),
        ("bench formats a.mrc --formats json,yaml", 2),
        ("bench formats a.mrc --formats json --baseline msgpack", 2),
        ("bench keep --on mariadb?engin=myisam", 2),
        ("bench keep --on sqlite --concurrency 0", 2),
        ("bench keep --on sqlite --scale 0", 2),
        ("bench keep --on sqlite --rate -5", 2),
        ("servers run redis --set maxmemory=1gb", 2),
        ("completions cmd", 2),
        // Files.
        ("copy missing.mrc b.json", 3),
        ("copy folder b.json --from marc21", 2),
        ("copy a.mrc folder --to json", 3),
        ("copy a.mrc no/such/b.json", 3),
        ("show missing.mrc", 3),
        ("check missing.mrc", 3),
        ("report missing.json", 3),
        ("report results.json", 3),
        ("report later.json", 3),
        ("report a.mrc", 3),
        ("copy cut.json.gz b.json", 3),
        ("copy flipped.json.gz b.json", 3),
        ("copy cut.json.zst b.json", 3),
        ("copy a.mrc b.json --rejects no/such/rejects", 3),
        // Records.
        ("copy damaged.mrc b.json", 1),
        ("copy damaged.mrc b.json --strict", 1),
        ("copy broken.json b.msgpack", 1),
        ("copy broken.xml b.mrc", 1),
        ("check damaged.mrc", 1),
        ("check broken.json", 1),
        ("check broken.xml --json", 1),
        ("check nothing.mrc", 0),
        ("copy nothing.mrc b.json", 0),
    ] {
        let ran = desk.run(args);
        let _ = writeln!(said, "$ steelyard {args}");
        said += &String::from_utf8_lossy(&ran.out);
        said += &without_place_in_packing(&ran.err);
        let _ = writeln!(said, "-> {}\n", ran.status.unwrap_or(-1));
        if ran.status != Some(status) {
            unlike.push((args, status, ran));
        }
    }
    assert_eq!(unlike, []);
    insta::assert_snapshot!("errors", said);
}

#[test]
fn what_fails_leaves_no_target() {
    let desk = Desk::with_catalogue();
    desk.run("copy a.mrc a.json.gz -q").well();
    let packed = desk.read("a.json.gz");
    desk.write("cut.json.gz", &packed[..packed.len() - 9]);
    let before = desk.names();
    for args in [
        "copy cut.json.gz b.json",
        "copy cut.json.gz b.json.gz",
        "copy a.mrc b.csv",
        "copy a.mrc b.json --encoding marc8",
        "copy missing.mrc b.json",
        "copy a.mrc b.json --rejects no/such/file",
        "generate catalogue b.csv",
    ] {
        let ran = desk.run(args);
        assert!(ran.status > Some(1), "{args}: {ran:?}");
        assert_eq!(desk.names(), before, "{args}: {}", ran.err);
    }
}

#[test]
fn damage_is_told_alike_by_show_check_and_copy() {
    let desk = Desk::with_catalogue();
    desk.write("damaged.mrc", damaged(&desk.read("a.mrc")));
    let check = desk.run("check damaged.mrc");
    let copy = desk.run("copy damaged.mrc b.json");
    let show = desk.run("show damaged.mrc");
    assert_eq!([check.status, copy.status, show.status], [Some(1); 3]);
    let troubles: Vec<&str> = check.text().lines().filter(|l| l.contains(", byte ")).collect();
    assert!(!troubles.is_empty(), "{}", check.text());
    for trouble in troubles {
        let (_, at) = trouble.split_once(", ").unwrap();
        assert!(copy.err.contains(trouble), "{trouble}\n{}", copy.err);
        assert!(show.text().contains(at), "{at}\n{}", show.text());
    }
    let notes = desk.run("check --pedantic a.mrc");
    let sound = desk.run("check a.mrc").well();
    assert!(sound.text().contains("120 records in marc21: 120 valid, 0 repaired"));
    assert_eq!(notes.status, Some(1));
    assert_eq!(
        desk.run("check --quiet damaged.mrc").text().lines().next(),
        check.text().lines().find(|l| l.contains("in marc21"))
    );
}

/// Whatever verb is told to read a store that is not there: the same words, with its place, and nothing is made.
#[test]
fn a_store_that_is_not_there_is_told_alike_by_every_verb() {
    let desk = Desk::new();
    desk.write("one.json", "{\"_key\":\"a\",\"n\":1}\n");
    let before = desk.names();
    for store in ["sqlite:nope.db", "dir:nope"] {
        let what = if store.starts_with("dir") { "folder" } else { "database" };
        for options in ["", "?format=json", "?table=other"] {
            let url = format!("{store}{options}");
            for verb in [
                "get URL a",
                "each URL",
                "each URL --where n=1",
                "each URL --where _key=a",
                "each URL --fields n",
                "delete URL a",
                "delete URL --all",
                "delete URL --where n=1",
                "copy URL out.json",
                "copy URL sqlite:to.db",
                "show URL",
                "show URL 2-3",
            ] {
                let args = verb.replace("URL", &url);
                let ran = desk.run(&args);
                // Of several lines, the last is the error.
                let said = ran.err.lines().last().unwrap_or_default();
                let want = format!("error: {url}: no such {what}; `put` and `copy` create one");
                assert_eq!((ran.status, said), (Some(3), &*want), "{args}: {}", ran.err);
                assert_eq!(desk.names(), before, "{args}");
            }
            for verb in [
                "check URL",
                "put sqlite:to.db URL",
                "slabs URL",
                "bench formats URL",
                "bench keep --on sqlite --records URL",
            ] {
                let args = verb.replace("URL", &url);
                let ran = desk.run(&args);
                let said = ran.err.lines().last().unwrap_or_default();
                let named = said.contains(&url) && said.contains("the URL of a store");
                assert!(ran.status == Some(2) && named, "{args}: {}", ran.err);
                assert_eq!(desk.names(), before, "{args}");
            }
        }
    }
}
