"""The fast CRC-32 is found where it is, and not taken where it is not right."""

import ctypes
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from gateway.log.fast_crc import FAST_CRC32, address_of_crc32


def test_the_function_of_isal_is_found_and_gives_what_zlib_gives() -> None:
    pytest.importorskip("isal")
    assert FAST_CRC32
    kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64)

    assert kind(FAST_CRC32)(5, b"some bytes", 10) == zlib.crc32(b"some bytes", 5)


def test_no_module_and_one_without_the_function_give_none(tmp_path: Path) -> None:
    assert address_of_crc32(None) == 0
    assert address_of_crc32(str(tmp_path / "missing.so")) == 0
    assert address_of_crc32("libc.so.6") == 0


def test_a_function_that_gives_something_else_is_not_taken(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    source, built = tmp_path / "wrong.c", tmp_path / "wrong.so"
    source.write_text("unsigned crc32_gzip_refl(unsigned a, void *b, unsigned long c) {return a;}")
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(built)], check=True)

    assert address_of_crc32(str(built)) == 0
