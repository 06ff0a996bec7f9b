//! What going through `Format` costs over calling the crate behind it.
//!
//! `cargo run --release -p steelyard-format --example overhead records.json ...` reads MARC-in-JSON files, interleaves
//! both ways on the same records and prints the median of the ratios, ours to theirs.

use std::{hint::black_box, time::Instant};

use steelyard_base::Result;
use steelyard_format::format::{
    Format,
    framing::{Framer, Next},
};
use steelyard_marc::Record;

fn main() -> Result<()> {
    let mut records = Vec::new();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(path)?;
        let (mut framer, mut at) = (Framer::new(&Format::Json.into())?, 0);
        loop {
            match framer.next(&bytes[at..], true) {
                Next::Record { range, next } => {
                    let mut record = Record::new();
                    if Format::Json.decode_marc(&bytes[at..][range], &mut record).is_ok() {
                        records.push(record);
                    }
                    at += next;
                }
                Next::Skip(len) | Next::Bad { len, .. } => at += len,
                Next::More | Next::End => break,
            }
        }
    }
    println!("{} records", records.len());
    write("json", Format::Json, &records, |r, out| serde_json::to_writer(out, r).unwrap());
    write("msgpack", Format::Msgpack, &records, |r, out| {
        rmp_serde::encode::write_named(out, r).unwrap();
    });
    write("cbor", Format::Cbor, &records, |r, out| cbor4ii::serde::to_writer(out, r).unwrap());
    write("bson", Format::Bson, &records, |r, out| bson::serialize_to_buffer(r, out).unwrap());
    read("json", Format::Json, &records, |b| serde_json::from_slice(b).unwrap());
    read("sonic", Format::Sonic, &records, |b| sonic_rs::from_slice(b).unwrap());
    read("msgpack", Format::Msgpack, &records, |b| rmp_serde::from_slice(b).unwrap());
    read("cbor", Format::Cbor, &records, |b| cbor4ii::serde::from_slice(b).unwrap());
    read("bson", Format::Bson, &records, |b| bson::deserialize_from_slice(b).unwrap());
    Ok(())
}

fn write(name: &str, format: Format, records: &[Record], theirs: impl Fn(&Record, &mut Vec<u8>)) {
    let (mut out, mut other) = (Vec::new(), Vec::new());
    report(
        &format!("{name} write"),
        || {
            out.clear();
            for record in records {
                format.encode_marc(record.as_ref(), &mut out).unwrap();
            }
            out.len()
        },
        || {
            other.clear();
            for record in records {
                theirs(record, &mut other);
            }
            other.len()
        },
    );
}

fn read(name: &str, format: Format, records: &[Record], theirs: impl Fn(&[u8]) -> Record) {
    let encoded: Vec<Vec<u8>> = records
        .iter()
        .map(|r| {
            let mut out = Vec::new();
            format.encode_marc(r.as_ref(), &mut out).unwrap();
            out
        })
        .collect();
    report(
        &format!("{name} read"),
        || encoded.iter().map(|b| format.decode::<Record>(b).unwrap().len()).sum(),
        || encoded.iter().map(|b| theirs(b).len()).sum(),
    );
    let mut record = Record::new();
    report(
        &format!("{name} read into one record"),
        || {
            let mut fields = 0;
            for bytes in &encoded {
                format.decode_marc(bytes, &mut record).unwrap();
                fields += record.len();
            }
            fields
        },
        || encoded.iter().map(|b| theirs(b).len()).sum(),
    );
}

fn report(name: &str, mut ours: impl FnMut() -> usize, mut theirs: impl FnMut() -> usize) {
    let time = |f: &mut dyn FnMut() -> usize| {
        let start = Instant::now();
        for _ in 0..50 {
            black_box(f());
        }
        start.elapsed().as_secs_f64()
    };
    assert_eq!(ours(), theirs(), "{name}");
    let mut ratios: Vec<f64> = (0..21).map(|_| time(&mut ours) / time(&mut theirs)).collect();
    ratios.sort_by(f64::total_cmp);
    println!("{name}: {:.3} of the crate's own time", ratios[10]);
}
