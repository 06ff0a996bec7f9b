#!/usr/bin/env python3
"""The memcached client against its peers, on one CPU with a server of one thread.

A client and a server on different virtual CPUs pay for waking each other, which is many times what
either does: so both are pinned to one CPU, every client takes its turn, and the medians are shown.

    scripts/memcached_speed.py [--rounds 7] [--cpu 1]

Needs memcached; libmemcached-dev and cc for libmemcached, pymemcache for itself, strace for the
counts of system calls. Except for memcached, what is missing is left out. Builds its example first.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from built import ROOT, build, example, need

WORKS = [("get", 60000), ("set", 60000), ("multiget", 3000), ("noblock", 3000)]
PYTHON = r"""
import resource, sys, time
from pymemcache.client.base import Client
work, address, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
c = Client(address)
keys = ["key%05d" % i for i in range(100)]
value = b"v" * 100
for k in keys: c.set(k, value)
def run(n):
    if work == "get":
        for i in range(n): c.get(keys[i % 100])
    elif work == "set":
        for i in range(n): c.set(keys[i % 100], value, noreply=False)
    elif work == "multiget":
        for i in range(n): c.get_many(keys)
    else:
        for i in range(n):
            c.set_many(dict.fromkeys(keys, value), noreply=True)
run(n // 20 + 1)
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF); return u.ru_utime + u.ru_stime
b, u = time.monotonic(), cpu()
run(n)
batch = 1 if work in ("get", "set") else 100
print((time.monotonic() - b) * 1e6 / n / batch, (cpu() - u) * 1e6 / n / batch)
"""


def clients(folder):
    ours = str(example("memcached_speed"))
    found = {"floor": [ours, "floor"], "steelyard": [ours, "ours"]}
    out = os.path.join(folder, "peer")
    source = os.path.join(ROOT, "scripts/memcached_speed.c")
    built = shutil.which("cc") and subprocess.run(
        ["cc", "-O2", "-o", out, source, "-lmemcached"], stderr=subprocess.DEVNULL).returncode == 0
    if built:
        found["libmemcached"] = [out]
    if subprocess.run([sys.executable, "-c", "import pymemcache"], stderr=subprocess.DEVNULL).returncode == 0:
        found["pymemcache"] = [sys.executable, "-c", PYTHON]
    return found


def measure(command, work, address, operations, cpu):
    line = ["taskset", "-c", str(cpu), *command, work, address, str(operations)]
    said = subprocess.run(line, capture_output=True, text=True)
    if said.returncode:
        return None
    return tuple(float(word) for word in said.stdout.split())


def calls(command, work, address, folder, cpu):
    """System calls an operation: the difference of two runs, so that the start does not count."""
    counts = []
    for operations in (2000, 4000):
        out = os.path.join(folder, "strace")
        subprocess.run(["strace", "-f", "-c", "-o", out, "taskset", "-c", str(cpu), *command, work,
                        address, str(operations)], stdout=subprocess.DEVNULL)
        total = re.search(r"(\d+)(?:\s+\d+)? total", open(out).read())
        counts.append(int(total.group(1)) if total else 0)
    # The program runs a twentieth more before it measures.
    return (counts[1] - counts[0]) / 2100


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cpu", type=int, default=(os.cpu_count() or 1) - 1)
    parser.add_argument("--no-strace", action="store_true")
    args = parser.parse_args()
    need("memcached", "taskset")
    build("memcached_speed")
    with tempfile.TemporaryDirectory() as folder:
        address = os.path.join(folder, "socket")
        server = subprocess.Popen(["taskset", "-c", str(args.cpu), "memcached", "-t", "1", "-s", address,
                                   "-a", "0777", *(["-u", "root"] if os.getuid() == 0 else [])])
        try:
            while not os.path.exists(address):
                time.sleep(0.01)
            table(clients(folder), address, folder, args)
        finally:
            server.terminate()
            server.wait()


def table(found, address, folder, args):
    print(f"microseconds an operation, a key in batches of 100 [CPU of the client]; "
          f"median of {args.rounds}, all on CPU {args.cpu}")
    extra = [("pipe-get", 3000), ("pipe-mg", 3000)]
    for work, operations in WORKS + extra:
        seen = {name: [] for name in found if work in dict(WORKS) or name == "floor"}
        for _ in range(args.rounds):
            for name in seen:
                one = measure(found[name], work, address, operations, args.cpu)
                if one:
                    seen[name].append(one)
        base = None
        for name, runs in seen.items():
            if not runs:
                continue
            wall, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
            base = base or wall
            counted = ""
            if shutil.which("strace") and not args.no_strace and work in ("get", "set"):
                counted = f"  {calls(found[name], work, address, folder, args.cpu):.2f} system calls"
            print(f"{work:9} {name:13} {wall:8.3f} [{cpu:.3f}]  {wall / base:5.2f}x floor{counted}",
                  flush=True)


main()
