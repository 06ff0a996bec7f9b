//! Tests of the direct reader: what it reads equals what the general reader reads.

use super::*;
use crate::{
    Result,
    format::marshal::{de, decode_marc, encode},
    marc::json::RecordSeed,
    record::dataset::catalogue::Catalogue,
};

/// What Ruby 3.1 wrote of a record: new strings; frozen literals, which are the same object
/// wherever they are spelled the same; symbols; strings in US-ASCII and binary.
const RUBY: [&[u8]; 4] = [
    b"\x04\x08{\x07I\"\x0bleader\x06:\x06ETI\"\x1d00000nam a2200000 i 4500\x06;\0TI\"\x0bfields\x06;\0T[\x08{\x06I\"\x08001\x06;\0TI\"\x0742\x06;\0T{\x06I\"\x08245\x06;\0T{\x08I\"\x09ind1\x06;\0TI\"\x061\x06;\0TI\"\x09ind2\x06;\0TI\"\x060\x06;\0TI\"\x0esubfields\x06;\0T[\x07{\x06I\"\x06a\x06;\0TI\"\x0eWeights /\x06;\0T{\x06I\"\x06c\x06;\0TI\"\x07\xc3\xa9\x06;\0T{\x06I\"\x08650\x06;\0T{\x08@\x10I\"\x06 \x06;\0T@\x12I\"\x060\x06;\0T@\x14[\x07{\x06@\x17I\"\x0bScales\x06;\0T{\x06@\x17I\"\0\x06;\0T",
    b"\x04\x08{\x07I\"\x0bleader\x06:\x06ETI\"\x1d00000nam a2200000 i 4500\x06;\0TI\"\x0bfields\x06;\0T[\x07{\x06I\"\x08245\x06;\0T{\x08I\"\x09ind1\x06;\0TI\"\x061\x06;\0TI\"\x09ind2\x06;\0T@\x0eI\"\x0esubfields\x06;\0T[\x07{\x06I\"\x06a\x06;\0TI\"\x06x\x06;\0T{\x06@\x13@\x14{\x06I\"\x08500\x06;\0T{\x08@\x0d@\x0e@\x0f@\x0e@\x10[\x06{\x06@\x13@\x14",
    b"\x04\x08{\x07:\x0bleaderI\"\x1d00000nam a2200000 i 4500\x06:\x06ET:\x0bfields[\x07{\x06:\x08001:\x08abc{\x06:\x08245{\x08:\x09ind1I\"\x061\x06;\x06T:\x09ind2I\"\x060\x06;\x06T:\x0esubfields[\x08{\x06:\x06aI\"\x0eWeights /\x06;\x06T{\x06;\x06I\"\x06E\x06;\x06T{\x06;\x0eI\"\x01\x82xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x06;\x06T",
    b"\x04\x08{\x07I\"\x0bleader\x06:\x06ETI\"\x1d00000nam a2200000 i 4500\x06;\0FI\"\x0bfields\x06;\0T[\x07{\x06I\"\x08001\x06;\0T\"\x0742{\x06I\"\x08245\x06;\0T{\x08I\"\x09ind1\x06;\0TI\"\x06 \x06;\0FI\"\x09ind2\x06;\0T\"\x060I\"\x0esubfields\x06;\0T[\x08{\x06I\"\x06a\x06;\0T\"\x0acaf\xe2e{\x06I\"\x06b\x06;\0TI\"\x0acaf\xe2e\x06;\0T{\x06I\"\x06b\x06;\0FI\"\x06x\x06;\0F",
];

/// The same four as people write them.
const TOLD: [&str; 4] = [
    "001 42\n245 10$aWeights /$cé\n650  0$aScales$a",
    "245 11$ax$ax\n500 11$ax",
    "001 abc\n245 10$aWeights /$EE$a",
    "001 42\n245  0$acaf\u{fffd}e$bcaf\u{fffd}e$bx",
];

fn general(bytes: &[u8], record: &mut Record) -> Result<()> {
    de::decode::<&[u8], _>(RecordSeed(record), bytes)
}

/// Equal, down to where the subfields are.
fn same(one: &Record, other: &Record) -> bool {
    let (one, other) = (one.as_ref(), other.as_ref());
    let contents = |(a, b): (crate::marc::FieldRef<'_>, crate::marc::FieldRef<'_>)| {
        let codes = |field: crate::marc::FieldRef<'_>| {
            field.subfields().map(|s| (s.code.to_vec(), s.value.to_vec())).collect::<Vec<_>>()
        };
        codes(a) == codes(b)
    };
    one == other
        && one.is_utf8() == other.is_utf8()
        && one.fields().zip(other.fields()).all(contents)
}

/// Holds the direct way to the general one; true if it read these bytes.
fn agree(bytes: &[u8]) -> bool {
    let mut want = Record::new();
    let sure = general(bytes, &mut want);
    let mut record = Record::new();
    record.push_plain(*b"999", b"from before").unwrap();
    let before = record.clone();
    let direct = read(bytes, &mut record);
    if direct {
        assert!(sure.is_ok(), "{}: {sure:?}", bytes.escape_ascii());
        assert!(same(&record, &want), "{}\n{record:?}\n{want:?}", bytes.escape_ascii());
    } else {
        assert!(record.is_empty() || same(&record, &before));
    }
    // And what comes of both is what the general way says.
    let both = decode_marc(bytes, &mut record);
    assert_eq!(format!("{both:?}"), format!("{sure:?}"), "{}", bytes.escape_ascii());
    assert!(both.is_err() || same(&record, &want));
    direct
}

fn dump(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(record, &mut bytes).unwrap();
    bytes
}

#[test]
fn records_of_ours_are_read_directly() {
    let catalogue = Catalogue::new(7);
    for n in 0..1500 {
        let record = catalogue.record(n);
        let bytes = dump(&record);
        assert!(agree(&bytes), "{record:?}");
        let mut back = Record::new();
        assert!(read(&bytes, &mut back) && same(&back, &record), "{record:?}");
    }
}

#[test]
fn records_of_ruby_are_read_directly() {
    for (bytes, told) in RUBY.iter().zip(TOLD) {
        assert!(agree(bytes), "{}", bytes.escape_ascii());
        let mut record = Record::new();
        assert!(read(bytes, &mut record));
        let shown = format!("{record:?}").replace('"', "");
        let shown = shown.split_once('\n').unwrap().1.replace(&"x".repeat(130), "");
        assert_eq!(shown, told);
    }
}

#[test]
fn whatever_the_bytes_both_ways_agree() {
    let mut state = 1u64;
    let mut random = move |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let catalogue = Catalogue::new(11);
    let mut samples: Vec<Vec<u8>> = RUBY.iter().map(|bytes| bytes.to_vec()).collect();
    let mut short = Record::new();
    short.push_data(*b"245", *b"10", &[(b'a', b"Weights"), (b'b', b""), (b'a', b"again")]).unwrap();
    short.push_bytes(*b"LKR", b"odd\x1fasubfields").unwrap();
    short.push_data(*b"246", *b"3 ", &[(b'a', "Maße".as_bytes()), (b'b', b"\xe2")]).unwrap();
    samples.push(dump(&short));
    samples.extend((0..4).map(|n| dump(&catalogue.record(n))));
    for bytes in &samples {
        for cut in 0..bytes.len() {
            assert!(!agree(&bytes[..cut]));
        }
    }
    let (mut direct, mut not) = (0, 0);
    for _ in 0..15_000 {
        let mut bytes = samples[random(samples.len())].clone();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len());
            match random(5) {
                0 => bytes[at] = random(256) as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes[at] = bytes[at].wrapping_add(1),
                3 => {
                    bytes[at] =
                        b"@;I[{:\"}CET0\x1d\x1e\x1f\0\x01\x02\x05\x06\x07\x08\xff"[random(23)]
                }
                // Something of it once more.
                _ => {
                    let end = bytes.len().min(at + random(24));
                    let again = bytes[at..end].to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, again);
                }
            }
        }
        match agree(&bytes) {
            true => direct += 1,
            false => not += 1,
        }
    }
    assert!(direct > 1000 && not > 1000, "{direct} directly, {not} not");
}

#[test]
fn links_in_place_of_parts_agree() {
    // Any two bytes of a text or key replaced by a link to any object or symbol.
    for bytes in RUBY {
        for at in 2..bytes.len() {
            for len in [0, 2, 9, 12] {
                for link in *b"@;" {
                    for n in [0, 6, 8, 13, 16, 20, 40, 128] {
                        let rest = bytes.get(at + len..).unwrap_or_default();
                        agree(&[&bytes[..at], &[link, n], rest].concat());
                    }
                }
            }
        }
    }
}

#[test]
fn links_cannot_blow_up() {
    let text = "x".repeat(10_000);
    let start = b"\x04\x08{\x07I\"\x0bleader\x06:\x06ETI\"\x1d00000nam a2200000 i 4500\x06;\0TI\"\x0bfields\x06;\0T[";
    // Objects: the hash, leader twice, fields twice, a field, its tag, its text: 7; then so many links.
    let bomb = |first: &[u8], link: &[u8], links: u16| {
        let mut bytes = [&start[..], b"\x02", &(links + 1).to_le_bytes()].concat();
        bytes.extend_from_slice(&[b"{\x06I\"\x08500\x06;\0T", first, text.as_bytes()].concat());
        if first[0] == b'I' {
            bytes.extend_from_slice(b"\x06;\0T");
        }
        let field = [b"{\x06I\"\x08501\x06;\0T", link].concat();
        (0..links).for_each(|_| bytes.extend_from_slice(&field));
        bytes
    };
    for (first, link) in [(&b"I\"\x02\x10\x27"[..], &b"@\x0c"[..]), (b":\x02\x10\x27", b";\x06")] {
        assert!(agree(&bomb(first, link, 20)));
        let bytes = bomb(first, link, 900);
        assert!(!agree(&bytes));
        let error = general(&bytes, &mut Record::new()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::TooLarge, "{error}");
    }
}
