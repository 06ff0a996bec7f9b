//! MARC-8 as a whole: every character both ways, any text, any bytes, real records.

use proptest::prelude::*;
use steelyard::marc::marc8::{Decoder, Encoder, Fault, Sets};
use unicode_normalization::UnicodeNormalization;

use crate::programs::{self, need};

fn read(bytes: &[u8]) -> (String, Vec<(usize, Fault)>) {
    let (mut out, mut faults) = (Vec::new(), Vec::new());
    Decoder::default().decode(bytes, &mut out, &mut |at, fault| faults.push((at, fault)));
    (String::from_utf8(out).expect("UTF-8"), faults)
}

fn write(text: &str) -> (Vec<u8>, Vec<(usize, char)>, Sets) {
    let (mut out, mut missing) = (Vec::new(), Vec::new());
    let sets = Encoder::default().encode(text, &mut out, &mut |at, char| missing.push((at, char)));
    (out, missing, sets)
}

fn nfd(text: &str) -> String {
    text.nfd().collect()
}

/// Every character that MARC-8 has, but for the half marks.
fn mappable() -> Vec<char> {
    let all = '\0'..=char::MAX;
    let known = all.filter(|c| {
        // A letter in front, for the marks; and one after, for those over two.
        let missing = write(&format!("x{c}y")).1;
        missing.is_empty() && !('\u{fe20}'..='\u{fe23}').contains(c)
    });
    known.collect()
}

#[test]
fn every_character_both_ways() {
    let mut decomposed = 0;
    let known = mappable();
    for c in &known {
        let text = format!("x{c}y");
        let (bytes, _, _) = write(&text);
        let (back, faults) = read(&bytes);
        assert_eq!(nfd(&back), nfd(&text), "{c:?} as {}", bytes.escape_ascii());
        assert_eq!(faults, [], "{c:?}");
        decomposed += usize::from(back != text);
    }
    // What the tables have, and what is made of their letters and marks.
    println!("{} characters, {decomposed} of them come back decomposed", known.len());
    assert!(known.len() > 16_000, "{}", known.len());
}

#[test]
fn every_eacc_code_both_ways() {
    let mut codes: Vec<([u8; 3], char)> = Vec::new();
    for a in 0x21..0x7f {
        for b in 0x21..0x7f {
            for c in 0x20..0x7f {
                let (text, faults) = read(&[0x1b, b'$', b'1', a, b, c]);
                if let ([], [char]) = (&faults[..], &text.chars().collect::<Vec<_>>()[..]) {
                    codes.push(([a, b, c], *char));
                }
            }
        }
    }
    assert_eq!(codes.len(), 15_739);
    let mut by_char = codes.clone();
    by_char.sort_by_key(|(code, char)| (*char, *code));
    let (mut unique, mut several) = (0, 0);
    for group in by_char.chunk_by(|a, b| a.1 == b.1) {
        let (code, char) = group[0];
        let (bytes, missing, _) = write(&char.to_string());
        assert_eq!(missing, []);
        match group {
            [_] => {
                unique += 1;
                assert_eq!(bytes, [b"\x1b$1", &code[..], b"\x1b(B"].concat(), "{char:?}");
            }
            // The first code is written, but for the space, whose first is no code of EACC's own.
            _ => {
                several += 1;
                let code = if char == '\u{3000}' { *b"\x21\x23\x21" } else { code };
                assert_eq!(bytes, [b"\x1b$1", &code[..], b"\x1b(B"].concat(), "{char:?}");
            }
        }
    }
    println!("{unique} characters with one code, {several} with several");
    assert_eq!((unique, several), (15_297, 216));
}

/// Text of the characters that make trouble when they meet.
fn text() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        4 => prop::char::range(' ', '~'),
        2 => prop::char::range('\0', '\u{7f}'),
        3 => prop::char::range('\u{a0}', '\u{24f}'),
        4 => prop::char::range('\u{300}', '\u{362}'),
        2 => prop::char::range('\u{370}', '\u{52f}'),
        2 => prop::char::range('\u{591}', '\u{6ff}'),
        1 => prop::char::range('\u{1e00}', '\u{20ff}'),
        2 => prop::char::range('\u{3000}', '\u{30ff}'),
        1 => prop::char::range('\u{4e00}', '\u{9fff}'),
        1 => prop::char::range('\u{ac00}', '\u{d7a3}'),
        1 => prop::char::range('\u{1100}', '\u{11ff}'),
        1 => prop::sample::select(vec!['\u{1d}', '\u{1f}', '&', '#', 'x', ';', '\u{361}', '\u{360}']),
        1 => any::<char>(),
    ];
    let part = prop_oneof![
        8 => char.prop_map(String::from),
        1 => prop::sample::select(vec!["&#x4E00;", "&#x0301;", "&#xBB;", "t\u{361}s"])
            .prop_map(String::from),
    ];
    prop::collection::vec(part, 0..24)
        .prop_map(|parts| parts.concat().replace(|c| ('\u{fe20}'..='\u{fe23}').contains(&c), ""))
}

/// Bytes of the kinds that make trouble when they meet.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => any::<u8>(),
        2 => 0xe0u8..=0xff,
        1 => prop::sample::select(vec![0xeb, 0xec, 0xfa, 0xfb]),
        2 => 0x20u8..0x7f,
    ];
    let part = prop_oneof![
        8 => byte.prop_map(|b| vec![b]),
        2 => prop::sample::select(vec![
            "\x1b$1", "\x1b$)1", "\x1b(N", "\x1b)Q", "\x1b(S", "\x1b(3", "\x1b(2", "\x1b(B", "\x1b)!E",
            "\x1bs", "\x1bp", "\x1b", "\x1f", "\x1e", "&#x4E00;", "&#x", "!0!", "a",
        ]).prop_map(|s| s.as_bytes().to_vec()),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_text_comes_back(text in text()) {
        let (bytes, missing, sets) = write(&text);
        let (back, faults) = read(&bytes);
        prop_assert_eq!(nfd(&back), nfd(&text), "{}", bytes.escape_ascii());
        prop_assert_eq!(faults, []);
        for (at, _) in missing {
            prop_assert!(text.is_char_boundary(at) && at < text.len());
        }
        // Written without a fault, it can be written again, the same.
        prop_assert_eq!(write(&back), (bytes.clone(), write(&back).1, sets));
        let composed: String = text.nfc().collect();
        prop_assert_eq!(write(&composed).0, bytes);
    }

    #[test]
    fn any_bytes_are_read(bytes in bytes()) {
        let (text, faults) = read(&bytes);
        prop_assert!(text.len() <= 6 * bytes.len());
        for (at, _) in &faults {
            prop_assert!(*at < bytes.len());
        }
        // What was read as text can be written, and read as the same text.
        prop_assert_eq!(whole(&read(&write(&text).0).0), whole(&text));

        // Delimiters stand alone: by pieces it is the same.
        let mut pieces = String::new();
        let mut count = 0;
        for piece in bytes.split_inclusive(|b| (0x1d..=0x1f).contains(b)) {
            let (text, faults) = read(piece);
            pieces += &text;
            count += faults.len();
        }
        prop_assert_eq!((&pieces, count), (&text, faults.len()));

        let nfc = Decoder { nfc: true, ..Decoder::default() };
        let mut composed = Vec::new();
        nfc.decode(&bytes, &mut composed, &mut |_, _| {});
        prop_assert_eq!(String::from_utf8(composed).unwrap(), text.nfc().collect::<String>());

        let mut strict = Vec::new();
        let result = Decoder::default().decode_strict(&bytes, &mut strict);
        let first = faults.iter().map(|(at, _)| *at as u64).min();
        prop_assert_eq!(result.err().and_then(|e| e.place().offset), first);
    }
}

/// With half marks made whole, as two on letters in a row are read, and the tilde as the other, as
/// their order on one letter may change with that.
fn whole(text: &str) -> String {
    let text = text.replace(['\u{fe20}', '\u{fe22}', '\u{360}'], "\u{361}");
    nfd(&text.replace(['\u{fe21}', '\u{fe23}'], ""))
}

#[test]
fn real_records() {
    let mut folders = vec![need!(programs::real_records())];
    let (mut records, mut clean) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for record in std::fs::read(&path).unwrap().split_inclusive(|b| *b == 0x1d) {
                let marc8 = record.len() > 40
                    && record[..5].iter().chain(&record[12..17]).all(u8::is_ascii_digit)
                    && record[9] == b' '
                    && record[10..12] == *b"22"
                    && (std::str::from_utf8(record).is_err() || record.contains(&0x1b));
                if !marc8 {
                    continue;
                }
                records += 1;
                let (text, faults) = read(record);
                assert_eq!(
                    text.matches(['\u{1d}', '\u{1e}', '\u{1f}']).count(),
                    record.iter().filter(|b| (0x1d..=0x1f).contains(*b)).count()
                );
                if faults.is_empty() {
                    clean += 1;
                    let (bytes, missing, _) = write(&text);
                    assert_eq!((missing, read(&bytes)), (vec![], (text, vec![])), "{path:?}");
                }
            }
        }
    }
    println!("{records} MARC-8 records, {clean} without a fault");
    assert!(records >= 20 && clean >= 5, "{records}, {clean}");
}
