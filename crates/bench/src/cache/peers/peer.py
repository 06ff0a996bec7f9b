"""Clients in Python for `steelyard bench cache`: does tasks that come as lines of JSON, and answers
with lines of JSON; docs/cache.md says what stands in them. peer.py pymemcache | pylibmc"""

import collections
import json
import pickle
import resource
import sys
import threading
import time

PICKLE = 5


class Pymemcache:
    """pymemcache.HashClient, one for each thread."""

    about = "Python, pymemcache.HashClient, no_delay"

    def __init__(self, servers):
        from pymemcache.client.hash import HashClient

        split = [(host, int(port)) for host, port in (s.rsplit(":", 1) for s in servers)]
        self.client = HashClient(split, no_delay=True)
        self.get, self.get_many = self.client.get, self.client.get_many

    @staticmethod
    def version():
        import pymemcache

        return pymemcache.__version__

    def set(self, key, value):
        if not self.client.set(key, value, noreply=False):
            raise RuntimeError("not stored")

    def delete(self, key):
        self.client.delete(key, noreply=False)

    def set_quietly(self, key, value):
        self.client.set(key, value, noreply=True)

    def noblock(self, on):
        pass


class Pylibmc:
    """pylibmc.Client, one for each thread."""

    about = "Python, pylibmc.Client (libmemcached), text protocol, tcp_nodelay"

    def __init__(self, servers):
        import pylibmc

        self.client = pylibmc.Client(servers, behaviors={"tcp_nodelay": True})
        self.get, self.get_many = self.client.get, self.client.get_multi
        self.delete = self.client.delete

    @staticmethod
    def version():
        import pylibmc

        return pylibmc.__version__

    def set(self, key, value):
        if not self.client.set(key, value):
            raise RuntimeError("not stored")

    def set_quietly(self, key, value):
        self.client.set(key, value)

    def noblock(self, on):
        self.client.behaviors = {"_noreply": on, "buffer_requests": on}


CLIENTS = {"pymemcache": Pymemcache, "pylibmc": Pylibmc}


def whole(path):
    with open(path, "rb") as file:
        return file.read()


class Worker:
    """What one thread does and sees."""

    def __init__(self, client, task, share):
        self.client, self.task, self.share = client, task, share
        self.done = self.hits = self.misses = self.wrong = 0
        self.first = None
        self.times = []
        keys = task["keys"]
        if task["object"]:
            objects = [json.loads(whole(path)) for path in task["objects"]]
            self.goods = dict(zip(keys, objects))
            self.dump, self.load = lambda o: pickle.dumps(o, PICKLE), pickle.loads
        else:
            self.goods = {key: whole(path) for key, path in zip(keys, task["values"])}
            self.dump = self.load = lambda o: o

    def set(self, key):
        self.client.set(key, self.dump(self.goods[key]))

    def get(self, key):
        found = self.client.get(key)
        if found is None:
            self.misses += 1
        elif self.load(found) == self.goods[key]:
            self.hits += 1
        else:
            self.wrong += 1

    def get_all(self, keys):
        found = self.client.get_many(keys)
        for key, value in found.items():
            if self.load(value) == self.goods.get(key):
                self.hits += 1
            else:
                self.wrong += 1
        self.misses += len(keys) - len(found)

    def quietly(self, key):
        self.client.set_quietly(key, self.dump(self.goods[key]))

    def steps(self):
        keys = self.task["keys"]
        writes = self.quietly if self.task["noblock"] else self.set
        calls = {"s": writes, "g": self.get, "d": self.client.delete}
        for text in self.task["script"].split():
            if text == "m":
                yield self.get_all, keys
            else:
                yield calls[text[0]], keys[int(text[1:]) - 1]

    def stored(self):
        return list(self.goods)

    def work(self):
        try:
            steps = list(self.steps())
            clock, times, latency = time.perf_counter_ns, self.times, self.task["latency"]
            before = clock()
            for n in range(self.share):
                call, argument = steps[n % len(steps)]
                call(argument)
                if latency:
                    end = clock()
                    times.append(end - before)
                    before = end
            if self.task["noblock"]:
                self.finish()
            self.done = self.share
        except Exception as error:
            self.first = f"{type(error).__name__}: {error}"

    def finish(self):
        """What was written is read: it is answered after all that was sent before."""
        seen = self.hits
        for key in self.stored():
            self.get(key)
        self.wrong += self.hits - seen != len(self.goods)
        self.hits, self.misses = seen, 0


def three_digits(value):
    unit = 1
    while value // unit >= 1000:
        unit *= 10
    return value // unit * unit


def answer(clients, task):
    n = task["connections"]
    shares = [task["operations"] // n + (i < task["operations"] % n) for i in range(n)]
    workers = [Worker(client, task, share) for client, share in zip(clients, shares)]
    first = workers[0]
    for client in clients:
        client.noblock(False)
    for key in first.stored():
        first.client.delete(key) if "d" in task["script"] else first.set(key)
    for worker in workers:
        worker.client.get_many(task["keys"])
        worker.client.noblock(task["noblock"])
    ready = threading.Barrier(n + 1)

    def run(worker):
        ready.wait()
        worker.work()

    threads = [threading.Thread(target=run, args=(w,)) for w in workers] if n > 1 else []
    for thread in threads:
        thread.start()
    used = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter_ns()
    if n == 1:
        first.work()
    else:
        ready.wait()
        for thread in threads:
            thread.join()
    elapsed = time.perf_counter_ns() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    for client in clients:
        client.noblock(False)
    total = lambda name: sum(getattr(worker, name) for worker in workers)
    failed = [worker.first for worker in workers if worker.first]
    done = {
        "elapsed_ns": elapsed,
        "user_ns": round((after.ru_utime - used.ru_utime) * 1e9),
        "system_ns": round((after.ru_stime - used.ru_stime) * 1e9),
        "waits": after.ru_nvcsw - used.ru_nvcsw,
        "preemptions": after.ru_nivcsw - used.ru_nivcsw,
        "operations": total("done"),
        "hits": total("hits"),
        "misses": total("misses"),
        "wrong": total("wrong"),
        "errors": len(failed),
    }
    if failed:
        done["first"] = failed[0]
    elif "s" in task["script"]:
        proof = Worker(clients[0], task, 0)
        for key in proof.stored():
            proof.get(key)
        done["wrong"] += len(proof.goods) - proof.hits
    if task["latency"] and not failed:
        counts = collections.Counter(three_digits(t) for w in workers for t in w.times)
        done["latency"] = sorted(counts.items())
    return done


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main():
    name = sys.argv[1]
    kind = CLIENTS[name]
    try:
        version = kind.version()
    except ImportError as error:
        say({"error": f"{error}; to install it: pip install {name}"})
        return
    say({"cache_client": 1, "client": name, "version": version, "about": kind.about,
         "serializer": f"pickle {PICKLE}", "noblock": True})
    clients, opened = [], None
    for line in sys.stdin:
        task = json.loads(line)
        wanted = (task["servers"], task["connections"])
        try:
            if opened != wanted:
                clients = [kind(task["servers"]) for _ in range(task["connections"])]
                opened = wanted
            say(answer(clients, task))
        except Exception as error:
            opened = None
            say({"error": f"{type(error).__name__}: {error}"})


main()
