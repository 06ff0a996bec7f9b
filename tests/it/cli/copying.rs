//! `copy`, from any format to any other, packed and wrapped, through files and pipes.

use serde_json::Value;
use steelyard::format::{Format, Takes};

use super::{CATALOGUE, Desk, records};

/// The formats that hold MARC records whole.
fn keepers() -> impl Iterator<Item = &'static str> {
    let whole = |f: &&Format| f.info().takes != Takes::Rows;
    Format::ALL.iter().filter(whole).map(|f| f.name())
}

#[test]
fn a_catalogue_comes_back_byte_for_byte_from_every_format() {
    let desk = Desk::with_catalogue();
    assert!(keepers().count() >= 10);
    for format in keepers() {
        for packing in ["", ".gz", ".zst"] {
            let file = format!("b.{format}{packing}");
            // The name tells what it is; where it does not, we do.
            let (to, from) = match format {
                "marc21" | "marcxml" | "line" | "sonic" => {
                    (format!("--to {format}"), format!("--from {format}"))
                }
                _ => (String::new(), String::new()),
            };
            desk.run(&format!("copy a.mrc {file} {to}")).well();
            let ran = desk.run(&format!("copy {file} c.mrc {from}")).well();
            assert_eq!(ran.err, "120 records read, 120 written\n");
            assert!(desk.read("c.mrc") == *CATALOGUE, "{file}");
            let head = &desk.read(&file)[..2];
            let packed = [&[0x1f, 0x8b][..], &[0x28, 0xb5]].iter().position(|magic| *magic == head);
            assert_eq!(
                packed,
                ["", ".gz", ".zst"].iter().position(|p| *p == packing).unwrap().checked_sub(1)
            );
        }
    }
}

#[test]
fn wraps_come_off_again() {
    let desk = Desk::with_catalogue();
    for wrapped in [
        "msgpack+base64",
        "json+zstd",
        "marshal+base64lines",
        "marc21+gzip:9",
        "cbor+zstd:19+base64",
        "marcxml+gzip",
        "line+base64",
        "pickle+gzip+base64",
    ] {
        desk.run(&format!("copy a.mrc b --to {wrapped}")).well();
        desk.run(&format!("copy b c.mrc --from {wrapped}")).well();
        assert!(desk.read("c.mrc") == *CATALOGUE, "{wrapped}");
        // As an extension, and packed as a whole too.
        let named = wrapped.replace(":9", "").replace(":19", "");
        desk.run(&format!("copy a.mrc b.{named}.gz")).well();
        desk.run(&format!("copy b.{named}.gz c.mrc")).well();
        assert!(desk.read("c.mrc") == *CATALOGUE, "{named}.gz");
    }
    assert!(
        desk.run("copy b.msgpack+base64.gz - --to json").well().text().starts_with("{\"leader\":")
    );
}

#[test]
fn pipes_carry_every_format() {
    let desk = Desk::new();
    for format in keepers() {
        let there = desk.run_on(&format!("copy - - --to {format}"), &CATALOGUE).well();
        let back = desk.run_on(&format!("copy - - --from {format} --to marc21"), &there.out).well();
        assert!(back.out == *CATALOGUE, "{format}");
        // The summary does not mix with the records.
        assert_eq!(back.err, "120 records read, 120 written\n");
    }
    let shown = desk.run_on("show - 2", &CATALOGUE).well();
    assert!(shown.text().starts_with("record 2, byte "));
    let checked = desk.run_on("check -", &CATALOGUE).well();
    assert!(checked.text().starts_with("-: 120 records in marc21"), "{}", checked.text());
    assert_eq!(desk.names(), [] as [&str; 0]);
}

/// Records as JSON values, read back from the program.
fn values(desk: &Desk, args: &str) -> Vec<Value> {
    let ran = desk.run(args).well();
    ran.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The subfields with this code, in fields with this tag.
fn subfields<'v>(record: &'v Value, tag: &str, code: &str) -> Vec<&'v str> {
    let fields = record["fields"].as_array().unwrap().iter().filter_map(|f| f.get(tag));
    let subfields = fields.filter_map(|f| f["subfields"].as_array()).flatten();
    subfields.filter_map(|s| s.get(code)?.as_str()).collect()
}

#[test]
fn conditions_choose_records() {
    let desk = Desk::with_catalogue();
    let all = values(&desk, "copy a.mrc - --to json -q");
    assert_eq!(all.len(), 120);
    let english = |r: &&Value| {
        let f008 = r["fields"].as_array().unwrap().iter().find_map(|f| f["008"].as_str());
        f008.and_then(|f| f.get(35..38)) == Some("eng")
    };
    let has = |tag: &'static str, code: &'static str| {
        move |r: &&Value| !subfields(r, tag, code).is_empty()
    };
    let wanted: Vec<&Value> = all.iter().filter(english).collect();
    assert!(!wanted.is_empty() && wanted.len() < all.len());
    let found = values(&desk, "copy a.mrc - --to json -q --where 008/35-37=eng");
    assert!(found.iter().eq(wanted.iter().copied()), "{} and {}", found.len(), wanted.len());
    let wanted = all.iter().filter(english).filter(|r| !has("650", "a")(r)).count();
    let both = values(&desk, "copy a.mrc - --to json -q --where 008/35-37=eng --where !650a");
    assert_eq!(both.len(), wanted);
    let wanted = all.iter().filter(has("245", "a")).count();
    assert!(wanted > 0 && wanted < 120, "authority records have no title");
    let titled = desk.run("copy a.mrc t.json --where 245a").err;
    assert!(titled.contains(&format!("{wanted} written, {} left out", 120 - wanted)), "{titled}");
}

#[test]
fn fields_are_kept_and_become_columns() {
    let desk = Desk::with_catalogue();
    let all = values(&desk, "copy a.mrc - --to json -q");
    let kept = values(&desk, "copy a.mrc - --to json -q --fields 001,245a,6XX");
    assert_eq!(kept.len(), 120);
    for (whole, kept) in all.iter().zip(&kept) {
        assert_eq!(subfields(kept, "245", "a"), subfields(whole, "245", "a"));
        assert_eq!(subfields(kept, "650", "a"), subfields(whole, "650", "a"));
        for field in kept["fields"].as_array().unwrap() {
            let tag = field.as_object().unwrap().keys().next().unwrap();
            assert!(tag == "001" || tag == "245" || tag.starts_with('6'), "{tag}");
        }
    }
    let table = desk.run("copy a.mrc - --to csv -q --fields 001,245a").well();
    let mut rows = csv::Reader::from_reader(&table.out[..]);
    assert_eq!(rows.headers().unwrap(), &["001", "245a"][..]);
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 120);
    for (row, record) in rows.iter().zip(&all) {
        let title = subfields(record, "245", "a").first().copied().unwrap_or_default();
        assert!(row[1].starts_with(title), "{row:?}: {title}");
    }
}

#[test]
fn counts_are_told_as_json() {
    let desk = Desk::with_catalogue();
    let mut bytes = records(&CATALOGUE)[..20].concat();
    let cut = bytes.len() - 100;
    bytes.truncate(cut);
    desk.write("b.mrc", &bytes);
    let ran = desk.run("copy b.mrc c.json --json --where 245a --strict");
    assert_eq!(ran.status, Some(1));
    let counts: Value = serde_json::from_str(&ran.err).expect("one line of JSON and nothing else");
    let n = |name: &str| counts[name].as_u64().unwrap_or_else(|| panic!("{name} in {counts}"));
    assert_eq!((n("read"), n("rejected"), n("repaired")), (20, 1, 0));
    assert_eq!(n("read"), n("written") + n("left_out") + n("rejected"));
    assert!(n("left_out") > 0);
    assert_eq!(n("bytes_in"), bytes.len() as u64);
    let written = desk.read("c.json");
    assert_eq!(n("bytes_out"), written.len() as u64);
    assert_eq!(n("written") as usize, written.split_inclusive(|b| *b == b'\n').count());
}
