//! Every structurally sound real record through every format that takes MARC, value for value.

use std::{collections::BTreeMap, time::Instant};

use steelyard::{
    Error, ErrorKind,
    format::{Coder, Format, Takes, Wrapped},
    marc::{
        Record, RecordRef, Severity,
        encoding::{self, Encoding},
        iso2709,
    },
    record::Kind,
};

use crate::programs::need;

/// What came of one format.
#[derive(Default)]
struct Tally {
    /// Came back equal, bytes untouched.
    equal: usize,
    /// Of those, how many hold bytes that are not UTF-8.
    not_utf8: usize,
    /// Came back equal once their text was made UTF-8.
    equal_in_utf8: usize,
    /// Refused as they are, by reason.
    refused: BTreeMap<&'static str, usize>,
    bytes: usize,
}

/// Formats with which MARC records are tried: all that declare to take them, and some with wraps.
fn formats() -> Vec<Wrapped> {
    let takes_marc = |f: &&Format| f.info().takes != Takes::Rows;
    let mut all: Vec<Wrapped> = Format::ALL.iter().filter(takes_marc).map(|&f| f.into()).collect();
    let wrapped = ["marc21+base64", "json+gzip", "msgpack+zstd", "cbor+gzip+base64lines"];
    all.extend(wrapped.iter().map(|name| name.parse::<Wrapped>().unwrap()));
    all
}

/// Code points that XML 1.0 cannot hold, whatever one does (XML 1.0, 2.2).
fn is_beyond_xml(record: RecordRef<'_>) -> bool {
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).chars().any(|c| {
            matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1e}' | '\u{fffe}' | '\u{ffff}')
        })
    };
    text(&record.leader().0) || record.fields().any(|f| text(&f.tag()) || text(f.bytes()))
}

/// Encodes, decodes, and holds what came back against what went in. A record with oddities inside
/// (a field without indicators, bytes that are not text) is read tolerantly, any other strictly.
fn round(
    coder: &mut Coder,
    record: RecordRef<'_>,
    odd: bool,
    bytes: &mut Vec<u8>,
) -> Result<usize, Error> {
    bytes.clear();
    coder.encode_marc(record, bytes)?;
    let mut back = Record::new();
    let (name, format) = (coder.wrapped().to_string(), coder.wrapped().format);
    let read = match odd {
        true => coder
            .unwrap(bytes)
            .and_then(|bytes| format.read_marc(bytes, &mut back, &mut Vec::new())),
        false => coder.decode_marc(bytes, &mut back),
    };
    read.unwrap_or_else(|e| panic!("{name}: {e:?}\n{record:?}"));
    assert!(back.as_ref() == record, "{name} changed\n{record:?}\nto\n{back:?}");
    Ok(bytes.len())
}

/// The same record with the lengths in its leader that ISO 2709 computes, so that its leader can be
/// held against what comes back, too.
fn with_lengths(record: &Record) -> Record {
    let (mut bytes, mut with) = (Vec::new(), Record::new());
    iso2709::write(record.as_ref(), &mut bytes);
    Format::Marc21.read_marc(&bytes, &mut with, &mut Vec::new()).unwrap();
    let fields = |r: &Record| -> Vec<_> {
        r.as_ref().fields().map(|f| (f.tag(), f.bytes().to_vec())).collect()
    };
    assert_eq!(fields(&with), fields(record));
    with
}

#[test]
fn every_sound_record_comes_back_from_every_format() {
    let files = need!(super::iso2709_files());
    let begun = Instant::now();
    let mut tried: Vec<_> =
        formats().into_iter().map(|w| (Coder::new(w).unwrap(), Tally::default())).collect();
    let (mut sound, mut with_oddities, mut marc8, mut unmappable) = (0, 0, 0, 0);
    let mut bytes = Vec::new();
    for (path, data) in &files {
        let mut records = iso2709::Records::new(data);
        while let Some(item) = records.next() {
            let Some(record) = item.record.filter(|r| r.raw().is_some()) else { continue };
            let odd = item.troubles.iter().any(|t| t.kind.severity() > Severity::Note);
            sound += 1;
            with_oddities += usize::from(odd);
            let place = format!("{}, record {}", path.display(), item.number);
            let mut utf8 = None;
            if encoding::encoding(record) == Encoding::Marc8 {
                let (mut to, mut troubles) = (Record::new(), Vec::new());
                encoding::to_utf8(record, false, &mut to, &mut troubles).unwrap();
                marc8 += 1;
                unmappable += usize::from(!troubles.is_empty());
                utf8 = Some(with_lengths(&to));
            }
            for (coder, tally) in &mut tried {
                let format = coder.wrapped().format;
                match round(coder, record, odd, &mut bytes) {
                    Ok(n) => {
                        tally.equal += 1;
                        tally.not_utf8 += usize::from(!record.is_utf8());
                        tally.bytes += n;
                    }
                    // A refusal must be one the format declares, and be true.
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Unsupported, "{place}: {e:?}");
                        let why = if !record.is_utf8() {
                            let keeps = format.info().keeps.contains(&Kind::Bytes);
                            assert!(!keeps, "{place}: {} keeps bytes, yet: {e:?}", format.name());
                            "not UTF-8"
                        } else {
                            let xml = format == Format::Marcxml && is_beyond_xml(record);
                            assert!(xml, "{place}: {} refused: {e:?}", format.name());
                            "control characters"
                        };
                        *tally.refused.entry(why).or_default() += 1;
                    }
                }
                if let Some(utf8) = &utf8 {
                    let Err(e) = round(coder, utf8.as_ref(), odd, &mut bytes) else {
                        tally.equal_in_utf8 += 1;
                        continue;
                    };
                    let why = if std::str::from_utf8(&utf8.leader().0).is_err() {
                        "leader not UTF-8"
                    } else {
                        let xml = format == Format::Marcxml && is_beyond_xml(utf8.as_ref());
                        assert!(xml, "{place}, in UTF-8: {} refused: {e:?}", format.name());
                        "control characters, also in UTF-8"
                    };
                    *tally.refused.entry(why).or_default() += 1;
                }
            }
        }
    }
    println!(
        "{sound} sound records, {with_oddities} of them odd inside; {marc8} of them in MARC-8 ({unmappable} with bytes that MARC-8 has not)"
    );
    println!(
        "{:22}{:>8}{:>10}{:>18}{:>10}   refused",
        "format", "equal", "not UTF-8", "MARC-8 as UTF-8", "MB"
    );
    for (coder, tally) in &tried {
        let Tally { equal, not_utf8, equal_in_utf8, refused, bytes } = tally;
        let refused: Vec<_> = refused.iter().map(|(why, n)| format!("{n} {why}")).collect();
        let (name, refused) = (coder.wrapped().to_string(), refused.join(", "));
        let megabytes = *bytes as f64 / 1e6;
        println!(
            "{name:22}{equal:>8}{not_utf8:>10}{equal_in_utf8:>18}{megabytes:>10.2}   {refused}"
        );
    }
    println!("in {:.1} s", begun.elapsed().as_secs_f64());
    assert!(sound > 0 && marc8 > 0, "{sound} records, {marc8} in MARC-8");
    for (coder, tally) in &tried {
        let name = coder.wrapped().to_string();
        let refused = |why| tally.refused.get(why).copied().unwrap_or(0);
        let all = refused("not UTF-8") + refused("control characters");
        assert_eq!(tally.equal + all, sound, "{name}");
        let all = refused("control characters, also in UTF-8") + refused("leader not UTF-8");
        assert_eq!(tally.equal_in_utf8 + all, marc8, "{name}");
        if coder.wrapped().format.info().keeps.contains(&Kind::Bytes) {
            assert_eq!(tally.equal, sound, "{name} declares to keep bytes");
        }
    }
}
