#!/usr/bin/env python3
"""Tries `steelyard bench keep` for real: one store under three names, and one that is slowed.

    scripts/aa.py [--runs 20] [--store sqlite] [--busy 2] [--delay 10 --delay 20]

Every page on which any of the three equal names is called faster or slower, or ranked behind another,
is wrong; at most 5 % of pages may be. With --delay P, the third name is slowed by P % (a busy wait
after each call), and it is counted in how many phases it was found slower than both of the others.
--busy N keeps N processes spinning meanwhile. Results files are kept with --keep FOLDER. The program is
built first, unless --steelyard names another.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path

from built import STEELYARD, build

DIFFERENT = ("faster", "slower")


def spin():
    while True:
        pass


def run(args, seed, third, out):
    """One page: its results, or an error with what the program said."""
    stores = [f"a={args.store}", f"b={args.store}", f"c={third}"]
    named = [word for store in stores for word in ("--on", store)]
    limits = ["--rounds", str(args.rounds), "--budget", str(args.budget), "--scale", str(args.scale)]
    more = ["--no-audit", "--seed", str(seed), "--format", "csv", "--out", str(out)]
    command = [args.steelyard, "bench", "keep", *named, *limits, *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Status 1 says that a store did not have the durability asked for, or the like: not an error here.
    if not out.exists():
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(out.read_text())


def pairs(results):
    """Each comparison within a phase: phase, who, with whom, verdict."""
    for pair in (results.get("family") or {}).get("pairs", []):
        (of, phase), (to, _) = pair["of"], pair["to"]
        yield phase, of, to, pair["versus"]["verdict"]


def false_verdicts(results, equals):
    return [
        f"{of} {verdict} than {to} at {phase}"
        for phase, of, to, verdict in pairs(results)
        if {of, to} <= equals and verdict in DIFFERENT
    ]


def false_ranks(results, equals):
    """Ranks of equals that differ from each other within a phase."""
    found = []
    for phase in {cell["phase"] for cell in results["cells"]}:
        ranks = {
            cell["competitor"]: cell["summary"]["group"]
            for cell in results["cells"]
            if cell["phase"] == phase and cell["competitor"] in equals and cell["summary"]
        }
        if len(set(ranks.values())) > 1:
            found.append(f"ranks at {phase}: {ranks}")
    return found


def noisy(results):
    probes = results["probes"]
    return sum(p["noisy"] for p in probes) > 0.2 * len(probes)


def judged(results):
    return any(verdict != "untested" for *_, verdict in pairs(results))


def found_slow(results):
    """Phases in which c was found slower than a and b, and those in which it was compared."""
    phases = {}
    for phase, of, to, verdict in pairs(results):
        if "c" in (of, to) and verdict != "untested":
            phases.setdefault(phase, []).append(verdict == ("slower" if of == "c" else "faster"))
    return sum(all(found) for found in phases.values()), len(phases)


def sensitivity(results):
    ratios = [s["ratio"] for s in (results.get("family") or {}).get("sensitivity", [])]
    return f"{100 * (min(ratios) - 1):.0f} to {100 * (max(ratios) - 1):.0f} %" if ratios else "-"


def trial(args, folder, delay):
    third = args.store
    if delay:
        third += f"{'&' if '?' in third else '?'}delay={delay:g}%"
    equals = {"a", "b"} if delay else {"a", "b", "c"}
    wrong = noise = compared = found = phases = 0
    for seed in range(1, args.runs + 1):
        results = run(args, seed, third, folder / f"delay-{delay:g}-run-{seed}.json")
        errors = false_verdicts(results, equals) + false_ranks(results, equals)
        wrong += bool(errors)
        noise += noisy(results)
        compared += judged(results)
        of, all_of = found_slow(results)
        found, phases = found + of, phases + all_of
        print(f"  run {seed}: could have shown {sensitivity(results)}", end="")
        print(f"; slower in {of} of {all_of} phases" if delay else "", end="")
        print(f"; WRONG: {'; '.join(errors)}" if errors else "", flush=True)
    return {
        "third name": f"slowed by {delay:g} %" if delay else "equal",
        "pages": args.runs,
        "noisy": noise,
        "compared": compared,
        "wrong": f"{wrong} ({100 * wrong / args.runs:.0f} %)",
        "found": f"{found} of {phases} ({100 * found / max(phases, 1):.0f} %)" if delay else "-",
    }


def table(rows):
    heads = list(rows[0])
    widths = [max(len(head), *(len(str(row[head])) for row in rows)) for head in heads]
    line = lambda cells: "  ".join(str(cell).ljust(w) for cell, w in zip(cells, widths)).rstrip()
    print(line(heads))
    for row in rows:
        print(line([row[head] for head in heads]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steelyard", help="the program; the one of this folder, built anew, if not given")
    parser.add_argument("--store", default="sqlite", help="what runs under three names")
    parser.add_argument("--runs", type=int, default=20, help="pages of each kind")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--budget", type=float, default=60, help="seconds a page may take")
    parser.add_argument("--scale", type=float, default=1, help="times the records of the workload")
    parser.add_argument("--busy", type=int, default=0, help="processes that spin meanwhile")
    parser.add_argument("--delay", type=float, action="append", default=[], help="percent; repeatable")
    parser.add_argument("--keep", type=Path, help="keep the results files in this folder")
    args = parser.parse_args()
    if not args.steelyard:
        build()
        args.steelyard = str(STEELYARD)
    spinning = [multiprocessing.Process(target=spin, daemon=True) for _ in range(args.busy)]
    for process in spinning:
        process.start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = args.keep or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            rows = []
            for delay in [0, *args.delay]:
                print(f"{args.store}, {'third name slowed by %g %%' % delay if delay else 'three names'}:")
                rows.append(trial(args, folder, delay))
    finally:
        for process in spinning:
            process.terminate()
    print()
    table(rows)
    equals = rows[0]
    return 1 if int(equals["wrong"].split()[0]) > 0.05 * args.runs else 0


if __name__ == "__main__":
    sys.exit(main())
