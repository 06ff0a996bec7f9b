#!/usr/bin/env python3
"""Runs one bench several times and compares every pair of runs: how many verdicts are false?

    scripts/same_runs.py steelyard 10 bench formats --trial --limit 2000 --budget 20
    scripts/same_runs.py --keep runs/ target/release/steelyard 10 bench keep --on sqlite --budget 20

It is the same program on the same records, so that every "faster" or "slower" between two runs is
false, and so is every exit status 1 of --fail-on-regression. With --trial, the baseline also runs under
a second name in each run: it counts how often that one is called different from itself there, and how
far their ratio of elapsed times is from 1. Needs nothing but Python 3 and the program, which it does not
build: it is often an old one.
"""

import argparse
import collections
import itertools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

DIFFERENT = ("faster", "slower")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keep", type=pathlib.Path, help="keep the results in this folder")
    parser.add_argument("--limit", default="5%", help="of --fail-on-regression")
    parser.add_argument("binary")
    parser.add_argument("runs", type=int)
    parser.add_argument("bench", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if not shutil.which(args.binary):
        sys.exit(f"no program {args.binary}; `cargo build --release` makes target/release/steelyard")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{n}.json" for n in range(args.runs)]
        for file in files:
            command = [args.binary, *args.bench, "--out", file]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode not in (0, 1):
                sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
        within([json.load(open(file)) for file in files])
        between(args.binary, files, args.limit)


def within(runs):
    """The baseline under its second name, inside of each run."""
    cells = called = far = unlike = 0
    worst = 1.0
    for run in runs:
        base = {c["phase"]: c for c in run["cells"] if c["competitor"] == run["baseline"]}
        for cell in run["cells"]:
            if cell["competitor"] != "again" or not cell["rounds"]:
                continue
            other = base[cell["phase"]]
            cells += 1
            versus = cell["summary"]["versus"]
            called += versus is not None and versus["verdict"] in DIFFERENT
            pairs = zip(cell["rounds"], other["rounds"])
            unlike += any(units(cell, a) != units(other, b) for a, b in pairs)
            ratio = versus["ratio"]["middle"] if versus else 1.0
            worst = max(worst, ratio, 1 / ratio)
            far += max(ratio, 1 / ratio) > 1.03
    noisy = sum(len({p["round"] for p in r["probes"] if p["noisy"]}) > 0.2 * rounds(r) for r in runs)
    print(f"{len(runs)} runs of {', '.join(str(rounds(r)) for r in runs)} rounds; {noisy} of them noisy")
    if cells:
        print(
            f"the same under two names: {called} of {cells} cells called different, {far} over 3 % "
            f"apart, {worst:.2f} times at most; windows of different length in {unlike}"
        )


def rounds(run):
    return len({p["round"] for p in run["probes"]})


def units(cell, timed):
    return timed.get("units") or cell["units"]


def between(binary, files, limit):
    """Every run against every other one, each way for the gate."""
    pairs = shown = barred = cells = false = 0
    statuses = collections.Counter()
    for new, old in itertools.permutations(files, 2):
        gate = [binary, "report", new, old, "--format", "json", "--fail-on-regression", limit]
        done = subprocess.run(gate, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        statuses[done.returncode] += 1
        if str(new) > str(old):
            continue
        [comparison] = json.loads(done.stdout)
        with_csv = [binary, "report", new, old, "--format", "csv"]
        table = subprocess.run(with_csv, stdout=subprocess.PIPE, check=True, text=True).stdout
        rows = [line.split(",") for line in table.splitlines()[1:]]
        held = [row for row in rows if row[-1] == "true"]
        called = sum(row[-2] in DIFFERENT for row in held)
        pairs += 1
        cells += len(held)
        false += called
        shown += called > 0
        barred += bool(rows) and not held
    print(
        f"{pairs} pairs of runs: {shown} show a difference ({false} of {cells} comparisons), "
        f"{barred} not comparable"
    )
    told = ", ".join(f"{n} with status {status}" for status, n in sorted(statuses.items()))
    print(f"--fail-on-regression {limit} of {sum(statuses.values())}: {told}")


if __name__ == "__main__":
    main()
