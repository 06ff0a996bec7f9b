#!/usr/bin/env python3
"""Moves a tenant to and fro between shards under write load by three gateway processes, of which one is stopped again and
again for longer than its lease and one is killed again and again; then looks for every write that was acknowledged.

    scripts/moves.py [--moves 100] [--lease 0.3] [--on sqlite --on postgres …] [--seed 1]

Each writer, two at each gateway, creates documents of its own (with an Idempotency-Key; what was not acknowledged is sent
again through any gateway until it is), and appends to one list by GET and PUT with If-Match. A write that was acknowledged
must be there, once: a document under its id, an entry of a list as often as it was acknowledged. A tenant beside it, which
nobody moves, writes too, and must have nothing but what it wrote. Private servers are started for the shards that need
one; the default is SQLite and PostgreSQL, in turn. "Frozen" is how long a client of the gateway that nothing happens to is
answered 503, for each move. Exit 1 if anything is lost or there twice.
"""

import argparse
import json
import random
import signal
import statistics
import sys
import threading
import time
from contextlib import ExitStack

from built import build
from gateway import Client, Installation, documents, percentile, settled
from rows import NoServer, server


class Shared:
    """What the threads tell one another."""

    def __init__(self, gateways):
        self.gateways, self.done, self.lock = gateways, threading.Event(), threading.Lock()
        self.created, self.appended = set(), {}
        self.refused, self.unknown, self.wrong = 0, 0, []
        self.frozen, self.waits = [], []

    def count(self, answer, what):
        """Counts an answer that is no acknowledgement, where it may be one; says what else it is."""
        with self.lock:
            if answer is None:
                self.unknown += 1
            elif answer[0] in (503, 504):
                self.refused += 1
            else:
                self.wrong.append((what, answer[0], answer[2][:200]))


def creates(shared, key, name, home, draw):
    """Documents of its own, each until it is acknowledged."""
    clients = {}
    n = 0
    while not shared.done.is_set():
        n += 1
        at, begun = home, time.monotonic()
        while True:
            client = clients.setdefault(at, Client(shared.gateways[at], key, 30))
            client.address = shared.gateways[at]
            answer = client.ask("PUT", f"/v1/docs/made/{name}-{n}", json.dumps({"n": n}), Idempotency_Key=f"{name}-{n}")
            if answer and answer[0] in (200, 201):
                with shared.lock:
                    shared.created.add(f"{name}-{n}")
                    shared.waits.append(time.monotonic() - begun)
                break
            shared.count(answer, f"{name}-{n}")
            # Through any of them: the key says that it is the same write. Where it was not done when the test ended it
            # was not acknowledged.
            at = draw.randrange(len(shared.gateways))
            if shared.done.is_set():
                break
            time.sleep(0.002)


def appends(shared, key, name, home):
    """Entries of a list, each put where it was not changed meanwhile."""
    client, path, n = Client(shared.gateways[home], key, 30), f"/v1/docs/lists/{name}", 0
    while not shared.done.is_set():
        client.address = shared.gateways[home]
        there = client.ask("GET", path)
        if there is None or there[0] not in (200, 404):
            shared.count(there, path)
            time.sleep(0.002)
            continue
        entries = json.loads(there[2])["entries"] if there[0] == 200 else []
        match = {"If_Match": there[1]["ETag"]} if there[0] == 200 else {"If_None_Match": "*"}
        n += 1
        # A list that grows without end would be measured, not moves.
        body = json.dumps({"entries": [*entries, n][-200:], "all": n})
        answer = client.ask("PUT", path, body, **match)
        if answer and answer[0] in (200, 201):
            with shared.lock:
                shared.appended.setdefault(name, []).append(n)
        else:
            shared.count(answer, path)


def watches(shared, key):
    """How long the gateway that nothing happens to answers 503, each time."""
    client, since = Client(shared.gateways[0], key, 30), None
    while not shared.done.is_set():
        answer = client.ask("GET", "/v1/docs/made/watched")
        now = time.monotonic()
        if answer and answer[0] == 503:
            since = since or now
        elif since:
            shared.frozen.append(now - since)
            since = None
        time.sleep(0.001)


def stops(shared, victim, lease, draw):
    """Stops a gateway at random, for longer than its lease."""
    count = 0
    while not shared.done.wait(draw.uniform(0, 2 * lease)):
        victim.signal(signal.SIGSTOP)
        time.sleep(draw.uniform(1.1, 2.5) * lease)
        victim.signal(signal.SIGCONT)
        count += 1
    shared.stopped = count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=100)
    parser.add_argument("--lease", type=float, default=0.3)
    parser.add_argument("--on", action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    args = parser.parse_args()
    if not args.no_build:
        build()
    draw = random.Random(args.seed)
    with ExitStack() as stack:
        shards = {}
        for name in args.on or ["sqlite", "postgres"]:
            try:
                url = f"sqlite:{name}.db" if name.startswith("sqlite") else stack.enter_context(server(name, "t2"))
            except NoServer as e:
                sys.exit(f"{name}: its server did not start: {e}")
            shards[name] = url
        if len(shards) == 1:
            shards["sqlite-two"] = "sqlite:two.db"
        at = stack.enter_context(Installation(shards, args.lease))
        names = list(shards)
        key, beside = at.tenant("moved", "--shard", names[0]), at.tenant("beside", "--shard", names[0])
        gateways = [at.serve() for _ in range(3)]
        shared = Shared([g.address for g in gateways])
        threads = [threading.Thread(target=watches, args=(shared, key))]
        for home in range(3):
            own = random.Random(args.seed + home)
            threads.append(threading.Thread(target=creates, args=(shared, key, f"w{home}", home, own)))
            threads.append(threading.Thread(target=appends, args=(shared, key, f"w{home}", home)))
        others = Shared([gateways[0].address])
        threads.append(threading.Thread(target=creates, args=(others, beside, "b", 0, draw)))
        threads.append(threading.Thread(target=stops, args=(shared, gateways[1], args.lease, random.Random(args.seed))))
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        took, killed = [], 0
        for n in range(args.moves):
            before = time.monotonic()
            at.run("tenant", "move", "moved", "--to", names[(n + 1) % len(names)])
            took.append(time.monotonic() - before)
            # Until clients have written where it is now.
            there = len(shared.created)
            while len(shared.created) < there + 30:
                time.sleep(0.005)
            if n % 10 == 4:
                # At any moment of a request; a new one takes its place.
                time.sleep(draw.uniform(0, args.lease))
                gateways[2].kill()
                gateways[2] = at.serve()
                shared.gateways[2] = gateways[2].address
                killed += 1
        seconds = time.monotonic() - begun
        shared.done.set()
        others.done.set()
        for thread in threads:
            thread.join()
        gateways[1].signal(signal.SIGCONT)
        time.sleep(args.lease)
        settled(gateways[0].address, key)
        made, twice = documents(gateways[0].address, key, "made")
        lists, _ = documents(gateways[0].address, key, "lists")
        own, _ = documents(gateways[0].address, beside, "made")
    lost = sorted(shared.created - made.keys())
    doubled = twice
    for name, entries in shared.appended.items():
        there = lists.get(name, {"entries": []})["entries"]
        recent = [n for n in entries if there and n >= there[0]]
        lost += [f"{name}: {n}" for n in recent if n not in there]
        doubled += len(there) - len(set(there))
    foreign = [i for i in own if not i.startswith("b-")] + [i for i in made if not i.startswith("w")]
    lost += sorted(others.created - own.keys())
    acknowledged = len(shared.created) + sum(map(len, shared.appended.values()))
    print(f"{args.moves} moves between {', '.join(names)} in {seconds:.0f} s, lease {args.lease} s; one gateway stopped "
          f"{shared.stopped} times, one killed {killed} times")
    print(f"writes acknowledged: {acknowledged} ({len(shared.created)} creations, {acknowledged - len(shared.created)} "
          f"entries of lists); lost: {len(lost)}; there twice: {doubled}; of another tenant: {len(foreign)}")
    print(f"answered 503 or 504: {shared.refused}; not answered: {shared.unknown}; tenant beside it: "
          f"{len(others.created)} acknowledged, {others.refused + others.unknown} not")
    print(f"frozen for a client: median {statistics.median(shared.frozen or [0]) * 1e3:.0f} ms, "
          f"most {max(shared.frozen or [0]) * 1e3:.0f} ms, {len(shared.frozen)} times; `tenant move`: median "
          f"{statistics.median(took):.2f} s, most {max(took):.2f} s")
    print(f"a creation until it was acknowledged: median {percentile(shared.waits, 0.5) * 1e3:.1f} ms, "
          f"p99 {percentile(shared.waits, 0.99) * 1e3:.0f} ms, most {max(shared.waits) * 1e3:.0f} ms")
    wrong = shared.wrong + others.wrong
    for what in [f"lost: {i}" for i in lost[:5]] + [f"unexpected: {w}" for w in wrong[:5]]:
        print(what)
    sys.exit(bool(lost or doubled or foreign or wrong))


if __name__ == "__main__":
    main()
