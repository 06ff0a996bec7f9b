#!/usr/bin/env python3
"""A server of the Tokyo Tyrant protocol over the system's Tokyo Cabinet library (libtokyocabinet9).

usage: tyrant-server.py PORT DATABASE

DATABASE is a name as Tokyo Cabinet's abstract API takes it: `casket.tct#bnum=200000` is a table,
`casket.tch` a hash, `*` a hash in memory. Storage, queries and indexes are Tokyo Cabinet's; this
file only speaks the protocol, as "Tokyo Tyrant: Network Interface of DBM" describes it, and only
what clients of records need of it. A thread for each connection.
"""

import ctypes
import os
import signal
import socketserver
import struct
import sys
import threading
import time

LIBRARY = "libtokyocabinet.so.9"
LONGEST = 256 << 20  # of an argument, as ttserver has it
MOST = 1 << 20  # arguments of a call
OKAY, FAILED = b"\x00", b"\x01"

pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p


class Cabinet:
    """A database of Tokyo Cabinet, opened by its name. Its functions may be called side by side."""

    def __init__(self, name):
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError:
            sys.exit(f"no {LIBRARY} on this machine; to install it: apt-get install libtokyocabinet9")
        self.libc = ctypes.CDLL(None)
        self.libc.free.argtypes = [pointer]
        # Names, what they give back, what they take after the database.
        size = ctypes.POINTER(number)
        for function, gives, takes in [
            ("tcadbopen", ctypes.c_bool, [text]),
            ("tcadbclose", ctypes.c_bool, []),
            ("tcadbput", ctypes.c_bool, [text, number, text, number]),
            ("tcadbputkeep", ctypes.c_bool, [text, number, text, number]),
            ("tcadbputcat", ctypes.c_bool, [text, number, text, number]),
            ("tcadbout", ctypes.c_bool, [text, number]),
            ("tcadbget", pointer, [text, number, size]),
            ("tcadbvsiz", number, [text, number]),
            ("tcadbiterinit", ctypes.c_bool, []),
            ("tcadbiternext", pointer, [size]),
            ("tcadbfwmkeys", pointer, [text, number, number]),
            ("tcadbaddint", number, [text, number, number]),
            ("tcadbsync", ctypes.c_bool, []),
            ("tcadbvanish", ctypes.c_bool, []),
            ("tcadbrnum", ctypes.c_uint64, []),
            ("tcadbsize", ctypes.c_uint64, []),
            ("tcadbmisc", pointer, [text, pointer]),
        ]:
            call = getattr(self.library, function)
            call.restype, call.argtypes = gives, [pointer, *takes]
            setattr(self, function.removeprefix("tcadb"), lambda *a, call=call: call(self.database, *a))
        for function, gives, takes in [
            ("tcadbnew", pointer, []),
            ("tclistnew", pointer, []),
            ("tclistpush", None, [pointer, text, number]),
            ("tclistnum", number, [pointer]),
            ("tclistval", pointer, [pointer, number, size]),
            ("tclistdel", None, [pointer]),
        ]:
            call = getattr(self.library, function)
            call.restype, call.argtypes = gives, takes
        self.database = self.library.tcadbnew()
        self.path = name
        if not self.open(name.encode()):
            sys.exit(f"cannot open {name}")

    def kind(self):
        stem = self.path.split("#")[0]
        if stem == "*":
            return "on-memory hash"
        return {".tct": "table", ".tch": "hash", ".tcb": "B+ tree"}.get(stem[-4:], "other")

    def owned(self, call, *arguments):
        """The bytes that a call gives and leaves to be freed, or None."""
        size = number()
        found = call(*arguments, ctypes.byref(size))
        if not found:
            return None
        value = ctypes.string_at(found, size.value)
        self.libc.free(found)
        return value

    def items(self, found):
        """The bytes in a list, which is freed."""
        library, size = self.library, number()
        values = [
            ctypes.string_at(library.tclistval(found, i, ctypes.byref(size)), size.value)
            for i in range(library.tclistnum(found))
        ]
        library.tclistdel(found)
        return values

    def call(self, name, arguments):
        """A function of the abstract API by its name; None where it fails."""
        given = self.library.tclistnew()
        for argument in arguments:
            self.library.tclistpush(given, argument, len(argument))
        found = self.misc(name, given)
        self.library.tclistdel(given)
        return self.items(found) if found else None


def sized(value):
    return struct.pack(">I", len(value)) + value


def counted(values):
    return struct.pack(">I", len(values)) + b"".join(map(sized, values))


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        try:
            while self.rfile.read(1) == b"\xc8":
                answer = self.answer(self.take(1)[0])
                if answer:
                    self.wfile.write(answer)
        except (EOFError, ConnectionError):
            pass

    def take(self, length):
        if length > LONGEST:
            raise EOFError
        taken = self.rfile.read(length)
        if len(taken) < length:
            raise EOFError
        return taken

    def numbers(self, kinds):
        return struct.unpack(">" + kinds, self.take(4 * len(kinds)))

    def key(self):
        (length,) = self.numbers("I")
        return self.take(length)

    def answer(self, command):
        cabinet = self.server.cabinet
        done = lambda well: OKAY if well else FAILED
        maybe = lambda value: FAILED if value is None else OKAY + sized(value)
        if command in (0x10, 0x11, 0x12, 0x18):
            lengths = self.numbers("II")
            key, value = map(self.take, lengths)
            put = {0x11: cabinet.putkeep, 0x12: cabinet.putcat}.get(command, cabinet.put)
            well = put(key, len(key), value, len(value))
            return b"" if command == 0x18 else done(well)
        if command == 0x20:
            key = self.key()
            return done(cabinet.out(key, len(key)))
        if command == 0x30:
            key = self.key()
            return maybe(cabinet.owned(cabinet.get, key, len(key)))
        if command == 0x31:
            (count,) = self.numbers("I")
            found = []
            for _ in range(min(count, MOST)):
                key = self.key()
                value = cabinet.owned(cabinet.get, key, len(key))
                if value is not None:
                    found.append(struct.pack(">II", len(key), len(value)) + key + value)
            return OKAY + struct.pack(">I", len(found)) + b"".join(found)
        if command == 0x38:
            key = self.key()
            size = cabinet.vsiz(key, len(key))
            return FAILED if size < 0 else OKAY + struct.pack(">I", size)
        if command == 0x50:
            return done(cabinet.iterinit())
        if command == 0x51:
            return maybe(cabinet.owned(cabinet.iternext))
        if command == 0x58:
            length, most = self.numbers("Ii")
            prefix = self.take(length)
            return OKAY + counted(cabinet.items(cabinet.fwmkeys(prefix, length, most)))
        if command == 0x60:
            length, more = self.numbers("Ii")
            return OKAY + struct.pack(">i", cabinet.addint(self.take(length), length, more))
        if command == 0x70:
            return done(cabinet.sync())
        if command == 0x72:
            return done(cabinet.vanish())
        if command in (0x80, 0x81):
            return OKAY + struct.pack(">Q", (cabinet.rnum if command == 0x80 else cabinet.size)())
        if command == 0x88:
            lines = {
                "version": f"tokyocabinet {self.server.version}",
                "pid": os.getpid(),
                "time": f"{time.time():.6f}",
                "type": cabinet.kind(),
                "path": cabinet.path,
                "rnum": cabinet.rnum(),
                "size": cabinet.size(),
            }
            return OKAY + sized("".join(f"{k}\t{v}\n" for k, v in lines.items()).encode())
        if command == 0x90:
            length, _, count = self.numbers("III")
            name = self.take(length)
            found = cabinet.call(name, [self.key() for _ in range(min(count, MOST))])
            return FAILED + counted([]) if found is None else OKAY + counted(found)
        raise EOFError  # nothing we know: the connection is out of step


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cabinet = Cabinet(sys.argv[2])
    with Server(("127.0.0.1", int(sys.argv[1])), Connection) as server:
        server.cabinet = cabinet
        server.version = text.in_dll(cabinet.library, "tcversion").value.decode()
        stop = lambda *_: threading.Thread(target=server.shutdown).start()
        signal.signal(signal.SIGTERM, stop)
        server.serve_forever(0.05)
        cabinet.close()


if __name__ == "__main__":
    main()
