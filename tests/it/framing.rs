//! The laws of framing: what a writer puts into a file, a reader finds again, record for record,
//! however the bytes come; and what is damaged costs no more than itself.

use proptest::prelude::*;
use steelyard::{
    format::{
        Coder, Format, Takes, Wrap, Wrapped,
        framing::{Framer, Glue, Next},
    },
    marc,
    record::{Document, Value},
};

use crate::formats::record_of;
use crate::programs::{self, need};

/// What a reader gets from bytes that come in pieces which end at `cuts`.
#[derive(Debug, Default, PartialEq)]
struct Read {
    records: Vec<Vec<u8>>,
    /// Where bad stretches begin and end, and what is said of them.
    bad: Vec<(usize, usize, String)>,
    /// Where reading stopped.
    end: usize,
}

fn read(mut framer: Framer, bytes: &[u8], cuts: &[usize]) -> Read {
    let mut read = Read::default();
    let mut cuts = cuts.iter().copied().chain([bytes.len()]);
    let mut have = 0;
    loop {
        match framer.next(&bytes[read.end..have], have == bytes.len()) {
            Next::Record { range, next } => {
                assert!(range.end <= next && next > 0 && read.end + next <= have);
                let record = &bytes[read.end..][range];
                read.records.push([framer.head(), record].concat());
                read.end += next;
            }
            Next::Skip(n) => {
                assert!(n > 0 && read.end + n <= have);
                read.end += n;
            }
            Next::Bad { len, before, error } => {
                read.bad.push((read.end - before as usize, read.end + len, error.to_string()));
                read.end += len;
            }
            Next::More => {
                assert!(have < bytes.len(), "nothing more is there");
                have = cuts.next().unwrap().max(have);
            }
            Next::End => return read,
        }
    }
}

fn read_all(format: &str, bytes: &[u8]) -> Read {
    let framer = Framer::new(&format.parse().unwrap()).unwrap();
    let whole = read(framer, bytes, &[]);
    // Byte for byte it must be the same.
    let framer = Framer::new(&format.parse().unwrap()).unwrap();
    let cuts: Vec<_> = (0..bytes.len()).collect();
    assert_eq!(read(framer, bytes, &cuts).records, whole.records);
    whole
}

fn texts(read: &Read) -> Vec<&str> {
    read.records.iter().map(|r| std::str::from_utf8(r).unwrap()).collect()
}

/// Every format, bare and in every wrap, with some records it keeps.
fn file() -> impl Strategy<Value = (Wrapped, Vec<Document>)> {
    let wraps = prop::sample::select(vec![
        vec![],
        vec![],
        vec![Wrap::Base64],
        vec![Wrap::Base64Lines],
        vec![Wrap::Gzip(1)],
        vec![Wrap::Zstd(1)],
        vec![Wrap::Zstd(1), Wrap::Base64],
    ]);
    let formats: Vec<_> =
        Format::ALL.iter().copied().filter(|f| f.info().takes != Takes::Marc).collect();
    (prop::sample::select(formats), wraps).prop_flat_map(|(format, wraps)| {
        let wrapped = Wrapped { format, wraps };
        let records = prop::collection::vec(record_of(format), 0..6);
        (Just(wrapped), records).prop_map(|(wrapped, mut records)| {
            // The rows of one file have the same columns.
            if wrapped.format.info().takes == Takes::Rows
                && let Some(first) = records.first().cloned()
            {
                for record in &mut records {
                    let values: Vec<_> = record.iter().map(|(_, v)| v.clone()).collect();
                    *record = first
                        .iter()
                        .enumerate()
                        .map(|(i, (name, _))| (name, values[i % values.len()].clone()))
                        .collect();
                }
            }
            (wrapped, records)
        })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_found_again_however_it_comes(
        (wrapped, records) in file(),
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut coder = Coder::new(wrapped.clone()).unwrap();
        let (mut glue, mut bytes, mut encoded) = (Glue::new(&wrapped), Vec::new(), Vec::new());
        for record in &records {
            glue.put(&mut bytes, |out| coder.encode(record, out)).unwrap();
            let mut alone = Vec::new();
            coder.encode(record, &mut alone).unwrap();
            encoded.push(alone);
        }
        glue.finish(&mut bytes);

        let mut cuts: Vec<_> = cuts.drain(..).map(|i| i.index(bytes.len() + 1)).collect();
        cuts.sort();
        let read = read(Framer::new(&wrapped).unwrap(), &bytes, &cuts);
        prop_assert_eq!(&read.bad, &vec![], "{}", &wrapped);
        prop_assert_eq!(read.end, bytes.len());
        prop_assert_eq!(read.records.len(), records.len(), "{}", &wrapped);
        for ((found, alone), record) in read.records.iter().zip(&encoded).zip(&records) {
            prop_assert_eq!(found.trim_ascii_end(), alone.trim_ascii_end(), "{}", &wrapped);
            prop_assert_eq!(&coder.decode::<Document>(found).unwrap(), record, "{}", &wrapped);
        }
    }

    #[test]
    fn noise_is_no_panic_and_nothing_vanishes(
        (wrapped, _) in file(),
        noise in any::<Vec<u8>>(),
        cuts in prop::collection::vec(0..100usize, 0..5),
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|i| i.min(noise.len())).collect();
        cuts.sort();
        let framer = Framer::new(&wrapped).unwrap().with_limit(40);
        let read = read(framer, &noise, &cuts);
        prop_assert!(read.end == noise.len() || !read.bad.is_empty());
    }
}

#[test]
fn json_is_found_in_every_layout() {
    let records = [r#"{"a":"} \" {","b":[1,{"c":null}]}"#, r#"{"x":{}}"#, r#"{"y":"\\"}"#];
    let values: Vec<Value> = records.iter().map(|r| serde_json::from_str(r).unwrap()).collect();
    let pretty: Vec<_> = values.iter().map(|v| serde_json::to_string_pretty(v).unwrap()).collect();
    for file in [
        records.join("\n"),
        records.join("\r\n\r\n") + "\r\n",
        format!("\u{feff}{}", records.join("\n")),
        records.concat(),
        records.join(", "),
        records.join(",\n"),
        format!("[{}]", records.join(",")),
        format!("[\n{}\n]\n", records.join(",\n")),
        pretty.join("\n"),
        pretty.concat(),
        serde_json::to_string_pretty(&values).unwrap(),
        format!("\x1e{}\n", records.join("\n\x1e")),
    ] {
        let read = read_all("json", file.as_bytes());
        assert_eq!(read.bad, [], "{file}");
        let found: Vec<Value> =
            texts(&read).iter().map(|t| serde_json::from_str(t).unwrap()).collect();
        assert_eq!(found, values, "{file}");
    }
    for (file, want) in [
        ("1\ntrue\n\"a b\"\n\nnull\n[1,2]\n", &["1", "true", "\"a b\"", "null", "[1,2]"][..]),
        ("[1]\n[2]\n\n[]\n{}\n", &["[1]", "[2]", "[]", "{}"]),
        ("7", &["7"]),
        ("[[]]", &["[[]]"]),
        // Lists of maps, one a line, are no array of maps; one of them alone is.
        ("[{\"a\":1},{}]\n[{\"b\":2}]\n", &["[{\"a\":1},{}]", "[{\"b\":2}]"]),
        ("[{\"a\":\"]\"}] \r\n\r\n[]\r\n[3]", &["[{\"a\":\"]\"}]", "[]", "[3]"]),
        ("[{\"a\":1},{}]\n", &["{\"a\":1}", "{}"]),
        ("[{\"a\":[1]},\n{\"b\":[2]}]\n", &["{\"a\":[1]}", "{\"b\":[2]}"]),
        ("[{\"a\":[1]\n},\n{}]", &["{\"a\":[1]\n}", "{}"]),
        ("[{\"a\":1}]\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
    ] {
        assert_eq!(texts(&read_all("json", file.as_bytes())), want);
    }
    for file in ["", "\n \n", "[]", " [ ]\n", "\u{feff}"] {
        assert_eq!(read_all("json", file.as_bytes()).records, [] as [Vec<u8>; 0], "{file:?}");
    }
}

#[test]
fn a_long_array_on_one_line_is_not_waited_for() {
    let maps: Vec<String> = (0..9000).map(|n| format!("{{\"n\":{n:06}}}")).collect();
    let file = format!("[{}]\n[{{}}]", maps.join(","));
    let mut framer = Framer::new(&"json".parse().unwrap()).unwrap();
    let enough = 64 << 10;
    assert!(matches!(framer.next(&file.as_bytes()[..enough - 1], false), Next::More));
    assert!(matches!(framer.next(&file.as_bytes()[..enough], false), Next::Skip(1)));
    let read = read(Framer::new(&"json".parse().unwrap()).unwrap(), file.as_bytes(), &[]);
    assert_eq!(read.records.len(), 9001);
}

#[test]
fn a_bad_record_costs_no_more_than_itself() {
    // One that is cut short among others, in the layouts in which the next can be found.
    for (file, bad) in [
        ("{\"a\":1}\n{\"b\": [1,\n{\"c\":3}\n", 0),
        ("{\"a\": \"x\n{\"b\":2}\n{\"c\":3}\n", 1),
        ("{\"a\": [1\n{\"b\":2}\n{\"c\":3}\n", 1),
        ("{\n \"a\": 1\n}\n{\n \"b\": \"x\n}\n{\n \"c\": 3\n}\n", 1),
        ("[{\"a\":1},{\"b\":\"x\ny\"},{\"c\":3}]", 0),
        ("{\n \"a\": 1\n}\n{\n \"b\": [2\n}\n{\n \"c\": 3\n}\n", 1),
        ("[\n  {\"a\":1},\n  {\"b\":2]},\n  {\"c\":3}\n]\n", 1),
    ] {
        let read = read_all("json", file.as_bytes());
        let good = texts(&read)
            .into_iter()
            .filter(|t| serde_json::from_str::<serde_json::Value>(t).is_ok())
            .count();
        assert_eq!((good, read.bad.len()), (2, bad), "{file}: {read:?}");
    }
    // Records that say their length: the end of the file is missing, or the middle is no record.
    let mut bytes = Vec::new();
    for text in ["one", "two"] {
        Format::Msgpack.encode(&text, &mut bytes).unwrap();
    }
    let cut = read_all("msgpack", &bytes[..bytes.len() - 1]);
    assert_eq!(cut.records.len(), 1);
    assert_eq!(cut.bad[0].0, 4);
    bytes[4] = 0xc1;
    let damaged = read_all("msgpack", &bytes);
    assert_eq!(damaged.records.len(), 1);
    assert!(damaged.bad[0].2.contains("the records after it cannot be found"), "{damaged:?}");
}

const LIMIT: usize = 50;

#[test]
fn a_record_over_the_limit_is_passed_over() {
    let with_limit = |format: &str, bytes: &[u8]| {
        let framer = || Framer::new(&format.parse().unwrap()).unwrap().with_limit(LIMIT);
        let cuts: Vec<_> = (0..bytes.len()).collect();
        let (whole, pieces) = (read(framer(), bytes, &[]), read(framer(), bytes, &cuts));
        assert_eq!(whole.records, pieces.records, "{format}");
        assert_eq!((whole.bad.len(), pieces.bad.len()), (1, 1), "{format}: {whole:?} {pieces:?}");
        assert_eq!(whole.end, bytes.len());
        assert!(whole.bad[0].2.contains("over 50 bytes"), "{whole:?}");
        assert!(pieces.bad[0].2.contains("over 50 bytes"), "{pieces:?}");
        whole.records.len()
    };
    let long = "x".repeat(100);
    assert_eq!(with_limit("json", format!("1\n\"{long}\"\n2\n").as_bytes()), 2);
    assert_eq!(with_limit("json", format!("{{\n}}\n{{\n\"{long}\"\n}}\n{{\n}}\n").as_bytes()), 2);
    assert_eq!(with_limit("json+base64", format!("AAAA\n{long}\nBBBB\n").as_bytes()), 2);
    assert_eq!(with_limit("csv", format!("a\n1\n{long}\n2\n").as_bytes()), 2);
    let prefixed = [&[0, 0, 0, 1, 7][..], &[0, 0, 0, 100], long.as_bytes(), &[0, 0, 0, 0]].concat();
    assert_eq!(with_limit("json+gzip", &prefixed), 2);
    let marc = ["00000", "00000", "00000"].join("\x1d") + &long + "\x1d00000\x1d";
    assert_eq!(with_limit("marc21", marc.as_bytes()), 3);
    let mut bson = Vec::new();
    for text in ["", &long, ""] {
        Format::Bson.encode(&Document::from_iter([("a", text)]), &mut bson).unwrap();
    }
    assert_eq!(with_limit("bson", &bson), 2);
}

#[test]
fn csv_rows_must_have_the_columns_of_the_first() {
    let wrapped = Wrapped::from(Format::Csv);
    let (mut glue, mut out) = (Glue::new(&wrapped), Vec::new());
    let mut put = |row: &[(&str, &str)], out: &mut Vec<u8>| {
        glue.put(out, |out| Format::Csv.encode(&Document::from_iter(row.iter().copied()), out))
    };
    put(&[("a", "1"), ("b", "x\ny")], &mut out).unwrap();
    let error = put(&[("a", "1")], &mut out).unwrap_err();
    assert!(error.to_string().contains("a instead of a,b"), "{error}");
    put(&[("a", "2"), ("b", "")], &mut out).unwrap();
    assert_eq!(out, b"a,b\n1,\"x\ny\"\n2,\n");
}

#[test]
fn real_json_files_are_found_record_by_record() {
    let mut folders = vec![need!(programs::real_records())];
    let (mut files, mut records, mut invalid) = (0, 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "json" || e == "ndj") {
                let bytes = std::fs::read(&path).unwrap();
                let read = read(Framer::new(&Format::Json.into()).unwrap(), &bytes, &[]);
                assert_eq!(read.bad, [], "{}", path.display());
                assert!(!read.records.is_empty(), "{}", path.display());
                for record in &read.records {
                    // Some people break lines inside of strings.
                    if let Err(e) = serde_json::from_slice::<serde::de::IgnoredAny>(record) {
                        let e = e.to_string();
                        assert!(e.contains("control character"), "{}: {e}", path.display());
                        invalid += 1;
                    }
                    let mut marc = marc::Record::new();
                    if Format::Json.decode_marc(record, &mut marc).is_ok() {
                        records += 1;
                    }
                }
                files += 1;
            }
        }
    }
    println!("{files} JSON files, {records} MARC records in them, {invalid} no JSON");
    assert!(files > 0);
}
