"""yaz's character conversion (libyaz.so.5, `apt install yaz`) from Python, for the MARC-8 checks."""

import ctypes
import sys

try:
    _yaz = ctypes.CDLL("libyaz.so.5")
except OSError:
    sys.exit("not installed: libyaz.so.5 (apt install libyaz5)")
_yaz.yaz_iconv_open.restype = ctypes.c_void_p
_yaz.yaz_iconv_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_yaz.yaz_iconv.restype = ctypes.c_size_t
_yaz.yaz_iconv.argtypes = [ctypes.c_void_p] * 5
_yaz.yaz_iconv_error.argtypes = [ctypes.c_void_p]
FAILED = ctypes.c_size_t(-1).value


class Converter:
    """One converter; every call starts from the default character sets."""

    def __init__(self, source, target):
        self.handle = _yaz.yaz_iconv_open(target.encode(), source.encode())
        if not self.handle:
            raise ValueError(f"yaz cannot convert {source} to {target}")

    def convert(self, data):
        """(what came out, yaz's error number or None, bytes not read)."""
        _yaz.yaz_iconv(self.handle, None, None, None, None)
        source = ctypes.create_string_buffer(data, len(data) + 1)
        room = ctypes.create_string_buffer(len(data) * 12 + 64)
        read = ctypes.c_void_p(ctypes.addressof(source))
        wrote = ctypes.c_void_p(ctypes.addressof(room))
        left, space = ctypes.c_size_t(len(data)), ctypes.c_size_t(len(room))
        refs = [ctypes.byref(x) for x in (read, left, wrote, space)]
        error = None
        if _yaz.yaz_iconv(self.handle, *refs) == FAILED:
            error = _yaz.yaz_iconv_error(self.handle)
        else:
            _yaz.yaz_iconv(self.handle, None, None, refs[2], refs[3])
        return room.raw[: wrote.value - ctypes.addressof(room)], error, left.value
