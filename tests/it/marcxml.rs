//! MARCXML and lines on real records, and against what Python's xml.etree reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use steelyard::{
    format::{
        Format, Wrapped,
        framing::{self, Glue, Next},
    },
    marc::{
        Frame, Record, Severity, Trouble, TroubleKind, iso2709, line,
        xml::{self, Encoding, Framer},
    },
};

use crate::{
    children::Command,
    programs::{self, Need, need},
    real,
};

/// What was read from a file: the records, and the troubles with offsets into the file.
#[derive(Default)]
struct Read {
    records: Vec<Record>,
    troubles: Vec<Trouble>,
}

/// Reads a file as the file room would, in blocks of `block` bytes.
fn read(bytes: &[u8], block: usize) -> Read {
    let mut read = Read::default();
    let text = match xml::encoding(&bytes[..bytes.len().min(256)], &mut read.troubles).unwrap() {
        Encoding::Utf8 => bytes.to_vec(),
        Encoding::Latin1 => {
            let mut text = Vec::new();
            xml::latin1_to_utf8(bytes, &mut text);
            text
        }
    };
    let (mut framer, mut pos, mut end) = (Framer::new(), 0, 0);
    let mut record = Record::new();
    loop {
        match framer.next(&text[pos..end], end == text.len()) {
            Frame::Record(r) => {
                let (first, start) = (read.troubles.len(), pos + r.start);
                match xml::read(&text[start..pos + r.end], &mut record, &mut read.troubles) {
                    Ok(()) => read.records.push(record.clone()),
                    Err(e) => {
                        let offset = e.place().offset.unwrap() as usize;
                        read.troubles.push(Trouble::new(TroubleKind::Syntax, offset, e.context()));
                    }
                }
                for trouble in &mut read.troubles[first..] {
                    trouble.offset += start as u64;
                }
                pos += r.end;
            }
            Frame::Bad(r, mut trouble) => {
                trouble.offset += pos as u64;
                read.troubles.push(trouble);
                pos += r.end;
            }
            Frame::More(skip) => {
                assert!(end < text.len());
                pos += skip;
                end = (end + block).min(text.len());
            }
            Frame::End => return read,
        }
    }
}

/// The MARCXML files that are there, with the number of records that SOURCES.txt gives each, and
/// how many it names.
fn xml_files() -> Need<(Vec<(PathBuf, usize)>, usize)> {
    let folder = programs::real_records()?;
    let sources = std::fs::read_to_string(folder.join("SOURCES.txt")).unwrap();
    let (mut files, mut named, mut repository) = (Vec::new(), 0, String::new());
    for row in sources.lines() {
        if let Some(rest) = row.strip_prefix("## ") {
            repository = rest.split(" @").next().unwrap().replace('/', "+");
        } else if let Some(rest) = row.strip_prefix("marcxml ") {
            named += 1;
            let (count, rest) = rest.trim_start().split_once(" rec ").unwrap();
            let path = rest.split_once(" B  ").unwrap().1.split("   =dup").next().unwrap();
            let path = folder.join(&repository).join(path);
            if path.exists() {
                files.push((path, count.trim().parse().unwrap()));
            }
        }
    }
    Ok((files, named))
}

fn short(path: &Path) -> String {
    let names: Vec<_> = path.iter().rev().take(2).map(|n| n.to_string_lossy()).collect();
    format!("{}/{}", names[1], names[0])
}

#[test]
fn every_real_record_is_read_and_comes_back() {
    let (files, named) = need!(xml_files());
    let (mut records, mut differ, mut kinds) = (0, 0, BTreeMap::<&str, usize>::new());
    for (path, count) in &files {
        let bytes = std::fs::read(path).unwrap();
        let all = read(&bytes, 64 << 10);
        records += all.records.len();
        for trouble in &all.troubles {
            *kinds.entry(trouble.kind.name()).or_default() += 1;
            if std::env::var_os("SHOW").is_some() {
                println!("{}: {trouble}", short(path));
            }
        }
        if all.records.len() != *count {
            // The list counts leaders (and one record for a file without any).
            let found = |kinds: &[TroubleKind], detail: &str| {
                let of = |t: &&Trouble| kinds.contains(&t.kind) && t.detail.contains(detail);
                all.troubles.iter().filter(of).count()
            };
            let without = found(&[TroubleKind::Leader], "no leader");
            let lost = found(&[TroubleKind::Syntax, TroubleKind::Truncated], "");
            let read = all.records.len();
            println!(
                "{}: {count} in the list; {read} read, {without} of them without a leader; {lost} lost",
                short(path)
            );
            assert_eq!((read - without).max(1) + lost, *count, "{path:?}");
            differ += 1;
        }
        // In other blocks, the same.
        let again = read(&bytes, 777);
        assert_eq!(again.records, all.records, "{path:?}");
        assert_eq!(again.troubles, all.troubles, "{path:?}");
        for record in &all.records {
            let mut out = Vec::new();
            if let Err(e) = xml::write(record.as_ref(), &mut out) {
                println!("{}: {e}", short(path));
                assert!(all.troubles.iter().any(|t| t.kind == TroubleKind::Control), "{path:?}");
                continue;
            }
            let (mut back, mut troubles) = (Record::new(), Vec::new());
            xml::read(&out, &mut back, &mut troubles).unwrap();
            assert_eq!(&back, record);
            let worst = troubles.iter().map(|t| t.kind.severity()).max();
            assert!(worst <= Some(Severity::Note), "{path:?}: {troubles:?}");
        }
    }
    println!(
        "{named} files named, {} there, {records} records; {} differ in count\n{kinds:#?}",
        files.len(),
        differ
    );
    assert!(records > 0, "no records in the folder");
}

#[test]
fn values_are_those_that_etree_reads() {
    let (files, _) = need!(xml_files());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/marcxml.py");
    let paths = files.iter().map(|(path, _)| path);
    need!(programs::found("python3"));
    let output = Command::new("python3").arg(script).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = String::from_utf8(output.stdout).unwrap();
    let (mut same, mut mended, mut ill) = (0, 0, 0);
    for answer in answers.lines() {
        let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
        let path = answer["file"].as_str().unwrap();
        let ours = read(&std::fs::read(path).unwrap(), 64 << 10);
        if let Some(error) = answer["error"].as_str() {
            ill += 1;
            println!(
                "{}: {error}; ours: {} records and",
                short(Path::new(path)),
                ours.records.len()
            );
            ours.troubles.iter().for_each(|t| println!("    {t}"));
            assert!(!ours.troubles.is_empty(), "{path}");
            continue;
        }
        let theirs = answer["records"].as_array().unwrap();
        assert_eq!(ours.records.len(), theirs.len(), "{path}");
        for (ours, theirs) in ours.records.iter().zip(theirs) {
            let leader = ours.leader().to_string();
            match theirs[0].as_str() {
                Some(text) if text.len() == 24 => assert_eq!(leader, text, "{path}"),
                Some(text) => {
                    mended += 1;
                    let begin = &text.trim()[..text.trim().len().min(20)];
                    assert!(leader.contains(begin), "{path}: {text:?} {leader:?}");
                }
                None => assert_eq!(leader, "00000nam a2200000 i 4500", "{path}"),
            }
            let fields = theirs[1].as_array().unwrap();
            let fields: Vec<_> = fields.iter().filter(|f| f[0].is_string()).collect();
            assert_eq!(ours.len(), fields.len(), "{path}");
            for (field, theirs) in ours.as_ref().fields().zip(fields) {
                let tag = theirs[0].as_str().unwrap();
                assert!(field.tag_text() == tag || tag.len() != 3, "{path}: {tag}");
                let text = std::str::from_utf8(field.bytes()).unwrap();
                // A subfield with text and no code is given a blank one.
                let theirs = theirs[1].as_str().unwrap();
                assert_eq!(
                    text.replace("\x1f ", "\x1f"),
                    theirs.replace("\x1f ", "\x1f"),
                    "{path}"
                );
                same += 1;
            }
        }
    }
    println!(
        "{same} fields as etree reads them; {mended} leaders mended; {ill} files that it does not read"
    );
    assert!(same > 0);
}

#[test]
fn real_iso2709_records_come_back_through_both() {
    let files = need!(real::iso2709_files());
    let (mut through_xml, mut refused, mut through_lines) = (0, 0, 0);
    let (mut out, mut back, mut troubles) = (Vec::new(), Record::new(), Vec::new());
    for (path, bytes) in &files {
        let mut records = iso2709::Records::new(bytes);
        while let Some(item) = records.next() {
            let Some(record) = item.record else { continue };
            let own = record.to_record();
            out.clear();
            troubles.clear();
            line::write(record, &mut out);
            line::read(&out, &mut back, &mut troubles).unwrap();
            assert_eq!((&back, &troubles[..]), (&own, &[][..]), "{path:?}");
            through_lines += 1;
            out.clear();
            match xml::write(record, &mut out) {
                Ok(()) => {
                    xml::read(&out, &mut back, &mut troubles).unwrap();
                    assert_eq!(back, own, "{path:?}");
                    let worst = troubles.iter().map(|t| t.kind.severity()).max();
                    assert!(worst <= Some(Severity::Note), "{path:?}: {troubles:?}");
                    through_xml += 1;
                }
                Err(e) => {
                    if record.is_utf8() {
                        println!("{}: {e}", short(path));
                    }
                    refused += 1;
                    assert!(out.is_empty());
                    xml::write_tolerant(record, &mut out, &mut troubles);
                    assert!(!troubles.is_empty());
                    troubles.clear();
                    xml::read(&out, &mut back, &mut troubles).unwrap();
                    assert_eq!(back.len(), own.len());
                }
            }
        }
    }
    println!(
        "{through_lines} records through lines, {through_xml} through MARCXML; {refused} refused"
    );
    assert!(through_xml > 0);
}

/// Records of text that XML can hold, blanks and all.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let text = "[ -~\\n\\r\\té–\u{1f4d6}]{0,12} {0,2}";
    let field = ("0[0-9]{2}|[1-9][0-9]{2}", "[0-9 ]{2}", prop::collection::vec(text, 0..4));
    let record = prop::collection::vec(field, 0..5).prop_map(|fields| {
        let mut record = Record::new();
        for (tag, indicators, texts) in fields {
            let tag = tag.as_bytes().try_into().unwrap();
            let indicators = indicators.as_bytes().try_into().unwrap();
            let subfields: Vec<_> = texts.iter().map(|t| (b'a', t.as_bytes())).collect();
            match &texts[..] {
                [text] => record.push_plain(tag, text.as_bytes()).unwrap(),
                _ => record.push_data(tag, indicators, &subfields).unwrap(),
            }
        }
        record
    });
    prop::collection::vec(record, 0..4)
}

proptest! {
    /// Through files, in whatever blocks they are read.
    #[test]
    fn files_of_records_come_back(
        records in records(),
        format in prop::sample::select(vec![Format::Marcxml, Format::Line]),
        block in 1..100usize,
    ) {
        let wrapped = Wrapped { format, wraps: vec![] };
        let (mut glue, mut bytes) = (Glue::new(&wrapped), Vec::new());
        for record in &records {
            glue.put(&mut bytes, |out| format.encode_marc(record.as_ref(), out)).unwrap();
        }
        glue.finish(&mut bytes);
        let mut framer = framing::Framer::new(&wrapped).unwrap();
        let (mut pos, mut end, mut found) = (0, 0, Vec::new());
        loop {
            match framer.next(&bytes[pos..end], end == bytes.len()) {
                Next::Record { range, next } => {
                    let (mut record, mut troubles) = (Record::new(), Vec::new());
                    let raw = &bytes[pos..][range];
                    format.read_marc(raw, &mut record, &mut troubles).unwrap();
                    let worst = troubles.iter().map(|t| t.kind.severity()).max();
                    prop_assert!(worst <= Some(Severity::Note), "{:?}", troubles);
                    found.push(record);
                    pos += next;
                }
                Next::Skip(n) => pos += n,
                Next::Bad { error, .. } => prop_assert!(false, "{}", error),
                Next::More => end = (end + block).min(bytes.len()),
                Next::End => break,
            }
        }
        prop_assert_eq!(found, records);
    }
}
