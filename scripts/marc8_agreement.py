#!/usr/bin/env python3
"""Compares our MARC-8 with pymarc's and yaz's on real text, and explains every disagreement.

    python3 scripts/marc8_agreement.py [FILE|FOLDER ...]     # default: $STEELYARD_TEST_DATA

Needs pymarc (pip), libyaz5 (apt) and cargo. Takes:

- from files of ISO 2709 records: every field of a record that does not say UTF-8 (leader 9 is not
  `a`) and is not valid UTF-8 or has escape sequences, value by value; and the fields of the UTF-8
  records, value by value, to be written;
- from `*marc8*.txt`: every line.

Reading is compared after NFC, and value by value, as all three convert. A value on which we and
a peer differ is put in the first class whose test it passes; the test redoes what the peer does
wherever that can be done. Exit status 1 if a difference has no explanation.
"""

import argparse
import collections
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

import yaz_iconv
from built import build, example, need_module

HALVES = str.maketrans({"\ufe20": "\u0361", "\ufe22": "\u0360", "\ufe21": None, "\ufe23": None})
# EACC codes that pymarc maps as the Library of Congress did before 2004, see marc8_table.py.
OLD_EACC = {
    "\ufa12": "\u6674", "\ufa1d": "\u7cbe", "\ufa25": "\u9038", "\ufa1c": "\u9756",
    "\uf92e": "\u51b7", "\uf9ad": "\u73b2", "\uf9b2": "\u96f6", "\uf9a9": "\u56f9",
    "\ue8b1": "\u318d", "\ue8cb": "\uc717",
}
GETA = str.maketrans({"\U000212c4": "\u3013", "\U0002251b": "\u3013", "\U00022c4d": "\u3013"})
LEADER = re.compile(rb"[0-9]{5}.{5}22[0-9]{5}")
RAW = re.compile(r"&#x([0-9A-F]{2}|[2-7][0-9A-F]{5});")
CONTROLS = re.compile("[\x00-\x1f\x80-\x9f\u200c\u200d]")
EXTENDED = "[\u0401-\u040c\u040e\u040f\u0451-\u045c\u045e-\u0491\u0672-\u06fd]"
REFERENCE = re.compile(r"&#x([0-9A-Fa-f]{4,6});")


def nfc(text):
    return unicodedata.normalize("NFC", text)


def values_of(record):
    """Control fields whole, data fields subfield by subfield, without codes and indicators."""
    for field in record.split(b"\x1e")[1:]:
        head, *subfields = field.split(b"\x1f")
        yield from (s[1:] for s in subfields) if subfields else (head,)


def collect(paths):
    """(MARC-8 values by source, UTF-8 values)."""
    marc8, utf8, seen = collections.defaultdict(list), [], set()
    files = [p for path in paths for p in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    for path in files:
        if not path.is_file():
            continue
        data = path.read_bytes()
        if "marc8" in path.name and path.suffix == ".txt":
            marc8["lines of " + path.name] = data.splitlines()
            continue
        for record in data.split(b"\x1d"):
            record = record.lstrip(b"\r\n \0")
            if not LEADER.match(record) or b"\x1e" not in record or record in seen:
                continue
            seen.add(record)
            try:
                record.decode("utf-8")
                valid = True
            except UnicodeDecodeError:
                valid = False
            if record[9:10] != b"a" and (not valid or b"\x1b" in record):
                marc8["records in " + path.name].append(record)
            elif valid and record[9:10] == b"a":
                utf8 += [v.decode(errors="ignore") for v in values_of(record) if not v.isascii()]
    for source, items in marc8.items():
        if source.startswith("records"):
            wanted = [v for r in items for v in values_of(r)]
            marc8[source] = [v for v in wanted if not v.isascii() or b"\x1b" in v or b"&#x" in v]
    return {source: values for source, values in marc8.items() if values}, utf8


def ours(mode, lines):
    """[(bytes out, faults)] of our program."""
    text = "".join(line.hex() + "\n" for line in lines)
    done = subprocess.run([example("marc8_lines"), mode], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    out = []
    for line in done.stdout.splitlines():
        converted, wrong = line.split("\t")
        out.append((bytes.fromhex(converted), wrong.split()))
    return out


def pymarc_reads(value):
    from pymarc.marc8 import marc8_to_unicode

    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return marc8_to_unicode(value)
    except Exception as error:  # what it raises is what is being looked at
        return error


def yaz_reads(value, yaz=yaz_iconv.Converter("MARC-8", "UTF-8")):
    converted, error, left = yaz.convert(value)
    return converted.decode("utf-8", "replace"), error, left


def against_pymarc(value, text, faults, theirs):
    wrong = {fault.split(":")[1] for fault in faults}
    if isinstance(theirs, Exception):
        return f"pymarc raises {type(theirs).__name__}"
    plain = "".join(OLD_EACC.get(c, c) for c in theirs)
    if nfc(plain) == nfc(text.translate(GETA)):
        return "EACC codes that pymarc maps as before 2004"
    if whole(theirs) == whole(text):
        return "marks over two letters: pymarc keeps the halves (the mapping before 2004)"
    if b"\x1b)!E" in value:
        return "pymarc does not know ESC ) ! E"
    if "Escape" in wrong:
        return "a bad escape sequence: pymarc drops the escape character or takes a letter for a set"
    if nfc(theirs) == nfc(CONTROLS.sub("", text)):
        return "pymarc drops controls, non-sorting marks among them"
    if "LoneMark" in wrong and whole(theirs) == whole(without_tail(text)):
        return "marks at the end: pymarc drops them, we report and keep them"
    if "&#x" in theirs and nfc(resolved(theirs)) == nfc(text):
        return "references: pymarc leaves them as they are"
    if "CutTriple" in wrong:
        return "EACC cut short: pymarc reads on in threes or ends in a space, we report and keep"
    if re.search(rb"\x1b\$1[^\x1b]*[\x80-\xff]", value):
        return "a byte above 0x7F inside EACC: pymarc takes it for one of three"
    if {"Byte", "Triple"} & wrong and bare(theirs) == bare(text):
        return "no such character: pymarc puts a space, we report and keep the byte"
    if wrong and letters(theirs) == letters(text):
        return "not MARC-8, several faults at once: alike but for what stands for them"
    return None


def against_yaz(value, text, faults, theirs):
    theirs, error, _ = theirs
    wrong = {fault.split(":")[1] for fault in faults}
    if "&#x" in theirs and nfc(resolved(theirs)) == nfc(text):
        return "references: yaz leaves them as they are"
    if error:
        if "LoneMark" in wrong:
            return "marks at the end: yaz fails on the value, we report and keep them"
        if "Escape" in wrong:
            return "a bad escape sequence: yaz fails on the value"
        return f"yaz fails with error {error}" if wrong else None
    if "Escape" in wrong:
        return "a bad escape sequence: yaz takes the letters that follow for one"
    if "CutTriple" in wrong:
        return "EACC cut short: yaz drops bytes until something fits, we report and keep"
    if "LoneHalf" in wrong and whole(theirs) == whole(RAW.sub("", text)):
        return "half of a mark over two letters: yaz takes a first for both and drops a second"
    if {"Byte", "Triple"} & wrong and whole(theirs) == whole(RAW.sub("", text)):
        return "no such character: yaz drops it silently, we report and keep the byte"
    if not wrong and nfc(CONTROLS.sub("", theirs)) == nfc(CONTROLS.sub("", text)):
        return "yaz drops controls"
    if not wrong and re.search(rb"\x21\x20[\x3d\x40]|\x7f\x20[\x14\x19\x20]|\x7f\x21\x22", value):
        return "a vendor's EACC codes, which yaz does not have"
    if re.search(rb"[\xe0-\xfe]{9}", value):
        return "more than eight accents on one letter, which yaz puts elsewhere"
    if wrong and letters(theirs) == letters(text):
        return "not MARC-8, several faults at once: alike but for what stands for them"
    return None


def without_tail(text):
    """Without the marks at the end."""
    while text and unicodedata.combining(text[-1]):
        text = text[:-1]
    return text


def whole(text):
    """With half marks made whole, as the mapping of 2004 has it."""
    return nfc(text.translate(HALVES))


def resolved(text):
    return REFERENCE.sub(lambda found: chr(int(found[1], 16)), text)


def bare(text):
    """With a space for what has no character, and without what pymarc drops besides."""
    return whole(without_tail(nfc(CONTROLS.sub("", RAW.sub(" ", text)).translate(HALVES))))


def letters(text):
    """Letters only: no spaces, controls, accents, nor what we put for bytes without a character."""
    text = unicodedata.normalize("NFD", CONTROLS.sub("", RAW.sub("", text)))
    return "".join(c for c in text if c not in " \x7f" and not unicodedata.combining(c))


TOTAL = collections.defaultdict(lambda: [0, 0])


def compare(name, ask, explain, values, mine):
    agree, classes = 0, collections.defaultdict(list)
    for value, (converted, faults) in zip(values, mine, strict=True):
        text, theirs = converted.decode(), ask(value)
        plain = theirs[0] if isinstance(theirs, tuple) and not theirs[1] else theirs
        if isinstance(plain, str) and nfc(plain) == nfc(text):
            agree += 1
            continue
        why = explain(value, text, faults, theirs) or "UNEXPLAINED"
        classes[why].append((value, text, theirs, faults))
    share = 100 * agree / max(1, len(values))
    print(f"    {name}: {agree} of {len(values)} agree ({share:.2f} %)")
    TOTAL[name][0] += agree
    TOTAL[name][1] += len(values)
    for why, cases in sorted(classes.items(), key=lambda c: -len(c[1])):
        print(f"      {len(cases):6} {why}")
        if why == "UNEXPLAINED":
            for value, text, theirs, faults in cases[:10]:
                print(f"             {value!r}\n             ours {text!r} {faults}\n             {theirs!r}")
    return "UNEXPLAINED" not in classes


def tally(title, pairs, explain):
    """Counts the pairs that are equal after NFC, and the others by what `explain` says of them."""
    classes = collections.defaultdict(list)
    for want, got in pairs:
        if nfc(want) != nfc(got):
            classes[explain(want, got) or "UNEXPLAINED"].append((want, got))
    equal = len(pairs) - sum(map(len, classes.values()))
    print(f"    {title}: {equal} of {len(pairs)} equal ({100 * equal / max(1, len(pairs)):.2f} %)")
    for why, cases in sorted(classes.items(), key=lambda c: -len(c[1])):
        print(f"      {len(cases):6} {why}")
        if why == "UNEXPLAINED":
            for want, got in cases[:10]:
                print(f"             {want!r}\n             {got!r}")
    return "UNEXPLAINED" not in classes


def writing(utf8):
    """We write, all three read; yaz writes, we read."""
    print(f"Writing: {len(utf8)} UTF-8 values that are not ASCII")
    mine = [m for m, _ in ours("encode", [v.encode() for v in utf8])]

    def by_us(want, got):
        if whole(want) == whole(got):
            return "half marks, made whole"

    def by_yaz(want, got):
        if whole(resolved(got)) == whole(want):
            return "references, which yaz leaves as they are"
        if whole(resolved(resolved(got))) == whole(resolved(want)):
            return "the same, and text that looks like one, whose & is a reference"
        if whole(resolved(resolved(CONTROLS.sub("", got)))) == whole(resolved(CONTROLS.sub("", want))):
            return "controls, which yaz drops"

    def by_pymarc(want, got):
        kept = CONTROLS.sub("", resolved(want))
        if whole(resolved(resolved(got))) == whole(kept):
            return "references, half marks or controls"
        if whole(re.sub(EXTENDED, " ", kept)) == whole(re.sub(EXTENDED, " ", resolved(resolved(got)))):
            return "Extended Cyrillic and Arabic, which pymarc does not read in G0"
        if "\u0304" in nfc(want):
            return "accents inside EACC, which pymarc takes for one of three bytes"

    good = tally(
        "ours, read back by us", [(v, m.decode()) for v, (m, _) in zip(utf8, ours("decode", mine))], by_us
    )
    good &= tally("ours, read by yaz", [(v, yaz_reads(m)[0]) for v, m in zip(utf8, mine)], by_yaz)
    good &= tally("ours, read by pymarc", [(v, str(pymarc_reads(m))) for v, m in zip(utf8, mine)], by_pymarc)

    def of_yaz(want, got):
        if whole(want) == whole(got):
            return "half marks, made whole"
        if nfc(want.replace("\u02be", "\u02bc")) == nfc(got):
            return "U+02BE, which yaz takes for the alif (U+02BC since 2005)"
        if nfc(resolved(want)) == nfc(got):
            return "text that looks like a reference, which yaz does not mark as text"
        if re.search("[\u2070-\u209f\u00b2\u00b3\u00b9]", want):
            return "a set after sub- or superscripts, which yaz forgets to designate"

    writer = yaz_iconv.Converter("UTF-8", "MARC8lossless")
    theirs = [writer.convert(v.encode())[0] for v in utf8]
    read = [(v, m.decode()) for v, (m, _) in zip(utf8, ours("decode", theirs))]
    good &= tally("yaz's, read by us", read, of_yaz)
    same = sum(m == t for m, t in zip(mine, theirs))
    print(f"    the same bytes as yaz's: {same}")
    return good


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("paths", nargs="*", type=pathlib.Path)
    args = args.parse_args()
    if not args.paths and "STEELYARD_TEST_DATA" not in os.environ:
        return print("skipped: STEELYARD_TEST_DATA is not set")
    need_module("pymarc", "pymarc")
    build("marc8_lines")
    marc8, utf8 = collect(args.paths or [pathlib.Path(os.environ["STEELYARD_TEST_DATA"])])
    good = True
    print("Reading")
    for source, values in marc8.items():
        mine = ours("decode", values)
        faulty = sum(bool(f) for _, f in mine)
        print(f"  {source}: {len(values)} values that are not plain ASCII, faults in {faulty}")
        good &= compare("pymarc", pymarc_reads, against_pymarc, values, mine)
        good &= compare("yaz", yaz_reads, against_yaz, values, mine)

    for name, (agree, values) in TOTAL.items():
        print(f"  all sources, {name}: {agree} of {values} agree ({100 * agree / max(1, values):.2f} %)")
    good &= writing(utf8)
    sys.exit(not good)


if __name__ == "__main__":
    main()
