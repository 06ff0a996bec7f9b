#!/usr/bin/env python3
"""Random documents and random conditions, in a file and in every store, against a model in this file.

    scripts/model.py [--documents 2000] [--conditions 500] [--seed 1] [--on sqlite --on postgres ...]

Documents: each store is given all of them by `copy` and asked for all of them; each must come back
equal by value (numbers with all their digits), or have been rejected by name. Conditions: what
`each --where` (a file: `copy --where`) prints must be the keys that the model finds; `delete --where`
is not tried. Exit 1 with the first differences. The program is built first, unless --steelyard names
another.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from decimal import Decimal, getcontext
from pathlib import Path

from built import STEELYARD, build

STORES = (
    "sqlite", "sqlite?layout=blob", "sqlite?layout=blob&format=msgpack", "dir", "mariadb", "postgres",
    "postgres?layout=blob", "redis", "redis?layout=blob", "ferretdb", "couchdb", "s3", "tyrant",
)
getcontext().prec = 1000
WORDS = ["Bob", "bob", "Ann", "o'neil", "naïve", "a b", "10", "", "Straße", "日本", "x\ty", "%_", "and", "null"]


# The records

def number(draw):
    kind = draw.random()
    if kind < 0.6:
        return draw.randint(-3, 12)
    if kind < 0.88:
        return Decimal(draw.choice(["0.5", "1.5", "-0.25", "2.0", "1e3", "3.14159", "0.1"]))
    if kind < 0.97:
        return draw.choice([2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 10**22 + 1])
    return Decimal(draw.choice(["0.12345678901234567891", "9007199254740993.5", "12345678901234567890.125"]))


def value(draw, deep=2):
    kind = draw.random()
    if kind < 0.35:
        return number(draw)
    if kind < 0.7:
        return draw.choice(WORDS)
    if kind < 0.78:
        return draw.random() < 0.5
    if kind < 0.83:
        return None
    if deep and kind < 0.92:
        return [value(draw, deep - 1) for _ in range(draw.randint(0, 4))]
    if deep:
        return {draw.choice("ab"): value(draw, deep - 1) for _ in range(draw.randint(0, 2))}
    return draw.choice(WORDS)


def documents(draw, count):
    for n in range(count):
        names = [name for name in ("n", "s", "t", "m", "odd name") if draw.random() < 0.8]
        yield {"_key": f"k{n:06}", **{name: value(draw) for name in names}}


def as_json(value):
    """JSON that keeps the digits of a Decimal."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(as_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{as_json(of)}" for name, of in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def read(line):
    return json.loads(line, parse_float=Decimal)


def is_number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def same(one, other):
    """Equal by value: 1 and 1.0 are, 1 and true are not."""
    if is_number(one) and is_number(other):
        return one == other
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return one == other


# The conditions: their text, and a function that says whether a record fits

def values_at(record, path):
    """What lies under a path; `[]` is every element of a list."""
    found = [record]
    for step in path:
        if step == "[]":
            found = [of for value in found if isinstance(value, list) for of in value]
        else:
            found = [value[step] for value in found if isinstance(value, dict) and step in value]
    return found


PATHS = {
    "n": ["n"], "s": ["s"], "t": ["t"], "m.a": ["m", "a"], "m.b": ["m", "b"], "t[]": ["t", "[]"],
    "n[]": ["n", "[]"], "m.a[]": ["m", "a", "[]"], '"odd name"': ["odd name"], "none": ["none"],
    '"odd name".a': ["odd name", "a"],
}


def literal(draw):
    """A value as it is written, and as it is."""
    if draw.random() < 0.5:
        of = number(draw)
        return str(of), of
    of = draw.choice(WORDS)
    return json.dumps(of, ensure_ascii=draw.random() < 0.5), of


def comparable(one, other):
    return (is_number(one) and is_number(other)) or (isinstance(one, str) and isinstance(other, str))


def less(one, other):
    if isinstance(one, str):
        return one.encode() < other.encode()
    return one < other


def test(draw):
    name = draw.choice(list(PATHS))
    path = PATHS[name]
    kind = draw.random()

    def some(holds):
        return lambda record: any(holds(value) for value in values_at(record, path))

    def no(holds):
        return lambda record: not any(holds(value) for value in values_at(record, path))

    if kind < 0.1:
        return (name, some(lambda _: True)) if draw.random() < 0.5 else (f"!{name}", no(lambda _: True))
    if kind < 0.5:
        sign = draw.choice(["=", "==", "!=", "<", "<=", ">", ">="])
        text, of = literal(draw)
        holds = {
            "=": lambda value: same(value, of), "==": lambda value: same(value, of),
            "<": lambda value: comparable(value, of) and less(value, of),
            "<=": lambda value: comparable(value, of) and not less(of, value),
            ">": lambda value: comparable(value, of) and less(of, value),
            ">=": lambda value: comparable(value, of) and not less(value, of),
        }
        space = draw.choice(["", " "])
        made = no(holds["="]) if sign == "!=" else some(holds[sign])
        return f"{name}{space}{sign}{space}{text}", made
    if kind < 0.6:
        of = [literal(draw) for _ in range(draw.randint(1, 4))]
        holds = lambda value: any(same(value, one) for _, one in of)
        word, made = draw.choice([("in", some), ("not in", no)])
        return f"{name} {word} ({', '.join(text for text, _ in of)})", made(holds)
    if kind < 0.8:
        part = draw.choice(["o", "Bo", "b", "ß", "1", "'", "本", "zz", "%"])
        any_case = draw.random() < 0.3
        fold = (lambda text: text.lower()) if any_case else (lambda text: text)
        sign = draw.choice(["~", "!~", "^=", "!^="])
        fits = (lambda text: fold(part) in fold(text)) if "~" in sign else (
            lambda text: fold(text).startswith(fold(part)))
        holds = lambda value: isinstance(value, str) and fits(value)
        made = no(holds) if sign[0] == "!" else some(holds)
        return f"{name}{sign}{json.dumps(part, ensure_ascii=False)}{'i' if any_case else ''}", made
    sign, than = draw.choice(["=", "<", ">="]), draw.randint(0, 4)
    compare = {"=": lambda n: n == than, "<": lambda n: n < than, ">=": lambda n: n >= than}[sign]
    if draw.random() < 0.5:
        return f"len({name}){sign}{than}", some(lambda value: isinstance(value, str) and compare(len(value)))

    def count(record):
        found = values_at(record, path)
        if len(found) == 1 and isinstance(found[0], list) and path[-1] != "[]":
            return len(found[0])
        return len(found)
    return f"count({name}){sign}{than}", lambda record: compare(count(record))


def condition(draw, deep=3):
    if deep == 0 or draw.random() < 0.4:
        return test(draw)
    kind = draw.random()
    text, fits = condition(draw, deep - 1)
    if kind < 0.2:
        return f"not ({text})", lambda record: not fits(record)
    other, also = condition(draw, deep - 1)
    if kind < 0.6:
        return f"({text}) and ({other})", lambda record: fits(record) and also(record)
    return f"({text}) or ({other})", lambda record: fits(record) or also(record)


# The places

class Place:
    def __init__(self, steelyard, on, folder):
        self.steelyard, self.server = steelyard, None
        name, _, options = on.partition("?")
        if name in ("sqlite", "dir"):
            self.url = f"{name}:{folder}/{name}-{abs(hash(on))}" + (f"?{options}" if options else "")
            return
        self.server = subprocess.Popen(
            [steelyard, "servers", "run", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = self.server.stdout.readline().strip()
        if not url:
            raise FileNotFoundError(f"no {name} on this machine")
        self.url = url + ("&" if "?" in url else "?") + (options or "table=model")

    def ran(self, *args, source=None):
        return subprocess.run([self.steelyard, *args], input=source, capture_output=True)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait()


def documents_kept(place, records, lines, folder):
    """The records that the store has after `copy`, and what is wrong with them."""
    source, rejects = folder / "source.json", folder / "rejects.json"
    source.write_text("".join(line + "\n" for line in lines))
    for old in folder.glob("rejects.json*"):
        old.unlink()
    done = place.ran("copy", str(source), place.url, "--rejects", str(rejects), "-q")
    if done.returncode not in (0, 1):
        return {}, [f"copy: status {done.returncode}: {done.stderr.decode()[:500]}"]
    refused = {read(line)["_key"] for line in rejects.read_text().splitlines()} if rejects.exists() else set()
    wanted = {record["_key"]: record for record in records if record["_key"] not in refused}
    wrong, kept = [], {}
    for line in place.ran("each", place.url).stdout.decode().splitlines():
        record = read(line)
        key = record["_key"]
        if key in kept:
            wrong.append(f"{key} comes twice")
        kept[key] = record
        if key not in wanted:
            wrong.append(f"{key} was not written")
        elif not same(record, wanted[key]):
            wrong.append(f"{key} was {as_json(wanted[key])} and is {line}")
    wrong += [f"{key} is lost" for key in wanted.keys() - kept.keys()]
    print(f"  {len(kept)} documents kept, {len(refused)} rejected", flush=True)
    # Tyrant has no lists and no maps.
    if len(refused) > len(records) * 0.7:
        wrong.append(f"it rejects {len(refused)} of {len(records)}")
    return kept, wrong


def answered(done):
    return sorted(read(line)["_key"] for line in done.stdout.decode().splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steelyard", help="the program; the one of this folder, built anew, if not given")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--conditions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", action="append")
    args = parser.parse_args()
    if not args.steelyard:
        build()
        args.steelyard = str(STEELYARD)
    failed, tried = False, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for on in ["file", *(args.on or STORES)]:
            begin, draw = time.monotonic(), random.Random(f"{args.seed} {on}")
            print(on, flush=True)
            records = list(documents(draw, args.documents))
            lines = [as_json(record) for record in records]
            some, text = records[:300], "".join(line + "\n" for line in lines[:300]).encode()
            wrong = []
            try:
                place = None if on == "file" else Place(args.steelyard, on, folder)
            except FileNotFoundError as error:
                print(f"  {error}")
                failed = True
                continue
            if place:
                kept, wrong = documents_kept(place, records, lines, folder)
                # Conditions are asked of few, so that the time goes into the conditions.
                place.ran("delete", place.url, "--where", '_key>="k000300"')
                some = [record for key, record in kept.items() if key < "k000300"]
            for _ in range(args.conditions):
                if len(wrong) > 5:
                    break
                where, fits = condition(draw)
                if place:
                    done = place.ran("each", place.url, "--where", where)
                else:
                    done = subprocess.run(
                        [args.steelyard, "copy", "-", "-", "--from", "json", "--to", "json", "--where", where, "-q"],
                        input=text, capture_output=True)
                wanted = sorted(record["_key"] for record in some if fits(record))
                tried += 1
                if done.returncode != 0:
                    wrong.append(f"{where}: status {done.returncode}: {done.stderr.decode()[:300]}")
                elif (found := answered(done)) != wanted:
                    first = sorted(set(found) ^ set(wanted))[0]
                    of = next(record for record in records if record["_key"] == first)
                    wrong.append(f"{where}\n    {len(found)} for {len(wanted)}; "
                                 f"{'not ' if first in wanted else ''}found: {as_json(of)}")
            if place:
                place.stop()
            for line in wrong[:8]:
                print(f"  WRONG: {line}")
            failed |= bool(wrong)
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{tried} conditions tried")
    sys.exit(failed)


if __name__ == "__main__":
    main()
