//! Tests of both paths of the reader against each other, of the writer against the reader, and of unusual XML.

use proptest::prelude::*;

use super::*;
use crate::{Leader, Record, Trouble, TroubleKind};

fn read_one(text: &str) -> (crate::Result<()>, Record, Vec<Trouble>) {
    let (mut record, mut troubles) = (Record::new(), Vec::new());
    let done = read(text.as_bytes(), &mut record, &mut troubles);
    (done, record, troubles)
}

/// Reads `inside` as the fields of a record with a leader.
#[track_caller]
fn fields(inside: &str) -> (Vec<(String, Vec<u8>)>, Vec<TroubleKind>) {
    let leader = "<leader>00714cam a2200205 a 4500</leader>";
    let (done, record, troubles) = read_one(&format!("<record>{leader}{inside}</record>"));
    done.unwrap();
    let fields = record.as_ref().fields();
    (
        fields.map(|f| (f.tag_text().into_owned(), f.bytes().to_vec())).collect(),
        troubles.iter().map(|t| t.kind).collect(),
    )
}

/// One field, read from `inside`.
#[track_caller]
fn field(inside: &str, tag: &str, bytes: &[u8], kinds: &[TroubleKind]) {
    let (found, troubles) = fields(inside);
    assert_eq!(found, [(tag.to_owned(), bytes.to_vec())], "{inside}");
    assert_eq!(troubles, kinds, "{inside}");
}

/// The value of a subfield of field 500, read from `text`.
#[track_caller]
fn value(text: &str, want: &str, kinds: &[TroubleKind]) {
    for code in ["code=\"a\"", "code = 'a'"] {
        let inside = format!(
            "<datafield tag=\"500\" ind1=\" \" ind2=\" \"><subfield {code}>{text}</subfield></datafield>"
        );
        field(&inside, "500", format!("  \x1fa{want}").as_bytes(), kinds);
    }
}

const LONG: &str = "a text of more than sixteen bytes";

#[test]
fn reads_every_spelling() {
    let want = "10\x1faA & B\x1fb\x1f9ü";
    for text in [
        "<datafield tag=\"245\" ind1=\"1\" ind2=\"0\"><subfield code=\"a\">A &amp; B</subfield><subfield code=\"b\"/><subfield code=\"9\">ü</subfield></datafield>",
        "\n <datafield ind1=\"1\" ind2=\"0\" tag=\"245\">\r\n\t<subfield code=\"a\">A &#38; B</subfield> <subfield code=\"b\"></subfield>\n<subfield code=\"9\">&#xfc;</subfield> </datafield> ",
        "<datafield ind2='0' tag='245' ind1='1' id='&#x31;'><!-- x --><subfield code='a'>A <![CDATA[& ]]>B</subfield><?p x?><subfield code='b' /><subfield code='9'>ü</subfield></datafield >",
        "<x:datafield tag=\"245\" ind1=\"1\" ind2=\"0\"><x:subfield code=\"a\">A &amp;<!-- & --> B</x:subfield><subfield   code=\"&#98;\"  ></subfield   ><subfield code=\"9\" xmlns=\"\">ü</subfield></x:datafield>",
    ] {
        field(text, "245", want.as_bytes(), &[]);
    }
    field("<datafield tag='5\"1' ind1='\"' ind2='0'/>", "5\"1", b"\"0", &[]);
    field("<datafield tag=\"5'1\" ind1=\"'\" ind2='0'/>", "5'1", b"'0", &[]);
    field("<controlfield tag=\"001\"> 1\n2 </controlfield>", "001", b" 1\n2 ", &[]);
    field("<controlfield  tag='FMT'>BK</controlfield>", "FMT", b"BK", &[]);
    field("<controlfield tag=\"003\"/>", "003", b"", &[]);
    field("<datafield tag=\"500\" ind1=\" \" ind2=\" \"/>", "500", b"  ", &[]);
}

#[test]
fn reads_whole_records_of_any_namespace() {
    let inside =
        "<leader>00714cam a2200205 a 4500</leader><controlfield tag=\"001\">x</controlfield>";
    let (_, plain, _) = read_one(&format!("<record>{inside}</record>"));
    for (p, attributes) in [
        ("marc:", " xmlns:marc=\"http://www.loc.gov/MARC21/slim\" type=\"Bibliographic\""),
        ("mxc:", " format='MARC21' type=\"Authority\" id=\"a>b\""),
        ("", " xmlns=\"info:lc/xmlns/marcxchange-v1\""),
    ] {
        let inside = inside.replace("</", "\x01").replace('<', &format!("\n  <{p}"));
        let inside = inside.replace('\x01', &format!("</{p}"));
        let text = format!("<{p}record{attributes}>{inside}</{p}record\n>\n<!-- end -->");
        let (done, record, troubles) = read_one(&text);
        done.unwrap();
        assert_eq!((record, troubles), (plain.clone(), vec![]), "{text}");
    }
}

#[test]
fn text_comes_out_as_it_is_or_as_xml_says() {
    use TroubleKind::*;
    value("", "", &[]);
    value("  two  ", "  two  ", &[]);
    value("a\r\nb\rc\td\ne", "a\nb\nc\td\ne", &[]);
    value("&#13;&#10;&#9;&#x80;", "\r\n\t\u{80}", &[]);
    value("&lt;&gt;&amp;&quot;&apos;", "<>&\"'", &[]);
    value("<![CDATA[]]]]><![CDATA[>&amp;\r\n<]]>", "]]>&amp;\n<", &[]);
    value(&format!("{LONG}&lt;{LONG}<!-- -->{LONG}"), &format!("{LONG}<{LONG}{LONG}"), &[]);
    // What XML does not allow.
    value("AT&T &nbsp;&lol9;", "AT&T &nbsp;&lol9;", &[Markup, Markup, Markup]);
    value("&#0;&#xD800;&#x110000;", "&#0;&#xD800;&#x110000;", &[Markup, Markup, Markup]);
    value("a < b", "a < b", &[Markup]);
    value("a\x1b&#27;", "a\x1b\x1b", &[Control, Control]);
    value("\x1f&#30;\x1d", "\u{fffd}\u{fffd}\u{fffd}", &[Replaced, Replaced, Replaced]);
    value("H<sub>2</sub>O<br/>", "H2O", &[Skipped, Skipped]);
}

#[test]
fn mends_fields_and_says_so() {
    use TroubleKind::*;
    let a = "<subfield code=\"a\">x</subfield>";
    let data = |attributes: &str| format!("<datafield {attributes}>{a}</datafield>");
    field(&data("tag=\"500\""), "500", b"  \x1fax", &[Indicator, Indicator]);
    field(&data("tag=\"500\" ind1=\"\" ind2=\"1\""), "500", b" 1\x1fax", &[Indicator]);
    field(&data("tag=\"500\" ind1=\"0\" ind2=\"00\""), "500", b"000\x1fax", &[Shape]);
    field(&data("tag=\"500\" ind1=\"0 \" ind2=\"1\""), "500", b"01\x1fax", &[Indicator]);
    field(&data("tag=\"500\" ind1=\"01\" ind2=\"2\""), "500", b"012\x1fax", &[Shape]);
    field(&data("tag=\"42\" ind1=\" \" ind2=\"1\""), "042", b" 1\x1fax", &[Tag]);
    field(&data("tag=\"x\" ind1=\" \" ind2=\"1\""), "x  ", b" 1\x1fax", &[Tag]);
    field(&data("tag=\"5000\" ind1=\" \" ind2=\"1\""), "500", b" 1\x1fax", &[Tag]);
    field(&data("tag=\"5é\" ind1=\" \" ind2=\"1\""), "5é", b" 1\x1fax", &[]);
    field(&data("tag=\"001\" ind1=\" \" ind2=\"1\""), "001", b" 1\x1fax", &[Shape]);
    field("<controlfield tag=\"245\">x</controlfield>", "245", b"x", &[Shape]);
    let sub = |sub: &str| format!("<datafield tag=\"500\" ind1=\" \" ind2=\" \">{sub}</datafield>");
    field(&sub("<subfield>x</subfield>"), "500", b"  \x1f x", &[Code]);
    field(&sub("<subfield code=\"\">x</subfield>"), "500", b"  \x1f x", &[Code]);
    field(&sub("<subfield code=\"\"/>"), "500", b"  \x1f", &[]);
    field(&sub("<subfield code=\"ab\">x</subfield>"), "500", b"  \x1fax", &[Code]);
    field(&sub("<subfield code=\" \">x</subfield>"), "500", b"  \x1f x", &[]);
    field(
        &sub(&format!("stray{a}<other><subfield/></other>")),
        "500",
        b"  \x1fax",
        &[Skipped, Skipped],
    );
    let (found, kinds) =
        fields(&format!("x<y>z</y>{}<controlfield>z</controlfield>", data("ind1=\"1\"")));
    assert_eq!(found, []);
    assert_eq!(kinds, [Skipped, Skipped, Indicator, FieldLost, FieldLost]);
}

#[test]
fn mends_leaders() {
    let leader = "00714cam a2200205 a 4500";
    for (text, want, troubles) in [
        (format!("<leader>{leader}</leader>"), leader, 0),
        (format!("<leader >\n   {leader}\n</leader>"), leader, 1),
        ("<leader>00714cam</leader>".to_owned(), "00714cam                ", 1),
        (format!("<leader>{leader}0</leader>"), leader, 1),
        ("<leader>00714cam a2200205 a 450é</leader>".to_owned(), "00714cam a2200205 a 450 ", 1),
        ("<leader/>".to_owned(), "                        ", 1),
        (String::new(), "00000nam a2200000 i 4500", 1),
        (format!("<leader>x</leader><leader>{leader}</leader>"), leader, 2),
    ] {
        let (done, record, found) = read_one(&format!("<record>{text}</record>"));
        done.unwrap();
        assert_eq!(record.leader().to_string(), want, "{text}");
        assert_eq!(found.len(), troubles, "{text}: {found:?}");
        assert!(found.iter().all(|t| t.kind == TroubleKind::Leader));
    }
}

#[test]
fn what_is_not_well_formed_is_an_error_at_its_place() {
    for (text, offset, want) in [
        ("<record><leader></record>", 16, "</record> instead of </leader>"),
        ("<record><controlfield tag=\"001\">x</datafield></record>", 33, "</datafield> instead of"),
        (
            "<record><datafield tag='1'><subfield code='a'>x</datafield>",
            47,
            "</datafield> instead of </sub",
        ),
        ("<record><datafield tag=245></datafield></record>", 23, "tag has no value in quotes"),
        ("<record><datafield tag='1' tag='2'/></record>", 32, "duplicate attribute tag"),
        ("<record><datafield tag='1<'/></record>", 24, "does not end"),
        ("<record><controlfield tag='1'=/></record>", 29, "malformed"),
        ("<record><!-- x --</record>", 8, "<!-- is never closed"),
        ("<record><![CDATA[ </record>", 8, "<![CDATA[ is never closed"),
        ("<record><x><y></x></record>", 18, "</record> instead of </x>"),
        ("<record></leader>", 8, "</leader> instead of </record>"),
        ("<record></record><record/>", 17, "unexpected content after the record"),
        ("<record>", 8, "no end"),
        ("<record><leader>", 16, "no end"),
        ("<record", 7, "an incomplete tag"),
    ] {
        let error = read_one(text).0.unwrap_err();
        assert_eq!(error.place().offset, Some(offset), "{text}: {error}");
        assert!(error.to_string().contains(want), "{text}: {error}");
    }
}

#[test]
fn a_document_with_one_record_is_a_record() {
    let one = "<record><leader>00714cam a2200205 a 4500</leader><controlfield tag=\"001\">&x;</controlfield></record>";
    let (_, alone, _) = read_one(one);
    let head = "\u{feff}<?xml version=\"1.0\"?>\n<collection>\n";
    let (done, record, troubles) = read_one(&format!("{head}{one}\n</collection>\n"));
    done.unwrap();
    assert_eq!(record, alone);
    assert_eq!(troubles[0].offset as usize, head.len() + one.find('&').unwrap());
    let two = format!("{head}{one}{one}</collection>");
    let error = read_one(&two).0.unwrap_err();
    assert_eq!(error.place().offset, Some((head.len() + one.len()) as u64));
    let bad = format!("{head}{}</collection>", one.replace("</controlfield>", ""));
    let error = read_one(&bad).0.unwrap_err();
    assert_eq!(error.place().offset, bad.find("</record>").map(|n| n as u64));
    for none in ["", "x", "<collection/>", "<html></html>", "&"] {
        let error = read_one(none).0.unwrap_err();
        assert!(error.to_string().contains("no <record> element"), "{error}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_kept_and_placed() {
    let text = b"<record><leader>00714cam a2200205 a 4500</leader><controlfield tag=\"001\">a</controlfield><controlfield tag=\"002\">\xe9</controlfield></record>";
    let (mut record, mut troubles) = (Record::new(), Vec::new());
    read(text, &mut record, &mut troubles).unwrap();
    assert_eq!(record.as_ref().field(*b"002").unwrap().bytes(), b"\xe9");
    assert!(!record.as_ref().is_utf8());
    assert_eq!(troubles.len(), 1);
    let at = memchr::memchr(0xe9, text).unwrap() as u64;
    assert_eq!((troubles[0].kind, troubles[0].offset), (TroubleKind::BadText, at));
    assert!(troubles[0].detail.contains("field 002"), "{}", troubles[0]);
}

#[test]
fn a_bomb_does_not_go_off() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>\
                <record><leader>00714cam a2200205 a 4500</leader><controlfield tag=\"001\">&b;</controlfield></record>";
    let crate::Frame::Record(range) = Framer::new().next(bomb.as_bytes(), true) else { panic!() };
    let (done, record, troubles) = read_one(&bomb[range]);
    done.unwrap();
    assert_eq!(record.as_ref().field(*b"001").unwrap().bytes(), b"&b;");
    assert_eq!(troubles[0].kind, TroubleKind::Markup);
}

#[test]
fn many_faults_are_counted_not_listed() {
    let text =
        format!("<record><controlfield tag=\"001\">{}</controlfield></record>", "&".repeat(10_000));
    let (done, record, troubles) = read_one(&text);
    done.unwrap();
    assert_eq!(record.as_ref().field(*b"001").unwrap().bytes().len(), 10_000);
    assert_eq!(troubles.len(), 101);
    assert!(troubles[100].detail.contains("9901 more"), "{}", troubles[100]);
}

#[test]
fn what_xml_cannot_hold_is_refused_or_replaced() {
    for (tag, bytes, refused) in [
        (*b"001", &b"\x1b"[..], "field 001: control character 0x1B"),
        (*b"245", b"10\x1fa\x00", "field 245: control character 0x00"),
        (*b"245", b"1\x01\x1fa", "field 245: control character 0x01"),
        (*b"245", b"10\x1fa\xe9", "field 245: byte 0xE9"),
        (*b"245", "10\x1fa\u{ffff}x".as_bytes(), "field 245: a noncharacter"),
        (*b"245", b"1\x1fa", "field 245: not two indicators"),
        (*b"24\x07", b"10\x1fa", "control character 0x07"),
    ] {
        let mut record = Record::new();
        record.push_plain(*b"000", b"before").unwrap();
        record.push_bytes(tag, bytes).unwrap();
        let mut out = b"kept".to_vec();
        let error = write(record.as_ref(), &mut out).unwrap_err();
        assert!(error.to_string().contains(refused), "{error}");
        assert_eq!(out, b"kept");
        let mut troubles = Vec::new();
        write_tolerant(record.as_ref(), &mut out, &mut troubles);
        assert_eq!(troubles.len(), 1);
        let text = std::str::from_utf8(&out[4..]).unwrap();
        let (done, back, _) = read_one(text);
        done.unwrap();
        assert_eq!(back.len(), 2, "{text}");
    }
}

/// What a field can be that XML can say: tags, heads, codes, text, in UTF-8.
fn any_field() -> impl Strategy<Value = ([u8; 3], Vec<u8>)> {
    let tag = prop_oneof![
        "[0-9]{3}".prop_map(|t| t),
        "00[0-9A-Z]".prop_map(|t| t),
        "[A-Za-z0-9]{3}".prop_map(|t| t),
        "[ -~\\t\\r\\n]{3}".prop_map(|t| t),
    ];
    let text = "[ -~\\t\\r\\n\u{80}-\u{2fff}\u{1f600}-\u{1f650}&<>\"']{0,40}";
    let code = prop_oneof![8 => "[a-z0-9]", 1 => "[ -~]", 1 => "\\PC"];
    let head = prop_oneof![8 => "[0-9 ]{2}", 1 => "[ -~]{2,6}", 1 => "[\u{80}-\u{2ff}]{2}"];
    let subfields = prop::collection::vec(
        prop_oneof![20 => (code, text).prop_map(|(c, t)| format!("\x1f{c}{t}")), 1 => Just("\x1f".to_owned())],
        0..5,
    );
    let data = (head, subfields).prop_map(|(head, subfields)| head + &subfields.concat());
    let bytes = prop_oneof![data, text.prop_map(|t| t)];
    (tag, bytes).prop_map(|(t, b)| (t.as_bytes().try_into().unwrap(), b.into_bytes()))
}

fn any_record() -> impl Strategy<Value = Record> {
    ("[ -~\\t\\r\\n]{24}", prop::collection::vec(any_field(), 0..8)).prop_map(|(leader, fields)| {
        let mut record = Record::new();
        record.set_leader(Leader(leader.as_bytes().try_into().unwrap()));
        for (tag, bytes) in fields {
            record.push_bytes(tag, &bytes).unwrap();
        }
        record
    })
}

/// The same document, spelled so that the fast path takes none of it.
fn respelled(text: &str) -> String {
    text.replace("<datafield ", "<datafield\n ")
        .replace("<controlfield ", "<controlfield  ")
        .replace("<subfield ", "<subfield\t\n")
        .replace("</", "<!-- - -->\x01")
        .replace('\x01', "</")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_record_comes_back(record in any_record()) {
        let mut out = Vec::new();
        write(record.as_ref(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (done, back, _) = read_one(&text);
        done.unwrap();
        prop_assert_eq!(&back, &record, "{}", text);
        prop_assert_eq!(back.as_ref().marks, record.as_ref().marks);
        let (done, back, _) = read_one(&respelled(&text));
        done.unwrap();
        prop_assert_eq!(&back, &record, "{}", text);
        prop_assert_eq!(back.as_ref().marks, record.as_ref().marks);
        let mut again = Vec::new();
        write(back.as_ref(), &mut again).unwrap();
        prop_assert_eq!(String::from_utf8(again).unwrap(), text);
    }

    #[test]
    fn cut_or_changed_anywhere_nothing_breaks(
        record in any_record(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        block in 1..200usize,
    ) {
        let mut text = PROLOGUE.as_bytes().to_vec();
        write(record.as_ref(), &mut text).unwrap();
        text.extend_from_slice(EPILOGUE.as_bytes());
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let (mut back, mut troubles) = (Record::new(), Vec::new());
        for end in 0..=text.len() {
            if read(&text[..end], &mut back, &mut troubles).is_ok() {
                sound(&back);
            }
        }
        // As a stream, in blocks.
        let (mut framer, mut pos, mut end) = (Framer::new(), 0, 0);
        loop {
            match framer.next(&text[pos..end], end == text.len()) {
                crate::Frame::Record(r) => {
                    let _ = read(&text[pos + r.start..pos + r.end], &mut back, &mut troubles);
                    sound(&back);
                    pos += r.end;
                }
                crate::Frame::Bad(r, _) => pos += r.end,
                crate::Frame::More(skip) => {
                    prop_assert!(end < text.len());
                    pos += skip;
                    end = (end + block).min(text.len());
                }
                crate::Frame::End => break,
            }
        }
    }

    #[test]
    fn any_field_is_written_tolerantly(tag: [u8; 3], bytes: Vec<u8>, leader: [u8; 24]) {
        let mut record = Record::new();
        record.set_leader(Leader(leader));
        if record.push_bytes(tag, &bytes).is_ok() {
            let (mut out, mut troubles) = (Vec::new(), Vec::new());
            write_tolerant(record.as_ref(), &mut out, &mut troubles);
            let (done, back, _) = read_one(std::str::from_utf8(&out).unwrap());
            done.unwrap();
            prop_assert_eq!(back.len(), 1);
            if troubles.is_empty() {
                prop_assert_eq!(back, record);
            }
        }
    }
}

/// A record whose spans and marks are what its bytes say.
fn sound(record: &Record) {
    let mut copy = Record::new();
    copy.set_leader(record.leader());
    for field in record.as_ref().fields() {
        copy.push_bytes(field.tag(), field.bytes()).unwrap();
    }
    assert_eq!(&copy, record);
    assert_eq!(copy.as_ref().marks, record.as_ref().marks);
    assert_eq!(copy.as_ref().is_utf8(), record.as_ref().is_utf8());
}
