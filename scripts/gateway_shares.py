#!/usr/bin/env python3
"""What one tenant sees while another floods the gateway: its p99 alone, and beside the flood, in turns.

    scripts/gateway_shares.py [--rounds 7] [--seconds 4] [--connections 64] [FLOOD …]

Each tenant has an SQLite database. The one that is measured reads documents, 250 a second, one after the other: it needs
little, so what it waits for is the flood. The other asks for what the name of the flood says, on `--connections`: `reads` of documents, `writes`, `pages` of 1,000 documents, `bulk` requests
of 500 documents, `refused` requests (it has 1,000 a second, and asks for all it can), `strangers` without a valid key. No
other limit holds but that of requests at once. Needs `wrk`. The gateway has one processor and the clients another, so that
what is measured is the gateway's doing: on the same processors a client that floods also takes time from one that does
not, whatever the gateway does, so the client that floods has a lower priority. `--share` lets all of them have all
processors. For root, the gateway goes before what else runs on the machine, and the one that is measured before all (`chrt`):
else it would wait for the end of the other client's time slice. Printed are medians over the rounds; the ratio is the median of
the rounds' ratios; exit 1 where one is over 2.
"""

import argparse
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import time

from built import build, need
from gateway import Client, Installation, percentile
from wrk import Wrk

LINES = "".join(f'{{"id":"x{n}","doc":{{"name":"Bob Jones","age":{n % 90}}}}}\n' for n in range(500))
# Requests a second of the one that is measured.
RATE = 250
FLOODS = {
    "reads": {"path": "/v1/docs/people/bobNUMBER"},
    "writes": {"path": "/v1/docs/new/xNUMBER", "method": "PUT", "body": '{"name":"Bob Jones","age":42}', "paths": 100_000},
    "pages": {"path": "/v1/docs/people?limit=1000"},
    "bulk": {"path": "/v1/docs/new:bulk", "method": "POST", "body": LINES},
    "refused": {"path": "/v1/docs/people/bobNUMBER"},
    "strangers": {"path": "/v1/docs/people/bobNUMBER"},
}


def paced(address, key, seconds):
    """Microseconds that each of the requests took, from the time it was due."""
    host, port = address.split(":")
    stream = socket.create_connection((host, int(port)))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    gc.disable()
    took, begun = [], time.perf_counter()
    for n in range(int(seconds * RATE)):
        due = begun + n / RATE
        if (left := due - time.perf_counter()) > 0:
            time.sleep(left)
            due = time.perf_counter()
        stream.sendall(f"GET /v1/docs/people/bob{n * 7 % 1000} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        answer = b""
        while b"bob" not in answer or not answer.endswith(b"}"):
            part = stream.recv(65536)
            if not part:
                sys.exit(f"it hung up: {answer}")
            answer += part
        if not answer.startswith(b"HTTP/1.1 200"):
            sys.exit(answer.decode())
        took.append((time.perf_counter() - due) * 1e6)
    print(json.dumps({"p50": percentile(took, 0.5), "p99": percentile(took, 0.99), "requests": len(took)}))


def main():
    if sys.argv[1:2] == ["paced"]:
        return paced(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floods", nargs="*", metavar="FLOOD", help=", ".join(FLOODS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    args = parser.parse_args()
    need("wrk", "taskset")
    if not args.no_build:
        build()
    processors = sorted(os.sched_getaffinity(0))
    apart = len(processors) > 1 and not args.share
    server = ["taskset", "-c", processors[0]] if apart else []
    client = ["taskset", "-c", processors[1]] if apart else []
    root = os.geteuid() == 0
    server += ["nice", "-n", "-15"] if root else []
    quick = [*client, *(["chrt", "-r", "10"] if root else [])]
    slow = [*client, "nice", "-n", "19"]
    print(f"{len(processors)} processors; the gateway has {'one, the clients another' if apart else 'all, as the clients have'}")
    over = False
    for name in args.floods or FLOODS:
        with Installation({"one": "sqlite:t.db"}) as at:
            quiet = at.tenant("quiet")
            flood = at.tenant("flood", *(["--requests-per-second", 1000] if name == "refused" else []))
            gateway = at.serve(server)
            url = f"http://{gateway.address}"
            for key in (quiet, flood):
                lines = "".join(
                    json.dumps({"id": f"bob{n}", "doc": {"name": f"Bob {n}", "email": f"bob{n}@example.com", "age": n % 90}}) + "\n"
                    for n in range(1000))
                answer = Client(gateway.address, key).ask("POST", "/v1/docs/people:bulk", lines)
                if answer[0] != 200:
                    sys.exit(f"filling: {answer}")
            if name == "strangers":
                flood = flood[:-2] + ("AA" if flood[-2:] != "AA" else "BB")

            def measured():
                command = [*quick, sys.executable, __file__, "paced", gateway.address, quiet, args.seconds]
                return json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout)

            def flooded():
                what = Wrk(url, seconds=args.seconds + 1, connections=args.connections,
                           headers=[f"Authorization: Bearer {flood}"], before=slow, **FLOODS[name])
                time.sleep(0.5)
                own = measured()
                return own, what.result()

            measured()
            alone, beside, floods = [], [], []
            for n in range(args.rounds):
                # In turns: what changes with time changes both.
                for which in (0, 1) if n % 2 else (1, 0):
                    if which:
                        own, what = flooded()
                        beside.append(own)
                        floods.append(what)
                    else:
                        alone.append(measured())
            middle = lambda found, what: statistics.median(f[what] for f in found)
            ratios = [b["p99"] / a["p99"] for a, b in zip(alone, beside)]
            ratio = statistics.median(ratios)
            over |= ratio > 2
            print(f"{name:10} alone p50 {middle(alone, 'p50') / 1e3:.2f} ms, p99 {middle(alone, 'p99') / 1e3:.2f} ms; "
                  f"beside the flood p50 {middle(beside, 'p50') / 1e3:.2f} ms, p99 "
                  f"{middle(beside, 'p99') / 1e3:.2f} ms; p99 x{ratio:.2f} "
                  f"({min(ratios):.2f} to {max(ratios):.2f}); the flood "
                  f"{middle(floods, 'per_second'):,.0f}/s, {sum(f['bad'] for f in floods):,} of "
                  f"{sum(f['requests'] for f in floods):,} refused", flush=True)
            gateway.stop()
    sys.exit(over)


if __name__ == "__main__":
    main()
