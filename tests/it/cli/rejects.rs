//! Bad records: rejected and kept apart, repaired, or forced through.

use super::{CATALOGUE, Desk, records};

/// Records whose second is damaged so that it can be repaired, whose third cannot be read, whose
/// fourth is not what its leader says it is.
fn mixed() -> (Vec<u8>, Vec<Vec<u8>>) {
    let all = records(&CATALOGUE);
    let titled: Vec<&[u8]> =
        all.iter().copied().filter(|r| r.windows(4).any(|w| w == b"\x1e10\x1f")).collect();
    let mut bad: Vec<Vec<u8>> = titled[..4].iter().map(|r| r.to_vec()).collect();
    // Its length is said to be less.
    bad[1][..5].copy_from_slice(b"00100");
    bad[2] = b"no record at all\x1d".to_vec();
    // Bytes that are no UTF-8, in a record that says it is; MARC-8 has nothing there either.
    let at = bad[3].windows(2).position(|w| w == b"\x1fa").unwrap() + 2;
    bad[3][at..at + 2].copy_from_slice(b"\xff\xfe");
    bad[3][9] = b'a';
    (bad.concat(), bad)
}

#[test]
fn rejects_are_kept_as_they_stood_with_their_reasons() {
    let desk = Desk::new();
    let (bytes, bad) = mixed();
    desk.write("a.mrc", &bytes);
    for care in ["", "--strict", "--tolerant"] {
        let ran = desk.run(&format!("copy a.mrc b.json --rejects r.mrc {care}"));
        assert_eq!(ran.status, Some(1), "{}", ran.err);
        let (rejects, reasons) = (desk.read("r.mrc"), desk.read("r.mrc.reasons"));
        let reasons = String::from_utf8(reasons).unwrap();
        let rejected = reasons.lines().count();
        let written = desk.read("b.json").split_inclusive(|b| *b == b'\n').count();
        assert_eq!(rejected + written, 4, "{care}: {}", ran.err);
        // Each reason has the place of its record, and the records are there in order.
        let mut rest = &rejects[..];
        for line in reasons.lines() {
            let (place, reason) = line.split_once(": ").expect(line);
            let numbers: Vec<usize> =
                place.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
            let [record, byte] = numbers[..] else { panic!("{line}") };
            let wanted = &bad[record - 1][..];
            assert_eq!(byte, bad[..record - 1].iter().map(Vec::len).sum::<usize>(), "{line}");
            assert!(rest.starts_with(wanted), "{care}: {line}");
            rest = &rest[wanted.len()..];
            assert!(!reason.is_empty() && ran.err.contains(reason), "{line}");
        }
        assert_eq!(rest, b"");
        assert_eq!(rejected, if care == "--strict" { 3 } else { 1 }, "{reasons}");
    }
}

#[test]
fn rejects_of_lines_are_lines() {
    let desk = Desk::new();
    desk.write("a.json", "{\"a\":1}\n{\"a\":\n[\n{\"a\":2}");
    let ran = desk.run("copy a.json b.msgpack --rejects r.json");
    assert_eq!(ran.status, Some(1));
    assert_eq!(desk.read("r.json"), b"{\"a\":\n[\n");
    assert_eq!(desk.run("copy b.msgpack - --to json -q").text(), "{\"a\":1}\n{\"a\":2}\n");
    // None at all: the files are there, and empty.
    desk.run("copy b.msgpack c.json --rejects none").well();
    assert_eq!((desk.read("none").len(), desk.read("none.reasons").len()), (0, 0));
}

/// A record in UTF-8 with this title.
fn titled(title: &[u8]) -> Vec<u8> {
    let mut record = steelyard::marc::Record::new();
    record.set_leader(steelyard::marc::Leader::NEW.with_utf8(true));
    record.push_plain(*b"001", b"1").unwrap();
    record.push_data(*b"245", *b"10", &[(b'a', title)]).unwrap();
    let mut bytes = Vec::new();
    steelyard::marc::iso2709::write(record.as_ref(), &mut bytes);
    bytes
}

#[test]
fn tolerant_keeps_what_the_target_cannot_hold() {
    let desk = Desk::new();
    // A control character, which XML has not; and text that is no UTF-8, in a field that MARC-8
    // could not make sense of either.
    let bytes = titled(b"bell \x07 rings");
    desk.write("a.mrc", &bytes);
    let careful = desk.run("copy a.mrc b.xml --rejects r.mrc");
    assert_eq!(careful.status, Some(1));
    assert_eq!(desk.read("r.mrc"), bytes);
    assert!(careful.err.contains("0 written, 1 rejected"), "{}", careful.err);
    let tolerant = desk.run("copy a.mrc b.xml --tolerant");
    assert_eq!(tolerant.status, Some(1));
    assert!(tolerant.err.contains("1 written, 1 with errors"), "{}", tolerant.err);
    let xml = String::from_utf8(desk.read("b.xml")).unwrap();
    assert!(xml.contains("bell \u{fffd} rings"), "{xml}");
}

/// A wrong byte stays in MARC 21, and is replaced in formats that are text: neither is called a repair.
#[test]
fn what_is_kept_or_replaced_is_not_called_repaired() {
    let desk = Desk::new();
    let bytes = titled(b"Dvo\xc5\x99\xc3\xa1k \xc3( here");
    desk.write("a.mrc", &bytes);
    let checked = desk.run("check a.mrc");
    let counts = "1 record in marc21: 0 valid, 0 repaired, 1 with errors, 0 damaged";
    assert!(checked.text().contains(counts), "{}", checked.text());
    assert!(!checked.text().contains("replaced"), "{}", checked.text());
    for (target, kept, replaced) in [("b.mrc", true, false), ("b.json", false, true)] {
        let copied = desk.run(&format!("copy a.mrc {target}"));
        assert_eq!(copied.status, Some(1), "{target}: {}", copied.err);
        assert!(copied.err.contains("1 written, 1 with errors"), "{target}: {}", copied.err);
        let says = copied.err.contains("replaced: 245: 0xc3, by U+FFFD");
        assert_eq!(says, replaced, "{target}: {}", copied.err);
        assert_eq!(desk.read(target) == bytes, kept, "{target}");
    }
    assert!(String::from_utf8(desk.read("b.json")).unwrap().contains("k \u{fffd}( here"));
    let strict = desk.run("copy a.mrc c.mrc --strict");
    assert!(strict.err.contains("0 written, 1 rejected"), "{}", strict.err);
    // A character that MARC-8 does not have is written by a reference, which is read back.
    let bytes = titled("smile 😀".as_bytes());
    desk.write("a.mrc", &bytes);
    let copied = desk.run("copy a.mrc m.mrc --encoding marc8");
    assert!(copied.err.contains("reference: 245: MARC-8 has no '😀'"), "{}", copied.err);
    assert!(copied.err.contains("1 written, 1 repaired"), "{}", copied.err);
    desk.run("copy m.mrc b.mrc --encoding utf8").well();
    assert_eq!(desk.read("b.mrc"), bytes);
}

/// What is written beside the target takes the place of nothing else that is named.
#[test]
fn rejects_and_results_overwrite_neither_source_nor_target_nor_store() {
    let desk = Desk::new();
    let lines = "{\"a\":1}\n{\"a\":\n";
    desk.write("a.json", lines);
    desk.write("good.json", "{\"_key\":\"k\",\"a\":1}\n");
    assert_eq!(desk.run("copy good.json sqlite:live.db").status, Some(0));
    std::os::unix::fs::symlink("a.json", desk.path().join("soft")).unwrap();
    desk.write("b.reasons", lines);
    for line in [
        "copy a.json o.json --rejects a.json",
        "copy a.json o.json --rejects ./a.json",
        "copy a.json o.json --rejects soft",
        "copy a.json o.json --rejects o.json",
        "copy a.json o.json --rejects ./o.json",
        "copy a.json sqlite:live.db --rejects live.db",
        "copy sqlite:live.db o.json --rejects live.db",
        "copy a.json o.reasons --to json --rejects o",
        "copy b.reasons o.json --from json --rejects b",
        // A target that is the source, by whatever name.
        "copy a.json a.json",
        "copy a.json ./soft --where a=1",
        "copy soft a.json --fields a",
        "bench formats a.json --out a.json --budget 1 --rounds 1",
        "bench keep --records a.json --out a.json --on memory --budget 1 --rounds 1",
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.status, Some(2), "{line}: {}", ran.err);
        assert!(ran.err.contains("are the same file"), "{line}: {}", ran.err);
        assert_eq!(desk.read("a.json"), lines.as_bytes(), "{line}");
        assert_eq!(desk.read("b.reasons"), lines.as_bytes(), "{line}");
        assert!(!desk.path().join("o.json").exists(), "{line}");
    }
    assert_eq!(desk.run("each sqlite:live.db").text(), "{\"_key\":\"k\",\"a\":1}\n");
    // /dev/null may be several things.
    assert_eq!(desk.run("copy a.json /dev/null --to json --rejects /dev/null").status, Some(1));
}

#[test]
fn a_link_at_the_name_of_the_reasons_is_not_followed() {
    let desk = Desk::new();
    desk.write("a.json", "{\"a\":\n{\"a\":1}\n");
    desk.write("victim", "mine");
    std::os::unix::fs::symlink("victim", desk.path().join("r.reasons")).unwrap();
    assert_eq!(desk.run("copy a.json o.json --rejects r").status, Some(1));
    assert_eq!(desk.read("victim"), b"mine");
    assert!(!desk.read("r.reasons").is_empty());
}
