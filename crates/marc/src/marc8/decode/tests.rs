//! Tests of MARC-8 to UTF-8, for each character set and each fault.

use super::*;

fn read_by(rules: Decoder, bytes: &[u8]) -> (String, Vec<(usize, Fault)>) {
    let (mut out, mut faults) = (b"|".to_vec(), Vec::new());
    rules.decode(bytes, &mut out, &mut |at, fault| faults.push((at, fault)));
    (String::from_utf8(out).unwrap().split_off(1), faults)
}

fn read(bytes: &[u8]) -> (String, Vec<(usize, Fault)>) {
    read_by(Decoder::default(), bytes)
}

fn clean(bytes: &[u8]) -> String {
    let (text, faults) = read(bytes);
    assert_eq!(faults, []);
    text
}

#[test]
fn latin() {
    assert_eq!(clean(b""), "");
    assert_eq!(clean(b"plain & simple"), "plain & simple");
    assert_eq!(clean(b"\xa1\xf3dz"), "\u{141}d\u{324}z");
    assert_eq!(clean(b"\xe3\xf2a, \xe3\xe0o"), "a\u{302}\u{323}, o\u{302}\u{309}");
    assert_eq!(clean(b"\x88The \x89end\x8d\x8e\xc8"), "\u{98}The \u{9c}end\u{200d}\u{200c}€");
    assert_eq!(clean(b"\xe2 \x7f\r\n"), " \u{301}\u{7f}\r\n");
}

#[test]
fn every_set_by_its_escape_sequence() {
    assert_eq!(clean(b"\x1bga\x1bb(1)\x1bp2\x1bsx"), "α₍₁₎²x");
    assert_eq!(clean(b"\x1b(NmOSKWA\x1b(B."), "Москва.");
    assert_eq!(clean(b"\x1b(Nk\x1b)Q\xc6\xd0 \x1b)!E\xb0"), "Кі\u{463} ʻ");
    assert_eq!(clean(b"\x1b(3GdQ\x1b(4\x21\x1b(B"), "الر\u{6fd}");
    assert_eq!(clean(b"\x1b(2ylem\x1b(B"), "\u{5e9}\u{5dc}\u{5d5}\u{5dd}");
    assert_eq!(clean(b"\x1b(S\x22\x25a\x1b(B"), "α\u{301}\u{313}");
    assert_eq!(clean(b"\x1b$1\x21\x30\x21 \x69\x24\x22\x1b(Bx"), "一 あx");
    assert_eq!(clean(b"\x1b$,1\x21\x30\x21\x1b,Bx"), "一x");
    assert_eq!(clean(b"\x1b$)1\xa1\xb0\xa1x\x1b)E\xa1"), "一xŁ");
    assert_eq!(clean(b"\x1b)B\xc1\x1b-E\xa1\x1b,!E\x62\x31"), "AŁł\u{301}");
}

#[test]
fn marks_wait_through_escape_sequences() {
    assert_eq!(clean(b"\xe2\x1b(NA\x1b(B"), "а\u{301}");
    assert_eq!(clean(b"\xf0\xe2\xa1&"), "\u{141}\u{327}\u{301}&");
}

#[test]
fn delimiters_end_what_was_begun() {
    let (text, faults) = read(b"\x1b(NA\x1fb A\xe2\x1ec\x1b)N\xc1\x1d\xa1");
    assert_eq!(text, "а\x1fb A\u{301}\x1ecа\x1dŁ");
    assert_eq!(faults, [(8, Fault::LoneMark)]);
}

#[test]
fn marks_over_two_letters() {
    assert_eq!(clean(b"i\xebi\xeca, \xebt\xec\xebs\xeck"), "ii\u{361}a, t\u{361}s\u{361}k");
    assert_eq!(clean(b"\xe5\xfan\xfbg"), "n\u{304}\u{360}g");
    // Each half without the other, and halves that do not fit.
    let lone = |bytes: &[u8], text: &str, at: &[usize]| {
        let (got, faults) = read(bytes);
        let expected: Vec<_> = at.iter().map(|&at| (at, Fault::LoneHalf)).collect();
        assert_eq!((got.as_str(), faults), (text, expected));
    };
    lone(b"\xebts", "t\u{fe20}s", &[0]);
    lone(b"\xebt\xe2s", "t\u{fe20}s\u{301}", &[0]);
    lone(b"t\xecs", "ts\u{fe21}", &[1]);
    lone(b"\xebt\xfbs", "t\u{fe20}s\u{fe23}", &[2, 0]);
    lone(b"\xeb\xfat\xecs", "t\u{361}\u{fe22}s", &[1]);
    lone(b"\xebt\xebs", "t\u{fe20}s\u{fe20}", &[0, 2]);
    lone(b"\xebt\x1f\xec.", "t\u{fe20}\x1f.\u{fe21}", &[0, 3]);
    let (text, faults) = read(b"\xebt\xe2\xfa");
    assert_eq!(text, "t\u{fe20}\u{301}\u{fe22}");
    let halves = [(0, Fault::LoneHalf), (3, Fault::LoneHalf), (2, Fault::LoneMark)];
    assert_eq!(faults, halves);
}

#[test]
fn references() {
    assert_eq!(clean(b"\xe2&#x0915;a&#x0331;&#x1F600;"), "क\u{301}a\u{331}😀");
    assert_eq!(clean(b"&#xE9; &#x001F; &#233; & &#x; &"), "&#xE9; &#x001F; &#233; & &#x; &");
    // In another set the same bytes are other characters.
    assert_eq!(clean(b"\x1b(N&#x0915;\x1b(B"), "&#Ь0915;");
    let as_text = Decoder { references: false, ..Decoder::default() };
    assert_eq!(read_by(as_text, b"&#x4E00;").0, "&#x4E00;");
}

#[test]
fn what_has_no_character_is_kept_and_reported() {
    let byte = |set, byte| Fault::Byte { set, byte };
    let (text, faults) = read(b"a\xbb\xe2\x80 \xa0\xff");
    assert_eq!(text, "a&#xBB;&#x80;\u{301} &#xA0;&#xFF;");
    let ansel = [(1, 0xbb), (3, 0x80), (5, 0xa0), (6, 0xff)];
    assert_eq!(faults, ansel.map(|(at, b)| (at, byte(Set::Ansel, b))));
    let (text, faults) = read(b"\x1b(S(\x1b$1\x21\x21\x21\x1b(B(");
    assert_eq!(text, "&#x28;&#x212121;(");
    assert_eq!(faults, [(3, byte(Set::Greek, b'(')), (7, Fault::Triple(*b"!!!"))]);
    let replace = Decoder { unmapped: Unmapped::Replacement, ..Decoder::default() };
    assert_eq!(read_by(replace, b"\xbb\x1b$1!!!!!").0, "\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn eacc_cut_short() {
    for (bytes, text, at) in [
        (&b"\x1b$1\x21"[..], "&#x21;", 3),
        (b"\x1b$1\x21\x30", "&#x21;&#x30;", 3),
        (b"\x1b$1\x21\x30\x21\x30\x1b(Bx", "一&#x30;x", 6),
        (b"\x1b$1\x21\x30 \x21\x30\x21", "&#x21;&#x30; 一", 3),
        (b"\x1b$1\x21\xa1\x21\x30\x21", "&#x21;Ł一", 3),
        (b"\x1b$1\x21\x1fa", "&#x21;\x1fa", 3),
    ] {
        assert_eq!(read(bytes), (text.to_owned(), vec![(at, Fault::CutTriple)]), "{bytes:x?}");
    }
}

#[test]
fn escape_sequences_to_nowhere() {
    for bytes in [
        "\x1b", "\x1b(", "\x1b)!", "\x1b$", "\x1b$(", "\x1b(Z", "\x1b$2x", "\x1bE", "\x1b(g",
        "\x1b\x1f",
    ] {
        let (text, faults) = read(bytes.as_bytes());
        if bytes == "\x1b$2x" {
            // The final byte says which set it is.
            assert_eq!(text, "\u{5e8}");
            continue;
        }
        assert_eq!(text, bytes.replace('\x1b', "&#x1B;"));
        assert_eq!(faults, [(0, Fault::Escape)], "{bytes:?}");
    }
}

#[test]
fn composed_on_request() {
    let nfc = Decoder { nfc: true, ..Decoder::default() };
    for (bytes, text) in [
        (&b"caf\xe2e"[..], "café"),
        (b"\xe2e\xe2\xf2o&", "éọ\u{301}&"),
        (b"\x1b(N\xe6I\x1b(B-\xe8a", "й-ä"),
        (b"\x1b$1\x69\x24\x2b\x1b(B", "か"),
        (b"plain", "plain"),
        // The Greek dot is canonically the middle dot, with no letter to join.
        (b"\x1b(S;\x1b(B", "\u{b7}"),
        (b"a\x1b(S;\x1b(B", "a\u{b7}"),
    ] {
        assert_eq!(read_by(nfc, bytes).0, text);
    }
    // What was in the buffer before is not touched.
    let mut out = "e".into();
    nfc.decode(b"&#x0301;e&#x0301;", &mut out, &mut |_, _| {});
    assert_eq!(out, "e\u{301}é".as_bytes());
}

#[test]
fn strict_names_the_first_fault() {
    let mut out = b"kept".to_vec();
    let error = Decoder::default().decode_strict(b"ab\xebt\xbbs", &mut out).unwrap_err();
    assert_eq!(error.place().offset, Some(2));
    assert_eq!(out, b"kept");
    Decoder::default().decode_strict(b"\xe2e", &mut out).unwrap();
    assert_eq!(out, "kepte\u{301}".as_bytes());
}
