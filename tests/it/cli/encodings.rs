//! Catalogues from UTF-8 to MARC-8 and back.

use steelyard::marc::{Record, encoding, iso2709};
use unicode_normalization::UnicodeNormalization;

use super::{Desk, records};

/// The text of a record's fields as MARC-8 can tell it apart:
/// - a mark over two letters is one character in Unicode, two halves in MARC-8 and in older
///   Unicode records (U+FE20 … U+FE23); the halves come back as the one;
/// - a letter with its accent may be one character or two; back come two, or with `--nfc` one.
///
/// - what MARC-8 has no character for comes back from a reference (`&#x8AAC;`) as it was.
///
/// Nothing else is let pass.
fn told_apart(fields: &[Vec<u8>]) -> Vec<String> {
    fields.iter().map(|f| halves(std::str::from_utf8(f).expect("UTF-8")).nfc().collect()).collect()
}

/// Two halves around one letter or around letters with accents of their own, as one mark.
fn halves(text: &str) -> String {
    let mut out = String::new();
    for c in text.nfd() {
        match c {
            '\u{fe20}' => out.push('\u{361}'),
            '\u{fe22}' => out.push('\u{360}'),
            '\u{fe21}' | '\u{fe23}' => {}
            c => out.push(c),
        }
    }
    out
}

/// The bytes of a record's fields, tags first.
fn fields(raw: &[u8]) -> Vec<Vec<u8>> {
    let (mut record, mut troubles) = (Record::new(), Vec::new());
    iso2709::read(raw, &mut record, &mut troubles).unwrap();
    record.as_ref().fields().map(|f| [&f.tag(), f.bytes()].concat()).collect()
}

fn leader(raw: &[u8]) -> [u8; 24] {
    raw[..24].try_into().unwrap()
}

#[test]
fn from_utf8_to_marc8_and_back() {
    let desk = Desk::new();
    desk.run("generate catalogue a.mrc --count 1500").well();
    let there = desk.run("copy a.mrc m.mrc --encoding marc8");
    // The East Asian sets have one form of a character, the records may have another.
    let missing = there.err.lines().filter(|l| l.contains("MARC-8 has no")).count();
    assert!(missing < 15 && missing + 1 == there.err.lines().count(), "{}", there.err);
    desk.run("copy m.mrc b.mrc --encoding utf8 --nfc").well();
    desk.run("copy m.mrc c.mrc --encoding utf8").well();
    let files = ["a.mrc", "m.mrc", "b.mrc", "c.mrc"].map(|name| desk.read(name));
    let [before, marc8, composed, apart] = files.each_ref().map(|f| records(f));
    assert_eq!([before.len(), marc8.len(), composed.len(), apart.len()], [1500; 4]);
    let (mut same, mut differ, mut beyond_ascii) = (0, 0, 0);
    for i in 0..1500 {
        let (was, is) = (fields(before[i]), fields(composed[i]));
        if was == is {
            same += 1;
        } else {
            differ += 1;
            assert_eq!(
                told_apart(&was),
                is.iter().map(|f| String::from_utf8(f.clone()).unwrap()).collect::<Vec<_>>(),
                "record {}",
                i + 1
            );
        }
        assert_eq!(told_apart(&was), told_apart(&fields(apart[i])), "record {}", i + 1);
        beyond_ascii += usize::from(!was.concat().is_ascii());
        // The leaders say what is there, and nothing else in them has changed but lengths.
        assert_eq!((leader(marc8[i])[9], leader(composed[i])[9]), (b' ', b'a'));
        for at in (5..24).filter(|at| *at != 9 && !(12..17).contains(at)) {
            assert_eq!(leader(before[i])[at], leader(composed[i])[at], "record {}", i + 1);
        }
    }
    println!("{same} the same, {differ} told apart no more; {beyond_ascii} beyond ASCII");
    assert!(beyond_ascii > 100 && differ > 0 && same > 1000, "{same} {differ} {beyond_ascii}");
}

#[test]
fn composing_is_asked_for() {
    let desk = Desk::new();
    let mut record = Record::new();
    record.set_leader(record.leader().with_utf8(false));
    record.push_data(*b"100", *b"1 ", &[(b'a', b"Dvo\xe9r\xe2ak")]).unwrap();
    let mut bytes = Vec::new();
    iso2709::write(record.as_ref(), &mut bytes);
    desk.write("a.mrc", &bytes);
    for (args, text) in
        [("--encoding utf8 --nfc", "Dvořák"), ("--encoding utf8", "Dvor\u{30c}a\u{301}k")]
    {
        desk.run(&format!("copy a.mrc b.mrc {args}")).well();
        let b = desk.read("b.mrc");
        assert!(b.windows(text.len()).any(|w| w == text.as_bytes()), "{args}");
        assert_eq!(b[9], b'a');
    }
    // Kept in ISO 2709, converted elsewhere, where nobody would expect MARC-8.
    desk.run("copy a.mrc b.mrc").well();
    assert_eq!(desk.read("b.mrc"), bytes);
    assert!(desk.run("copy a.mrc - --to json --nfc").well().text().contains("Dvořák"));
    assert!(desk.run("show a.mrc").well().text().contains("Dvořák"));
    // Characters that MARC-8 has not are written as references, and come back.
    let mut record = Record::new();
    record.set_leader(record.leader().with_utf8(true));
    record.push_data(*b"245", *b"10", &[(b'a', "smile 😀 now".as_bytes())]).unwrap();
    bytes.clear();
    iso2709::write(record.as_ref(), &mut bytes);
    desk.write("s.mrc", &bytes);
    let there = desk.run("copy s.mrc m.mrc --encoding marc8");
    assert_eq!(there.status, Some(1));
    assert!(there.err.contains("MARC-8 has no '😀'"), "{}", there.err);
    assert!(desk.read("m.mrc").windows(9).any(|w| w == b"&#x1F600;"));
    desk.run("copy m.mrc b.mrc --encoding utf8").well();
    assert_eq!(desk.read("b.mrc"), bytes);
    let (mut is, mut troubles) = (Record::new(), Vec::new());
    iso2709::read(&bytes, &mut is, &mut troubles).unwrap();
    assert_eq!(encoding::encoding(is.as_ref()), encoding::Encoding::Utf8);
}
