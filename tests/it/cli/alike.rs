//! `check`, `copy` and `show` read alike: the same records, the same troubles, the same places.

use std::{collections::BTreeSet, path::Path};

use proptest::{prelude::*, sample::Index};
use serde_json::Value as Json;
use steelyard::{
    Result,
    copy::{self, Counts, Follower, Options, Reject, Source, Target},
    file::{Frames, Reading, Sink, Writing},
    format::{Coder, Format, Takes, Wrapped, framing::Glue},
    marc::{Record, Severity, Trouble, TroubleKind, iso2709},
    record::{Document, Value, dataset::catalogue::Catalogue},
};

use super::Desk;
use crate::programs::need;

/// Number of the record, kind, offset, facts.
type Told = (u64, String, u64, String);

/// What a reader said of a file.
#[derive(Debug, PartialEq)]
struct Said {
    read: u64,
    repaired: u64,
    faulty: u64,
    rejected: u64,
    troubles: Vec<Told>,
}

/// What `check` says, notes left out.
fn check(desk: &Desk, file: &str, from: &str) -> Said {
    let mut args = vec!["check", "--json", file];
    if !from.is_empty() {
        args.extend(["--from", from]);
    }
    let done = super::ran(desk.command(args).output().unwrap());
    assert!(done.status < Some(2), "{file}: {}", done.err);
    let mut lines: Vec<Json> =
        done.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    let number = |json: &Json, name: &str| json[name].as_u64().unwrap();
    let text = |json: &Json, name: &str| json[name].as_str().unwrap().to_owned();
    let troubles = lines.iter().map(|line| {
        let place = (number(line, "record"), number(line, "offset"));
        (place.0, text(line, "kind"), place.1, text(line, "detail"))
    });
    let [read, sound, repaired, faulty, rejected] =
        ["records", "sound", "repaired", "faulty", "rejected"].map(|name| number(&summary, name));
    assert_eq!(read, sound + repaired + faulty + rejected, "{summary}");
    let troubles: Vec<_> = troubles.collect();
    assert_eq!(done.status == Some(1), !troubles.is_empty(), "{file}: {summary}");
    Said { read, repaired, faulty, rejected, troubles }
}

/// Hears what `copy` says.
#[derive(Default)]
struct Ear {
    troubles: Vec<Trouble>,
    rejects: Vec<u64>,
}

impl Follower for Ear {
    fn counts(&mut self, _: &Counts) {}
    fn trouble(&mut self, trouble: &Trouble) {
        if trouble.kind.severity() > Severity::Note {
            self.troubles.push(trouble.clone());
        }
    }
    fn reject(&mut self, reject: &Reject) -> Result<()> {
        self.rejects.push(reject.record);
        Ok(())
    }
}

/// Copies a file, and gives what `copy` says and which records it rejected.
fn copy(from: &Path, format: Option<Wrapped>, to: &Path, to_format: Format) -> (Said, Vec<u64>) {
    let reading = Reading { format, ..Reading::default() };
    let frames = Frames::open(from.to_str().unwrap(), &reading).unwrap();
    let writing = Writing { format: Some(to_format.into()), ..Writing::default() };
    let sink = Sink::create(to.to_str().unwrap(), &writing).unwrap();
    let options = Options::new(frames.format().clone(), Wrapped::from(to_format));
    let mut ear = Ear::default();
    let source = Source::File(Box::new(frames));
    let copied = copy::copy(source, Target::File(Box::new(sink)), &options, &mut ear).unwrap();
    let counts = copied.counts;
    assert_eq!(counts.rejected as usize, ear.rejects.len());
    let told = |t: Trouble| (t.record, t.kind.name().to_owned(), t.offset, t.detail);
    // What the target cannot say is nothing about the file.
    let written = |t: &Trouble| t.kind == TroubleKind::TooLong;
    let (long, troubles): (Vec<_>, Vec<_>) = ear.troubles.into_iter().partition(written);
    let said = Said {
        read: counts.read,
        repaired: counts.repaired,
        faulty: counts.faulty - long.len() as u64,
        rejected: counts.rejected,
        troubles: troubles.into_iter().map(told).collect(),
    };
    (said, ear.rejects)
}

/// Sees that check and copy say the same of a file, and that of the copy check finds only what copy
/// said that it keeps.
fn alike(desk: &Desk, file: &str, format: Option<Format>, to: Format) -> Said {
    let from = format.map_or("", |format| format.name());
    let checked = check(desk, file, from);
    let out = desk.path().join("out");
    let _ = std::fs::remove_file(&out);
    let (copied, rejects) = copy(&desk.path().join(file), format.map(Wrapped::from), &out, to);
    assert_eq!(checked, copied, "{file}");
    if copied.read == copied.rejected && copied.read > 0 {
        assert!(!out.exists(), "{file}: nothing was written, and a file is there");
        return checked;
    }
    let again = check(desk, "out", to.name());
    assert_eq!(again.read, copied.read - copied.rejected, "{file}");
    assert_eq!(again.rejected, 0, "{file}: {:?}", again.troubles);
    // The copy's numbers, as those of the file.
    let written: Vec<u64> = (1..=copied.read).filter(|n| !rejects.contains(n)).collect();
    let stay: BTreeSet<&str> =
        TroubleKind::ALL.iter().filter(|kind| kind.stays()).map(|kind| kind.name()).collect();
    for (record, kind, ..) in &again.troubles {
        let number = written[*record as usize - 1];
        assert!(stay.contains(&kind[..]), "{file}: {kind} was not mended: {:?}", again.troubles);
        let said = copied.troubles.iter().any(|t| (t.0, &t.1) == (number, kind));
        assert!(said, "{file}: record {number}: {kind} is new: {:?}", copied.troubles);
    }
    // What is called repaired is right in the copy.
    let faulty: BTreeSet<u64> = again.troubles.iter().map(|t| t.0).collect();
    assert!(faulty.len() as u64 <= checked.faulty, "{file}: {:?}", again.troubles);
    assert_eq!(again.repaired, 0, "{file}: {:?}", again.troubles);
    checked
}

/// Records in MARC-8, some with bytes that it has no characters for.
fn marc8() -> Vec<u8> {
    let mut file = Vec::new();
    for n in 0..5 {
        let mut record = Record::new();
        record.set_leader(record.leader().with_utf8(false));
        record.push_plain(*b"001", n.to_string().as_bytes()).unwrap();
        let text: &[u8] =
            [&b"Dvo\xe9r\xe2ak"[..], b"\xff\xfe", b"\x1b$1!0", b"x\x1b(Q", b"\xbf"][n];
        record.push_data(*b"245", *b"10", &[(b'a', text), (b'b', b"\x8cplain")]).unwrap();
        iso2709::write(record.as_ref(), &mut file);
    }
    file
}

/// A file of some records of a catalogue in this format.
fn catalogue(format: Format) -> Vec<u8> {
    let wrapped = Wrapped::from(format);
    let (mut coder, mut glue) = (Coder::new(wrapped.clone()).unwrap(), Glue::new(&wrapped));
    let mut file = Vec::new();
    for n in 0..6 {
        let record = Catalogue::new(23).record(n);
        glue.put(&mut file, |out| coder.encode_marc(record.as_ref(), out)).unwrap();
    }
    glue.finish(&mut file);
    file
}

fn change() -> impl Strategy<Value = (Index, u8)> {
    let byte = prop_oneof![any::<u8>(), 0x1du8..0x20, b'0'..=b'9', Just(b'<'), Just(b'\n')];
    (any::<Index>(), byte)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Bytes changed, taken out, put in, in files of MARC records.
    #[test]
    fn check_and_copy_say_the_same_of_harmed_files(
        which in 0usize..5,
        changes in prop::collection::vec(change(), 0..6),
        insert in prop::collection::vec((any::<Index>(), prop::collection::vec(any::<u8>(), 1..40)), 0..3),
        cut in prop::option::weighted(0.3, any::<Index>()),
    ) {
        let utf8_marked = || -> Vec<u8> {
            let mut file = marc8();
            file[9] = b'a';
            file
        };
        let (format, mut file) = match which {
            0 => (Format::Marc21, catalogue(Format::Marc21)),
            1 => (Format::Marc21, marc8()),
            2 => (Format::Marc21, utf8_marked()),
            3 => (Format::Marcxml, catalogue(Format::Marcxml)),
            _ => (Format::Line, catalogue(Format::Line)),
        };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        for (at, bytes) in insert {
            let at = at.index(file.len());
            file.splice(at..at, bytes);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()) + 1);
        }
        // What looks packed is another matter.
        prop_assume!(!file.starts_with(b"\x1f\x8b") && !file.starts_with(b"\x28\xb5"));
        let desk = Desk::new();
        desk.write("in", file);
        alike(&desk, "in", Some(format), Format::Marc21);
    }

    /// Records of JSON and the like, of which some are none.
    #[test]
    fn check_and_copy_say_the_same_of_harmed_values(
        lines in prop::collection::vec(prop::sample::select(vec![
            "{\"a\": 1}", "{\"a\": \"x", "{\"a\" 1}", "7", "[1, 2]", "{\"fields\": []}", "}", "nonsense",
            "{\"leader\": \"x\", \"a\": [{\"b\": null}]}",
        ]), 1..8),
    ) {
        let desk = Desk::new();
        desk.write("in", lines.join("\n"));
        alike(&desk, "in", Some(Format::Json), Format::Json);
    }
}

#[test]
fn marc8_is_decoded_to_see_what_is_wrong_with_it() {
    let desk = Desk::new();
    desk.write("in", marc8());
    let said = alike(&desk, "in", Some(Format::Marc21), Format::Marc21);
    let of: Vec<u64> = said.troubles.iter().map(|t| t.0).collect();
    assert!((1..=5).all(|n| of.contains(&n)), "{:?}", said.troubles);
    assert!(said.troubles.iter().all(|t| t.1 == "bad-encoding"), "{:?}", said.troubles);
    assert_eq!((said.repaired, said.faulty), (0, 5));
    // In UTF-8 nothing of it is left.
    desk.run("copy in out.mrc --from marc21 --encoding utf8 -q");
    assert_eq!(check(&desk, "out.mrc", "").troubles, []);
}

#[test]
fn check_and_copy_say_the_same_of_sound_files_of_every_format() {
    let desk = Desk::new();
    for &format in Format::ALL.iter().filter(|f| f.info().takes != Takes::Rows) {
        desk.write("in", catalogue(format));
        let said = alike(&desk, "in", Some(format), Format::Marc21);
        assert_eq!(
            said,
            Said { read: 6, repaired: 0, faulty: 0, rejected: 0, troubles: Vec::new() }
        );
    }
}

#[test]
fn check_and_copy_say_the_same_of_real_files() {
    let folder = need!(crate::programs::real_records());
    let desk = Desk::new();
    let (mut files, mut unlike) = (0, Vec::new());
    for path in crate::real::files(&folder) {
        let name = path.to_str().unwrap();
        if name.ends_with("SOURCES.txt") || name.ends_with("STATS.json") {
            continue;
        }
        let done = std::panic::catch_unwind(|| alike(&desk, name, None, Format::Marc21));
        files += 1;
        if done.is_err() {
            unlike.push(name.to_owned());
        }
    }
    assert!(files > 100, "{files}");
    assert_eq!(unlike, Vec::<String>::new());
}

#[test]
fn show_shows_every_format() {
    let desk = Desk::new();
    let people: Vec<Document> = (0..3)
        .map(|n| {
            let mut person = Document::new();
            person.push("name", format!("Bo {n}"));
            person.push("age", 40 + n);
            person
        })
        .collect();
    for &format in Format::ALL {
        let info = format.info();
        let name = info.name;
        if info.takes != Takes::Marc {
            let wrapped = Wrapped::from(format);
            let (mut glue, mut file) = (Glue::new(&wrapped), Vec::new());
            for person in &people {
                glue.put(&mut file, |out| format.encode(person, out)).unwrap();
            }
            glue.finish(&mut file);
            desk.write("people", file);
            let shown = desk.run(&format!("show people --from {name}")).well();
            assert!(shown.text().starts_with("record 1, byte "), "{name}: {}", shown.text());
            for n in 0..3 {
                let text = format!("\"name\": \"Bo {n}\"");
                assert!(shown.text().contains(&text), "{name}: {}", shown.text());
                let one = desk.run(&format!("show people {} --from {name}", n + 1)).well();
                assert!(one.text().contains(&text), "{name}: {}", one.text());
                assert_eq!(one.text().matches("record ").count(), 1, "{name}");
            }
        }
        if info.takes != Takes::Rows {
            desk.write("catalogue", catalogue(format));
            let shown = desk.run(&format!("show catalogue 2- --from {name}")).well();
            assert_eq!(shown.text().matches("\nLDR    ").count(), 5, "{name}: {}", shown.text());
            assert!(shown.text().starts_with("record 2, byte "), "{name}");
            assert!(shown.text().contains("\n245 "), "{name}");
        }
    }
}

#[test]
fn show_shows_plain_json_in_every_layout_and_stores() {
    let desk = Desk::new();
    desk.write("lines.json", "{\"name\": \"Bo\"}\n7\n[1, \"a\\u009bb\"]\n{\"fields\": \"none\"}\n");
    let shown = desk.run("show lines.json").well();
    for text in ["{\n  \"name\": \"Bo\"\n}", "\n7\n", "a\\u009bb", "\"fields\": \"none\""] {
        assert!(shown.text().contains(text), "{text}: {}", shown.text());
    }
    desk.write("array.json", "[{\"name\": \"Bo\"},\n {\"name\": \"Ann\"}]");
    assert!(desk.run("show array.json 2").well().text().contains("\"Ann\""));
    desk.write("bad.json", "{\"name\": \"Bo\"}\n{\"name\": }\n");
    let shown = desk.run("show bad.json");
    assert_eq!(shown.status, Some(1));
    assert!(shown.text().contains("! byte 24: syntax: "), "{}", shown.text());
    // A store's records, with their keys; MARC records as such.
    desk.run("copy array.json sqlite:people.db --key name").well();
    let shown = desk.run("show sqlite:people.db 2-").well();
    assert!(shown.text().starts_with("record 2, key "), "{}", shown.text());
    assert!(shown.text().contains("\"Bo\""), "{}", shown.text());
    desk.write("a.mrc", catalogue(Format::Marc21));
    desk.run("copy a.mrc sqlite:catalogue.db").well();
    let shown = desk.run("show sqlite:catalogue.db").well();
    assert_eq!(shown.text().matches("\nLDR    ").count(), 6, "{}", shown.text());
}

#[test]
fn a_record_without_fields_is_rejected_whatever_its_format() {
    let desk = Desk::new();
    let value: Value =
        serde_json::from_str("{\"leader\": \"00026nam a2200025 i 4500\", \"fields\": []}").unwrap();
    for format in [Format::Json, Format::Msgpack, Format::Marcxml, Format::Line, Format::Marc21] {
        let (wrapped, mut file) = (Wrapped::from(format), Vec::new());
        let mut glue = Glue::new(&wrapped);
        let shell = |out: &mut Vec<u8>| match format {
            Format::Marcxml => {
                out.extend(b"<record><leader>00026nam a2200025 i 4500</leader></record>");
                Ok(())
            }
            Format::Line => {
                out.extend(b"=LDR  00026nam a2200025 i 4500\n");
                Ok(())
            }
            Format::Marc21 => {
                out.extend(b"00026nam a2200025 i 4500\x1e\x1d");
                Ok(())
            }
            _ => format.encode(&value, out),
        };
        glue.put(&mut file, shell).unwrap();
        glue.finish(&mut file);
        desk.write("in", file);
        let said = alike(&desk, "in", Some(format), Format::Marc21);
        assert_eq!((said.read, said.rejected), (1, 1), "{}", format.name());
        assert!(said.troubles.iter().any(|t| t.1 == "no-fields"), "{:?}", said.troubles);
    }
}
