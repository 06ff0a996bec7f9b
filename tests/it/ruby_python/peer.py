"""Real Python's side of the tests of pickle, MessagePack and CBOR.

    python3 peer.py show                      reads pickles from stdin, one after another; prints each
    python3 peer.py show msgpack|cbor         reads values from stdin, each in hex on a line
    python3 peer.py make SEED COUNT PROTOCOL  makes objects; prints each pickle in hex, a tab, the line
    python3 peer.py make SEED COUNT msgpack|cbor

The lines are those of peer.rb. With "check" instead of "show" it only looks whether the library is
there, and exits with 3 where it is not.
"""

import datetime
import decimal
import importlib
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
    if isinstance(x, datetime.datetime) and x.tzinfo is not None:
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        seconds, rest = divmod(x - epoch, datetime.timedelta(seconds=1))
        return f"T{seconds}.{rest.microseconds * 1000}"
    if isinstance(x, (datetime.datetime, datetime.date)):
        return text(x.isoformat())
    if isinstance(x, decimal.Decimal):
        return number(x)
    if type(x).__name__ == "Timestamp":
        return f"T{x.seconds}.{x.nanoseconds}"
    if hasattr(x, "items"):
        return "{" + ",".join(key(k) + ":" + show(v) for k, v in x.items()) + "}"
    return "[" + ",".join(show(v) for v in x) + "]"


def number(x):
    """Sign, digits without zeros around them, and where the point stands."""
    sign, digits, exponent = x.as_tuple()
    sign = "-" if sign else ""
    if not x.is_finite():
        return f"D{sign}{'Infinity' if x.is_infinite() else 'NaN'}"
    digits = "".join(map(str, digits))
    significant = digits.lstrip("0")
    if not significant:
        return f"D{sign}0e0"
    return f"D{sign}{significant.rstrip('0')}e{len(significant) + exponent}"


class Maker:
    """Objects; `protocol` is that of pickle, or the name of a library, which has not all of them."""

    def __init__(self, seed, protocol):
        self.r = random.Random(seed)
        self.library = protocol if isinstance(protocol, str) else None
        self.protocol = 5 if self.library else protocol
        self.pool = []

    def integer(self):
        if self.library == "msgpack":
            return self.r.choice([1, -1]) * self.r.getrandbits(self.r.choice([1, 7, 8, 15, 16, 31, 32, 63]))
        n = self.r.getrandbits(self.r.choice([1, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 65, 127, 128, 500, 2047, 2048, 9000]))
        return self.r.choice([n, -n, n + 1, -n - 1])

    def float(self):
        anything = struct.unpack(">d", self.r.randbytes(8))[0]
        return self.r.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324, self.r.random(), self.r.random() * 1e300, anything if anything == anything else 0.1])

    def string(self):
        r = self.r
        plain = "".join(r.choice("abc \n\\'\"\0\x7f") for _ in range(r.randrange(12)))
        odd = plain if self.library else "\ud800" + plain
        return r.choice([plain, plain + "é日本😀", "x" * r.choice([255, 256, 70_000]), odd, "ind1"])

    def time(self):
        """A datetime or date, as far as they are data: with pickle, from the protocol that has bytes."""
        r = self.r
        away = datetime.timedelta(seconds=r.randrange(-86399, 86399))
        if self.library:
            away = datetime.timedelta(minutes=r.randrange(-1439, 1439))
        zone = r.choice([datetime.timezone.utc, datetime.timezone(away)])
        # cbor2 writes seconds as a float by turns: an eighth of a second is exact in one.
        micros = r.choice([0, 125000, 875000] if self.library == "cbor" else [0, 1, 123456, 999999])
        at = datetime.datetime(r.randrange(2, 9999), r.randrange(1, 13), r.randrange(1, 29), r.randrange(24), r.randrange(60), r.randrange(60), micros, zone)
        if self.library:
            return at
        return r.choice([at, at, at.replace(tzinfo=None, fold=r.randrange(2)), at.date()])

    def decimal(self):
        r = self.r
        digits = str(r.getrandbits(r.choice([1, 10, 64, 200])))
        at = r.randrange(len(digits) + 1)
        texts = [digits, digits[:at] + "." + digits[at:], "0.00", "1E+5", "-1.5E-300"]
        if not self.library:
            # CBOR has no minus zero among decimals.
            texts += ["-0", "Infinity", "-Infinity"]
        return decimal.Decimal(r.choice(texts))

    def single(self):
        r = self.r
        kind = r.randrange(11)
        if kind == 9 and self.protocol >= 3:
            return self.time()
        if kind == 10 and self.library != "msgpack":
            return self.decimal()
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
        if kind == 6 and self.protocol >= 4 and not self.library:
            return r.choice([set, frozenset])({self.integer(), self.float(), "x", None, (1, 2)})
        return self.string()

    def key(self, n):
        if self.library:
            return self.r.choice(["ind1", "subfields", "größe", f"k{n}", n, n + 2**40])
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


LIBRARIES = {"msgpack": "msgpack", "cbor": "cbor2"}
library = LIBRARIES.get(sys.argv[-1])
if library:
    try:
        library = importlib.import_module(library)
    except ImportError:
        sys.exit(3)
if sys.argv[1] == "check":
    pass
elif sys.argv[1] == "show" and library:
    loads = library.loads
    for line in sys.stdin:
        print(show(loads(bytes.fromhex(line))))
elif sys.argv[1] == "make" and library:
    maker = Maker(int(sys.argv[2]), sys.argv[4])
    # A time is the library's own timestamp, or RFC 3339 text and seconds by turns.
    options = [{"datetime": True}] if sys.argv[4] == "msgpack" else [{}, {"datetime_as_timestamp": True}]
    for n in range(int(sys.argv[3])):
        value = maker.value()
        print(library.dumps(value, **options[n % len(options)]).hex() + "\t" + show(value))
elif sys.argv[1] == "show":
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
