//! Tests of UTF-8 to MARC-8, for each character set, and of what cannot be written.

use super::*;

fn write_by(rules: Encoder, text: &str) -> (Vec<u8>, Vec<(usize, char)>) {
    let (mut out, mut missing) = (b"|".to_vec(), Vec::new());
    rules.encode(text, &mut out, &mut |at, char| missing.push((at, char)));
    (out.split_off(1), missing)
}

fn write(text: &str) -> (Vec<u8>, Vec<(usize, char)>) {
    write_by(Encoder::default(), text)
}

#[track_caller]
fn clean(text: &str, bytes: &[u8]) {
    let (got, missing) = write(text);
    assert_eq!(got, bytes, "{}", got.escape_ascii());
    assert_eq!(missing, []);
}

#[test]
fn latin_in_any_form() {
    clean("", b"");
    clean("plain & simple\n", b"plain & simple\n");
    clean("é e\u{301} Łódź", b"\xe2e \xe2e \xa1\xe2od\xe2z");
    clean("ớ o\u{31b}\u{301} ự", b"\xe2\xbc \xe2\xbc \xf2\xbd");
    clean("ậ ế ȩ̄́", b"\xe3\xf2a \xe3\xe2e \xe5\xe2\xf0e");
    clean("\u{98}The \u{9c}\u{200d}€", b"\x88The \x89\x8d\xc8");
    clean("Å", b"\xeaA");
}

#[test]
fn other_sets_return_to_latin() {
    clean("Москва.", b"\x1b(NmOSKWA.\x1b(B");
    clean("Її и\u{306}, x", b"\x1b(QgG \x1b(NJ, \x1b(Bx");
    clean("αβ “γ”", b"\x1b(Sab 2d3\x1b(B");
    clean("H₂O x²⁺ αx₂α", b"H\x1bb2\x1bsO x\x1bp2+\x1bs \x1b(Sa\x1b(Bx\x1bb2\x1b(Sa\x1b(B");
    clean("x₂²", b"x\x1bb2\x1bp2\x1bs");
    clean("一 あ。", b"\x1b$1!0!\x1b(B \x1b$1i$\"!+3\x1b(B");
    clean("か\u{3099}가\u{3000}亙", b"\x1b$1i$,oH_!#!!0W\x1b(B");
    clean("الر", b"\x1b(3GdQ\x1b(B");
    clean("שָׁ", b"\x1b(2AMy\x1b(B");
    clean("ᾳ", b"\x1b(S\x27a\x1b(B");
}

#[test]
fn marks_over_two_letters() {
    clean("t\u{361}s\u{361}k", b"\xebt\xec\xebs\xeck");
    clean("n\u{304}\u{360}ge\u{301}", b"\xe5\xfan\xfbg\xe2e");
    clean("т\u{361}с", b"\xeb\x1b(NT\xecS\x1b(B");
    clean("t\u{fe20}s\u{fe21}", b"\xebt\xecs");
    // Over one letter only, there is nothing to put the second half on.
    let lone = |text: &str, bytes: &[u8], at| {
        assert_eq!(write(text), (bytes.to_vec(), vec![(at, '\u{361}')]));
    };
    lone("t\u{361}", b"t&#x0361;", 1);
    lone("t\u{361}\x1fs", b"t&#x0361;\x1fs", 1);
    lone("t\u{361}\u{361}s", b"\xebt\xec&#x0361;s", 3);
}

#[test]
fn what_marc8_does_not_have() {
    assert_eq!(
        write("a😀ẞ\u{915}\u{301} a\u{331}\u{301}"),
        (
            b"a&#x1F600;&#x1E9E;\xe2&#x0915; \xe2a&#x0331;".to_vec(),
            vec![(1, '😀'), (5, 'ẞ'), (8, '\u{915}'), (14, '\u{331}')]
        )
    );
    assert_eq!(write("\u{301}a").0, b"&#x0301;a");
    assert_eq!(write("a\x1f\u{301}").0, b"a\x1f&#x0301;");
    assert_eq!(write("а\x1b").0, b"\x1b(NA\x1b(B&#x001B;");
    // ḻ has a mark that ANSEL lacks: the whole letter is one reference.
    assert_eq!(write("ḻ"), (b"&#x1E3B;".to_vec(), vec![(0, 'ḻ')]));
    let bar = Encoder { unmappable: Unmappable::Bar, ..Encoder::default() };
    assert_eq!(write_by(bar, "x😀ẞ").0, b"x||");
    let mut out = b"kept".to_vec();
    let error = Encoder::default().encode_strict("ab😀", &mut out).unwrap_err();
    assert_eq!((error.place().offset, out.as_slice()), (Some(2), &b"kept"[..]));
}

#[test]
fn text_that_looks_like_a_reference() {
    clean("&#x4E00; &#xE9; &", b"&#x0026;#x4E00; &#xE9; &");
    clean("&\u{301}#x4E00;", b"\xe2&#x0026;#x4E00;");
    let plain = Encoder { references: false, ..Encoder::default() };
    assert_eq!(write_by(plain, "&#x4E00;").0, b"&#x4E00;");
}

#[test]
fn sets_end_at_delimiters_and_are_told() {
    clean("а\x1fbа\x1e", b"\x1b(NA\x1b(B\x1fb\x1b(NA\x1b(B\x1e");
    let sets = Encoder::default().encode("é а 一 ²", &mut Vec::new(), &mut |_, _| {});
    assert_eq!(sets.listed().collect::<Vec<_>>(), ["(N", "$1"]);
    assert!(sets.contains(Set::Ansel) && sets.contains(Set::Superscript));
    let sets = Encoder::default().encode("plain", &mut Vec::new(), &mut |_, _| {});
    assert_eq!(sets.listed().count(), 0);
}
