#!/usr/bin/env python3
"""Reads of one document over HTTP: the gateway before SQLite, PostgreSQL and FerretDB, beside Datasette and express-pouchdb.

    scripts/gateway_peers.py [--rounds 5] [--seconds 5] [--connections 8] [--folder target/peers]

The same thousand documents for all, read in turn by their keys with `wrk`, by the same options, in interleaved rounds.
Datasette (PyPI, installed into --folder) serves a copy of the very SQLite file that the gateway serves, by its JSON route of
a row; express-pouchdb (npm, scripts/servers/couchdb) holds them in memory, by the route of a document. What is not there is
left out, and named. Printed are requests a second, p99, and the server's processor time for each request: of the gateway
alone, and with the store behind it. Client and servers share the processors of this machine. The gateway checks a key,
limits and the tenant with each request, and writes no log here; the peers check nothing.
"""

import argparse
import base64
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from built import ROOT, STEELYARD, build, need
from gateway import Client, Installation, before_others, cpu, tree
from rows import NoServer, server
from wrk import Wrk

DOCUMENTS = 1000


def document(n):
    return {"name": f"Bob {n}", "email": f"bob{n}@example.com", "age": n % 90, "admin": n % 2 == 0}


class Served:
    """A server that answers a document at a path with NUMBER in it."""

    def __init__(self, name, url, path, headers, pids, behind=list):
        self.name, self.url, self.path, self.headers = name, url, path, headers
        self.pids, self.behind, self.rounds = pids, behind, []

    def checked(self):
        """Whether it answers with the document, and how long the answer is."""
        request = urllib.request.Request(self.url + self.path.replace("NUMBER", "7"))
        for header in self.headers:
            request.add_header(*header.split(": ", 1))
        body = urllib.request.urlopen(request, timeout=20).read()
        if b"bob7@example.com" not in body:
            sys.exit(f"{self.name}: {body[:300]}")
        return len(body)

    def measure(self, seconds, connections):
        own, behind = self.pids(), self.behind()
        before = cpu(*own), cpu(*behind)
        found = Wrk(self.url, self.path, seconds, connections, self.headers, paths=DOCUMENTS).result()
        found["own"] = (cpu(*own) - before[0]) / found["requests"] * 1e6
        found["all"] = found["own"] + (cpu(*behind) - before[1]) / found["requests"] * 1e6
        if found["bad"] or found["failed"]:
            sys.exit(f"{self.name}: {found}")
        return found


def gateways(stack):
    """The gateway before each store that is there."""
    started = {}
    for name in ("postgres", "ferretdb"):
        before = {int(p) for p in os.listdir("/proc") if p.isdigit()}
        try:
            url = stack.enter_context(server(name, "t2"))
            new = {int(p) for p in os.listdir("/proc") if p.isdigit()} - before
            started[name] = (url, new)
        except NoServer as e:
            print(f"{name}: left out, its server did not start: {e}")
    shards = {"sqlite": "sqlite:t.db", **{name: url for name, (url, _) in started.items()}}
    at = stack.enter_context(Installation(shards))
    keys = {name: at.tenant(f"on-{name}", "--shard", name) for name in shards}
    gateway = at.serve()
    lines = "".join(json.dumps({"id": f"bob{n}", "doc": document(n)}) + "\n" for n in range(DOCUMENTS))
    for name, key in keys.items():
        answer = Client(gateway.address, key).ask("POST", "/v1/docs/people:bulk", lines)
        if answer[0] != 200 or b'"problem"' in answer[2]:
            sys.exit(f"{name}: {answer}")

        def behind(name=name):
            if name not in started:
                return []
            # PostgreSQL has a process for each connection.
            return sorted({pid for root in started[name][1] if Path(f"/proc/{root}").exists() for pid in tree(root)})

        yield Served(f"steelyard, {name}", f"http://{gateway.address}", "/v1/docs/people/bobNUMBER",
                     [f"Authorization: Bearer {key}"], lambda: [gateway.pid], behind)
    stack.callback(gateway.kill)
    stack.at = at


def datasette(stack, folder):
    """Datasette, before a copy of the database of the gateway."""
    libraries = folder / "python"
    environment = {**os.environ, "PYTHONPATH": str(libraries)}
    if not (libraries / "datasette").is_dir():
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", libraries, "datasette"])
        if done.returncode:
            print("datasette: left out, pip could not install it")
            return
    source = next(f for f in stack.at.path.glob("t.db.steelyard_*") if not f.name.endswith(("-wal", "-shm")))
    copy = stack.at.path / "data.db"
    subprocess.run([sys.executable, "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('vacuum into ?', sys.argv[2:])",
                    source, copy], check=True)
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "datasette", "serve", copy, "--port", str(port)], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.kill)
    url = f"http://127.0.0.1:{port}"
    version = subprocess.run([sys.executable, "-m", "datasette", "--version"], env=environment, capture_output=True, text=True)
    wait(url + "/-/versions.json", process)
    yield Served(version.stdout.strip().removeprefix("python -m ").replace(", version", ""), url, "/data/people/bobNUMBER.json", [], lambda: tree(process.pid))


def pouchdb(stack):
    """express-pouchdb, filled by `copy`."""
    before = {int(p) for p in os.listdir("/proc") if p.isdigit()}
    try:
        url = stack.enter_context(server("couchdb", "t0"))
    except NoServer as e:
        print(f"express-pouchdb: left out, it did not start: {e}")
        return
    new = {int(p) for p in os.listdir("/proc") if p.isdigit()} - before
    records = stack.at.path / "people.json"
    records.write_text("".join(json.dumps({"_key": f"bob{n}", **document(n)}) + "\n" for n in range(DOCUMENTS)))
    subprocess.run([STEELYARD, "copy", "--quiet", records, f"{url}?table=people"], check=True, stdout=subprocess.DEVNULL)
    login, host = url.split("://")[1].split("@")
    host = host.split("?")[0].rstrip("/").split("/")
    headers = ["Authorization: Basic " + base64.b64encode(login.encode()).decode()]
    request = urllib.request.Request(f"http://{host[0]}/_all_dbs")
    request.add_header(*headers[0].split(": ", 1))
    names = json.loads(urllib.request.urlopen(request).read())
    name = next(n for n in names if "people" in n)
    pids = [p for p in new if Path(f"/proc/{p}/cmdline").exists() and b"serve.js" in Path(f"/proc/{p}/cmdline").read_bytes()]
    yield Served("express-pouchdb, in memory", f"http://{host[0]}", f"/{name}/bobNUMBER", headers, lambda: pids)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait(url, process):
    until = time.monotonic() + 60
    while True:
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            if time.monotonic() > until or process.poll() is not None:
                sys.exit(f"{url} is not answered")
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=ROOT / "target/peers")
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    args = parser.parse_args()
    need("wrk")
    if not args.no_build:
        build()
    before_others()
    args.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        all = [*gateways(stack), *datasette(stack, args.folder), *pouchdb(stack)]
        for served in all:
            print(f"{served.name}: {served.url}{served.path}, an answer of {served.checked()} bytes")
            served.measure(1, args.connections)
        print(f"wrk -t 1 -c {args.connections} -d {args.seconds}s, {args.rounds} interleaved rounds, "
              f"{os.cpu_count()} processors for client and server", flush=True)
        for n in range(args.rounds):
            for served in all[n % len(all):] + all[:n % len(all)]:
                served.rounds.append(served.measure(args.seconds, args.connections))
        base = next((s for s in all if s.name.startswith("datasette")), None)
        for served in all:
            middle = lambda what: statistics.median(found[what] for found in served.rounds)
            beside = ""
            if base and base is not served:
                faster = statistics.median(a["per_second"] / b["per_second"] for a, b in zip(served.rounds, base.rounds))
                cheaper = statistics.median(b["own"] / a["own"] for a, b in zip(served.rounds, base.rounds))
                beside = f"; {faster:.1f}x the requests of Datasette, 1/{cheaper:.1f} of its processor time"
            spread = min(f["per_second"] for f in served.rounds), max(f["per_second"] for f in served.rounds)
            with_store = f", {middle('all'):.0f} µs with the store" if served.behind() else ""
            print(f"{served.name:28} {middle('per_second'):>9,.0f} requests/s ({spread[0]:,.0f} to {spread[1]:,.0f}), p99 "
                  f"{middle('p99') / 1e3:.2f} ms, {middle('own'):.0f} µs of processor time a request"
                  f"{with_store}{beside}")


if __name__ == "__main__":
    main()
