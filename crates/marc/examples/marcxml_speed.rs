//! How fast MARCXML is written, framed and read, in CPU time of this process.
//!
//! `cargo run --release -p steelyard-marc --example marcxml_speed -- FOLDER` takes the records of every ISO 2709 file
//! under FOLDER that MARCXML can hold, and reports the best of several rounds in memory.

use std::{fs, hint::black_box, path::Path};

use nix::time::{ClockId, clock_gettime};
use steelyard_marc::{Frame, Record, iso2709, xml};

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: marcxml_speed FOLDER");
        std::process::exit(2);
    };
    let (mut iso, mut bytes, mut real) = (Vec::new(), 0, Vec::new());
    each_file(Path::new(&folder), &mut |file| {
        if !file[0].is_ascii_digit() {
            real.extend_from_slice(file);
            return;
        }
        let mut found = iso2709::Records::new(file);
        while let Some(item) = found.next() {
            // Sound records that MARCXML can hold.
            if item.record.is_some_and(|r| xml::write(r, &mut Vec::new()).is_ok()) {
                iso.extend_from_slice(item.raw);
                bytes += item.raw.len();
            }
        }
    });
    let mut records: Vec<Record> = Vec::new();
    let mut found = iso2709::Records::new(&iso);
    while let Some(item) = found.next() {
        records.extend(item.record.map(|r| r.to_record()));
    }
    let mut text = Vec::new();
    for record in &records {
        xml::write(record.as_ref(), &mut text).unwrap();
    }
    println!("{} records, {bytes} bytes of ISO 2709, {} of XML", records.len(), text.len());
    let mut spans = Vec::new();
    let (mut framer, mut pos) = (xml::Framer::within(), 0);
    while let Frame::Record(r) = framer.next(&text[pos..], true) {
        spans.push(pos + r.start..pos + r.end);
        pos += r.end;
    }
    assert_eq!(spans.len(), records.len());
    let n = records.len() as f64;

    let mut out = Vec::with_capacity(text.len() + 4096);
    let write = best(|| {
        out.clear();
        for record in &records {
            xml::write(record.as_ref(), &mut out).unwrap();
        }
        black_box(&out);
    });
    assert_eq!(out, text);
    report("write", write, n, text.len());

    let convert = best(|| {
        out.clear();
        let mut found = iso2709::Records::new(&iso);
        while let Some(item) = found.next() {
            xml::write(item.record.unwrap(), &mut out).unwrap();
        }
        black_box(&out);
    });
    assert_eq!(out, text);
    report("ISO 2709 to MARCXML", convert, n, text.len());

    let frame = best(|| {
        let (mut framer, mut pos) = (xml::Framer::within(), 0);
        while let Frame::Record(r) = framer.next(&text[pos..], true) {
            pos += r.end;
        }
        black_box(pos);
    });
    report("frame", frame, n, text.len());

    let (mut record, mut troubles) = (Record::new(), Vec::new());
    let mut read_all = |text: &[u8], spans: &[std::ops::Range<usize>]| {
        best(|| {
            troubles.clear();
            for span in spans {
                // Of the real files a few records are not UTF-8 or not well-formed.
                let _ = black_box(xml::read(&text[span.clone()], &mut record, &mut troubles));
                black_box(&record);
            }
        })
    };
    let read = read_all(&text, &spans);
    report("read", read, n, text.len());
    report("frame + read", frame + read, n, text.len());

    let spaced = String::from_utf8(text.clone()).unwrap();
    let spaced = spaced
        .replace("<subfield", "\n    <subfield")
        .replace("<datafield", "\n  <datafield")
        .replace("<controlfield", "\n  <controlfield")
        .replace("</datafield", "\n  </datafield");
    let again = frames(spaced.as_bytes());
    report("read, indented", read_all(spaced.as_bytes(), &again), n, spaced.len());
    let prefixed = spaced
        .replace("<subfield", "<marc:subfield")
        .replace("</subfield", "</marc:subfield")
        .replace("datafield", "marc:datafield")
        .replace("controlfield", "marc:controlfield")
        .replace("leader>", "marc:leader>")
        .replace("record>", "marc:record>");
    let again = frames(prefixed.as_bytes());
    assert_eq!(again.len(), spans.len());
    report("read, with a prefix", read_all(prefixed.as_bytes(), &again), n, prefixed.len());
    let quoted = spaced.replace("=\"", "='").replace("\" ", "' ").replace("\">", "'>");
    let again = frames(quoted.as_bytes());
    report("read, other quotes", read_all(quoted.as_bytes(), &again), n, quoted.len());
    let odd = spaced.replace("=\"", " = \"");
    let again = frames(odd.as_bytes());
    report("read, odd spelling", read_all(odd.as_bytes(), &again), n, odd.len());
    let again = frames(&real);
    let length = again.iter().map(|r| r.len()).sum();
    report("read, real XML files", read_all(&real, &again), again.len() as f64, length);
}

fn frames(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut framer, mut pos, mut found) = (xml::Framer::within(), 0, Vec::new());
    loop {
        match framer.next(&text[pos..], true) {
            Frame::Record(r) => {
                found.push(pos + r.start..pos + r.end);
                pos += r.end;
            }
            Frame::Bad(r, _) => pos += r.end,
            Frame::More(_) | Frame::End => return found,
        }
    }
}

fn report(what: &str, seconds: f64, records: f64, bytes: usize) {
    println!(
        "{what:20} {:9.0} records/s  {:7.1} MB/s of XML",
        records / seconds,
        bytes as f64 / seconds / 1e6
    );
}

/// The least CPU time of several rounds, in seconds.
fn best(mut round: impl FnMut()) -> f64 {
    let cpu = || {
        let t = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
        t.tv_sec() as f64 + t.tv_nsec() as f64 / 1e9
    };
    let (begin, mut least) = (cpu(), f64::MAX);
    while cpu() - begin < 1.5 {
        let start = cpu();
        round();
        least = least.min(cpu() - start);
    }
    least
}

fn each_file(path: &Path, f: &mut impl FnMut(&[u8])) {
    if path.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|e| each_file(e, f));
    } else if let Ok(bytes) = fs::read(path)
        && bytes.first().is_some_and(|b| b.is_ascii_digit() || *b == b'<')
    {
        f(&bytes);
    }
}
