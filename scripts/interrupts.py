#!/usr/bin/env python3
"""How every bench ends by Ctrl-C: a SIGINT at a random moment of its usual duration, again and again.

    scripts/interrupts.py [--runs 20] [--seed 1] [--stretch 1] [BENCH ...]

Each run has a folder of its own for temporary files, and a terminal for its messages, so that what it was doing is
read from its progress. It must end by the signal within 2 s, say so at once, and leave no folder and no process: what
is still there 3 s after its end counts as left. Every fifth run gets a second SIGINT 0.1 s after the first, which must
end it within another second. Results that were written before must be whole.

The program is $STEELYARD, or target/release/steelyard, or target/debug/steelyard. Debug builds take longer for
everything: --stretch 4 draws the moments from four times the usual duration. Exit status 1 where a run took longer,
ended otherwise, or left something; the load of the machine stands beside each run.
"""

import argparse
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 2.0
# After a second signal.
AT_ONCE = 1.0
# How long the watchmen of private servers may take after the end.
SETTLE = 3.0
SAID = b"ending after this pass; Ctrl-C again quits"
LONG = """
name = "long"
about = "Phases that take long."
[table.records]
dataset = "people"
count = 60000
index = ["age"]
[[phase]]
name = "load"
do = "load"
[[phase]]
name = "rewrite"
do = "rewrite"
times = 2
[[phase]]
name = "find"
do = "find"
where = "age>=90 and email~bob8"
[[phase]]
name = "delete"
do = "delete"
where = "age>=50"
"""


def benches(program, folder):
    """Of each bench the arguments, and the seconds it usually takes."""
    workload = folder / "long.toml"
    workload.write_text(LONG)
    keep = ["bench", "keep", "--scale", "0.2", "--budget", "15"]
    return {
        "tour": (["bench"], 60),
        "formats": (["bench", "formats", "--budget", "20"], 40),
        "trial": (["bench", "formats", "--trial", "--formats", "json,msgpack,marc21", "--budget", "10"], 15),
        "objects": (["bench", "objects", "--budget", "15"], 25),
        "keep": ([*keep, "--on", "sqlite", "--on", "postgres"], 30),
        "documents": (["bench", "documents", "--budget", "15", "--on", "sqlite", "--on", "mariadb"], 30),
        "inserts": (["bench", "inserts", "--budget", "15", "--on", "sqlite", "--on", "postgres"], 30),
        "relations": (["bench", "relations", "--budget", "15", "--on", "sqlite", "--on", "postgres"], 30),
        "mixed": (["bench", "mixed", "--budget", "15", "--on", "sqlite", "--on", "redis"], 30),
        "upkeep": (["bench", "upkeep", "--budget", "15", "--on", "sqlite", "--on", "postgres"], 30),
        "own": (["bench", str(workload), "--budget", "15", "--on", "sqlite", "--on", "dir"], 30),
        "cache": (["bench", "cache", "--budget", "20"], 30),
        "audit": (["audit", "sqlite?durability=t2", "postgres", "mariadb", "redis"], 12),
        "against": (["bench", "formats", "--against", str(program), "--budget", "30", "--formats", "json,marc21"], 30),
        "network": ([*keep, "--on", "redis", "--network", "0.5ms"], 25),
    }


def found():
    """The program to try."""
    named = os.environ.get("STEELYARD")
    built = [ROOT / "target" / kind / "steelyard" for kind in ("release", "debug")]
    for path in [pathlib.Path(named)] if named else built:
        if path.is_file():
            return path.resolve()
    sys.exit("no program: cargo build --release, or STEELYARD=PATH")


class Terminal:
    """The standard error of a program, as a terminal of 100 columns, and what it was sent, with the moments."""

    def __init__(self):
        self.ours, self.its = pty.openpty()
        fcntl.ioctl(self.its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.parts = []

    def begin(self):
        os.close(self.its)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while True:
            try:
                part = os.read(self.ours, 65536)
            except OSError:
                return
            if not part:
                return
            self.parts.append((time.monotonic(), part))

    def text(self, until=float("inf")):
        return b"".join(part for at, part in list(self.parts) if at <= until)

    def said(self, what):
        """When it had said this."""
        text = b""
        for at, part in list(self.parts):
            text += part
            if what in text:
                return at
        return None


def stage(text):
    """What a bench was doing, by the last line of progress."""
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", text).decode(errors="replace")
    stages = re.findall(r"round (\d+): (proving|preparing|warming up|timing) ?([^\r\n]*)", plain)
    if not stages:
        return "beginning"
    number, what, whom = stages[-1]
    return f"{what} {' '.join(whom.split()[:3])}".strip() + f", round {number}"


def running(folder):
    """Processes that belong to a run, by its folder in their environment or their arguments."""
    name, left = str(folder).encode(), []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            known = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            state = (process / "stat").read_text().rsplit(") ", 1)[1][0]
        except (OSError, IndexError):
            continue
        if name in known and state not in "ZX" and int(process.name) != os.getpid():
            left.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return left


def run(program, args, moment, twice):
    """One run that is interrupted at a moment; none where it ended before."""
    # Servers need a short name, which their users may enter.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="int-", dir="/tmp"))
    (folder / "t").mkdir()
    for path in (folder, folder / "t"):
        path.chmod(0o755)
    out = folder / "results.json"
    if args[0] == "bench" and "--against" not in args:
        args = [*args, "--out", str(out)]
    environment = {**os.environ, "TMPDIR": str(folder / "t"), "XDG_CACHE_HOME": str(folder / "cache")}
    caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "steelyard/templates"
    if caches.is_dir():
        # Data folders of servers that take seconds to make are made once.
        (folder / "cache/steelyard").mkdir(parents=True)
        (folder / "cache/steelyard/templates").symlink_to(caches)
    terminal = Terminal()
    begin = time.monotonic()
    child = subprocess.Popen(
        [str(program), *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal.its,
        env=environment, start_new_session=True,
        # Whoever started this in the background has it ignored, and children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    terminal.begin()
    try:
        child.wait(moment)
        return None
    except subprocess.TimeoutExpired:
        pass
    load, had = os.getloadavg()[0], out.is_file()
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    second = None
    if twice:
        try:
            child.wait(0.1)
        except subprocess.TimeoutExpired:
            second = time.monotonic()
            child.send_signal(signal.SIGINT)
    faults = []
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        faults.append("no end within 60 s")
        child.kill()
        child.wait()
    ended = time.monotonic()
    took = ended - sent
    while running(folder / "t") + list((folder / "t").iterdir()) and time.monotonic() - ended < SETTLE:
        time.sleep(0.02)
    cleared = time.monotonic() - ended
    said = terminal.said(SAID)
    processes, folders = running(folder / "t"), [path.name for path in (folder / "t").iterdir()]
    if took > LIMIT:
        faults.append(f"took {took:.1f} s")
    if second is not None and ended - second > AT_ONCE:
        faults.append(f"took {ended - second:.1f} s after the second signal")
    if child.returncode != -signal.SIGINT:
        faults.append(f"status {child.returncode}")
    # Before it looks out for signals, one ends it as it ends any program.
    if said is None and moment > 0.5 and second is None:
        faults.append("said nothing")
    if processes or folders:
        faults.append(f"left {[*folders, *processes]}")
    if had:
        try:
            json.loads(out.read_text())
        except (OSError, ValueError) as error:
            faults.append(f"results: {error}")
    if faults:
        tail = terminal.text().decode(errors="replace")[-400:]
        print(f"    {faults}; it had said: {tail!r}")
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "moment": sent - begin, "stage": stage(terminal.text(sent)), "took": took, "cleared": cleared, "load": load,
        "said": None if said is None else said - sent, "status": child.returncode, "faults": faults,
        "twice": second is not None,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stretch", type=float, default=1.0)
    parser.add_argument("bench", nargs="*")
    options = parser.parse_args()
    program = found()
    with tempfile.TemporaryDirectory() as folder:
        known = benches(program, pathlib.Path(folder))
        wanted = options.bench or list(known)
        for name in set(wanted) - set(known):
            sys.exit(f"no bench {name}; known: {', '.join(known)}")
        print(f"{program}, seed {options.seed}, load {os.getloadavg()[0]:.1f}")
        all_runs = {name: tried(program, name, *known[name], options) for name in wanted}
    print(f"\n{'bench':10} {'runs':>4} {'min':>6} {'median':>7} {'max':>6} s until ended; the slowest was")
    failed = False
    for name, runs in all_runs.items():
        times = sorted(run["took"] for run in runs)
        if not times:
            print(f"{name:10}    0  it always ended before")
            continue
        slowest = max(runs, key=lambda run: run["took"])
        print(f"{name:10} {len(runs):4} {times[0]:6.2f} {statistics.median(times):7.2f} {times[-1]:6.2f} "
              f"{slowest['stage']}, at a load of {slowest['load']:.1f}")
        failed |= any(run["faults"] for run in runs)
    sys.exit(1 if failed else 0)


def tried(program, name, args, seconds, options):
    """So many runs of a bench."""
    moments = random.Random(f"{options.seed} {name}")
    longest, runs, number = seconds * options.stretch, [], 0
    print(f"\n{name}: steelyard {' '.join(args)}")
    while len(runs) < options.runs and longest > 0.5:
        moment = moments.uniform(0, longest)
        one = run(program, args, moment, number % 5 == 4)
        number += 1
        if one is None:
            # It is faster than usual.
            longest = moment
            continue
        runs.append(one)
        said = "-" if one["said"] is None else f"{one['said']:.2f}"
        print(f"  at {one['moment']:6.2f} s ({one['stage']}): ended after {one['took']:5.2f} s"
              f"{' (two signals)' if one['twice'] else ''}, said after {said} s, status {one['status']}, "
              f"clear after {one['cleared']:.2f} s, load {one['load']:.1f}", flush=True)
    return runs


if __name__ == "__main__":
    main()
