"""Real Python's side of the tests of pickle.

    python3 peer.py show                      reads pickles from stdin, one after another; prints each
    python3 peer.py make SEED COUNT PROTOCOL  makes objects; prints each pickle in hex, a tab, the line

The lines are those of peer.rb.
"""

import io
import pickle
import pickletools
import random
import struct
import sys


def text(s):
    try:
        return "s" + s.encode().hex()
    except UnicodeEncodeError:
        return "b" + s.encode(errors="surrogatepass").hex()


def key(k):
    if isinstance(k, str):
        return text(k)
    if isinstance(k, bytes):
        return text(k.decode())
    return text({None: "null", True: "true", False: "false"}.get(k, repr(k)) if not isinstance(k, int) or isinstance(k, bool) else repr(k))


def show(x):
    if x is None:
        return "n"
    if x is True:
        return "t"
    if x is False:
        return "f"
    if isinstance(x, int):
        return f"i{x}"
    if isinstance(x, float):
        return "d" + struct.pack(">d", x).hex()
    if isinstance(x, str):
        return text(x)
    if isinstance(x, (bytes, bytearray)):
        return "b" + x.hex()
    if isinstance(x, dict):
        return "{" + ",".join(key(k) + ":" + show(v) for k, v in x.items()) + "}"
    return "[" + ",".join(show(v) for v in x) + "]"


class Maker:
    def __init__(self, seed, protocol):
        self.r = random.Random(seed)
        self.protocol = protocol
        self.pool = []

    def integer(self):
        n = self.r.getrandbits(self.r.choice([1, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 65, 127, 128, 500, 2047, 2048, 9000]))
        return self.r.choice([n, -n, n + 1, -n - 1])

    def float(self):
        anything = struct.unpack(">d", self.r.randbytes(8))[0]
        return self.r.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324, self.r.random(), self.r.random() * 1e300, anything if anything == anything else 0.1])

    def string(self):
        r = self.r
        plain = "".join(r.choice("abc \n\\'\"\0\x7f") for _ in range(r.randrange(12)))
        return r.choice([plain, plain + "é日本😀", "x" * r.choice([255, 256, 70_000]), "\ud800" + plain, "ind1"])

    def single(self):
        r = self.r
        kind = r.randrange(9)
        if kind == 0:
            return r.choice([None, True, False])
        if kind in (1, 2):
            return self.integer()
        if kind == 3:
            return self.float()
        if kind == 4 and self.protocol >= 3:
            return r.randbytes(r.choice([0, 5, 255, 256]))
        if kind == 5 and self.protocol >= 5:
            return bytearray(r.randbytes(5))
        if kind == 6 and self.protocol >= 4:
            return r.choice([set, frozenset])({self.integer(), self.float(), "x", None, (1, 2)})
        return self.string()

    def key(self, n):
        keys = ["ind1", "subfields", "a", "größe", f"k{n}", n, -n - 2, n + 0.5, None, 2**70]
        return self.r.choice(keys + ([b"raw"] if self.protocol >= 3 else []))

    def value(self, depth=0):
        made = self.single() if depth > 4 else self.many(depth)
        if self.r.randrange(3) == 0 and len(self.pool) < 40:
            self.pool.append(made)
        return made

    def many(self, depth):
        r = self.r
        inner = lambda: self.value(depth + 1)
        kind = r.randrange(12)
        if kind < 3:
            return [inner() for _ in range(r.randrange(5))]
        if kind < 7:
            return {self.key(n): inner() for n in range(r.randrange(5))}
        if kind == 7:
            return tuple(inner() for _ in range(r.randrange(6)))
        if kind == 8 and self.pool:
            return [r.choice(self.pool), r.choice(self.pool)]
        if kind == 9 and r.randrange(8) == 0:
            n = r.choice([999, 1000, 1001, 2000, 2001, 5000])
            return r.choice([[r.randrange(9) for _ in range(n)], {f"k{i}": i for i in range(n)}])
        return self.single()


if sys.argv[1] == "show":
    data = sys.stdin.buffer.read()
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        start = stream.tell()
        value = pickle.load(stream)
        # Also by the book: the stack holds one value at the end, the frame what it says.
        pickletools.dis(data[start : stream.tell()], out=io.StringIO())
        assert pickle.loads(data[start : stream.tell()]) is not NotImplemented
        print(show(value))
else:
    seed, count, protocol = map(int, sys.argv[2:5])
    maker = Maker(seed, protocol)
    for _ in range(count):
        value = maker.value()
        print(pickle.dumps(value, protocol).hex() + "\t" + show(value))
