//! One condition, one answer: whichever verb it is given to, and wherever the records lie.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Desk;

/// Runs the program with one argument that has blanks in it.
fn with_condition(desk: &Desk, args: &str, condition: &str) -> (Option<i32>, String, String) {
    let mut command = desk.command(args.split_whitespace());
    let done = command.args(["--where", condition]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// The records that fit, by a field of theirs.
fn found(desk: &Desk, args: &str, condition: &str, by: &str) -> BTreeSet<String> {
    let (status, out, err) = with_condition(desk, args, condition);
    assert_eq!(status, Some(0), "{args} --where {condition:?}: {err}");
    out.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|record| match by {
            "001" => record["fields"][0]["001"].as_str().unwrap().to_owned(),
            by => record[by].as_str().unwrap().to_owned(),
        })
        .collect()
}

/// Positions that a field does not reach are not there, a control number is a text, and a subfield is found whatever
/// the code of another one is.
#[test]
fn parts_of_marc_records_are_what_they_are() {
    let desk = Desk::new();
    let record = |number: &str, title: &str| {
        let data = format!(
            "{{\"leader\":\"00000nam a2200000 a 4500\",\"fields\":[{{\"001\":\"{number}\"}},{title}]}}\n"
        );
        data
    };
    let odd = r#"{"245":{"ind1":"1","ind2":"0","subfields":[{"a":"Odd"},{"ⁿ":"code"}]}}"#;
    let plain = r#"{"245":{"ind1":"0","ind2":"4","subfields":[{"a":"Plain"}]}}"#;
    desk.write("m.json", record("000123", odd) + &record("123", plain));
    for place in ["m.mrc", "m.xml", "m.mrk", "m.msgpack", "m.cbor", "sqlite:m.db", "dir:m"] {
        let json = format!(
            "copy {place} - --to json -q{}",
            if place.contains(':') { " --no-keys" } else { "" }
        );
        desk.run(&format!("copy m.json {place} -q")).well();
        for (condition, want) in [
            ("001=123", &["123"][..]),
            ("001!=123", &["000123"]),
            ("001>100", &["000123", "123"]),
            ("001 in (123, 7)", &["123"]),
            ("001/4", &["000123"]),
            ("!001/4", &["123"]),
            ("count(001/4)=0", &["123"]),
            ("245a=Odd", &["000123"]),
            ("245/ind1=1", &["000123"]),
            ("245", &["000123", "123"]),
        ] {
            let by = found(&desk, &json, condition, "001");
            let want: BTreeSet<_> = want.iter().map(|n| (*n).to_owned()).collect();
            assert_eq!(by, want, "{place}: {condition}");
        }
        let back = desk.run(&json).well();
        let lines: BTreeSet<&str> = back.text().lines().collect();
        assert!(lines.iter().any(|line| line.contains(odd)), "{place}: {lines:?}");
    }
}

/// `each --fields` keeps what `copy --fields` keeps.
#[test]
fn fields_are_kept_alike_by_each_and_copy() {
    let desk = Desk::new();
    desk.run("generate catalogue --count 20 c.mrc").well();
    desk.write(
        "p.json",
        "{\"id\":1,\"a\":{\"b\":2},\"n\":null}\n{\"id\":2,\"l\":[{\"b\":3},{\"b\":4}]}\n",
    );
    desk.run("copy p.json sqlite:p.db --key id -q").well();
    for place in ["sqlite:c.db", "sqlite:b.db?format=marc21", "dir:c"] {
        desk.run(&format!("copy c.mrc {place} -q")).well();
    }
    for (place, fields) in [
        ("sqlite:c.db", "001,245a"),
        ("sqlite:b.db?format=marc21", "001,245a"),
        ("dir:c", "245,6XX"),
        ("sqlite:p.db", "id,a.b"),
        ("sqlite:p.db", "n,l.b,a.b"),
        ("sqlite:p.db", "id,n"),
    ] {
        for to in ["json", "csv"] {
            if to == "csv" && fields.contains('l') {
                continue;
            }
            let each = desk.run(&format!("each {place} --fields {fields} --to {to}")).well();
            let copy = desk.run(&format!("copy {place} - --to {to} --fields {fields} -q")).well();
            let without = |text: &str| {
                let lines = text.lines().map(|line| match line.split_once("\",") {
                    Some((key, rest)) if key.starts_with("{\"_key\":\"") => format!("{{{rest}"),
                    _ if to == "csv" => {
                        line.split_once(',').map_or("", |(_, rest)| rest).to_owned()
                    }
                    _ => line.to_owned(),
                });
                lines.collect::<BTreeSet<String>>()
            };
            assert_eq!(without(each.text()), without(copy.text()), "{place} {fields} {to}");
        }
    }
    for (place, fields, missing) in [
        ("sqlite:p.db", "id,zzz", "no record has the field zzz"),
        ("sqlite:c.db", "001,245A", "no record has the field"),
    ] {
        let told = desk.run(&format!("each {place} --fields {fields}"));
        assert_eq!(told.status, Some(1), "{}", told.err);
        assert!(told.err.contains(missing), "{}", told.err);
    }
    let twice = desk.run("each sqlite:p.db --fields id,id");
    assert_eq!(twice.status, Some(2));
    assert!(twice.err.contains("named twice"), "{}", twice.err);
}

#[test]
fn documents_are_chosen_alike_everywhere() {
    let desk = Desk::new();
    desk.run("generate people --count 300 p.json").well();
    for place in [
        "p.msgpack",
        "p.csv",
        "sqlite:p.db",
        "sqlite:columns.db?layout=columns",
        "sqlite:blobs.db?format=msgpack+zstd",
        "dir:folder",
    ] {
        let key = if place.starts_with("p.") { "" } else { "--key key" };
        desk.run(&format!("copy p.json {place} {key} -q")).well();
    }
    let all = desk.run("copy p.json - --to json -q").well();
    let all: Vec<Value> = all.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let age = |record: &Value| record["age"].as_i64().unwrap();
    let email = |record: &Value| record["email"].as_str().unwrap().to_owned();
    type Fits<'f> = Box<dyn Fn(&Value) -> bool + 'f>;
    let cases: [(&str, Fits<'_>); 8] = [
        ("age>=60 and age<70", Box::new(|r| (60..70).contains(&age(r)))),
        ("age<20 or age>=90", Box::new(|r| age(r) < 20 || age(r) >= 90)),
        ("not (age<20 or age>=90)", Box::new(|r| age(r) >= 20 && age(r) < 90)),
        ("email~77", Box::new(|r| email(r).contains("77"))),
        ("email~\"BOB8\"i and age>50", Box::new(|r| email(r).starts_with("bob8") && age(r) > 50)),
        (
            "email~/^bob[1-4].*7@/ and age>50",
            Box::new(|r| {
                let local = email(r).split('@').next().unwrap().to_owned();
                matches!(local.as_bytes()[3], b'1'..=b'4') && local.ends_with('7') && age(r) > 50
            }),
        ),
        ("age in (30, 31, 32)", Box::new(|r| (30..33).contains(&age(r)))),
        ("len(email)<18 and age>40", Box::new(|r| email(r).chars().count() < 18 && age(r) > 40)),
    ];
    for (condition, fits) in cases {
        let want: BTreeSet<String> = all
            .iter()
            .filter(|record| fits(record))
            .map(|record| record["key"].as_str().unwrap().to_owned())
            .collect();
        assert!(!want.is_empty() && want.len() < all.len(), "{condition}: {}", want.len());
        for args in [
            "copy p.json - --to json -q",
            "copy p.msgpack - --to json -q",
            "copy p.csv - --to json -q",
            "copy sqlite:p.db - --to json -q",
            "copy sqlite:blobs.db?format=msgpack+zstd - --to json -q",
            "each sqlite:p.db",
            "each sqlite:columns.db?layout=columns",
            "each sqlite:blobs.db?format=msgpack+zstd",
            "each dir:folder",
        ] {
            let keys = found(&desk, args, condition, "key");
            assert!(keys == want, "{args} --where {condition:?}: {keys:?} instead of {want:?}");
        }
    }
    // What is found is deleted.
    let (status, _, err) = with_condition(&desk, "delete sqlite:p.db", "email~77 or age<20");
    assert_eq!(status, Some(0), "{err}");
    let left = desk.run("each sqlite:p.db").well();
    let gone = |record: &&Value| email(record).contains("77") || age(record) < 20;
    let gone = all.iter().filter(gone).count();
    assert_eq!(left.text().lines().count(), all.len() - gone);
    assert!(err.ends_with(&format!("{gone} records deleted\n")), "{err}");
}

#[test]
fn catalogues_are_chosen_alike_everywhere() {
    let desk = Desk::with_catalogue();
    for place in ["c.json", "c.xml", "c.msgpack", "sqlite:c.db", "sqlite:b.db?format=marc21"] {
        desk.run(&format!("copy a.mrc {place} -q"));
    }
    for condition in [
        "008/35-37=eng",
        "650a~a and not 008/35-37=eng",
        "count(650)>1 or 245/ind2=4",
        "!650a",
        "245a~/^[A-M]/",
        "len(008)!=40 or LDR/06=z",
        "650[2]a and 6XXa~\"E\"i",
    ] {
        let want = found(&desk, "copy a.mrc - --to json -q", condition, "001");
        assert!(!want.is_empty(), "{condition}");
        for args in [
            "copy c.xml - --to json -q",
            "copy sqlite:b.db?format=marc21 - --to json -q",
            "each sqlite:c.db",
            "each sqlite:b.db?format=marc21",
        ] {
            let keys = found(&desk, args, condition, "001");
            assert!(keys == want, "{args} --where {condition:?}: {keys:?} instead of {want:?}");
        }
    }
}

#[test]
fn a_list_that_is_compared_with_a_value_is_pointed_out() {
    let desk = Desk::new();
    desk.write("t.json", "{\"_key\":\"a\",\"tags\":[\"red\",\"blue\"]}\n");
    desk.run("copy t.json sqlite:t.db -q").well();
    let (status, out, err) = with_condition(&desk, "each sqlite:t.db", "tags=red");
    assert_eq!((status, out.as_str()), (Some(0), ""));
    assert_eq!(err, "hint: tags is a list; tags[] is any of its elements\n");
    let (_, out, _) = with_condition(&desk, "each sqlite:t.db", "tags[]=red");
    assert_eq!(out.lines().count(), 1);
}

/// Whatever kind of value a field has, and a condition compares it with: records that fit are found, or it is told
/// why none fits. The same of files, of stores, and of what is to be deleted.
#[test]
fn what_no_record_can_fit_is_told() {
    let desk = Desk::new();
    let mut bytes = Vec::new();
    for (key, year) in [("a", 1999), ("b", 2020)] {
        let at: steelyard::record::Time = format!("{year}-06-01T00:00:00Z").parse().unwrap();
        let record = steelyard::record::Document::from_iter([
            ("_key", key.into()),
            ("at", at.into()),
            ("year", year.into()),
            ("zip", "01234".into()),
            ("day", steelyard::record::Value::from("2020-06-01")),
        ]);
        steelyard::format::Format::Msgpack.encode(&record, &mut bytes).unwrap();
    }
    desk.write("t.msgpack", bytes);
    let mut told = 0;
    for place in [
        "t.msgpack",
        "t.bson",
        "t.cbor",
        "t.json",
        "t.csv",
        "sqlite:t.db",
        "sqlite:c.db?layout=columns",
        "sqlite:b.db?format=msgpack",
        "dir:d?format=bson",
        "dir:j?format=json",
    ] {
        if place != "t.msgpack" {
            desk.run(&format!("copy t.msgpack {place} -q")).well();
        }
        for (condition, write) in [
            ("at>=\"2020-01-01\"", "time(2020-01-01T00:00:00Z)"),
            ("at=time(2020-06-01)", "\"2020-06-01T00:00:00Z\""),
            ("at=time(\"2020-06-01T00:00:00Z\")", "\"2020-06-01T00:00:00Z\""),
            ("day>=time(2020-01-01)", "\"2020-01-01T00:00:00Z\""),
            ("year>\"1990\"", "1990, without quotes"),
            ("year=\"2020\" or year=\"1999\"", "2020, without quotes"),
            ("zip=1234", "\"1234\", in quotes"),
        ] {
            let mut verbs = vec![format!("copy {place} - --to json -q")];
            if place.contains(':') {
                verbs.extend([format!("each {place}"), format!("delete {place}")]);
            }
            for args in verbs {
                let (status, out, err) = with_condition(&desk, &args, condition);
                let what = format!("{args} --where {condition:?}: {out}{err}");
                assert_eq!(status, Some(0), "{what}");
                let hint = err.contains(" holds ") && err.contains(write);
                if args.starts_with("delete") {
                    let none = err.contains("0 records deleted");
                    assert_eq!(none, hint, "{what}");
                    desk.run(&format!("copy t.msgpack {place} -q")).well();
                } else {
                    assert_eq!(out.is_empty(), hint, "{what}");
                }
                told += usize::from(hint);
            }
        }
    }
    assert!(told > 50, "{told}");
    let (_, out, err) =
        with_condition(&desk, "each sqlite:b.db?format=msgpack", "at>=\"2020-01-01\"");
    assert_eq!(
        (out.as_str(), err.lines().last()),
        ("", Some("hint: at holds times; compare it with time(2020-01-01T00:00:00Z)"))
    );
    let (_, _, err) = with_condition(&desk, "copy t.bson o.json", "at>=\"2020-01-01\"");
    assert_eq!(
        err,
        "2 records read, 0 written, 2 left out\nwarning: o.json: nothing was written\nhint: at holds times; compare it with time(2020-01-01T00:00:00Z)\n"
    );
    // Another reason is no reason to tell this one, and what fits is not spoken of.
    for condition in ["year>3000", "nothing=\"x\"", "at>time(2030-01-01)", "year=1999 or zip=1"] {
        let (_, _, err) = with_condition(&desk, "each sqlite:b.db?format=msgpack", condition);
        assert!(!err.contains(" holds "), "{condition}: {err}");
    }
}
