#!/usr/bin/env python3
"""The gateway where things go wrong: many connections, slow clients, a full disk, a store and a catalog that stop, die and
come back, and its own end. Looks for every write that was acknowledged.

    scripts/gateway_load.py [crowd] [slow] [disk] [store] [catalog] [stop] [--seconds 10]

Without a name all of them are tried. Printed are what was answered, how long it took (p50, p99), the gateway's memory, and
what was lost; exit 1 if anything acknowledged is not there. Client and gateway share the processors of this machine, so
times are those of a machine that is full. `disk` mounts a file system of 8 MB in memory (root), `store` and `catalog` start
a PostgreSQL of their own (Debian's, as another user where this is root).
"""

import argparse
import asyncio
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from built import build
from gateway import Client, Gateway, Installation, documents, files, percentile, rss, settled

FAILED = []


def check(holds, what):
    if not holds:
        FAILED.append(what)
        print(f"  WRONG: {what}")


class Caller:
    """A connection of HTTP that is opened again when it was closed."""

    def __init__(self, address, key):
        self.host, self.port = address.split(":")
        self.key, self.streams, self.connects = key, None, 0

    async def ask(self, method, path, body=b"", within=60):
        """The status of the answer; None where none came. A request that found its connection closed by the
        gateway is sent once more on a new one: nothing of it was read."""
        return await asyncio.wait_for(self.asked(method, path, body), within)

    async def asked(self, method, path, body):
        head = (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        for _ in range(2):
            fresh = self.streams is None
            try:
                if fresh:
                    self.connects += 1
                    self.streams = await asyncio.open_connection(self.host, int(self.port))
                reader, writer = self.streams
                writer.write(head + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                lower = answer.lower()
                length = 0
                if (at := lower.find(b"content-length:")) >= 0:
                    length = int(lower[at + 15 : lower.find(b"\r\n", at)])
                if length:
                    await reader.readexactly(length)
                if b"connection: close" in lower:
                    self.close()
                return int(answer[9:12])
            except asyncio.IncompleteReadError as e:
                self.close()
                if fresh or e.partial:
                    return None
            except OSError:
                self.close()
                if fresh:
                    return None
        return None

    def close(self):
        if self.streams:
            self.streams[1].close()
        self.streams = None


class Load:
    """What callers saw."""

    def __init__(self):
        self.statuses, self.times, self.acknowledged = Counter(), [], set()
        self.done = False

    async def write(self, address, key, name, pause=0.0, body=b'{"n":1}', reads=0):
        """Creates documents, and reads each so often."""
        caller, n = Caller(address, key), 0
        while not self.done:
            n += 1
            path = f"/v1/docs/c/{name}-{n}"
            begun = time.monotonic()
            try:
                status = await caller.ask("PUT", path, body)
            except asyncio.TimeoutError:
                status = "none within 60 s"
                caller.close()
            self.times.append(time.monotonic() - begun)
            self.statuses[status] += 1
            if status in (200, 201):
                self.acknowledged.add(f"{name}-{n}")
                for _ in range(reads):
                    begun = time.monotonic()
                    self.statuses[await caller.ask("GET", path)] += 1
                    self.times.append(time.monotonic() - begun)
            elif status in (None, 429, 503, 507):
                await asyncio.sleep(0.05)
            if pause:
                await asyncio.sleep(pause)
        caller.close()

    def told(self, what):
        took = f"p50 {percentile(self.times, 0.5) * 1e3:.1f} ms, p99 {percentile(self.times, 0.99) * 1e3:.1f} ms, " \
               f"most {max(self.times, default=0) * 1e3:.0f} ms"
        print(f"  {what}: {dict(sorted(self.statuses.items(), key=str))}; {took}", flush=True)

    def kept(self, address, key, what, prefix=""):
        """Whether all that was acknowledged is there, once."""
        there, twice = documents(address, key, "c")
        wanted = {i for i in self.acknowledged if i.startswith(prefix)}
        lost = wanted - there.keys()
        print(f"  {what}: {len(wanted)} writes acknowledged, {len(lost)} lost, {twice} there twice", flush=True)
        check(not lost and not twice, f"{what}: lost {sorted(lost)[:5]}")


async def during(seconds, tasks, load, look=lambda: None):
    """Lets tasks run for a time; looks ten times a second."""
    tasks, until = [asyncio.ensure_future(t) for t in tasks], time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        look()
    load.done = True
    await asyncio.gather(*tasks)


def memory(gateway, what="memory of the gateway"):
    now, most = rss(gateway.pid)
    print(f"  {what}: {now:.0f} MB, at most {most:.0f} MB; {files(gateway.pid)} open files", flush=True)
    return most


def crowd(args):
    """A thousand connections at once, of twenty tenants."""
    with Installation({"one": "sqlite:one.db"}) as at:
        keys = [at.tenant(f"t{n}") for n in range(20)]
        gateway = at.serve()
        memory(gateway, "memory before")
        load, open_files = Load(), []
        tasks = [load.write(gateway.address, keys[n % 20], f"w{n}", reads=3) for n in range(1000)]
        asyncio.run(during(args.seconds, tasks, load, lambda: open_files.append(files(gateway.pid))))
        load.told(f"1,000 connections, {sum(load.statuses.values()) / args.seconds:,.0f} requests/s")
        print(f"  at most {max(open_files)} files were open")
        check(memory(gateway) < 600, "more than 600 MB")
        for n in (0, 7, 19):
            only = Load()
            only.acknowledged = {i for i in load.acknowledged if int(i[1:].split("-")[0]) % 20 == n}
            only.kept(gateway.address, keys[n], f"tenant t{n}")
        # Bodies of 16 MB, as many as a tenant may have at once, from four tenants.
        load, body = Load(), b'{"id":"x","doc":{"t":"' + b"x" * (15 << 20) + b'"}}\n'

        async def bulk(n):
            caller = Caller(gateway.address, keys[n % 4])
            load.statuses[await caller.ask("POST", "/v1/docs/c:bulk", body, 120)] += 1
            caller.close()

        async def bulks():
            await asyncio.gather(*(bulk(n) for n in range(128)))

        asyncio.run(bulks())
        load.told("128 bodies of 15 MB at once")
        check(memory(gateway) < 1200, "more than 1,200 MB")
        print(f"  ended within {gateway.stop():.1f} s")


def slow(args):
    """Five hundred clients that send a byte a second, beside fifty that do not."""
    with Installation({"one": "sqlite:one.db"}, limits={"arrival_seconds": 5.0}) as at:
        keys = [at.tenant("quick"), at.tenant("slow")]
        gateway = at.serve()
        alone = Load()
        asyncio.run(during(args.seconds / 2, [alone.write(gateway.address, keys[0], f"a{n}", 0.01) for n in range(50)], alone))
        alone.told("50 clients alone")
        load, lived = Load(), []

        async def crawl(n):
            host, port = gateway.address.split(":")
            begun = time.monotonic()
            reader, writer = await asyncio.open_connection(host, int(port))
            head = f"PUT /v1/docs/c/slow{n} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {keys[1]}\r\n"
            # Every second one is slow in its body.
            text = head + ("Content-Length: 100\r\n\r\n" if n % 2 else "")
            rest = b"x" * 100
            writer.write(text.encode() if n % 2 else text[:20].encode())
            try:
                for at in range(100):
                    if load.done:
                        break
                    await writer.drain()
                    try:
                        if await asyncio.wait_for(reader.read(4096), 1) is not None:
                            break
                    except asyncio.TimeoutError:
                        writer.write(rest[at : at + 1])
            except OSError:
                pass
            lived.append(time.monotonic() - begun)
            writer.close()

        quick = [load.write(gateway.address, keys[0], f"b{n}", 0.01) for n in range(50)]
        asyncio.run(during(max(args.seconds, 8), quick + [crawl(n) for n in range(500)], load))
        load.told("50 clients beside 500 slow ones")
        print(f"  slow clients were cut off after {min(lived):.1f} to {max(lived):.1f} s")
        check(max(lived) < 8, "a slow client was not cut off")
        check(memory(gateway) < 300, "more than 300 MB")
        alone.acknowledged |= load.acknowledged
        alone.kept(gateway.address, keys[0], "quick")


def disk(args):
    """A disk that is full, and then has room again."""
    if os.geteuid() != 0:
        print("  left out: needs root, to mount a file system of 8 MB")
        return
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small")
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", small], check=True)
        try:
            with Installation({"small": f"sqlite:{small}/s.db", "large": "sqlite:large.db"}) as at:
                key, other = at.tenant("a", "--shard", "small"), at.tenant("b", "--shard", "large")
                gateway = at.serve()
                load, beside = Load(), Load()
                body = json.dumps({"t": "x" * 20_000}).encode()

                def look():
                    beside.done = load.done

                tasks = [load.write(gateway.address, key, f"w{n}", body=body) for n in range(8)]
                tasks += [beside.write(gateway.address, other, "b")]

                async def both():
                    await during(args.seconds, tasks, load_both(load, beside))

                asyncio.run(both())
                load.told("until the disk was full")
                beside.told("another tenant, on another disk")
                check(set(load.statuses) <= {201, 507}, f"other answers than 201 and 507: {load.statuses}")
                check(load.statuses[507] > 0, "the disk was never full")
                check(set(beside.statuses) == {201}, f"another tenant: {beside.statuses}")
                client = Client(gateway.address, key)
                told = client.ask("PUT", "/v1/docs/c/one-more", body)
                print(f"  {told[0]} {told[2].decode()}")
                load.kept(gateway.address, key, "on the full disk")
                subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
                check(client.ask("PUT", "/v1/docs/c/again", body)[0] == 201, "no write after the disk had room again")
                load.kept(gateway.address, key, "with room again")
                gateway.stop()
        finally:
            subprocess.run(["umount", "-l", small], check=False)


def load_both(*loads):
    """Ends several loads together."""

    class Both:
        def __setattr__(self, name, value):
            for load in loads:
                setattr(load, name, value)

    return Both()


class Postgres:
    """A PostgreSQL of this script's own, that can be stopped, killed and started again."""

    def __init__(self, folder):
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not bins:
            sys.exit("not installed: postgres (apt install postgresql)")
        self.bin, self.folder, self.process = bins[-1], Path(folder), None
        self.data = self.folder / "postgres"
        self.data.mkdir(mode=0o700)
        # It refuses to run as root.
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:
            os.chmod(self.folder, 0o755)
            shutil.chown(self.data, "postgres", "postgres")
        subprocess.run([f"{self.bin}/initdb", "-D", self.data, "-U", "test", "-A", "trust", "-E", "UTF8",
                        "--locale=C", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgres://test@127.0.0.1:{self.port}/postgres"
        self.start()

    def start(self):
        # fsync stays on: what is acknowledged has to survive.
        self.process = subprocess.Popen(
            [f"{self.bin}/postgres", "-D", self.data, "-p", str(self.port), "-h", "127.0.0.1", "-k", "", "-c",
             "shared_buffers=32MB"], stderr=subprocess.DEVNULL, cwd="/", **self.user)
        until = time.monotonic() + 30
        while subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode:
            if time.monotonic() > until:
                sys.exit("PostgreSQL did not start")
            time.sleep(0.05)

    def main(self):
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def all(self):
        main = self.main()
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        return [main, *map(int, children)]

    def signal(self, which):
        for pid in self.all():
            try:
                os.kill(pid, which)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            os.kill(self.main(), signal.SIGINT)
            self.process.wait()


@contextmanager
def postgres():
    with tempfile.TemporaryDirectory() as folder:
        server = Postgres(folder)
        try:
            yield server
        finally:
            server.end()


async def trouble(server, seconds, told):
    """Stops the server for a while, lets it go on, kills it, starts it again."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(seconds / 4)
    told("stopped")
    server.signal(signal.SIGSTOP)
    await asyncio.sleep(seconds / 4)
    server.signal(signal.SIGCONT)
    told("goes on")
    await asyncio.sleep(seconds / 4)
    told("killed")
    server.kill()
    await asyncio.sleep(seconds / 4)
    await loop.run_in_executor(None, server.start)
    told("started again")
    await asyncio.sleep(seconds / 4)


def outage(args, of_catalog):
    with postgres() as server:
        shards = {"one": "sqlite:one.db"} if of_catalog else {
            "one": server.url + "?timeout=5", "two": "sqlite:two.db"}
        catalog = server.url + "?timeout=5" if of_catalog else "sqlite:catalog.db"
        with Installation(shards, catalog=catalog) as at:
            keys = [at.tenant(f"t{n}", "--shard", "one") for n in range(6)]
            other = at.tenant("other", "--shard", "one" if of_catalog else "two")
            gateway = at.serve()
            load, beside, events, begun = Load(), Load(), [], time.monotonic()
            acknowledged = []

            def told(what):
                events.append((time.monotonic() - begun, what))

            async def probe():
                """When writes are acknowledged again."""
                caller, n = Caller(gateway.address, keys[0]), 0
                while not load.done:
                    n += 1
                    status = await caller.ask("PUT", f"/v1/docs/c/t0-probe-{n}", b"{}")
                    if status == 201:
                        load.acknowledged.add(f"t0-probe-{n}")
                        acknowledged.append(time.monotonic() - begun)
                    await asyncio.sleep(0.02)

            async def all():
                both = load_both(load, beside)
                tasks = [load.write(gateway.address, keys[n % 6], f"t{n % 6}-{n}", 0.002) for n in range(96)]
                tasks += [beside.write(gateway.address, other, "b", 0.002) for _ in range(1)] + [probe()]
                tasks = [asyncio.ensure_future(t) for t in tasks]
                await trouble(server, max(args.seconds, 12), told)
                both.done = True
                await asyncio.gather(*tasks)

            asyncio.run(all())
            print("  " + ", ".join(f"{what} at {at:.1f} s" for at, what in events))
            load.told("96 writers" + ("" if of_catalog else " on the store that failed"))
            beside.told("another tenant" + ("" if of_catalog else ", on a store that did not"))
            for since, what in events:
                if what in ("goes on", "started again"):
                    first = next((at - since for at in acknowledged if at > since), None)
                    check(first is not None and first < 6, f"no write was acknowledged after it {what}")
                    print(f"  a write was acknowledged {first or 0:.2f} s after it {what}")
            if not of_catalog:
                check(set(beside.statuses) == {201}, f"a tenant of another store: {beside.statuses}")
            # A key that was good is no stranger's because the catalog cannot be read.
            check(set(beside.statuses) <= {201, 503, 504}, f"another tenant: {beside.statuses}")
            check(memory(gateway) < 400, "more than 400 MB")
            settled(gateway.address, keys[0])
            for n in range(6):
                load.kept(gateway.address, keys[n], f"tenant t{n}", f"t{n}-")
            beside.kept(gateway.address, other, "the other tenant")
            print(f"  ended within {gateway.stop():.1f} s")


def store(args):
    """A store that stops, goes on, is killed and comes back; another one beside it."""
    outage(args, False)


def catalog(args):
    """A catalog that does so."""
    outage(args, True)


def stop(args):
    """The end of a gateway in the middle of its work: what was begun is answered, and what was acknowledged is there."""
    with Installation({"one": "sqlite:one.db"}) as at:
        key, load = at.tenant("a"), Load()
        gateway = at.serve()

        async def slow(n):
            """A request that is in flight when the end comes: half of its body is sent before, half after."""
            host, port = gateway.address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"PUT /v1/docs/c/slow-{n} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n"
                         f"Content-Length: 8\r\n\r\n{{\"n\"".encode())
            await writer.drain()
            await asyncio.sleep(2)
            writer.write(b": 1}")
            head = await asyncio.wait_for(reader.read(4096), 20)
            writer.close()
            if head.startswith(b"HTTP/1.1 201"):
                load.acknowledged.add(f"slow-{n}")
            return head[9:12].decode()

        async def all():
            tasks = [asyncio.ensure_future(load.write(gateway.address, key, f"w{n}")) for n in range(32)]
            late = [asyncio.ensure_future(slow(n)) for n in range(20)]
            await asyncio.sleep(1)
            begun = time.monotonic()
            gateway.process.terminate()
            ended = await asyncio.get_running_loop().run_in_executor(None, gateway.process.wait, 40)
            took = time.monotonic() - begun
            load.done = True
            await asyncio.gather(*tasks)
            answers = Counter(await asyncio.gather(*late))
            print(f"  ended by signal {-ended} within {took:.1f} s; requests in flight were answered {dict(answers)}")
            check(answers == {"201": 20}, f"in flight: {answers}")
            check(took < 10, "the end took too long")

        asyncio.run(all())
        load.told("32 writers until the end")
        again = at.serve()
        load.kept(again.address, key, "after another start")
        again.stop()


ALL = {"crowd": crowd, "slow": slow, "disk": disk, "store": store, "catalog": catalog, "stop": stop}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*ALL, []], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    args = parser.parse_args()
    if not args.no_build:
        build()
    for name in args.names or ALL:
        print(f"{name}: {ALL[name].__doc__}", flush=True)
        ALL[name](args)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
