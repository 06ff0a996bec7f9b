#!/usr/bin/env python3
"""Times `steelyard copy` into stores against each store's own loader: the same records, interleaved.

    scripts/loads.py [COUNT [ROUNDS [STORE,...]]]

Makes COUNT people (200,000) and loads them ROUNDS times (5) with both, each into a new table of the
same make: sqlite (`sqlite3`, .import), mariadb (`mariadb`, LOAD DATA LOCAL INFILE), postgres (`psql`,
\\copy), ferretdb (a program of few lines on the plain driver, `crates/store/examples/insert_many.rs`, which reads the
same JSON lines). The loader gets a file in the form it likes best, made beforehand and not timed; ours reads
the JSON lines. Both make the table and acknowledge durably (t3); ours also counts what is there in
the end. Servers are private ones (`steelyard servers run`). Printed are the wall time, its ratio
within rounds, and the processor time of the client for each record; medians, and all ratios. The script
builds what it runs. A store whose loader or server is not installed is left out, and the message names the
package.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from built import STEELYARD, build, example, missing
from rows import NoServer, server


def timed(command, stdin=None):
    """Wall seconds, and the user and system seconds of the process and its children."""
    begin = time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # What they print is little.
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed: {process.stderr.read().decode()}")
    return wall, used.ru_utime + used.ru_stime


def tabbed(text):
    """A text as LOAD DATA and COPY take it."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


class Sqlite:
    name, program = "sqlite", "sqlite3"

    def __init__(self, folder, rows):
        self.folder, self.file = folder, folder / "rows.csv"
        quoted = lambda text: '"' + text.replace('"', '""') + '"'
        self.file.write_text("".join(f"{quoted(key)},{quoted(record)}\n" for key, record in rows))

    def ours(self, n, people):
        place = self.folder / f"ours{n}.db"
        return [STEELYARD, "copy", "--quiet", "--key", "key", people, f"sqlite:{place}?durability=t3"]

    def theirs(self, n):
        # A table as ours is.
        shape = subprocess.run(["sqlite3", self.folder / f"ours{n}.db", ".schema records"], capture_output=True, text=True).stdout
        place = self.folder / f"theirs{n}.db"
        return ["sqlite3", place, "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", shape, "BEGIN", f".import --csv {self.file} records", "COMMIT"]

    def clean(self, n):
        for path in self.folder.glob(f"*{n}.db*"):
            path.unlink()


class MariaDb:
    name, program = "mariadb", "mariadb"

    def __init__(self, folder, rows, url):
        self.url, self.file = url, folder / "rows.tsv"
        self.file.write_text("".join(f"{tabbed(key)}\t{tabbed(record)}\n" for key, record in rows))
        parts = urlsplit(url)
        socket = parse_qs(parts.query).get("socket")
        place = [f"--socket={socket[0]}"] if socket else [f"--host={parts.hostname}", f"--port={parts.port}"]
        login = [f"--user={parts.username}"] + ([f"--password={parts.password}"] if parts.password else [])
        self.client = ["mariadb", "--no-defaults", "--local-infile=1", *place, *login, parts.path.strip("/")]

    def ours(self, n, people):
        join = "&" if "?" in self.url else "?"
        return [STEELYARD, "copy", "--quiet", "--key", "key", people, f"{self.url}{join}table=ours{n}&durability=t3"]

    def sql(self, text):
        return subprocess.run([*self.client, "-N", "-e", text], capture_output=True, text=True, check=True).stdout

    def theirs(self, n):
        return [*self.client, "-e", f"CREATE TABLE theirs{n} LIKE ours{n}; LOAD DATA LOCAL INFILE '{self.file}' INTO TABLE theirs{n} CHARACTER SET utf8mb4 (_key, record)"]

    def clean(self, n):
        self.sql(f"DROP TABLE ours{n}, theirs{n}")


class Postgres(MariaDb):
    name, program = "postgres", "psql"

    def __init__(self, folder, rows, url):
        self.url, self.file = url, folder / "rows.pg"
        self.file.write_text("".join(f"{tabbed(key)}\t{tabbed(record)}\n" for key, record in rows))
        self.client = ["psql", "-X", "-q", url.split("?")[0]]

    def sql(self, text):
        return subprocess.run([*self.client, "-c", text], capture_output=True, text=True, check=True).stdout

    def theirs(self, n):
        make = f"CREATE TABLE theirs{n} (LIKE ours{n} INCLUDING ALL)"
        return [*self.client, "-c", make, "-c", f"\\copy theirs{n} FROM '{self.file}'"]


class FerretDb:
    name, program = "ferretdb", example("insert_many")

    def __init__(self, folder, rows, url):
        self.url, self.people, self.turn = url, folder / "people.json", 0

    def ours(self, n, people):
        join = "&" if "?" in self.url else "?"
        place = f"{self.url}{join}table=ours{n}_{self.turn}&durability=t3"
        return [STEELYARD, "copy", "--quiet", "--key", "key", people, place]

    def theirs(self, n):
        return [self.program, self.url, f"theirs{n}_{self.turn}", self.people]

    def clean(self, n):
        # Every turn has collections of its own.
        self.turn += 1


def compare(store, people, count, rounds):
    ratios, walls, clients = [], ([], []), ([], [])
    for n in range(rounds + 1):
        # Theirs is made after the table of ours, so ours goes first; every other round it is timed
        # again after theirs.
        mine = timed(store.ours(n, people))
        yours = timed(store.theirs(n))
        if n % 2:
            store.clean(n)
            mine = timed(store.ours(n, people))
            timed(store.theirs(n))
        store.clean(n)
        if n == 0:
            continue  # to warm up
        ratios.append(mine[0] / yours[0])
        for i, run in enumerate((mine, yours)):
            walls[i].append(run[0])
            clients[i].append(run[1] / count * 1e6)
    middle = statistics.median
    print(
        f"{store.name:9} ours {middle(walls[0]):6.2f} s, {Path(store.program).name} {middle(walls[1]):6.2f} s, ratio {middle(ratios):.2f}"
        f" ({' '.join(f'{r:.2f}' for r in sorted(ratios))});"
        f" client {middle(clients[0]):.2f} and {middle(clients[1]):.2f} µs a record"
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else ["sqlite", "mariadb", "postgres", "ferretdb"]
    build(*(["insert_many"] if "ferretdb" in wanted else []))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        people = folder / "people.json"
        subprocess.run([STEELYARD, "generate", "people", "--count", str(count), people], check=True, capture_output=True)
        lines = people.read_text().splitlines()
        rows = [(json.loads(line)["key"], line) for line in lines]
        for make in (Sqlite, MariaDb, Postgres, FerretDb):
            if make.name not in wanted:
                continue
            if absent := missing(make.program):
                print(f"{make.name}: left out, not installed: {absent}")
            elif make is Sqlite:
                compare(make(folder, rows), people, count, rounds)
            else:
                try:
                    with server(make.name, "t3") as url:
                        compare(make(folder, rows, url), people, count, rounds)
                except NoServer as e:
                    print(f"{make.name}: left out, its server did not start: {e}")


if __name__ == "__main__":
    main()
