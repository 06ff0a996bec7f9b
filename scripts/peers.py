#!/usr/bin/env python3
"""Times the MARC codec against its peers: the same file, interleaved rounds, CPU time.

    scripts/peers.py FILE.mrc [ROUNDS]

Needs `yaz-marcdump` (apt: yaz) and `pymarc` (PyPI) and builds benches/peers. A peer that is not
there is named and left out. Each round runs every command once, in an order that turns; a figure
is the median over the rounds of the child's user + system time, a ratio the median of the ratios
within rounds. FILE should take the fastest command 20 ms at least (50 MB or so) and hold records
that every peer reads to the end.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys

from built import ROOT, STEELYARD, build, built

PEERS = ROOT / "benches/peers/target/release/steelyard-peers"

PYMARC_READ = """
import pymarc, sys
with open(sys.argv[1], 'rb') as f:
    n = sum(1 for _ in pymarc.MARCReader(f))
print(n)
"""


def commands(path):
    """Groups of (name, command); the first of a group is ours, the others are compared to it."""
    peer = str(PEERS)
    yaz = shutil.which("yaz-marcdump")
    if not yaz:
        print("yaz-marcdump: not found (apt install yaz); left out")
    have_pymarc = subprocess.run([sys.executable, "-c", "import pymarc"], capture_output=True).returncode == 0
    if not have_pymarc:
        print("pymarc: not found (pip install pymarc); left out")
    groups = {
        "read": [("steelyard", [peer, "steelyard-read", path])],
        "read, every subfield looked at": [
            ("steelyard", [peer, "steelyard-walk", path]),
            ("rust-marc", [peer, "rust-marc-walk", path]),
        ],
        "read, a record of one's own": [
            ("steelyard", [peer, "steelyard-own", path]),
            ("mrrc", [peer, "mrrc-read", path]),
        ],
        "to JSON lines": [
            ("steelyard copy", [str(STEELYARD), "copy", "--quiet", path, "-", "--to", "json"]),
            ("mrrc", [peer, "mrrc-json", path]),
        ],
        "to MARCXML": [
            ("steelyard copy", [str(STEELYARD), "copy", "--quiet", path, "-", "--to", "marcxml"]),
        ],
    }
    groups["read"].append(("mrrc", [peer, "mrrc-read", path]))
    if yaz:
        groups["read"].append(("yaz-marcdump -n", [yaz, "-n", path]))
        groups["to JSON lines"].append(("yaz-marcdump", [yaz, "-o", "json", path]))
        groups["to MARCXML"].append(("yaz-marcdump", [yaz, "-o", "marcxml", path]))
    if have_pymarc:
        groups["read"].append(("pymarc", [sys.executable, "-c", PYMARC_READ, path]))
    return groups


def cpu_of(command):
    """User + system seconds of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # 1 from ours: done, but a record could not be held by the format.
    if done.returncode not in (0, 1):
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-400:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    built(["cargo", "build", "--release", "--locked", "--quiet"], ROOT / "benches/peers")
    build()
    records = int(subprocess.run([str(PEERS), "steelyard-read", path], capture_output=True, check=True).stdout)
    size = os.path.getsize(path)
    print(f"{path}: {records} records, {size / 1e6:.1f} MB; {rounds} rounds after one to warm up")
    print(f"{'':32}{'':18}{'CPU s':>8}{'records/s':>13}{'MB/s':>8}   ours is faster by")
    for title, group in commands(path).items():
        times = {name: [] for name, _ in group}
        for i in range(rounds + 1):
            turn = i % len(group)
            for name, command in group[turn:] + group[:turn]:
                used = cpu_of(command)
                if i:
                    times[name].append(used)
        ours = times[group[0][0]]
        for name, used in times.items():
            median = statistics.median(used)
            ratio = statistics.median(b / a for a, b in zip(ours, used))
            beside = "" if used is ours else f"   {ratio:.1f}x"
            print(f"{title:32}{name:18}{median:8.3f}{records / median:13,.0f}{size / median / 1e6:8.0f}{beside}")
            title = ""


if __name__ == "__main__":
    main()
