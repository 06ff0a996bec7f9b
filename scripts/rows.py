#!/usr/bin/env python3
"""Times records one at a time: ours against sysbench, pgbench, redis-benchmark and SQLite's C API, the
same statements.

    scripts/rows.py [COUNT [ROUNDS [STORE,…]]]

Rows of one text of 120 characters ("row"), as sysbench's own tests have, where both sides do the same;
and documents of four fields ("document"), which ours makes JSON of and reads from it, and theirs has as
a text made beforehand and throws away. COUNT (20,000) reads by key, then as many writes, one after
another on one connection, by `crates/store/examples/rows.rs` and by each database's own load generator, interleaved,
ROUNDS times (5). Servers are private ones (t1 or the nearest there is), clients and servers all on one
processor: two that wake each other across virtual processors pay several times what either does, and by
chance. SQLite (t1) is used in the program's own process; beside it stands `sqlite_speed.c`, linked with
the very SQLite that ours was built with, which reads each value as it is and decodes nothing, and
Python's sqlite3 and json (of the SQLite that Python has) on the same file. Printed is the user and
system time of the client for each operation, less what it takes to start, and its ratio; medians.
The script builds the example first; PROFILE=dist in the environment tries it as it is shipped. A store
whose load generator or server is not installed is left out, and the message names the package.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from built import ROOT, STEELYARD, TARGET, build, example, missing

OURS = example("rows")
ROW = f"{7:0120}"
RECORD = '{"name":"Bob Jones","email":"bob7@example.com","age":7,"admin":true}'


def cpu(command):
    """The user and system seconds of a process and its children."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {output.decode()}")
    return used.ru_utime + used.ru_stime


class NoServer(Exception):
    """A private server did not start; the message is what `servers run` printed."""


@contextmanager
def server(name, durability):
    """A private server, by its URL."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [STEELYARD, "servers", "run", name, "--durability", durability],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )
        try:
            url = process.stdout.readline().strip()
            if not url:
                process.wait()
                errors.seek(0)
                raise NoServer(errors.read().strip())
            yield url
        finally:
            process.terminate()
            process.wait()


def postgres(url, folder, column, value):
    scripts = {
        "get": f"\\set n random(0, 9999)\nSELECT {column} FROM records WHERE _key = 'k' || :n;\n",
        "put": f"\\set n random(0, 9999)\nINSERT INTO records (_key, {column}) VALUES ('k' || :n, :value)"
        f" ON CONFLICT (_key) DO UPDATE SET {column} = excluded.{column};\n",
    }
    for what, text in scripts.items():
        (folder / f"{what}.sql").write_text(text)
    return lambda what, count: [
        "pgbench", "-n", "-M", "prepared", "-c", "1", "-t", count, "-D", f"value={value}",
        "-f", folder / f"{what}.sql", url.split("?")[0],
    ]


def mariadb(url, folder, column, value):
    script = folder / "rows.lua"
    script.write_text(
        """
sysbench.cmdline.options = { what = {"", "get"} }
function thread_init()
  con = sysbench.sql.driver():connect()
  if sysbench.opt.what == "get" then
    stmt = con:prepare("SELECT COLUMN FROM records WHERE _key = ?")
  else
    stmt = con:prepare("INSERT INTO records (_key, COLUMN) VALUES (?, ?) ON DUPLICATE KEY UPDATE COLUMN = VALUES(COLUMN)")
    value = stmt:bind_create(sysbench.sql.type.VARCHAR, 200)
  end
  key = stmt:bind_create(sysbench.sql.type.VARCHAR, 10)
  if value then stmt:bind_param(key, value) else stmt:bind_param(key) end
end
function event()
  key:set(string.format("k%d", sysbench.rand.uniform(0, 9999)))
  if value then value:set('VALUE') end
  local rs = stmt:execute()
  if not value then rs:free() end
end
""".replace("COLUMN", column).replace("'VALUE'", f"'{value}'")
    )
    parts = urlsplit(url)
    return lambda what, count: [
        "sysbench", f"--mysql-host={parts.hostname}", f"--mysql-port={parts.port}", f"--mysql-user={parts.username}",
        f"--mysql-password={parts.password}", f"--mysql-db={parts.path.strip('/')}", "--threads=1", "--time=0", f"--events={count}", f"--what={what}",
        script, "run",
    ]


def redis(url, folder, column, value):
    parts = urlsplit(url)
    commands = {"get": ["GET", "records:k__rand_int__"], "put": ["SET", "records:k__rand_int__", value]}
    return lambda what, count: [
        "redis-benchmark", "-h", parts.hostname, "-p", parts.port, "-a", parts.password, "-n", count, "-c", "1", "-r", "9999", "-q", *commands[what]
    ]


def newest(pattern):
    """The newest of what a build has left under a name, of which there may be several."""
    found = sorted((TARGET / "build").glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit(f"no {pattern} below {TARGET}/build: build it with the feature sqlite")
    return found[-1]


def sqlite_speed():
    """The C program, made with the SQLite that is in ours: its object code, and its header."""
    program, source = TARGET / "sqlite_speed", ROOT / "scripts/sqlite_speed.c"
    library = newest("libsqlite3-sys-*/out/libsqlite3.a")
    version = next(
        lines.split('"')[3] for lines in (ROOT / "Cargo.lock").read_text().split("[[package]]")
        if 'name = "libsqlite3-sys"' in lines
    )
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    header = next(home.glob(f"registry/src/*/libsqlite3-sys-{version}/sqlite3/sqlite3.h"))
    command = ["cc", "-O3", source, f"-I{header.parent}", library, "-lpthread", "-lm", "-ldl", "-o", program]
    subprocess.run(command, check=True)
    return program


PYTHON = """
import json, sqlite3, sys
file, what, count, column, value = sys.argv[1:]
db = sqlite3.connect(file, isolation_level=None)
db.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY")
decode = json.loads if column == "record" else str
record = json.loads(value) if column == "record" else value
encode = json.dumps if column == "record" else str
get = f"SELECT {column} FROM records WHERE _key = ?"
put = f"INSERT INTO records (_key, {column}) VALUES (?, ?) ON CONFLICT (_key) DO UPDATE SET {column} = excluded.{column}"
for n in range(int(count)):
    key = f"k{n * 7919 % 10000}"
    if what == "get":
        decode(db.execute(get, (key,)).fetchone()[0])
    else:
        db.execute(put, (key, encode(record)))
"""


def sqlite(url, folder, column, value):
    program, file = sqlite_speed(), url.split(":", 1)[1].split("?")[0]
    return lambda what, count: [program, file, what, count, column, value]


def python(url, folder, column, value):
    file = url.split(":", 1)[1].split("?")[0]
    return lambda what, count: [sys.executable, "-c", PYTHON, file, what, count, column, value]


def compare(name, url, others, count, rounds):
    """Ours against each of the others, by name, all in turn."""
    cpu([OURS, url, "load", 0])
    for what in ("get", "put"):
        commands = [("ours", lambda what, c: [OURS, url, what, c]), *others.items()]
        each = {who: [] for who, _ in commands}
        for n in range(rounds):
            for who, command in commands if n % 2 else reversed(commands):
                whole, start = cpu(command(what, count)), cpu(command(what, 1))
                each[who].append((whole - start) / count * 1e6)
        ours = statistics.median(each["ours"])
        for program in others:
            yours = statistics.median(each[program])
            print(f"{name:18} {what}: ours {ours:6.2f} µs, {program} {yours:6.2f} µs, ratio {ours / yours:.2f}", flush=True)


# Each with the tier of its server (none in this process), who loads it, and what its URL says of the layout.
STORES = {
    "sqlite": (None, "cc", sqlite, "durability=t1&layout="),
    "postgres": ("t2", "pgbench", postgres, "durability=t2&layout="),
    "mariadb": ("t1", "sysbench", mariadb, "layout="),
    "redis": ("t1", "redis-benchmark", redis, "format=json&layout="),
}
# A column, its value, the layout that has it, and the stores that are tried with it where not all are.
ROWS = {
    "row": ("c", ROW, "columns", ["sqlite", "postgres", "mariadb"]),
    "document": ("record", RECORD, "document", None),
    "blob": ("value", RECORD, "blob&format=json", ["sqlite"]),
}


@contextmanager
def place(name, tier, folder):
    """The URL of a store: of a private server, or in this folder."""
    if tier is None:
        yield f"{name}:{folder}/rows.db"
        return
    with server(name, tier) as url:
        yield url


def kinds(name, tier, make, options, program, count, rounds):
    """Every kind of record that a store is tried with."""
    for kind, (column, value, layout, of) in ROWS.items():
        if of and name not in of:
            continue
        # Redis has no documents: theirs is the same text as ours.
        layout = "blob" if name == "redis" else layout
        with tempfile.TemporaryDirectory() as folder, place(name, tier, folder) as url:
            theirs = make(url, Path(folder), column, value)
            others = {"the C API" if name == "sqlite" else program: theirs}
            if name == "sqlite":
                others["Python"] = python(url, Path(folder), column, value)
            compare(f"{name} {kind}", f"{url}?{options}{layout}", others, count, rounds)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    build("rows")
    os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    chosen = sys.argv[3].split(",") if len(sys.argv) > 3 else list(STORES)
    for name in chosen:
        tier, program, make, options = STORES[name]
        if absent := missing(program):
            print(f"{name}: left out, not installed: {absent}")
            continue
        try:
            kinds(name, tier, make, options, program, count, rounds)
        except NoServer as e:
            print(f"{name}: left out, its server did not start: {e}")


if __name__ == "__main__":
    main()
