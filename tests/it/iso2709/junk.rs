//! Junk before records, whatever it is: every record behind it comes back byte for byte, nothing is
//! passed over without a word, and every way of reading finds the same.

use std::{io::Write, path::Path};

use proptest::{prelude::*, sample::Index};
use steelyard::{
    file::{Frames, Packing, Part, Reading},
    format::{As, Content, Format, Framed, Reader as AnyReader},
    marc::{
        Record, RecordRef, Severity, TroubleKind, encoding,
        iso2709::{self, Reader, Records},
    },
    record::dataset::catalogue::Catalogue,
};

use super::{Drip, is_between};
use crate::programs::need;

/// What is put before a record.
#[derive(Debug, Clone)]
enum Junk {
    Bytes(Vec<u8>),
    /// A part of a record, not all of it: its number in the file, from, to.
    Fragment(Index, Index, Index),
}

impl Junk {
    fn bytes(&self, originals: &[&[u8]]) -> Vec<u8> {
        match self {
            Junk::Bytes(bytes) => bytes.clone(),
            Junk::Fragment(record, from, to) => {
                let whole = originals[record.index(originals.len())];
                let from = from.index(whole.len());
                let longest = whole.len() - from - usize::from(from == 0);
                whole[from..from + to.index(longest + 1)].to_vec()
            }
        }
    }
}

/// Up to so many bytes of this kind.
fn bytes(byte: impl Strategy<Value = u8>, most: usize) -> impl Strategy<Value = Junk> {
    prop::collection::vec(byte, 1..=most).prop_map(Junk::Bytes)
}

fn junk() -> impl Strategy<Value = Junk> {
    let any_index = any::<Index>;
    prop_oneof![
        4 => bytes(any::<u8>(), 64),
        1 => Just(Junk::Bytes(b"\xef\xbb\xbf".to_vec())),
        1 => bytes(prop::sample::select(b"\r\n".to_vec()), 8),
        2 => bytes(b'0'..=b'9', 64),
        2 => bytes(0x1du8..0x20, 64),
        1 => bytes(prop::sample::select(b"\0\0\0\n".to_vec()), 300),
        1 => bytes(prop_oneof![b'0'..=b'9', 0x1du8..0x20], 64),
        1 => bytes(prop::sample::select(b" \t{}<>abc=0\n".to_vec()), 64),
        6 => (any_index(), any_index(), any_index()).prop_map(|(r, a, b)| Junk::Fragment(r, a, b)),
    ]
}

/// An item as every way of reading must find it: its bytes and their place, the record, and what is
/// wrong with it as kinds and places. MARC-8 is not looked into by all of them.
#[derive(Debug, PartialEq)]
struct Met {
    offset: u64,
    raw: Vec<u8>,
    record: Option<Record>,
    troubles: Vec<(TroubleKind, u64)>,
}

fn met(item: &iso2709::Item<'_>) -> Met {
    Met {
        offset: item.offset,
        raw: item.raw.to_vec(),
        record: item.record.map(|r| r.to_record()),
        troubles: item.troubles.iter().map(|t| (t.kind, t.offset)).filter(is_layout).collect(),
    }
}

fn is_layout(trouble: &(TroubleKind, u64)) -> bool {
    trouble.0 != TroubleKind::BadText
}

fn borrowed(data: &[u8]) -> Vec<Met> {
    let mut records = Records::new(data);
    let mut all = Vec::new();
    while let Some(item) = records.next() {
        all.push(met(&item));
    }
    all
}

fn streamed(data: &[u8], drip: usize) -> Vec<Met> {
    let mut reader = Reader::new(Drip(data, drip));
    let mut all = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        all.push(met(&item));
    }
    all
}

/// The records of a file or of a part of it, in batches of so many stretches, as `copy` reads them.
fn in_batches(path: &Path, part: Option<Part>, many: usize) -> Vec<Met> {
    let reading = Reading {
        format: Some(Format::Marc21.into()),
        packing: Some(Packing::Plain),
        part,
        ..Reading::default()
    };
    let mut frames = Frames::open(path.to_str().unwrap(), &reading).unwrap();
    let mut reader = AnyReader::new(Format::Marc21.into(), As::Marc, false).unwrap();
    let mut all = Vec::new();
    loop {
        let (mut bytes, mut framed) = (Vec::new(), Vec::new());
        while framed.len() < many
            && let Some(frame) = frames.next().unwrap()
        {
            let start = bytes.len();
            bytes.extend_from_slice(frame.bytes);
            framed.push(Framed { range: start..bytes.len(), offset: frame.offset, bad: frame.bad });
        }
        if framed.is_empty() {
            return all;
        }
        reader.read(&bytes, &framed, &mut |found| {
            let record = match &found.content {
                Ok(Content::Marc(marc)) => Some(marc.record.to_record()),
                Ok(Content::Value(_)) => panic!("a value"),
                Err(_) => None,
            };
            let troubles = found.troubles.iter().map(|t| (t.kind, t.offset));
            all.push(Met {
                offset: found.offset,
                raw: bytes[found.range.clone()].to_vec(),
                record,
                troubles: troubles.filter(is_layout).collect(),
            });
        });
    }
}

/// Sees that nothing vanished: every byte is in one item, between records, or told as junk.
fn account_for(data: &[u8], all: &[Met]) {
    let mut covered = 0;
    for met in all {
        let at = met.offset as usize;
        let mut junk = met.troubles.iter().filter(|(kind, _)| *kind == TroubleKind::Junk);
        let from = junk.next().map_or(at, |(_, offset)| *offset as usize);
        assert!(junk.next().is_none(), "junk is told once: {met:?}");
        assert!(data[covered..from].iter().all(is_between), "bytes {covered} to {from} vanished");
        assert_eq!(&data[at..at + met.raw.len()], &met.raw[..]);
        covered = at + met.raw.len();
    }
    assert!(data[covered..].iter().all(is_between), "bytes vanished from {covered} on");
}

/// Puts junk before every record of `file`, or before every n-th, and sees what comes back.
fn try_with(file: &[u8], junk: &[Junk], every: usize, of_parts: u64, drip: usize) {
    let before = borrowed(file);
    let originals: Vec<&[u8]> = before.iter().map(|met| &met.raw[..]).collect();
    let mut harmed = Vec::new();
    let mut places = Vec::new();
    for (i, raw) in originals.iter().enumerate() {
        if i % every == 0 {
            harmed.extend(junk[i / every % junk.len()].bytes(&originals));
        }
        places.push(harmed.len() as u64);
        harmed.extend_from_slice(raw);
    }
    let after = borrowed(&harmed);
    account_for(&harmed, &after);
    let mut rest = after.iter();
    for ((was, place), number) in before.iter().zip(&places).zip(1..) {
        let sound = was.record.is_some() && was.troubles.is_empty();
        let is = rest.clone().find(|met| met.offset == *place);
        match is {
            Some(is) => {
                let own: Vec<_> =
                    is.troubles.iter().map(|t| t.0).filter(|k| *k != TroubleKind::Junk).collect();
                let had: Vec<_> = was.troubles.iter().map(|t| t.0).collect();
                assert_eq!(is.raw, was.raw, "record {number}");
                assert_eq!(is.record, was.record, "record {number}");
                assert_eq!(own, had, "record {number}");
                while rest.next().is_some_and(|met| met.offset != *place) {}
            }
            // What contradicted itself before may not be told from the junk, but is not made up.
            None => {
                assert!(!sound, "record {number} is lost");
                let place = *place;
                let around =
                    after.iter().find(|met| met.offset + met.raw.len() as u64 > place).unwrap();
                let told = around.record.is_none()
                    || around.troubles.iter().any(|t| t.0 == TroubleKind::Junk && t.1 <= place);
                assert!(told, "record {number} became another: {around:?}");
            }
        }
    }
    // What is no original says that something is wrong with it.
    for met in after.iter().filter(|met| !places.contains(&met.offset)) {
        let worst = met.troubles.iter().map(|t| t.0.severity()).max();
        assert_eq!(worst, Some(Severity::Lost), "made up: {met:?}");
        assert!(met.record.as_ref().is_none_or(|record| !record.is_empty()));
    }
    same_in_every_way(&harmed, &after, of_parts, drip);
}

/// Sees that two ways of reading gave the same; shows where they part, as files are long.
fn same(how: &str, got: &[Met], wanted: &[Met]) {
    let number = got.iter().zip(wanted).take_while(|(got, wanted)| got == wanted).count();
    let (got, wanted) = (got.get(number), wanted.get(number));
    assert_eq!(got, wanted, "item {number} {how}");
}

fn same_in_every_way(data: &[u8], wanted: &[Met], of_parts: u64, drip: usize) {
    same("as a stream", &streamed(data, drip), wanted);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data).unwrap();
    for many in [1, 7, usize::MAX] {
        same(&format!("in batches of {many}"), &in_batches(file.path(), None, many), wanted);
    }
    let parts: Vec<Met> = (1..=of_parts)
        .flat_map(|i| in_batches(file.path(), Some(Part::new(i, of_parts).unwrap()), 7))
        .collect();
    same(&format!("in {of_parts} parts"), &parts, wanted);
}

/// A catalogue of some records: as it is, in MARC-8, and with one that ISO 2709 has no digits for.
fn catalogues() -> Vec<Vec<u8>> {
    let mut files = vec![Vec::new(), Vec::new(), super::sample()];
    for n in 0..8 {
        let record = Catalogue::new(11).record(n);
        iso2709::write(record.as_ref(), &mut files[0]);
        let mut marc8 = Record::new();
        encoding::to_marc8(record.as_ref(), &mut marc8, &mut Vec::new()).unwrap();
        iso2709::write(marc8.as_ref(), &mut files[1]);
    }
    let mut large = Record::new();
    large.push_plain(*b"001", b"large").unwrap();
    for _ in 0..15 {
        large.push_data(*b"500", *b"  ", &[(b'a', &[b'y'; 7_000])]).unwrap();
    }
    iso2709::write(large.as_ref(), &mut files[2]);
    files[2].extend(super::sample());
    // A record terminator inside a field, which the length in the leader makes up for.
    let mut inside = super::sample();
    let at = inside.len() - 10;
    inside[at] = 0x1d;
    files[2].extend(inside);
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn records_behind_junk_come_back_byte_for_byte(
        junk in prop::collection::vec(junk(), 1..6),
        which in 0usize..3,
        every in 1usize..4,
        of_parts in 1u64..6,
        drip in 1usize..5000,
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = catalogues());
        FILES.with(|files| try_with(&files[which], &junk, every, of_parts, drip));
    }
}

#[test]
fn known_junk_is_passed_over_and_told() {
    let (first, second) = (super::sample(), super::sample());
    for junk in ["\u{feff}", "x", "0", "123456789012", "<?xml?>", "\x1e\x1f", "00714nam a22002"] {
        let data = [&first[..], junk.as_bytes(), &second].concat();
        let all = borrowed(&data);
        assert_eq!(all.len(), 4, "{junk:?}");
        assert_eq!(all[2].troubles, [(TroubleKind::Junk, first.len() as u64)], "{junk:?}");
        assert_eq!(all[2].record, all[0].record);
        let mut records = Records::new(&data);
        let told = (0..3).map(|_| records.next().unwrap().troubles.to_vec()).last().unwrap();
        let many = junk.len();
        assert!(told[0].detail.starts_with(&format!("{many} byte")), "{told:?}");
    }
}

#[test]
fn a_record_that_is_cut_off_costs_no_other() {
    let mut file = Vec::new();
    for n in 0..6 {
        iso2709::write(Catalogue::new(3).record(n).as_ref(), &mut file);
    }
    let before = borrowed(&file);
    for cut in 1..before[2].raw.len() {
        let parts: Vec<&[u8]> = before
            .iter()
            .enumerate()
            .map(|(i, met)| if i == 2 { &met.raw[..cut] } else { &met.raw[..] })
            .collect();
        let data = parts.concat();
        let after = borrowed(&data);
        account_for(&data, &after);
        let whole: Vec<_> = after.iter().filter(|met| met.raw.ends_with(b"\x1d")).collect();
        assert_eq!(whole.len(), 5, "cut at {cut}");
        for (is, was) in whole.iter().zip(before.iter().filter(|met| **met != before[2])) {
            assert_eq!((&is.raw, &is.record), (&was.raw, &was.record), "cut at {cut}");
        }
    }
}

#[test]
fn a_record_without_fields_is_no_record() {
    let shell = b"00026nam a2200025 i 4500\x1e\x1d";
    let data = [&super::sample()[..], shell, &super::sample()].concat();
    let all = borrowed(&data);
    assert_eq!(all.len(), 5);
    assert_eq!(all[2].record, None);
    assert_eq!(all[2].troubles[0].0, TroubleKind::NoFields);
    let (mut record, mut troubles) = (Record::new(), Vec::new());
    iso2709::read(shell, &mut record, &mut troubles).unwrap_err();
}

#[test]
fn what_was_cut_off_is_written_as_a_whole_record() {
    let whole = Catalogue::new(5).record(1);
    let mut bytes = Vec::new();
    iso2709::write(whole.as_ref(), &mut bytes);
    let (mut cut, mut troubles) = (Record::new(), Vec::new());
    iso2709::read(&bytes[..bytes.len() - 30], &mut cut, &mut troubles).unwrap();
    assert!(troubles.iter().any(|t| t.kind == TroubleKind::Truncated), "{troubles:?}");
    let (mut again, mut back) = (Vec::new(), Record::new());
    iso2709::write(cut.as_ref(), &mut again);
    troubles.clear();
    iso2709::read(&again, &mut back, &mut troubles).unwrap();
    assert!(troubles.iter().all(|t| t.kind.stays()), "{troubles:?}");
    let fields = |record: RecordRef<'_>| -> Vec<_> {
        record.fields().map(|f| (f.tag(), f.bytes().to_vec())).collect()
    };
    assert_eq!(fields(back.as_ref()), fields(cut.as_ref()));
}

#[test]
fn real_records_behind_junk_come_back_byte_for_byte() {
    let files = need!(crate::real::iso2709_files());
    let text = |text: &str| Junk::Bytes(text.as_bytes().to_vec());
    let all = [
        text("\u{feff}"),
        text("\n"),
        text("0123"),
        text("\x1d"),
        text("\x1e"),
        text("abc\x1f\x1d1"),
        text("00500nam a2200"),
    ];
    let mut tried = 0;
    for (path, bytes) in files {
        // The first records of large files do for these.
        let bytes = &bytes[..bytes.len().min(60_000)];
        let end = bytes.iter().rposition(|b| *b == 0x1d).map_or(0, |at| at + 1);
        if end == 0 {
            continue;
        }
        println!("{}", path.display());
        try_with(&bytes[..end], &all, 1, 3, 4000);
        for junk in &all {
            try_with(&bytes[..end], std::slice::from_ref(junk), 2, 2, 999);
        }
        tried += 1;
    }
    assert!(tried > 20, "{tried} files");
}
