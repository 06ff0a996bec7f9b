//! Zeros in files of MARC records: blocks that were never written, and padding.

use std::io::Read;

use steelyard::file::{Frames, Reading};

use super::{Desk, records};

/// Two records with so many zeros between them, and before the one that follows.
fn with_zeros(desk: &Desk, zeros: usize) -> (Vec<u8>, usize) {
    let catalogue = desk.read("a.mrc");
    let all = records(&catalogue);
    let bytes = [all[0], &vec![0; zeros], all[1], all[2]].concat();
    (bytes, all[0].len())
}

#[test]
fn zeros_between_records_are_rejected_with_offset_and_length() {
    let desk = Desk::with_catalogue();
    for zeros in [1, 25, 63, 64, 4096, 65_536, 700_000] {
        let (bytes, at) = with_zeros(&desk, zeros);
        desk.write("z.mrc", &bytes);
        let bytes_of =
            if zeros == 1 { "1 byte of zeros".into() } else { format!("{zeros} bytes of zeros") };
        let checked = desk.run("check z.mrc");
        assert_eq!(checked.status, Some(1), "{zeros}");
        let said =
            format!("z.mrc: record 2, byte {at}: syntax: {bytes_of} where a record should begin");
        assert!(checked.text().contains(&said), "{}", checked.text());
        assert!(checked.text().contains("4 records in marc21: 3 valid, 0 repaired, 1 damaged"));
        let copied = desk.run("copy z.mrc out.mrc --json");
        assert_eq!(copied.status, Some(1), "{}", copied.err);
        assert_eq!(desk.read("out.mrc"), [&bytes[..at], &bytes[at + zeros..]].concat());
        let shown = desk.run("show z.mrc");
        let said = format!("record 2, byte {at}\n");
        assert!(shown.text().contains(&said), "{}", shown.text());
        let said = format!("record 3, byte {}\n", at + zeros);
        assert!(shown.text().contains(&said), "{}", shown.text());
        for parts in [2, 3, 7] {
            let mut whole = Vec::new();
            for part in 1..=parts {
                desk.run(&format!("copy z.mrc part.mrc --part {part}/{parts} -q"));
                whole.extend(std::fs::read(desk.path().join("part.mrc")).unwrap_or_default());
                let _ = std::fs::remove_file(desk.path().join("part.mrc"));
            }
            assert_eq!(whole, desk.read("out.mrc"), "{zeros}, {parts} parts");
        }
        std::fs::remove_file(desk.path().join("out.mrc")).unwrap();
    }
}

#[test]
fn zeros_at_the_end_pad_the_file() {
    let desk = Desk::with_catalogue();
    let catalogue = desk.read("a.mrc");
    let all = records(&catalogue).len();
    for (end, sound) in [
        (vec![0; 1], true),
        (vec![0; 65_536], true),
        ([&[0; 100][..], b"\r\n\x1a\x1a", &[0; 9]].concat(), true),
        (b"\r\n\x1a".to_vec(), true),
        (vec![0; 65_537], false),
        (vec![0; 3_000_000], false),
    ] {
        desk.write("z.mrc", [&catalogue[..], &end].concat());
        let checked = desk.run("check --pedantic z.mrc");
        let text = checked.text();
        let rejected = if sound { "0 damaged" } else { "1 damaged" };
        assert!(text.contains(rejected), "{} bytes: {text}", end.len());
        assert!(text.contains(&format!("{all} valid")), "{text}");
        let note = format!("byte {}: padding: {} bytes", catalogue.len(), end.len());
        assert_eq!(text.contains(&note), sound && end.contains(&0), "{text}");
        let copied = desk.run("copy z.mrc out.mrc");
        assert_eq!(copied.status, Some(i32::from(!sound)), "{}", copied.err);
        assert_eq!(desk.read("out.mrc"), catalogue);
        let shown = desk.run("show z.mrc");
        assert_eq!(shown.status, Some(i32::from(!sound)), "{}", shown.err);
    }
}

/// Zeros alone are no padding: nothing tells that there ever was a record.
#[test]
fn a_file_of_zeros_is_no_catalogue() {
    let desk = Desk::with_catalogue();
    for zeros in [1, 5000, 65_536, 700_000] {
        desk.write("z.mrc", vec![0; zeros]);
        let checked = desk.run("check z.mrc");
        assert_eq!(checked.status, Some(1), "{zeros}: {}", checked.err);
        let before = desk.read("a.mrc");
        assert_eq!(desk.run("copy z.mrc a.mrc").status, Some(1));
        assert_eq!(desk.read("a.mrc"), before);
    }
}

#[test]
fn a_record_that_zeros_cut_off_costs_no_other() {
    let desk = Desk::with_catalogue();
    let catalogue = desk.read("a.mrc");
    let all = records(&catalogue);
    let half = all[1].len() / 2;
    let bytes = [all[0], &all[1][..half], &[0; 4096], all[2], all[3]].concat();
    desk.write("z.mrc", &bytes);
    let text = desk.run("check z.mrc").text().to_owned();
    let (first, zeros) = (all[0].len(), all[0].len() + half);
    assert!(
        text.contains(&format!("record 3, byte {zeros}: syntax: 4096 bytes of zeros")),
        "{text}"
    );
    assert!(text.contains("5 records in marc21: 3 valid"), "{text}");
    let shown = desk.run("show z.mrc").text().to_owned();
    assert!(shown.contains(&format!("record 2, byte {first}\n")), "{shown}");
    assert!(shown.contains(&format!("record 4, byte {}\n", zeros + 4096)), "{shown}");
}

/// Far more zeros than a record may have bytes: they are one item, and nothing of them is kept.
#[test]
fn a_run_of_zeros_of_any_length_takes_no_memory() {
    const ZEROS: u64 = 24 << 20;
    let desk = Desk::with_catalogue();
    let catalogue = desk.read("a.mrc");
    let first = records(&catalogue)[0].to_vec();
    let input = || {
        let zeros = std::io::repeat(0).take(ZEROS);
        std::io::Cursor::new(first.clone()).chain(zeros).chain(std::io::Cursor::new(first.clone()))
    };
    let reading = Reading { max_record: 1 << 20, ..Reading::default() };
    let mut frames = Frames::new(input(), "z.mrc", &reading).unwrap();
    let mut seen = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        assert!(frame.bytes.len() <= 1 << 20, "{}", frame.bytes.len());
        seen.push((frame.offset, frame.bad.map(|bad| bad.to_string())));
    }
    let at = first.len() as u64;
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!((seen[0].0, seen[1].0, seen[2].0), (0, at, at + ZEROS));
    let said = seen[1].1.as_deref().unwrap();
    assert!(said.contains(&format!("byte {at}: {ZEROS} bytes of zeros")), "{said}");
    // The reader of the library does the same.
    let mut reader = steelyard::marc::iso2709::Reader::new(input());
    let mut seen = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        seen.push((item.offset, item.record.is_some()));
        assert!(item.troubles.iter().all(|t| t.offset == at && t.detail.contains("zeros")));
    }
    assert_eq!(seen, [(0, true), (at, false), (at + ZEROS, true)]);
}
