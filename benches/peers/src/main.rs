//! `steelyard-peers JOB FILE`: does one job over a file of MARC records with one library, and
//! prints how many records it saw. `scripts/peers.py` times the jobs against one another.

use std::{hint::black_box, io::Write};

use steelyard::{
    format::Format,
    marc::iso2709,
};

/// A job: its name, and what it does with a file.
type Job = (&'static str, fn(&str) -> usize);

const JOBS: &[Job] = &[
    ("steelyard-read", |path| {
        let mut reader = iso2709::Reader::new(open(path));
        let mut n = 0;
        while let Some(item) = reader.next().expect("a readable file") {
            n += usize::from(black_box(item.record).is_some());
        }
        n
    }),
    // What rust-marc's walk does: every field and every subfield looked at.
    ("steelyard-walk", |path| {
        let mut reader = iso2709::Reader::new(open(path));
        let mut n = 0;
        while let Some(item) = reader.next().expect("a readable file") {
            let Some(record) = item.record else { continue };
            for field in record.fields() {
                black_box(field.tag());
                field.subfields().for_each(|s| drop(black_box(s)));
            }
            n += 1;
        }
        n
    }),
    // What the owning libraries do: a record of one's own, that can be edited and kept.
    ("steelyard-own", |path| {
        let mut reader = iso2709::Reader::new(open(path));
        let mut n = 0;
        while let Some(item) = reader.next().expect("a readable file") {
            if let Some(record) = item.record {
                black_box(record.to_record());
                n += 1;
            }
        }
        n
    }),
    ("mrrc-read", |path| {
        let mut reader = mrrc::MarcReader::new(open(path));
        let mut n = 0;
        while let Some(record) = reader.read_record().expect("records that mrrc reads") {
            black_box(record);
            n += 1;
        }
        n
    }),
    ("rust-marc-walk", |path| {
        let mut n = 0;
        for record in marc::Records::new(open(path)) {
            let record = record.expect("records that rust-marc reads");
            for field in record.fields() {
                black_box(field.get_tag());
                field.subfields().for_each(|s| drop(black_box(s.get_data::<[u8]>())));
            }
            n += 1;
        }
        n
    }),
    ("steelyard-json", |path| convert(path, Format::Json)),
    ("mrrc-json", |path| {
        let mut reader = mrrc::MarcReader::new(open(path));
        let mut out = std::io::BufWriter::with_capacity(1 << 20, std::io::sink());
        let mut n = 0;
        while let Some(record) = reader.read_record().expect("records that mrrc reads") {
            let json = mrrc::marcjson::record_to_marcjson(&record).expect("JSON");
            writeln!(out, "{json}").expect("a sink");
            n += 1;
        }
        n
    }),
];

fn open(path: &str) -> std::fs::File {
    std::fs::File::open(path).expect("a file of MARC records")
}

fn convert(path: &str, to: Format) -> usize {
    let mut reader = iso2709::Reader::new(open(path));
    let (mut out, mut n) = (Vec::new(), 0);
    while let Some(item) = reader.next().expect("a readable file") {
        let Some(record) = item.record else { continue };
        // Records that are not UTF-8 are left out.
        drop(to.encode_marc(record, &mut out));
        n += 1;
        if out.len() > 1 << 20 {
            black_box(&out);
            out.clear();
        }
    }
    n
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let job = args.get(1).and_then(|name| JOBS.iter().find(|(n, _)| n == name));
    match (job, args.get(2)) {
        (Some((_, job)), Some(path)) => println!("{}", job(path)),
        _ => {
            let names: Vec<_> = JOBS.iter().map(|(n, _)| *n).collect();
            eprintln!("usage: steelyard-peers JOB FILE; jobs: {}", names.join(", "));
            std::process::exit(2);
        }
    }
}
