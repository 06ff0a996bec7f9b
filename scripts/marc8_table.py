#!/usr/bin/env python3
"""Derives the MARC-8 tables of crates/marc/src/marc8/ and checks them against three peers.

    python3 scripts/marc8_table.py            # writes sets.rs and eacc.bin, prints the agreement
    python3 scripts/marc8_table.py --check    # writes nothing; fails if the committed files differ

The mappings are the Library of Congress's, MARC 21 Specifications, Character Sets, Part 5
(https://www.loc.gov/marc/specifications/specchartables.html). Three programs carry them, made
from the tables of different years, and this script asks all three:

    pymarc          pip install pymarc                pymarc.marc8_mapping
    MARC::Charset   apt install libmarc-charset-perl  its compiled table, through perl
    yaz             apt install yaz                   libyaz's converter, code by code

A code is given what at least two of them say, and every disagreement is listed by class. The
output depends on nothing else, so it is the same on every machine.
"""

import argparse
import collections
import pathlib
import subprocess
import sys

import yaz_iconv
from built import need, need_module

HOME = pathlib.Path(__file__).resolve().parent.parent / "crates/marc/src/marc8"

# The final byte of the escape sequence, our name, what the set is.
SETS = [
    ("E", "ANSEL", "Extended Latin (ANSEL)"),
    ("g", "GREEK_SYMBOLS", "Greek symbols"),
    ("b", "SUBSCRIPT", "subscripts"),
    ("p", "SUPERSCRIPT", "superscripts"),
    ("2", "HEBREW", "Basic Hebrew"),
    ("N", "CYRILLIC", "Basic Cyrillic"),
    ("Q", "CYRILLIC_MORE", "Extended Cyrillic"),
    ("3", "ARABIC", "Basic Arabic"),
    ("4", "ARABIC_MORE", "Extended Arabic"),
    ("S", "GREEK", "Basic Greek"),
]
# Codes of one vendor's system (Innovative Interfaces) that pymarc and MARC::Charset read and the
# Library of Congress does not list. They hold bytes that are no EACC bytes; decode.rs reads them.
VENDOR = {0x21203D, 0x212040, 0x7F2014, 0x7F2019, 0x7F2020, 0x7F2122}
# The first and second halves of the two marks over two letters: left to decode.rs, so that the
# tables name the half marks and the marks over both are made of them. Peers differ by design.
HALVES = {0x6B: 0xFE20, 0x6C: 0xFE21, 0x7A: 0xFE22, 0x7B: 0xFE23}


def from_pymarc():
    """{set: {code in G0: (code point, is a mark)}}, pymarc's."""
    from pymarc import marc8_mapping

    out = {}
    for final, codes in marc8_mapping.CODESETS.items():
        low = (lambda c: c & 0x7F if 0xA0 < c <= 0xFF else c) if final != 0x31 else (lambda c: c)
        out[chr(final)] = {low(c): (u, bool(mark)) for c, (u, mark) in codes.items()}
    out["1"] |= {c: (u, False) for c, u in marc8_mapping.ODD_MAP.items()}
    return out


PERL = r"""
use MARC::Charset::Table; use Storable qw(thaw);
my $db = MARC::Charset::Table->new()->db();
while (my ($k, $v) = each %$db) {
    next unless $k =~ /^(.):/s;
    my $c = thaw($v);
    print join(' ', ord $1, $c->{marc}, $c->{ucs}, $c->{is_combining} ? 1 : 0), "\n";
}
"""


def from_perl():
    """The same of MARC::Charset."""
    said = subprocess.run(["perl", "-e", PERL], capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"perl has no MARC::Charset (apt install libmarc-charset-perl): {said.stderr}")
    lines = said.stdout
    out = collections.defaultdict(dict)
    for line in lines.splitlines():
        final, code, ucs, mark = line.split()
        out[chr(int(final))][int(code, 16)] = (int(ucs, 16), mark == "1")
    return dict(out)


def from_yaz():
    """The same of yaz, found by converting every possible code with a letter after it."""
    yaz = yaz_iconv.Converter("MARC-8", "UTF-8")

    def ask(data):
        # A mark comes back after the letter that followed it.
        text, error, _ = yaz.convert(data + b"\x1b(Bz")
        text = text.decode("utf-8")
        if error or len(text) != 2 or "z" not in text:
            return None
        return (ord(text[0]), False) if text[1] == "z" else (ord(text[1]), True)

    out = collections.defaultdict(dict)
    for final, _, _ in [("B", None, None), *SETS]:
        escape = b"\x1b" + (b"" if final in "gbp" else b"(") + final.encode()
        for code in range(0x21, 0x7F):
            # yaz knows ANSEL by the high bytes only.
            found = ask(bytes([code | 0x80]) if final == "E" else escape + bytes([code]))
            if found:
                out[final][code] = found
    for code in (0x88, 0x89, 0x8D, 0x8E):
        if found := ask(bytes([code])):
            out["E"][code] = found
    for a in range(0x21, 0x7F):
        for b in range(0x21, 0x7F):
            for c in range(0x20, 0x7F):
                code = a << 16 | b << 8 | c
                if found := ask(b"\x1b$1" + code.to_bytes(3, "big")):
                    out["1"][code] = found
    # yaz's search ends at a space inside a code and returns it; those are no mappings.
    out["1"] = {c: v for c, v in out["1"].items() if v[0] != 0x20}
    return dict(out)


def agree(peers):
    """What two of three say, and the disagreements: {set: {code: (code point, mark)}}."""
    chosen = collections.defaultdict(dict)
    for final, name, title in [("B", "LATIN", "Basic Latin"), *SETS, ("1", "EACC", "EACC (CJK)")]:
        classes = collections.Counter()
        examples = collections.defaultdict(list)
        codes = set().union(*(p.get(final, {}) for p in peers.values()))
        for code in sorted(codes):
            said = {peer: table.get(final, {}).get(code) for peer, table in peers.items()}
            if final == "B" and code <= 0x20:
                continue  # controls and the space belong to no set
            if final == "4" and code in (0x8D, 0x8E):
                continue  # controls again, listed with one set by MARC::Charset
            votes = collections.Counter(v for v in said.values() if v)
            best, count = votes.most_common(1)[0]
            if count == len(peers):
                kind = "all agree"
            elif code in VENDOR and final == "1":
                kind = "a vendor's code, read apart: " + ", ".join(p for p, v in said.items() if v)
            elif final == "E" and code in HALVES:
                kind = "a half mark, by design: " + ", ".join(
                    f"{p} {v[0]:04X}" if v else f"{p} drops it" for p, v in said.items()
                )
                best = (HALVES[code], True)
            elif count == 2:
                odd = [f"{p} {'alone' if v else 'lacks it'}" for p, v in said.items() if v != best]
                kind = "two agree, " + ", ".join(odd)
            else:
                kind = "no two agree; not taken"
            classes[kind] += 1
            if kind != "all agree":
                there = " ".join(f"{p}={v[0]:04X}" if v else f"{p}=-" for p, v in said.items())
                examples[kind].append(f"{code:02X} {there}")
            if code not in VENDOR and not kind.startswith("no two"):
                chosen[final][code] = best
        print(f"{title} ({final}): {len(chosen[final])} codes")
        for kind, count in sorted(classes.items()):
            print(f"  {count:6} {kind}")
            for line in examples[kind]:
                print(f"           {line}")
    return chosen


def write_sets(chosen):
    """sets.rs: a 94-code array a set, and the marks."""
    lines = [
        "//! The single-byte sets of MARC-8. Written by scripts/marc8_table.py; do not edit.",
        "//!",
        "//! Source: Library of Congress, MARC 21 Specifications, Character Sets, Part 5,",
        "//! <https://www.loc.gov/marc/specifications/specchartables.html>.",
        "//! Each array has the code points of codes 0x21 to 0x7E (0xA1 to 0xFE in G1); 0 is no code.",
        "",
    ]
    for final, name, title in SETS:
        row = [chosen[final].get(c, (0, False))[0] for c in range(0x21, 0x7F)]
        lines += [f"/// {title}: `{final}`.", "#[rustfmt::skip]"]
        lines += [f"pub(super) const {name}: [u16; 94] = ["]
        for i in range(0, 94, 12):
            lines.append("    " + " ".join(f"0x{u:04x}," for u in row[i : i + 12]))
        lines += ["];", ""]
    marks, letters = {0x360, 0x361}, set()
    for codes in chosen.values():
        for u, mark in codes.values():
            (marks if mark else letters).add(u)
    assert not marks & letters, "a mark in one set and a letter in another"
    ranges, last = [], None
    for u in sorted(marks):
        # Code points that no set has may join two ranges.
        if ranges and not any(ranges[-1][1] < x < u for x in letters) and u - last < 0x20:
            ranges[-1][1] = u
        else:
            ranges.append([u, u])
        last = u
    lines += ["/// The marks that go over or under a letter, of all the sets."]
    lines += ["pub(super) const fn is_mark(code_point: u32) -> bool {"]
    lines += ["    matches!("]
    lines += ["        code_point,"]
    lines += ["        " + " | ".join(f"0x{a:04x}..=0x{b:04x}" if a != b else f"0x{a:04x}" for a, b in ranges)]
    lines += ["    )", "}", ""]
    return "\n".join(lines).encode()


def write_eacc(codes):
    """eacc.bin, as eacc.rs describes it."""
    wide = sorted({u for u, _ in codes.values() if u > 0xFFFF})
    rows = collections.defaultdict(dict)
    for code, (u, _) in codes.items():
        value = 0xD800 + wide.index(u) if u > 0xFFFF else u
        rows[code >> 16, code >> 8 & 0xFF][code & 0xFF] = value
    planes = sorted({a for a, _ in rows})
    head = bytearray([len(wide)])
    for u in wide:
        head += u.to_bytes(3, "little")
    numbers = bytes(planes.index(a) + 1 if a in planes else 0 for a in range(0x21, 0x7F))
    base = len(head) + 94 + len(planes) * 94 * 2
    index, data = bytearray(), bytearray()
    for a in planes:
        for b in range(0x21, 0x7F):
            row = rows.get((a, b))
            if not row:
                index += b"\0\0"
                continue
            index += (base + len(data)).to_bytes(2, "little")
            data += sum(1 << (c - 0x20) for c in row).to_bytes(12, "little")
            data += b"".join(row[c].to_bytes(2, "little") for c in sorted(row))
    return bytes(head + numbers + index + data)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--check", action="store_true", help="compare with the committed files")
    args = args.parse_args()
    need("perl")
    need_module("pymarc", "pymarc")
    chosen = agree({"pymarc": from_pymarc(), "MARC::Charset": from_perl(), "yaz": from_yaz()})
    assert chosen["B"] == {c: (c, False) for c in range(0x21, 0x7F)}
    files = {"sets.rs": write_sets(chosen), "eacc.bin": write_eacc(chosen["1"])}
    same = True
    for name, content in files.items():
        path = HOME / name
        if args.check:
            fits = path.exists() and path.read_bytes() == content
            same &= fits
            print(f"{name}: {len(content)} bytes, {'as committed' if fits else 'DIFFERS'}")
        else:
            path.write_bytes(content)
            print(f"{name}: {len(content)} bytes written")
    sys.exit(not same)


if __name__ == "__main__":
    main()
