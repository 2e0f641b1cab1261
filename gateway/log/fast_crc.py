"""The address of a CRC-32 that runs at memory speed, for kernels that call it without Python.

ISA-L comes with the package `isal`, whose module gives its functions away. Where they are missing
or are not what they should be, kernels use their own tables, which give the same at 3 GB/s.

Source: ISA-L, `crc.h`: `uint32_t crc32_gzip_refl(uint32_t before, const uint8_t *, uint64_t size)`.
"""

import ctypes
import zlib
from typing import Final

try:
    from isal import isal_zlib

    _LIBRARY: str | None = isal_zlib.__file__
except ImportError:  # pragma: no cover  # the wheel does not exist for every platform
    _LIBRARY = None

_NAME: Final = "crc32_gzip_refl"
_PROBE: Final = bytes(range(256)) * 5


def address_of_crc32(path: str | None) -> int:
    """Return where the function is in the module at a path; 0: it has none that is right."""
    if path is None:
        return 0
    try:
        function = getattr(ctypes.CDLL(path), _NAME)
    except (OSError, AttributeError):
        return 0
    function.restype = ctypes.c_uint32
    function.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64]
    for before, size in ((0, len(_PROBE)), (0xDEADBEEF, 1000), (7, 0)):
        if function(before, _PROBE, size) != zlib.crc32(_PROBE[:size], before):
            return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


FAST_CRC32: Final = address_of_crc32(_LIBRARY)
