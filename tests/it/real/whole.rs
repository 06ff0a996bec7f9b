//! Every file of the folder, whatever its format: read to its end, every byte accounted for, as many
//! records as its list says.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    path::Path,
};

use steelyard::{
    file::{Frames, Reading},
    format::Format,
    marc::{FIELD_END, Record, RecordRef, Severity, Trouble, iso2709},
};

use crate::programs::need;

/// What was found in the files of one format.
#[derive(Default)]
struct Tally {
    files: u64,
    records: u64,
    sound: u64,
    repaired: u64,
    lost: u64,
    /// Records whose fields are not all of their bytes, and which say so.
    incomplete: u64,
    kinds: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn settle(&mut self, troubles: &[Trouble]) {
        self.records += 1;
        match troubles.iter().map(|t| t.kind.severity()).max() {
            Some(Severity::Lost) => self.lost += 1,
            Some(Severity::Repaired | Severity::Kept) => self.repaired += 1,
            _ => self.sound += 1,
        }
        for trouble in troubles {
            *self.kinds.entry(trouble.kind.name()).or_default() += 1;
        }
    }
}

/// A file's bytes, unpacked by another library than the one that is tried, and in UTF-8 where it
/// is XML in Latin-1: offsets count there.
fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).to_ascii_lowercase();
    if head.starts_with("<?xml") && head.contains("iso-8859-1") {
        return bytes.iter().map(|&b| char::from(b)).collect::<String>().into_bytes();
    }
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap();
    out
}

/// XML as text, its comments left out.
fn without_comments(xml: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(xml).into_owned();
    while let Some(start) = text.find("<!--") {
        let end = text[start..].find("-->").map_or(text.len(), |n| start + n + 3);
        text.replace_range(start..end, "");
    }
    text
}

/// What may stand between records and is none.
fn is_between(format: Format, bytes: &[u8]) -> bool {
    match format {
        Format::Marc21 => bytes.iter().all(|b| b"\r\n\x1a".contains(b)),
        Format::Json => bytes.iter().all(|b| b" \r\n\t[],".contains(b)),
        // Around the records of a collection stand a prologue, comments and the collection's tags.
        Format::Marcxml => {
            let text = without_comments(bytes);
            !["<leader", ":leader", "<controlfield", ":controlfield", "<datafield", ":datafield"]
                .iter()
                .any(|name| text.contains(name))
        }
        _ => false,
    }
}

/// How many bytes of text a record had on its way in, if its directory ends where it should, and
/// how many its fields have.
fn bytes_in_and_out(raw: &[u8], record: RecordRef<'_>) -> Option<(usize, usize)> {
    let base = 25 + raw.get(24..)?.iter().position(|&b| b == FIELD_END)?;
    let ours = record.fields().map(|f| f.bytes().len() + 1).sum();
    Some((raw.len().checked_sub(base + 1)?, ours))
}

/// Reads a file and counts what is in it; gives how many records.
fn read(folder: &Path, path: &Path, tallies: &mut BTreeMap<&'static str, Tally>) -> u64 {
    let name = path.strip_prefix(folder).unwrap().display().to_string();
    let bytes = unpacked(path);
    let mut frames = Frames::open(path.to_str().unwrap(), &Reading::default()).unwrap();
    let format = frames.format().format;
    let tally = tallies.entry(format.name()).or_default();
    tally.files += 1;
    let before = tally.records;
    let mut covered = 0;
    let mut record = Record::new();
    let mut troubles = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        let (start, end) = (frame.offset as usize, frame.offset as usize + frame.bytes.len());
        assert!(
            is_between(format, &bytes[covered..start]),
            "{name}: bytes passed over at {covered}"
        );
        assert_eq!(&bytes[start..end], frame.bytes, "{name}: not the bytes at {start}");
        covered = end;
        troubles.clear();
        if let Some(error) = &frame.bad {
            println!("{name}: record {}: {}", frame.number, error.context());
            tally.records += 1;
            tally.lost += 1;
            *tally.kinds.entry("bad stretch").or_default() += 1;
        } else if format == Format::Marc21 {
            let mut records = iso2709::Records::new(frame.bytes);
            while let Some(item) = records.next() {
                let whole = item.record.and_then(|r| bytes_in_and_out(item.raw, r));
                let worst = item.severity();
                if let Some((said, ours)) = whole
                    && said != ours
                {
                    // Nothing is left out silently.
                    assert!(
                        worst >= Some(Severity::Repaired),
                        "{name}: {said} bytes in, {ours} out"
                    );
                    println!("{name}: record {}: {said} bytes in, {ours} out", item.number);
                    tally.incomplete += 1;
                }
                assert!(
                    item.record.is_some() || worst == Some(Severity::Lost),
                    "{name}: no reason"
                );
                troubles.extend_from_slice(item.troubles);
                if let Some(record) = item.record {
                    iso2709::lint(record, &mut troubles);
                }
                tally.settle(&troubles);
                troubles.clear();
            }
        } else {
            match format.read_marc(frame.bytes, &mut record, &mut troubles) {
                Ok(()) => same_again(&name, format, frame.bytes, &record, &troubles),
                Err(e) => {
                    println!("{name}: record {}: {e}", frame.number);
                    tally.records += 1;
                    tally.lost += 1;
                    *tally.kinds.entry("unreadable").or_default() += 1;
                    continue;
                }
            }
            tally.settle(&troubles);
        }
    }
    assert!(is_between(format, &bytes[covered..]), "{name}: bytes lost at the end");
    tally.records - before
}

/// The fields of MARC-in-JSON by another reader: tag, and bytes as they stand in ISO 2709.
fn fields_of_json(json: &[u8]) -> Vec<(String, String)> {
    let value: serde_json::Value = serde_json::from_slice(json).unwrap();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let objects = |v: &serde_json::Value| -> Vec<(String, serde_json::Value)> {
        let list = v.as_array().unwrap().iter();
        list.flat_map(|v| v.as_object().unwrap().clone()).collect()
    };
    let bytes = |v: &serde_json::Value| {
        if let Some(text) = v.as_str() {
            return text.to_owned();
        }
        let indicator = |name| v.get(name).map_or(" ".into(), text);
        let subfields = objects(&v["subfields"]);
        let subfields = subfields.iter().map(|(code, v)| format!("\u{1f}{code}{}", text(v)));
        indicator("ind1") + &indicator("ind2") + &subfields.collect::<String>()
    };
    objects(&value["fields"]).iter().map(|(tag, v)| (tag.clone(), bytes(v))).collect()
}

/// A record that was read well comes back the same through its own format and through ISO 2709, and
/// of JSON nothing was passed over.
fn same_again(name: &str, format: Format, bytes: &[u8], record: &Record, troubles: &[Trouble]) {
    if format == Format::Json {
        let ours = record
            .as_ref()
            .fields()
            .map(|f| (f.tag_text().into_owned(), String::from_utf8(f.bytes().to_vec()).unwrap()));
        assert!(ours.eq(fields_of_json(bytes)), "{name}: not what stands in the JSON");
        let names = |json: &[u8], name: &str| memchr::memmem::find(json, name.as_bytes()).is_some();
        let told = |name: &str| troubles.iter().any(|t| t.detail.contains(name));
        assert_eq!(names(bytes, "\"ind3\""), told("\"ind3\""), "{name}: left out and not told");
    }
    if troubles.iter().any(|t| t.kind.severity() > Severity::Note) {
        // Not a skip: what was mended is not what was read.
        return;
    }
    let mut again = Vec::new();
    let mut back = Record::new();
    if let Err(e) = format.encode_marc(record.as_ref(), &mut again) {
        println!("{name}: {e}");
    } else {
        format.decode_marc(&again, &mut back).unwrap();
        assert_eq!(&back, record, "{name}");
    }
    again.clear();
    iso2709::write(record.as_ref(), &mut again);
    if record.is_empty() {
        // That is none in ISO 2709.
        Format::Marc21.read_marc(&again, &mut back, &mut Vec::new()).unwrap_err();
        // Not a skip: it was refused, as it had to be.
        return;
    }
    Format::Marc21.read_marc(&again, &mut back, &mut Vec::new()).unwrap();
    let parts = |r: &Record| -> Vec<_> {
        r.as_ref().fields().map(|f| (f.tag(), f.bytes().to_vec())).collect()
    };
    assert_eq!(parts(record), parts(&back), "{name}");
}

/// How many records the list of the folder (SOURCES.txt) says each file has. Its lines are a
/// repository (`## owner/name …`) or a file: kind, count, "rec", size, "B", path.
fn list(folder: &Path) -> HashMap<String, u64> {
    let Ok(text) = std::fs::read_to_string(folder.join("SOURCES.txt")) else {
        return HashMap::new();
    };
    let mut counts = HashMap::new();
    let mut repository = String::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["##", name, ..] => repository = name.replacen('/', "+", 1),
            [_, count, "rec", _, "B", path, ..] => {
                counts.insert(format!("{repository}/{path}"), count.parse().unwrap());
            }
            _ => (),
        }
    }
    counts
}

/// Why a file has other records than the list says; none where that cannot be told.
///
/// The list counts the leaders in XML (one where there are none); a record may have no leader.
fn explained(path: &Path, said: u64, found: u64) -> Option<&'static str> {
    let text = without_comments(&unpacked(path));
    let tags = |name: &str| {
        let names = text.split('<').skip(1).filter_map(|tag| tag.split([' ', '\n', '>']).next());
        names.filter(|n| n.rsplit(':').next() == Some(name)).count() as u64
    };
    (tags("leader").max(1) == said && tags("record") == found)
        .then_some("records without a leader, which the list does not count")
}

#[test]
fn every_file_is_read_to_its_end_and_every_byte_accounted_for() {
    let folder = need!(crate::programs::real_records());
    let list = list(&folder);
    let mut tallies = BTreeMap::new();
    let mut differences: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let (mut listed, mut unexplained) = (0, Vec::new());
    for path in super::files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        if ["SOURCES.txt", "STATS.json"].contains(&name.as_str()) {
            continue;
        }
        let found = read(&folder, &path, &mut tallies);
        let Some(&said) = list.get(&name) else { continue };
        listed += 1;
        if said != found {
            match explained(&path, said, found) {
                Some(why) => {
                    let entry = differences.entry(why).or_default();
                    *entry = (entry.0 + 1, entry.1 + said, entry.2 + found);
                }
                None => unexplained.push(format!("{name}: {said} in the list, {found} found")),
            }
        }
    }
    println!(
        "{:10}{:>8}{:>9}{:>8}{:>10}{:>6}{:>12}",
        "format", "files", "records", "sound", "repaired", "lost", "incomplete"
    );
    for (name, t) in &tallies {
        println!(
            "{name:10}{:>8}{:>9}{:>8}{:>10}{:>6}{:>12}",
            t.files, t.records, t.sound, t.repaired, t.lost, t.incomplete
        );
    }
    for (name, tally) in &tallies {
        for (kind, n) in &tally.kinds {
            println!("{name:10}{n:>8}  {kind}");
        }
    }
    println!("{listed} files are in the list");
    for (why, (files, said, found)) in differences {
        println!("{files} files have other counts ({said} in the list, {found} found): {why}");
    }
    assert_eq!(unexplained, Vec::<String>::new());
    assert!(tallies.values().all(|t| t.records == t.sound + t.repaired + t.lost));
}
