//! The MARC codec's own speed, one core, CPU time, in memory:
//! `cargo bench -p steelyard-format --bench marc -- FILE.mrc [FILTER]`.
//!
//! Each row is the median of 9 rounds; rows are interleaved, round by round, so that a noisy
//! moment falls on all of them. `STEELYARD_SIMD=avx2|portable` measures those paths.

use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};
use steelyard_format::format::Format;
use steelyard_marc::{Record, iso2709};

/// Seconds of CPU this process has used.
fn cpu() -> f64 {
    let t = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a CPU clock");
    t.tv_sec() as f64 + t.tv_nsec() as f64 / 1e9
}

/// A row: its name, and what it does once over all records.
type Row<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let Some(path) = args.first() else {
        println!("usage: cargo bench -p steelyard-format --bench marc -- FILE.mrc [FILTER]");
        return;
    };
    let data = std::fs::read(path).expect("a file of MARC records");
    let filter = args.get(1).map_or("", |s| s);

    let mut owned: Vec<Record> = Vec::new();
    let mut json: Vec<Vec<u8>> = Vec::new();
    let mut records = iso2709::Records::new(&data);
    while let Some(item) = records.next() {
        let Some(record) = item.record.filter(|r| r.is_utf8()) else { continue };
        owned.push(record.to_record());
        let mut line = Vec::new();
        Format::Json.encode_marc(record, &mut line).expect("a record in UTF-8");
        json.push(line);
    }
    let count = owned.len() as f64;
    let bytes = data.len() as f64;
    println!("{} records in UTF-8, {:.1} MB", owned.len(), bytes / 1e6);

    let mut rows: Vec<Row> = vec![
        ("memcpy", Box::new(|| black_box(data.clone()).len())),
        (
            "read: borrowed, all checks",
            Box::new(|| {
                let (mut fields, mut records) = (0, iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    fields += item.record.map_or(0, |r| r.len());
                }
                fields
            }),
        ),
        (
            "read: stream",
            Box::new(|| {
                let (mut fields, mut reader) = (0, iso2709::Reader::new(&data[..]));
                while let Some(item) = reader.next().unwrap() {
                    fields += item.record.map_or(0, |r| r.len());
                }
                fields
            }),
        ),
        (
            "read: every subfield looked at",
            Box::new(|| {
                let (mut sum, mut records) = (0, iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    for field in item.record.iter().flat_map(|r| r.fields()) {
                        sum += field.subfields().map(|s| s.value.len()).sum::<usize>();
                    }
                }
                sum
            }),
        ),
        (
            "read: into one Record, reused",
            Box::new(|| {
                let (mut own, mut n, mut records) =
                    (Record::new(), 0, iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    if let Some(record) = item.record {
                        own.assign(record);
                        n += own.len();
                    }
                }
                n
            }),
        ),
        (
            "read: a Record each",
            Box::new(|| {
                let (mut all, mut records) = (Vec::new(), iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    all.extend(item.record.map(|r| r.to_record()));
                }
                all.len()
            }),
        ),
        (
            "rewrite: marc21 to marc21",
            Box::new(|| {
                let (mut out, mut n, mut records) = (Vec::new(), 0, iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    if out.len() > 1 << 20 {
                        n += out.len();
                        out.clear();
                    }
                    item.record.iter().for_each(|r| iso2709::write(*r, &mut out));
                }
                n + out.len()
            }),
        ),
        (
            "write: marc21 from Records",
            Box::new(|| {
                let (mut out, mut n) = (Vec::new(), 0);
                for record in &owned {
                    out.clear();
                    iso2709::write(record.as_ref(), &mut out);
                    n += out.len();
                }
                n
            }),
        ),
        (
            "marc21 to JSON lines",
            Box::new(|| {
                let (mut out, mut n, mut records) = (Vec::new(), 0, iso2709::Records::new(&data));
                while let Some(item) = records.next() {
                    if out.len() > 1 << 20 {
                        n += out.len();
                        out.clear();
                    }
                    if let Some(record) = item.record.filter(|r| r.is_utf8()) {
                        Format::Json.encode_marc(record, &mut out).unwrap();
                    }
                }
                n + out.len()
            }),
        ),
        (
            "JSON lines to Record, reused",
            Box::new(|| {
                let (mut own, mut n) = (Record::new(), 0);
                for line in &json {
                    Format::Json.decode_marc(line, &mut own).unwrap();
                    n += own.len();
                }
                n
            }),
        ),
    ];
    for &format in Format::ALL {
        // Only the records that the format can hold (MARCXML has no control characters).
        let mut fit: Vec<(&Record, Vec<u8>)> = Vec::new();
        for record in &owned {
            let mut bytes = Vec::new();
            if format.encode_marc(record.as_ref(), &mut bytes).is_ok() {
                fit.push((record, bytes));
            }
        }
        if fit.len() < owned.len() {
            println!("{}: {} records of {}", format.name(), fit.len(), owned.len());
        }
        if fit.len() * 2 < owned.len() {
            continue;
        }
        let fit = std::rc::Rc::new(fit);
        let same = fit.clone();
        rows.push((
            Box::leak(format!("{} encode", format.name()).into_boxed_str()),
            Box::new(move || {
                let (mut out, mut n) = (Vec::new(), 0);
                for (record, _) in fit.iter() {
                    out.clear();
                    format.encode_marc(record.as_ref(), &mut out).unwrap();
                    n += out.len();
                }
                n
            }),
        ));
        rows.push((
            Box::leak(format!("{} decode", format.name()).into_boxed_str()),
            Box::new(move || {
                let (mut own, mut n) = (Record::new(), 0);
                for (_, bytes) in same.iter() {
                    format.decode_marc(bytes, &mut own).unwrap();
                    n += own.len();
                }
                n
            }),
        ));
    }
    rows.retain(|(name, _)| name.contains(filter));
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    for round in 0..10 {
        for ((_, run), times) in rows.iter_mut().zip(&mut times) {
            let before = cpu();
            black_box(run());
            // The first round is for caches and page faults.
            if round > 0 {
                times.push(cpu() - before);
            }
        }
    }
    println!("{:36} {:>12} {:>9}   {:>7}", "", "records/s", "GB/s*", "spread");
    for ((name, _), times) in rows.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let spread = (times[times.len() - 1] - times[0]) / median * 100.0;
        println!(
            "{name:36} {:>12.0} {:>9.3}   {spread:>5.1} %",
            count / median,
            bytes / median / 1e9
        );
    }
    println!("* of the records as marc21");
}
