#!/usr/bin/env python3
"""Shows that nothing disturbs a timed window: instructions an operation inside it, without a terminal and
on one, where progress is shown.

    scripts/undisturbed.py [RUNS]

Runs `steelyard bench` on the store in memory under callgrind, which counts inside the loop of the
window only (`bench/stores/load_loop.rs`), RUNS times (3) each. Needs valgrind and script; builds what it runs.
"""

import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from built import STEELYARD, build, need
from harness import WORKLOAD

LOOP = "steelyard::bench::stores::load_loop::closed::{{closure}}::{{closure}}"
SEND = "<steelyard::bench::stores::operation::Op as steelyard::bench::stores::operation::Operation>::send::{{closure}}"


def measure(folder, terminal):
    """Instructions an operation, of the loop and of the store, and how often the progress was drawn."""
    out = folder / "counted"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={LOOP}",
               STEELYARD, "bench", folder / "reads.toml", "--on", "memory", "--rounds", "1", "--no-audit"]
    line = shlex.join(str(word) for word in command)
    if terminal:
        said = subprocess.run(["script", "-qec", "stty cols 120; " + line, "/dev/null"], capture_output=True, check=True)
    else:
        said = subprocess.run(line, shell=True, capture_output=True, check=True)
    drawn = (said.stdout + said.stderr).count(b"timing")
    tree = subprocess.run(["callgrind_annotate", "--tree=calling", "--inclusive=yes", "--threshold=100", out],
                          capture_output=True, text=True, check=True).stdout

    def called(function):
        """Instructions in all calls of a function, and how many there were."""
        found = re.findall(r"([\d,]+) \([ \d.]+%\)  >   \S*?" + function + r" \(([\d,]+)x\)", tree)
        return [sum(int(pair[i].replace(",", "")) for pair in found) for i in (0, 1)]

    total = int(re.search(r"([\d,]+) \(100.0%\)  PROGRAM TOTALS", tree).group(1).replace(",", ""))
    (sent, sends), (got, gets) = called(re.escape(SEND)), called(r"<steelyard::store::memory::Memory<.*?::get::{{closure}}")
    return (total - sent) / sends, got / gets, drawn


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    need("valgrind", "callgrind_annotate", "script")
    build()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "reads.toml").write_text(WORKLOAD.format(keys=2_000, count=20_000, depth=1))
        for terminal in (False, True):
            seen = [measure(folder, terminal) for _ in range(runs)]
            loop, get, drawn = (statistics.median(each) for each in zip(*seen))
            where = "on a terminal" if terminal else "without one"
            print(f"{where}: {loop:.1f} instructions an operation in the loop, {get:.1f} in the store; "
                  f"progress drawn {drawn:.0f} times a run")


if __name__ == "__main__":
    main()
