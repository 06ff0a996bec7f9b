#!/usr/bin/env python3
"""What many tenants cost a gateway that serves few of them: its memory and open files with 100 registered, and with
10,000, where 100 are in use.

    scripts/gateway_tenants.py [--many 10000] [--used 100] [--requests 20000]

Each tenant has an SQLite database of its own, in a folder in memory. The same requests are sent to both gateways, to the
tenants in use in turn, over eight connections: a write and three reads each. Printed are resident memory, open files, the
time of a start, and the ratio; exit 1 where memory grows by more than 20 %.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from built import build, example
from gateway import Client, Installation, files, percentile, rss


def measured(at, keys, requests):
    begun = time.monotonic()
    gateway = at.serve()
    start = time.monotonic() - begun
    empty, times, most = rss(gateway.pid)[0], [], 0

    def ask(mine):
        # A tenant after the other, as strangers come.
        clients = [Client(gateway.address, key) for key in mine]
        for client in clients:
            client.close()
        shared = Client(gateway.address, mine[0])
        for n in range(requests // 8 // 4):
            shared.headers = {"Authorization": f"Bearer {mine[n % len(mine)]}"}
            for method in ("PUT", "GET", "GET", "GET"):
                before = time.monotonic()
                answer = shared.ask(method, f"/v1/docs/c/d{n % 50}", b'{"name":"Bob Jones","age":42}' if method == "PUT" else None)
                times.append(time.monotonic() - before)
                if not answer or answer[0] >= 400:
                    sys.exit(f"{method}: {answer}")

    threads = [threading.Thread(target=ask, args=(keys[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most = max(most, files(gateway.pid))
        time.sleep(0.05)
    now, peak = rss(gateway.pid)
    gateway.stop()
    return {"start": start, "empty": empty, "now": now, "peak": peak, "files": most, "p99": percentile(times, 0.99)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--used", type=int, default=100)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--no-build", action="store_true", help="use the programs that are there")
    args = parser.parse_args()
    if not args.no_build:
        build("tenants")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, Installation({"one": "sqlite:t.db"}, folder=folder) as at:
        keys, found = {}, []
        for first, count in ((0, args.used), (args.used, args.many - args.used)):
            begun = time.monotonic()
            command = [str(example("tenants")), "steelyard.toml", str(first), str(count)]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{command} failed: {done.stderr}")
            for line in done.stdout.splitlines():
                number, key = line.split()
                keys[int(number)] = key
            print(f"{len(keys):,} tenants registered ({time.monotonic() - begun:.1f} s)", flush=True)
            # Of all of them, not those that came first.
            step = len(keys) // args.used
            used = [keys[n * step] for n in range(args.used)]
            for _ in range(3):
                found.append((len(keys), measured(at, used, args.requests)))
                print("  {:,} registered, {} in use: start {start:.2f} s, memory {empty:.1f} MB before the first request, "
                      "{now:.1f} MB after all, at most {peak:.1f} MB; at most {files} open files; p99 {p99:.4f} s".format(
                          len(keys), args.used, **found[-1][1]), flush=True)
    few, many = ([m["peak"] for count, m in found if count == n] for n in sorted({c for c, _ in found}))
    ratio = sorted(many)[1] / sorted(few)[1]
    print(f"memory with {args.many:,} registered is {ratio:.3f} of that with {args.used} (medians of 3 starts)")
    sys.exit(ratio > 1.2)


if __name__ == "__main__":
    main()
