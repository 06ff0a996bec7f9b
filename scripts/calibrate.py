#!/usr/bin/env python3
"""Compares a file of generated records with the figures counted in real ones.

    steelyard generate catalogue --count 11428 sample.mrc
    scripts/calibrate.py sample.mrc STATS.json

Prints both side by side: sizes, fields, subfields, scripts, kinds, tags, and how well the file
compresses (by the gzip and zstd programs). Needs nothing but Python 3 and these two.
"""

import collections
import json
import subprocess
import sys

from built import need

PERCENTILES = [1, 10, 25, 50, 75, 90, 99, 100]
# Of the same real records as STATS.json, which does not hold these two.
GZIP_PERCENT, ZSTD_TO_GZIP = 38.0, 0.85


def records(data):
    at = 0
    while at < len(data):
        length = int(data[at : at + 5])
        yield data[at : at + length]
        at += length


def fields(record):
    base = int(record[12:17])
    for at in range(24, base - 1, 12):
        entry = record[at : at + 12]
        start = base + int(entry[7:])
        yield entry[:3].decode(), record[start : start + int(entry[3:7]) - 1]


def percentiles(values):
    values = sorted(values)
    return [values[min(len(values) - 1, len(values) * p // 100)] for p in PERCENTILES]


def squeezed(command, path):
    done = subprocess.run([*command, "-c", path], stdout=subprocess.PIPE, check=True)
    return len(done.stdout)


def main(path, stats_path):
    data = open(path, "rb").read()
    stats = json.load(open(stats_path))
    sizes, counts, subs, sub_lengths, field_lengths = [], [], [], [], []
    kinds, documents, times = collections.Counter(), collections.Counter(), collections.Counter()
    lengths, tag_subs = collections.Counter(), collections.Counter()
    codes = collections.defaultdict(collections.Counter)
    foreign = high = 0
    for record in records(data):
        sizes.append(len(record))
        kinds[record[6:8].decode()] += 1
        odd = sum(byte > 127 for byte in record)
        foreign += odd > 0
        high += odd
        tags, n, s = set(), 0, 0
        for tag, field in fields(record):
            n += 1
            tags.add(tag)
            times[tag] += 1
            lengths[tag] += len(field)
            field_lengths.append(len(field))
            if not tag.startswith("00"):
                parts = field.split(b"\x1f")[1:]
                s += len(parts)
                tag_subs[tag] += len(parts)
                for part in parts:
                    sub_lengths.append(len(part) - 1)
                    codes[tag][part[:1].decode("latin1")] += 1
        documents.update(tags)
        counts.append(n)
        subs.append(s)
    total = len(sizes)
    share = lambda n: n / stats["records"]

    def line(name, ours, theirs):
        print(f"{name:<24} {ours!s:<52} {theirs}")

    line("", "generated", "real")
    line("records", total, stats["records"])
    mean = stats["mean"]
    line("mean size", round(sum(sizes) / total, 1), round(mean["size"], 1))
    line("mean fields", round(sum(counts) / total, 2), round(mean["fields"], 2))
    line("mean subfields", round(sum(subs) / total, 2), round(mean["subfields"], 2))
    line("mean subfield", round(sum(sub_lengths) / len(sub_lengths), 2), round(mean["subfield_len"], 2))
    names = "size_pct_1_10_25_50_75_90_99_max fields_pct subfields_pct subfield_len_pct field_len_pct"
    for name, values in zip(names.split(), [sizes, counts, subs, sub_lengths, field_lengths]):
        line(name[:23], percentiles(values), stats[name])
    line("with non-ASCII %", round(100 * foreign / total, 2), round(100 * share(stats["records_with_nonascii"]), 2))
    line("non-ASCII bytes %", round(100 * high / len(data), 3), round(100 * stats["nonascii_byte_share"], 3))
    gzip, zstd = squeezed(["gzip", "-6"], path), squeezed(["zstd", "-q", "-3"], path)
    line("gzip -6 to %", round(100 * gzip / len(data), 2), GZIP_PERCENT)
    line("zstd -3 to gzip -6", round(zstd / gzip, 3), ZSTD_TO_GZIP)
    for kind, n in stats["leader_6_7"]:
        line(f"leader 6-7 {kind!r} %", round(100 * kinds[kind] / total, 2), round(100 * share(n), 2))
    print("\ntag   records       times        length         subfields    (generated, real)")
    for tag, real in stats["tags"].items():
        n = times[tag]
        ours = [documents[tag] / total, n / max(1, documents[tag]), lengths[tag] / max(1, n), tag_subs[tag] / max(1, n)]
        theirs = [real[k] for k in ("doc_freq", "per_doc", "mean_len", "mean_subf")]
        pairs = " ".join(f"{a:6.3f} {b:6.3f} " if i < 2 else f"{a:6.1f} {b:6.1f} " for i, (a, b) in enumerate(zip(ours, theirs)))
        weight = n / total * (ours[2] + 12) - real["doc_freq"] * real["per_doc"] * (real["mean_len"] + 12)
        all_real = sum(real["codes"].values()) or 1
        all_ours = sum(codes[tag].values()) or 1
        off = [
            f"{c}{100 * codes[tag][c] / all_ours:+.0f}/{100 * k / all_real:.0f}"
            for c, k in real["codes"].items()
            if abs(codes[tag][c] / all_ours - k / all_real) > 0.08
        ]
        print(f"{tag}  {pairs} {weight:+6.1f} B/record  {' '.join(off)}")
    other = sum(n for tag, n in times.items() if tag not in stats["tags"]) / total
    print(f"other tags: {other:.2f} fields a record, {sum((lengths[t] + 12 * n) for t, n in times.items() if t not in stats['tags']) / total:.0f} bytes (real: 2.35, 183)")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    need("gzip", "zstd")
    main(*sys.argv[1:])
