#!/usr/bin/env python3
"""What the bench itself costs its client: point reads through `steelyard bench` against the databases'
own load generators, on the same private server, and against the C API of SQLite.

    scripts/harness.py [COUNT [ROUNDS [STORE,…]]]

COUNT (50,000) reads by key, one at a time and eight at a time, of values of 1 KB in Redis, and of rows of
one text of 120 characters in PostgreSQL, MariaDB and SQLite through prepared statements; ROUNDS (5) of
each, interleaved, all on one processor (why: rows.py). SQLite has no load generator: `sqlite_speed.c` is
one, with a thread and a connection for each that reads at once, as ours. Printed is the user and system time of the client
for each operation, the median of rounds, and the ratio. Ours decodes each answer into a record and
counts it, keeps a histogram and is a whole run (proof, load and drop included in nothing but the peak
of memory, where the records are in it, 10 MB for Redis and 1.2 MB for the others); of theirs, what it takes to
start is taken off. The script builds what it runs; PROFILE=dist in the environment tries the binary as it
is shipped. A store whose load generator or server is not installed is left out, and the message names the
package.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import rows
from built import STEELYARD, build, missing
from rows import NoServer, cpu, server

KEYS = 10_000
WORKLOAD = """
name = "reads"
about = "Point reads."

[table.records]
dataset = "people"
count = {keys}

[[phase]]
name = "load"
do = "load"

[[phase]]
name = "get"
do = "get"
keys = "random"
count = {count}
concurrency = {depth}
"""


def redis(url, folder, depth):
    make = rows.redis(url, folder, *rows.ROWS["row"][:2])
    # Values of 1 KB under the keys that are read.
    parts = urlsplit(url)
    fill = ["redis-benchmark", "-p", parts.port, "-a", parts.password, "-n", 10 * KEYS, "-r", "9999", "-d", "1024"]
    subprocess.run([str(word) for word in [*fill, "-q", "-t", "set"]], check=True, stdout=subprocess.DEVNULL)

    def command(count):
        words = make("get", count)
        words[words.index("-c") + 1] = str(depth)
        return [w.replace("records:k", "key:") if isinstance(w, str) else w for w in words]
    return command


def sqlite(url, folder, depth):
    """A file of the same rows, that the example has made; ours makes its own."""
    url = f"sqlite:{folder}/theirs.db?layout=columns&durability=t1"
    subprocess.run([rows.OURS, url, "load", "0"], check=True, stdout=subprocess.DEVNULL)
    command = rows.sqlite(url, folder, *rows.ROWS["row"][:2])
    return lambda count: [*command("get", count), depth]


def with_rows(make, option):
    """The load generators of rows.py, at this depth, on records that the example has put there."""
    def of(url, folder, depth):
        subprocess.run([rows.OURS, url, "load", "0"], check=True, stdout=subprocess.DEVNULL)
        command = make(url, folder, *rows.ROWS["row"][:2])

        def at_depth(count):
            words = [str(w) for w in command("get", count)]
            if option == "-c":
                words[words.index("-c") + 1] = str(depth)
                words[words.index("-t") + 1] = str(max(1, count // depth))
                return words
            return [w.replace("--threads=1", f"--threads={depth}") for w in words]
        return at_depth
    return of


def peak(process):
    """The most memory a process had, in MB, looked at until it ends. (What wait4(2) says of it begins with
    the memory of the process that started it.)"""
    most = 0
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            break
        most = max([most] + [int(line.split()[1]) for line in lines if line.startswith("VmHWM")])
        time.sleep(0.01)
    return most / 1024


def ours(url, folder, depth, count, length):
    """Microseconds of CPU a read, and the peak of memory in MB."""
    workload, out = folder / "reads.toml", folder / "out.json"
    workload.write_text(WORKLOAD.format(keys=KEYS, count=count, depth=depth))
    records = folder / "records.json"
    records.write_text("".join(f'{{"c":"{n:0{length}}"}}\n' for n in range(KEYS)))
    command = [STEELYARD, "bench", workload, "--records", records, "--on", url, "--rounds", "1",
               "--no-audit", "--out", out]
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen([str(c) for c in command], stdout=said, stderr=said)
        memory = peak(process)
        if process.wait():
            said.seek(0)
            sys.exit(f"{command} failed: {said.read()}")
    results = json.loads(out.read_text())
    cell = next(c for c in results["cells"] if c["phase"] == "get" and c["competitor"] != "null")
    spent = cell["rounds"][0]
    return (spent["user_ns"] + spent["system_ns"]) / 1e3 / spent["units"], memory


def compare(name, url, make, length, program, count, rounds, folder):
    for depth in (1, 8):
        command = make(url.split("?")[0] if name == "redis" else url, folder, depth)
        mine, theirs, peak = [], [], 0
        for n in range(rounds):
            for who in (0, 1) if n % 2 else (1, 0):
                if who == 0:
                    each, memory = ours(url, folder, depth, count, length)
                    mine.append(each)
                    peak = max(peak, memory)
                else:
                    whole, start = (cpu(command(c)) for c in (count, depth))
                    theirs.append((whole - start) / count * 1e6)
        a, b = statistics.median(mine), statistics.median(theirs)
        print(f"{name:9} depth {depth}: ours {a:6.2f} µs, {program} {b:6.2f} µs, ratio {a / b:.2f}; "
              f"our peak {peak:.0f} MB", flush=True)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    kinds = {
        "sqlite": (None, "the C API", "layout=columns&durability=t1", sqlite, 120),
        "redis": ("t1", "redis-benchmark", "layout=blob&format=msgpack", redis, 1024),
        "postgres": ("t2", "pgbench", "layout=columns&durability=t2", with_rows(rows.postgres, "-c"), 120),
        "mariadb": ("t1", "sysbench", "layout=columns", with_rows(rows.mariadb, "--threads"), 120),
    }
    chosen = sys.argv[3].split(",") if len(sys.argv) > 3 else list(kinds)
    build("rows")
    os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    for name in chosen:
        tier, program, options, make, length = kinds[name]
        if absent := missing("cc" if tier is None else program):
            print(f"{name}: left out, not installed: {absent}")
            continue
        # By its name alone a store in this process is put where the bench likes.
        opened = nullcontext(name) if tier is None else server(name, tier)
        try:
            with opened as url, tempfile.TemporaryDirectory() as folder:
                compare(name, f"{url}?{options}", make, length, program, count, rounds, Path(folder))
        except NoServer as e:
            print(f"{name}: left out, its server did not start: {e}")


if __name__ == "__main__":
    main()
