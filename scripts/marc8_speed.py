#!/usr/bin/env python3
"""Measures MARC-8 against yaz-marcdump on real records, in CPU time.

    STEELYARD_TEST_DATA=… python3 scripts/marc8_speed.py

Needs yaz-marcdump (apt install yaz) and cargo. Two files: the records of the folder that are in
MARC-8, repeated; and those in UTF-8 that are not all ASCII, put in MARC-8 by yaz-marcdump, repeated.
yaz-marcdump also takes the records apart and puts them together, so its conversion is counted as
what it takes more than without one. Best of 5, alternately.
"""

import os
import pathlib
import re
import resource
import subprocess
import tempfile

from built import build, example, need

LEADER = re.compile(rb"[0-9]{5}.{5}22[0-9]{5}")
YAZ = ["yaz-marcdump", "-i", "marc", "-o", "marc"]


def corpus(folder):
    marc8, utf8, seen = [], [], set()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "1251.dat":  # Windows-1251, whatever its leader says
            continue
        for record in path.read_bytes().split(b"\x1d"):
            record = record.lstrip(b"\r\n \0")
            if not LEADER.match(record) or b"\x1e" not in record or record in seen:
                continue
            seen.add(record)
            try:
                record.decode()
                if record[9:10] == b"a" and not record.isascii() and int(record[:5]) == len(record) + 1:
                    utf8.append(record + b"\x1d")
            except UnicodeDecodeError:
                if record[9:10] == b" ":
                    marc8.append(record + b"\x1d")
    return marc8, utf8


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if "STEELYARD_TEST_DATA" not in os.environ:
        return print("skipped: STEELYARD_TEST_DATA is not set")
    need("yaz-marcdump")
    build("marc8_speed")
    marc8, utf8 = corpus(pathlib.Path(os.environ["STEELYARD_TEST_DATA"]))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "utf8").write_bytes(b"".join(utf8))
        write = [*YAZ, "-f", "utf8", "-t", "marc8lossless", "-l", "9=32", folder / "utf8"]
        written = subprocess.run(write, capture_output=True).stdout
        for name, data in (("MARC-8 as found", b"".join(marc8)), ("UTF-8 put in MARC-8", written)):
            file = folder / "marc8"
            file.write_bytes(data * max(1, 20_000_000 // len(data)))
            count = file.read_bytes().count(b"\x1d")
            print(f"{name}: {data.count(bytes([0x1D]))} records, {len(data)} bytes; repeated, {count} records")
            times = [(cpu([*YAZ, "-f", "marc8", "-t", "utf8", file]), cpu([*YAZ, file])) for _ in range(5)]
            whole, parse = min(t[0] for t in times), min(t[1] for t in times)
            print(f"  yaz-marcdump -f marc8 -t utf8: {count / whole:,.0f} records/s; {parse:.2f} s of {whole:.2f} s without")
            yaz = count / (whole - parse)
            print(f"  its conversion alone:          {yaz:,.0f} records/s")
            done = subprocess.run(
                [example("marc8_speed"), file], capture_output=True, text=True, check=True
            )
            for line in done.stdout.splitlines():
                rate = re.search(r"(\d+) records/s", line)
                reads = rate and line.startswith(("read", "the same"))
                print(f"  ours: {line}" + (f" {int(rate[1]) / yaz:6.1f} x yaz's conversion" if reads else ""))


if __name__ == "__main__":
    main()
