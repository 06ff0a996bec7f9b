#!/usr/bin/env python3
"""Times records one at a time: ours against sysbench, pgbench and redis-benchmark, the same statements.

    scripts/rows.py [COUNT [ROUNDS]]

Rows of one text of 120 characters ("row"), as sysbench's own tests have, where both sides do the same;
and documents of four fields ("document"), which ours makes JSON of and reads from it, and theirs has as
a text made beforehand and throws away. COUNT (20,000) reads by key, then as many writes, one after another on one connection, by
`examples/rows.rs` and by each database's own load generator, interleaved, ROUNDS times (5), on private
servers (t1 or the nearest there is), clients and servers all on one processor: two that wake each other
across virtual processors pay several times what either does, and by chance. Printed is the user and system time of the client for each
operation, less what it takes to start, and its ratio; medians. PROFILE=dist in the environment tries the
binary as it is shipped.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
PROFILE = os.environ.get("PROFILE", "release")
STEELYARD = ROOT / "target" / PROFILE / "steelyard"
OURS = STEELYARD.parent / "examples/rows"
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


@contextmanager
def server(name, durability):
    process = subprocess.Popen(
        [STEELYARD, "servers", "run", name, "--durability", durability],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    try:
        yield process.stdout.readline().strip()
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
        f"--mysql-db={parts.path.strip('/')}", "--threads=1", "--time=0", f"--events={count}", f"--what={what}",
        script, "run",
    ]


def redis(url, folder, column, value):
    parts = urlsplit(url)
    commands = {"get": ["GET", "records:k__rand_int__"], "put": ["SET", "records:k__rand_int__", value]}
    return lambda what, count: [
        "redis-benchmark", "-h", parts.hostname, "-p", parts.port, "-n", count, "-c", "1", "-r", "9999", "-q", *commands[what]
    ]


def compare(name, url, theirs, count, rounds, program):
    cpu([OURS, url, "load", 0])
    for what in ("get", "put"):
        each = ([], [])
        for n in range(rounds):
            pairs = [(lambda c: [OURS, url, what, c], 0), (lambda c: theirs(what, c), 1)]
            for command, at in pairs if n % 2 else reversed(pairs):
                whole, start = cpu(command(count)), cpu(command(1))
                each[at].append((whole - start) / count * 1e6)
        ours, yours = map(statistics.median, each)
        print(f"{name:18} {what}: ours {ours:6.2f} µs, {program} {yours:6.2f} µs, ratio {ours / yours:.2f}", flush=True)


# Each with the tier of its server, who loads it, and what its URL says of the layout.
STORES = {
    "postgres": ("t2", "pgbench", postgres, "durability=t2&layout="),
    "mariadb": ("t1", "sysbench", mariadb, "layout="),
    "redis": ("t1", "redis-benchmark", redis, "format=json&layout="),
}
# A column, its value, and the layout that has it.
ROWS = {"row": ("c", ROW, "columns"), "document": ("record", RECORD, "document")}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    build = ["cargo", "build", "--quiet", "--profile", PROFILE, "--bin", "steelyard", "--example", "rows"]
    subprocess.run(build, cwd=ROOT, check=True)
    os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    for name, (tier, program, make, options) in STORES.items():
        if not shutil.which(program):
            print(f"{name}: no {program} on this machine; left out")
            continue
        for kind, (column, value, layout) in ROWS.items():
            if name == "redis":
                if kind == "row":
                    continue
                layout = "blob"
            with server(name, tier) as url, tempfile.TemporaryDirectory() as folder:
                theirs = make(url, Path(folder), column, value)
                compare(f"{name} {kind}", f"{url}?{options}{layout}", theirs, count, rounds, program)


if __name__ == "__main__":
    main()
