//! Files: what a sink writes, frames read again, whatever the format, the packing and the parts.

use std::{fs, io::Read, path::Path};

use proptest::prelude::*;
use steelyard::{
    ErrorKind,
    file::{Frames, Packing, Part, Reading, Sink, Writing},
    format::{Coder, Format, Takes, Wrapped},
    marc,
    record::Document,
};

use crate::{
    programs::{self, need},
    real,
};

/// What a file has: records decoded, and what is bad about the others.
fn read<R>(
    path: &Path,
    reading: &Reading,
    mut decode: impl FnMut(&mut Coder, &[u8]) -> R,
) -> (Vec<R>, Vec<String>) {
    let mut frames = Frames::open(path.to_str().unwrap(), reading).unwrap();
    let mut coder = Coder::new(frames.format().clone()).unwrap();
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    while let Some(frame) = frames.next().unwrap() {
        match frame.bad {
            None => records.push(decode(&mut coder, frame.bytes)),
            Some(e) => bad.push(e.to_string()),
        }
    }
    (records, bad)
}

fn documents(path: &Path, reading: &Reading) -> Vec<Document> {
    let (records, bad) = read(path, reading, |coder, bytes| coder.decode(bytes).unwrap());
    assert_eq!(bad, [] as [String; 0]);
    records
}

fn row(n: usize) -> Document {
    let text = "x".repeat(n * 7 % 900);
    Document::from_iter([
        ("id", n.to_string()),
        ("text", format!("a\n\"{text}\", ü")),
        ("e", "".into()),
    ])
}

fn marc_record(n: usize) -> marc::Record {
    let mut record = marc::Record::new();
    record.set_leader(marc::Leader::NEW.with_utf8(true));
    record.push_plain(*b"001", n.to_string().as_bytes()).unwrap();
    let text = "<record> & ü ".repeat(n % 50);
    record.push_data(*b"245", *b"10", &[(b'a', text.as_bytes())]).unwrap();
    record
}

/// Each format, bare and wrapped, packed and not.
fn each_kind(mut check: impl FnMut(Wrapped, Packing)) {
    for &format in Format::ALL {
        for wraps in ["", "+base64", "+zstd", "+gzip+base64lines"] {
            let wrapped: Wrapped =
                format!("{format}{wraps}", format = format.name()).parse().unwrap();
            check(wrapped.clone(), Packing::Plain);
            if wraps.is_empty() {
                check(wrapped.clone(), Packing::Gzip(1));
                check(wrapped, Packing::Zstd(1));
            }
        }
    }
}

#[test]
fn what_is_written_is_read_in_whole_and_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    each_kind(|wrapped, packing| {
        let path = folder.path().join("records");
        let takes_marc = wrapped.format.info().takes == Takes::Marc;
        let writing =
            Writing { format: Some(wrapped.clone()), packing: Some(packing), ..Default::default() };
        let mut sink = Sink::create(path.to_str().unwrap(), &writing).unwrap();
        for n in 0..30 {
            match takes_marc {
                true => sink.put_marc(marc_record(n).as_ref()).unwrap(),
                false => sink.put(&row(n)).unwrap(),
            }
        }
        assert_eq!(sink.finish().unwrap().records, 30);

        let ids = |reading: &Reading| -> Vec<usize> {
            let (ids, bad) = read(&path, reading, |coder, bytes| match takes_marc {
                true => {
                    let mut record = marc::Record::new();
                    coder.decode_marc(bytes, &mut record).unwrap();
                    let id = record.as_ref().field(*b"001").unwrap().to_string().parse().unwrap();
                    // Its lengths aside it is the same.
                    record.set_leader(marc_record(id).leader());
                    assert_eq!(record, marc_record(id));
                    id
                }
                false => {
                    let document: Document = coder.decode(bytes).unwrap();
                    let id = document.get("id").unwrap().as_str().unwrap().parse().unwrap();
                    assert_eq!(document, row(id));
                    id
                }
            });
            assert_eq!(bad, [] as [String; 0], "{wrapped} {packing}");
            ids
        };
        let format = Some(wrapped.clone());
        let all: Vec<_> = (0..30).collect();
        assert_eq!(ids(&Reading { format: format.clone(), ..Default::default() }), all);
        for of in [1, 3, 40] {
            let mut together = Vec::new();
            for index in 1..=of {
                let part = Some(Part::new(index, of).unwrap());
                together.extend(ids(&Reading {
                    format: format.clone(),
                    part,
                    ..Default::default()
                }));
            }
            together.sort();
            assert_eq!(together, all, "{wrapped} {packing} in {of} parts");
        }
    });
}

#[test]
fn names_and_bytes_tell_what_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["a.json", "a.csv.gz", "a.msgpack.zst", "a.bson", "a.cbor+base64.gz", "a.json+zstd"]
    {
        let mut sink = Sink::create(at(name).to_str().unwrap(), &Writing::default()).unwrap();
        sink.put(&row(1)).unwrap();
        sink.finish().unwrap();
        assert_eq!(documents(&at(name), &Reading::default()), [row(1)], "{name}");
    }
    // A name that says nothing, and one that lies about the packing.
    fs::copy(at("a.bson"), at("nameless")).unwrap();
    fs::copy(at("a.json"), at("lie.json.gz")).unwrap();
    for name in ["nameless", "lie.json.gz"] {
        assert_eq!(documents(&at(name), &Reading::default()), [row(1)], "{name}");
    }
    let head = |name: &str| fs::read(at(name)).unwrap()[..2].to_vec();
    assert_eq!((head("a.csv.gz"), head("a.msgpack.zst")), (vec![0x1f, 0x8b], vec![0x28, 0xb5]));
}

#[test]
fn errors_name_the_file_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let name = path.to_str().unwrap();
    let error = Frames::open(name, &Reading::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with(name), "{error}");
    let error = Frames::open(folder.path().to_str().unwrap(), &Reading::default()).err().unwrap();
    assert!(error.to_string().contains("a folder"), "{error}");

    fs::write(&path, "{\"a\":1}\n{\"b\":\"xxxxxxxxxxxxxxxxxxxx\"}\n{\"c\":3}\n").unwrap();
    let reading = Reading { max_record: 20, ..Default::default() };
    let (good, bad) = read(&path, &reading, |_, bytes| bytes.len());
    assert_eq!(good, [7, 7]);
    assert_eq!(bad, [format!("{name}, record 2, byte 8: a record of over 20 bytes")]);

    // Damage to the packing ends the reading, after what was good.
    let packed = folder.path().join("b.json.gz");
    let mut sink = Sink::create(packed.to_str().unwrap(), &Writing::default()).unwrap();
    for n in 0..20_000 {
        sink.put(&row(n)).unwrap();
    }
    sink.finish().unwrap();
    let bytes = fs::read(&packed).unwrap();
    fs::write(&packed, &bytes[..bytes.len() - 100]).unwrap();
    let mut frames = Frames::open(packed.to_str().unwrap(), &Reading::default()).unwrap();
    let (mut records, error) = (
        0,
        loop {
            match frames.next() {
                Ok(frame) => assert!(frame.is_some()),
                Err(e) => break e,
            }
        },
    );
    records += frames.offset();
    assert!(records > 1 << 20, "{records}");
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.to_string().starts_with(packed.to_str().unwrap()), "{error}");
}

#[test]
fn a_sink_that_is_not_finished_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "a.json.gz"] {
        let path = folder.path().join(name);
        fs::write(&path, "old").unwrap();
        let mut sink = Sink::create(path.to_str().unwrap(), &Writing::default()).unwrap();
        for n in 0..3000 {
            sink.put(&row(n)).unwrap();
        }
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
    // The thread that writes may take its time to notice.
    for _ in 0..200 {
        if fs::read_dir(folder.path()).unwrap().count() == 2 {
            // Not a skip: this is what had to come.
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("temporary files are left");
}

#[test]
fn empty_files_have_no_records_and_are_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "a.xml", "a.mrc.gz", "a.csv.zst", "a.msgpack"] {
        let path = folder.path().join(name);
        Sink::create(path.to_str().unwrap(), &Writing::default()).unwrap().finish().unwrap();
        let (records, bad) = read(&path, &Reading::default(), |_, _| ());
        assert_eq!((records.len(), bad.len()), (0, 0), "{name}");
    }
    assert!(fs::read_to_string(folder.path().join("a.xml")).unwrap().contains("</collection>"));
}

#[test]
fn xml_in_latin1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.xml");
    let xml = "<?xml version='1.0' encoding='ISO-8859-1'?><collection>\
               <record><leader>00000nam a2200000 i 4500</leader>\
               <controlfield tag='001'>Ü</controlfield></record></collection>";
    fs::write(&path, xml.chars().map(|c| c as u8).collect::<Vec<_>>()).unwrap();
    for part in [None, Some(Part::new(1, 1).unwrap())] {
        let reading = Reading { part, ..Default::default() };
        let (texts, _) = read(&path, &reading, |coder, bytes| {
            let mut record = marc::Record::new();
            coder.decode_marc(bytes, &mut record).unwrap();
            record.as_ref().field(*b"001").unwrap().to_string()
        });
        assert_eq!(texts, ["Ü"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn lines_are_split_wherever_the_cuts_fall(
        lines in prop::collection::vec("[0-9a-z ]{0,80}", 0..60),
        of in 1u64..9,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let text: String = lines.iter().map(|l| format!("\"{l}\"\n")).collect();
        fs::write(&path, text).unwrap();
        let mut together = Vec::new();
        for index in 1..=of {
            let part = Some(Part::new(index, of).unwrap());
            let reading = Reading { part, ..Default::default() };
            together.extend(read(&path, &reading, |coder, b| coder.decode::<String>(b).unwrap()).0);
        }
        prop_assert_eq!(together, lines);
    }
}

#[test]
fn real_files_are_told_and_split() {
    let folder = need!(programs::real_records());
    let (mut files, mut records) = (0, 0);
    for path in real::files(&folder) {
        let name = path.to_str().unwrap();
        let Ok(mut frames) = Frames::open(name, &Reading::default()) else { continue };
        let mut whole = Vec::new();
        loop {
            match frames.next() {
                Ok(Some(frame)) => whole.push(frame.bytes.to_vec()),
                Ok(None) => break,
                Err(e) => panic!("{e:?}"),
            }
        }
        files += 1;
        records += whole.len();
        let mut parts = Vec::new();
        let of = 2 + files % 5;
        for index in 1..=of {
            let part = Some(Part::new(index, of).unwrap());
            let reading = Reading {
                part,
                format: Some(frames.format().clone()),
                packing: Some(frames.packing()),
                ..Default::default()
            };
            let mut frames = Frames::open(name, &reading).unwrap();
            while let Some(frame) = frames.next().unwrap() {
                parts.push(frame.bytes.to_vec());
            }
        }
        whole.sort();
        parts.sort();
        assert!(whole == parts, "{name}: {} records, {} in parts", whole.len(), parts.len());
    }
    println!("{files} files, {records} records");
    assert!(files > 100);
}

#[test]
fn a_file_is_read_in_the_memory_of_its_largest_record() {
    // A reader without end shows that nothing is kept.
    let line = b"{\"a\":\"0123456789012345678901234567890123456789\"}\n".repeat(1000);
    let endless = 0..(1 << 26) / line.len();
    struct Lines<I>(I, Vec<u8>, usize);
    impl<I: Iterator> Read for Lines<I> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            if self.2 == self.1.len() {
                match self.0.next() {
                    Some(_) => self.2 = 0,
                    None => return Ok(0),
                }
            }
            let n = out.len().min(self.1.len() - self.2);
            out[..n].copy_from_slice(&self.1[self.2..self.2 + n]);
            self.2 += n;
            Ok(n)
        }
    }
    let end = line.len();
    let mut frames = Frames::new(Lines(endless, line, end), "a.json", &Reading::default()).unwrap();
    let mut buffers = std::collections::HashSet::new();
    let mut count = 0u64;
    while let Some(frame) = frames.next().unwrap() {
        buffers.insert(frame.bytes.as_ptr() as usize >> 20);
        count += 1;
    }
    assert_eq!(count, (1 << 26) / end as u64 * 1000);
    assert!(buffers.len() <= 3, "{} megabytes were used", buffers.len());
}
