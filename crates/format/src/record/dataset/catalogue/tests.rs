//! Holds the catalogue to the figures of real records, to its own promises, and to its bytes.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::marc::Content;

/// The record as an ISO 2709 file holds it, by the shortest way: to measure, not to be fast.
fn bytes(record: &Record) -> Vec<u8> {
    let record = record.as_ref();
    let (mut directory, mut data) = (String::new(), Vec::new());
    for field in record.fields() {
        let (length, start) = (field.bytes().len() + 1, data.len());
        directory.push_str(&format!("{}{length:04}{start:05}", field.tag_text()));
        data.extend_from_slice(field.bytes());
        data.push(0x1e);
    }
    let base = 25 + directory.len();
    let mut out = record.leader().0.to_vec();
    out[..5].copy_from_slice(format!("{:05}", base + data.len() + 1).as_bytes());
    out[12..17].copy_from_slice(format!("{base:05}").as_bytes());
    out.extend_from_slice(directory.as_bytes());
    out.push(0x1e);
    out.extend_from_slice(&data);
    out.push(0x1d);
    out
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn records(catalogue: &Catalogue, count: u64) -> impl Iterator<Item = Record> {
    (0..count).map(|n| catalogue.record(n))
}

/// Compares figures with those wanted, prints all of them, and fails after the last.
#[derive(Default)]
struct Scale {
    off: Vec<String>,
}

impl Scale {
    /// `found` must lie within `low` to `high`.
    fn within(&mut self, name: &str, found: f64, real: f64, low: f64, high: f64) {
        let line = format!("{name:<28} {found:>10.3}  real {real:>10.3}  ({low:.3} to {high:.3})");
        println!("{line}");
        if !(low..=high).contains(&found) {
            self.off.push(line);
        }
    }

    /// `found` must be within `share` of `real`.
    fn near(&mut self, name: &str, found: f64, real: f64, share: f64) {
        self.within(name, found, real, real * (1.0 - share), real * (1.0 + share));
    }
}

fn percentile(sorted: &[usize], percent: usize) -> f64 {
    sorted[sorted.len() * percent / 100] as f64
}

/// The figures are those of 11,428 real records (see the module); run with `--nocapture` to read
/// them side by side. `scripts/calibrate.py` shows more of them.
#[test]
fn is_like_real_records() {
    let count = 5_000;
    let (mut file, mut sizes, mut fields, mut subfields) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut documents, mut times) = (HashMap::<_, u32>::new(), HashMap::<_, u32>::new());
    let (mut lengths, mut foreign) = (Vec::new(), 0);
    for record in records(&Catalogue::new(42), count) {
        let before = file.len();
        file.extend_from_slice(&bytes(&record));
        let own = &file[before..];
        sizes.push(own.len());
        foreign += u32::from(!own.is_ascii());
        let record = record.as_ref();
        fields.push(record.len());
        let (mut tags, mut n) = (HashSet::new(), 0);
        for field in record.fields() {
            tags.insert(field.tag());
            *times.entry(field.tag()).or_default() += 1;
            for subfield in field.subfields() {
                n += 1;
                lengths.push(subfield.value.len());
            }
        }
        subfields.push(n);
        for tag in tags {
            *documents.entry(tag).or_default() += 1;
        }
    }
    let mut scale = Scale::default();
    let total = count as f64;
    let mean = |values: &[usize]| values.iter().sum::<usize>() as f64 / values.len() as f64;
    scale.near("mean size", mean(&sizes), 1461.3, 0.03);
    scale.near("mean fields", mean(&fields), 24.7, 0.04);
    scale.near("mean subfields", mean(&subfields), 60.7, 0.06);
    scale.near("mean subfield", mean(&lengths), 14.57, 0.06);
    for values in [&mut sizes, &mut fields, &mut subfields] {
        values.sort_unstable();
    }
    for (percent, real) in [
        (1, 200.0),
        (10, 309.0),
        (25, 730.0),
        (50, 1054.0),
        (75, 1470.0),
        (90, 2244.0),
        (99, 6582.0),
    ] {
        let name = format!("size of {percent} %");
        scale.near(&name, percentile(&sizes, percent), real, 0.25);
    }
    scale.near("median size", percentile(&sizes, 50), 1054.0, 0.10);
    scale.near("median fields", percentile(&fields, 50), 22.0, 0.10);
    scale.near("median subfields", percentile(&subfields, 50), 38.0, 0.20);
    let largest = *sizes.last().expect("records") as f64;
    scale.within("largest", largest, 99_944.0, 48_000.0, 99_999.0);
    scale.near("with non-ASCII", f64::from(foreign) / total, 0.356, 0.08);
    let high = file.iter().filter(|b| !b.is_ascii()).count() as f64;
    scale.near("non-ASCII bytes", high / file.len() as f64, 0.01744, 0.2);

    let mut gzip = flate2::read::GzEncoder::new(file.as_slice(), flate2::Compression::new(6));
    let gzip = std::io::copy(&mut gzip, &mut std::io::sink()).expect("in memory") as f64;
    scale.within("gzip -6", gzip / file.len() as f64, 0.38, 0.36, 0.40);
    let zstd = zstd::encode_all(file.as_slice(), 3).expect("in memory").len() as f64;
    scale.within("zstd -3 to gzip -6", zstd / gzip, 0.85, 0.82, 0.88);

    // Tag, share of records, times where it is there.
    for (tag, share, often) in [
        ("001", 0.980, 1.00),
        ("008", 0.992, 1.00),
        ("245", 0.852, 1.01),
        ("040", 0.815, 1.00),
        ("300", 0.805, 1.00),
        ("260", 0.777, 1.03),
        ("005", 0.727, 1.00),
        ("035", 0.717, 2.45),
        ("100", 0.609, 1.01),
        ("650", 0.575, 2.36),
        ("003", 0.556, 1.00),
        ("500", 0.486, 1.88),
        ("050", 0.422, 1.02),
        ("596", 0.351, 1.00),
        ("020", 0.339, 1.41),
        ("700", 0.337, 2.38),
        ("010", 0.292, 1.00),
        ("999", 0.284, 2.16),
        ("049", 0.273, 1.00),
        ("082", 0.255, 1.01),
        ("090", 0.238, 1.07),
        ("043", 0.232, 1.00),
        ("504", 0.221, 1.01),
        ("007", 0.207, 1.10),
        ("949", 0.193, 6.06),
        ("970", 0.180, 1.05),
        ("852", 0.174, 1.42),
        ("651", 0.169, 1.51),
        ("710", 0.164, 1.47),
        ("042", 0.158, 1.00),
        ("856", 0.132, 1.22),
        ("505", 0.129, 1.27),
        ("600", 0.128, 1.51),
        ("041", 0.127, 1.00),
        ("250", 0.120, 1.07),
        ("440", 0.118, 1.02),
        ("655", 0.111, 1.98),
        ("490", 0.108, 1.04),
        ("830", 0.100, 1.09),
        ("246", 0.096, 1.45),
        ("336", 0.093, 1.04),
        ("240", 0.084, 1.01),
        ("520", 0.080, 1.05),
        ("876", 0.058, 4.66),
        ("110", 0.056, 1.01),
        ("264", 0.055, 1.40),
        ("880", 0.046, 5.86),
    ] {
        let key: [u8; 3] = tag.as_bytes().try_into().expect("three");
        let n = f64::from(documents.get(&key).copied().unwrap_or(0));
        let found = n / total;
        scale.within(tag, found, share, share * 0.85 - 0.01, share * 1.15 + 0.01);
        let found = f64::from(times.get(&key).copied().unwrap_or(0)) / n.max(1.0);
        scale.near(&format!("{tag} times"), found, often, 0.25);
    }
    assert!(scale.off.is_empty(), "off:\n{}", scale.off.join("\n"));
}

#[test]
fn can_be_longer_or_shorter() {
    for mean in [900, 1_650, 4_000] {
        let catalogue = Catalogue::new(42).mean_bytes(mean).unwrap();
        let count = 5_000;
        let total: usize = records(&catalogue, count).map(|r| bytes(&r).len()).sum();
        let found = total as f64 / count as f64;
        println!("{mean}: {found:.0}");
        let off = if mean > 2_000 { 0.06 } else { 0.03 };
        assert!((found / f64::from(mean) - 1.0).abs() < off, "{mean}: {found}");
    }
    for mean in [0, 899, 10_001] {
        assert!(Catalogue::new(42).mean_bytes(mean).is_err());
    }
}

/// Without oddities, everything is as the standard has it.
#[test]
fn is_sound() {
    let mut keys = HashSet::new();
    for record in records(&Catalogue::new(7).oddities(false), 3_000) {
        assert!(bytes(&record).len() <= 99_999);
        let leader = record.leader();
        let (kind, mut tags) = (leader.kind(), Vec::new());
        assert!(leader.says_utf8() && leader.0.ends_with(b"4500"), "{leader}");
        assert!(leader.0.iter().all(|b| b.is_ascii_alphanumeric() || *b == b' '), "{leader}");
        let record = record.as_ref();
        assert!(record.is_utf8());
        for field in record.fields() {
            let at = field.tag_text();
            tags.push(at.to_string());
            assert!(field.tag().iter().all(u8::is_ascii_digit), "{at}");
            assert!(field.bytes().len() < 9_999, "{at}");
            assert!(
                !text(field.bytes()).chars().any(|c| c.is_control() && c != '\u{1f}'),
                "{field}"
            );
            match field.content() {
                Content::Plain(plain) => {
                    assert!(at.starts_with("00") && !plain.contains(&0x1f), "{at} {field}");
                    let fixed = if matches!(kind[0], b'x' | b'y') { 32 } else { 40 };
                    assert!(at != "008" || plain.len() == fixed, "{field}");
                }
                Content::Data(indicators, subfields) => {
                    assert!(!at.starts_with("00"), "{at}");
                    let sound = |i: &u8| i.is_ascii_digit() || *i == b' ';
                    assert!(indicators.iter().all(sound), "{at} {indicators:?}");
                    let mut n = 0;
                    for subfield in subfields {
                        n += 1;
                        let code = subfield.code[0];
                        assert!(code.is_ascii_lowercase() || code.is_ascii_digit(), "{at} {code}");
                        let value = text(subfield.value);
                        assert!(!value.is_empty(), "{at} {field}");
                        assert!(!value.contains("..") || value.contains("..."), "{at} {value}");
                    }
                    assert!(n > 0, "{at}");
                }
            }
        }
        assert_eq!(tags.iter().filter(|t| *t == "001").count(), 1);
        assert!(tags.iter().filter(|t| t.starts_with('1')).count() <= 4, "{tags:?}");
        assert!(keys.insert(record.field(*b"001").expect("001").bytes().to_vec()));
    }
}

#[test]
fn check_digits_are_right() {
    let weigh = |digits: &[u32], weights: &[u32]| -> u32 {
        digits.iter().zip(weights.iter().cycle()).map(|(d, w)| d * w).sum()
    };
    let digits = |s: &str| -> Vec<u32> {
        s.chars().filter_map(|c| if c == 'X' { Some(10) } else { c.to_digit(10) }).collect()
    };
    let (mut short, mut long, mut serials) = (0, 0, 0);
    for record in records(&Catalogue::new(3), 3_000) {
        for field in record.as_ref().fields_tagged(*b"020") {
            let Some(value) = field.subfield(b'a') else { continue };
            let number = text(value).split(' ').next().expect("a number");
            match digits(number) {
                d if d.len() == 10 => {
                    assert_eq!(weigh(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11, 0, "{number}");
                    short += 1;
                }
                d => {
                    assert_eq!((d.len(), weigh(&d, &[1, 3]) % 10), (13, 0), "{number}");
                    long += 1;
                }
            }
        }
        for field in record.as_ref().fields_tagged(*b"022") {
            let Some(value) = field.subfield(b'a') else { continue };
            let d = digits(text(value));
            assert_eq!((d.len(), weigh(&d, &[8, 7, 6, 5, 4, 3, 2, 1]) % 11), (8, 0));
            serials += 1;
        }
    }
    assert!(short > 300 && long > 300 && serials > 50, "{short} {long} {serials}");
}

/// A field in another script and its romanized twin name each other.
#[test]
fn scripts_are_linked() {
    let (mut pairs, mut ascii) = (0, 0);
    for record in records(&Catalogue::new(5).oddities(false), 2_000) {
        let link = |tag: &str, value: &str| (tag.to_string(), value[4..6].to_string());
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for field in record.as_ref().fields() {
            let Some(value) = field.subfield(b'6') else { continue };
            let (tag, value) = (field.tag_text(), text(value));
            if tag == "880" {
                ascii += u32::from(field.bytes().is_ascii());
                back.push((value[..3].to_string(), value[4..6].to_string()));
            } else {
                assert!(value.starts_with("880-"), "{value}");
                there.push(link(&tag, value));
            }
        }
        assert_eq!(there, back);
        assert_eq!(there.is_empty(), record.as_ref().field(*b"066").is_none());
        pairs += there.len();
    }
    // A date or the number of an edition may have no letter in it; nearly all have.
    assert!(pairs > 200 && ascii < pairs as u32 / 10, "{ascii} of {pairs}");
}

#[test]
fn is_as_odd_as_real_records() {
    let count = 6_000;
    let mut seen = HashMap::<&str, u32>::new();
    for record in records(&Catalogue::new(11), count) {
        let record = record.as_ref();
        let mut odd = HashSet::new();
        if !record.leader().0.ends_with(b"4500") {
            odd.insert("leader");
        }
        if !record.leader().says_utf8() {
            assert!(record.fields().any(|f| !f.bytes().is_ascii()));
            odd.insert("mark");
        }
        assert!(record.is_utf8());
        for field in record.fields() {
            if !field.tag().iter().all(u8::is_ascii_digit) {
                odd.insert("tag");
            }
            let Content::Data(indicators, subfields) = field.content() else { continue };
            if !indicators.iter().all(|i| i.is_ascii_digit() || *i == b' ') {
                odd.insert("indicator");
            }
            for subfield in subfields {
                match subfield.code[0] {
                    b'A'..=b'Z' => odd.insert("capital"),
                    c if c.is_ascii_punctuation() => odd.insert("punctuation"),
                    _ => false,
                };
                if subfield.value.is_empty() {
                    odd.insert("empty");
                }
                if text(subfield.value).chars().any(char::is_control) {
                    odd.insert("control");
                }
            }
        }
        for name in odd {
            *seen.entry(name).or_default() += 1;
        }
    }
    let mut scale = Scale::default();
    for (name, share) in [
        ("leader", 0.114),
        ("tag", 0.020),
        ("capital", 0.016),
        ("empty", 0.016),
        ("indicator", 0.007),
        ("control", 0.004),
        ("punctuation", 0.004),
        ("mark", 0.016),
    ] {
        let found = f64::from(seen.get(name).copied().unwrap_or(0)) / count as f64;
        scale.within(name, found, share, share * 0.5, share * 1.6);
    }
    assert!(scale.off.is_empty(), "off:\n{}", scale.off.join("\n"));
}

#[test]
fn no_field_is_asked_of_more_records_than_there_are() {
    for row in TABLE {
        let most = Case::share(row.among);
        assert!(row.share <= most * 1.03, "{}: {} of {most}", row.tag, row.share);
    }
}

/// The bytes are pinned: the same seed must give the same records in every version.
#[test]
fn records_are_pinned() {
    let sum = |numbers: &mut dyn Iterator<Item = u64>| {
        let catalogue = Catalogue::new(42);
        let mut record = Record::new();
        numbers.fold(0, |sum, n| {
            catalogue.make(n, &mut record);
            bytes(&record).iter().fold(sum, |s, b| mix(s ^ u64::from(*b)))
        })
    };
    assert_eq!(format!("{:016x}", sum(&mut (0..500))), "19b5e77a068d8b42");
    assert_eq!(format!("{:016x}", sum(&mut [1 << 40, 999_999].into_iter())), "05ce5f44c2d391c9");
    // Any order, any part: the same records.
    let catalogue = Catalogue::new(42);
    let mut used = catalogue.record(0);
    for n in [77, 3, 4_096] {
        catalogue.make(n, &mut used);
        assert_eq!(used, catalogue.record(n));
    }
    assert_ne!(Catalogue::new(42).record(0), Catalogue::new(43).record(0));
}
