//! Records a second of CPU through Marshal and pickle: MARC records, and a plain struct.
//!
//! `STEELYARD_TEST_DATA=<folder of MARC files> cargo bench -p steelyard-format --bench ruby_python`; without the folder,
//! the sample catalogue. `STEELYARD_MARSHAL` and `STEELYARD_PICKLE` may name files of MARC
//! records dumped by real Ruby and Python, each after its length in 4 bytes, big end first. Prints the
//! best of several rounds.

use std::{env, fs, hint::black_box, path::Path};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use steelyard_format::{format::Format, record::dataset::catalogue::Catalogue};
use steelyard_marc::{Leader, Record};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Object {
    id: u64,
    name: String,
    email: String,
    created: i64,
    score: f64,
    tags: Vec<String>,
}

fn main() {
    let records = marc();
    let fields = || records.iter().flat_map(|r| r.as_ref().fields());
    println!(
        "{} MARC records; each has {} bytes as ISO 2709, {} fields, {} subfields",
        records.len(),
        fields().map(|f| f.bytes().len() + 13).sum::<usize>() / records.len() + 26,
        fields().count() / records.len(),
        fields().map(|f| f.subfields().len()).sum::<usize>() / records.len(),
    );
    let objects: Vec<_> = (0..10_000)
        .map(|i| Object {
            id: i,
            name: format!("Jason Mooberry {i}"),
            email: format!("jason{i}@example.com"),
            created: 1_250_000_000 + i as i64 * 77,
            score: i as f64 / 7.0,
            tags: ["red", "green", "blue"].map(str::to_owned).to_vec(),
        })
        .collect();
    for format in [Format::Marshal, Format::Pickle] {
        measure(format, "MARC", &records);
        measure_marc(format, &records);
        measure(format, "objects", &objects);
    }
    // What real Ruby and Python wrote, if it is there.
    for (format, variable, what) in [
        (Format::Marshal, "STEELYARD_MARSHAL", "MARC by Ruby"),
        (Format::Pickle, "STEELYARD_PICKLE", "MARC by Python"),
    ] {
        let Ok(path) = env::var(variable) else { continue };
        let encoded = parts(&fs::read(path).expect("a file"));
        decode::<Record>(format, what, &encoded);
        decode_marc(format, what, &encoded);
    }
}

/// A file of records, each after its length in 4 bytes, the most significant first.
fn parts(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((n, rest)) = bytes.split_first_chunk::<4>() {
        let (part, rest) = rest.split_at(u32::from_be_bytes(*n) as usize);
        parts.push(part.to_vec());
        bytes = rest;
    }
    parts
}

fn measure<T: Serialize + DeserializeOwned + PartialEq>(format: Format, what: &str, items: &[T]) {
    let mut out = Vec::new();
    let encoded: Vec<Vec<u8>> = items
        .iter()
        .map(|item| {
            let mut out = Vec::new();
            format.encode(item, &mut out).expect("encodes");
            assert!(format.decode::<T>(&out).expect("decodes") == *item, "comes back the same");
            out
        })
        .collect();
    let size = encoded.iter().map(Vec::len).sum::<usize>() / items.len();
    if wanted(&[format.name(), what, "write"]) {
        let seconds = best(|| {
            for item in items {
                out.clear();
                format.encode(item, &mut out).expect("encodes");
                black_box(&out);
            }
        });
        let rate = items.len() as f64 / seconds;
        println!(
            "{:8} {what:22} write {rate:>10.0} records/s  {size:>6} bytes each",
            format.name()
        );
    }
    decode::<T>(format, what, &encoded);
}

/// MARC records by their own way through the format, into one record used again and again.
fn measure_marc(format: Format, records: &[Record]) {
    let mut encoded = Vec::new();
    for record in records {
        let mut out = Vec::new();
        format.encode_marc(record.as_ref(), &mut out).expect("encodes");
        let mut read = Record::new();
        format.decode_marc(&out, &mut read).expect("decodes");
        assert!(read == *record, "comes back the same");
        encoded.push(out);
    }
    decode_marc(format, "MARC", &encoded);
}

fn decode_marc(format: Format, what: &str, encoded: &[Vec<u8>]) {
    if !wanted(&[format.name(), what, "reused", "read"]) {
        return;
    }
    let mut record = Record::new();
    let seconds = best(|| {
        for bytes in encoded {
            format.decode_marc(bytes, &mut record).expect("decodes");
            black_box(&record);
        }
    });
    print(format, &format!("{what}, reused"), encoded, seconds);
}

fn print(format: Format, what: &str, encoded: &[Vec<u8>], seconds: f64) {
    let size: usize = encoded.iter().map(Vec::len).sum();
    println!(
        "{:8} {what:22} read  {:>10.0} records/s  {:>6.0} MB/s  {:>6} bytes each",
        format.name(),
        encoded.len() as f64 / seconds,
        size as f64 / seconds / 1e6,
        size / encoded.len().max(1)
    );
}

/// True unless the arguments name something else.
fn wanted(words: &[&str]) -> bool {
    env::args().skip(1).filter(|a| !a.starts_with('-')).all(|a| words.contains(&a.as_str()))
}

fn decode<T: DeserializeOwned>(format: Format, what: &str, encoded: &[Vec<u8>]) {
    if !wanted(&[format.name(), what, "read"]) {
        return;
    }
    let seconds = best(|| {
        for bytes in encoded {
            black_box(format.decode::<T>(bytes).expect("decodes"));
        }
    });
    print(format, what, encoded, seconds);
}

/// The least CPU seconds of a dozen rounds.
fn best(mut round: impl FnMut()) -> f64 {
    let cpu = || {
        let t = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock");
        t.tv_sec() as f64 + t.tv_nsec() as f64 / 1e9
    };
    let measured = |round: &mut dyn FnMut()| {
        let start = cpu();
        round();
        cpu() - start
    };
    (0..30).map(|_| measured(&mut round)).fold(f64::MAX, f64::min)
}

/// Sound records of the test data, or of the sample catalogue.
fn marc() -> Vec<Record> {
    let mut records = Vec::new();
    if let Ok(folder) = env::var("STEELYARD_TEST_DATA") {
        let mut files = Vec::new();
        find(Path::new(&folder), &mut files);
        files.sort();
        for file in files {
            for bytes in fs::read(file).expect("a file").split_inclusive(|&b| b == 0x1d) {
                records.extend(iso2709(bytes));
            }
        }
    }
    if records.is_empty() {
        let catalogue = Catalogue::new(1);
        records.extend((0..4000).map(|n| catalogue.record(n)));
    }
    records
}

fn find(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|e| e == "mrc" || e == "marc" || e == "dat") {
            files.push(path);
        }
    }
}

/// Longer records are left out, so that those left are as long as real ones are on average: the
/// statistics of 11,428 records are 1,461 bytes, 25 fields and 61 subfields.
const LONGEST: usize = 3200;

/// A sound record in UTF-8; anything else is left out.
fn iso2709(bytes: &[u8]) -> Option<Record> {
    let number = |range: std::ops::Range<usize>| -> Option<usize> {
        std::str::from_utf8(bytes.get(range)?).ok()?.parse().ok()
    };
    std::str::from_utf8(bytes).ok()?;
    let (length, base) = (number(0..5)?, number(12..17)?);
    if length != bytes.len() || base < 25 || length > LONGEST {
        return None;
    }
    let mut record = Record::new();
    record.set_leader(Leader(bytes[..24].try_into().ok()?));
    for entry in (24..base - 1).step_by(12) {
        let (len, start) = (number(entry + 3..entry + 7)?, number(entry + 7..entry + 12)?);
        let field = bytes.get(base + start..)?.get(..len.checked_sub(1)?)?;
        record.push_bytes(bytes[entry..entry + 3].try_into().ok()?, field).ok()?;
    }
    Some(record)
}
