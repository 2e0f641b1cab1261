"""Writes to a file, compiled and interpreted."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.property.gateway.kernel_builds import BUILDS, load


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("store.kernel.file_writes", request.param)


@pytest.fixture
def fileno(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("piece_bytes", [1, 3, 10, 100])
def test_all_is_written_however_little_the_system_takes(
    kernel: ModuleType, fileno: int, piece_bytes: int
) -> None:
    kernel.write_all(fileno, b"0123456789", 5, piece_bytes)

    assert os.pread(fileno, 100, 0) == bytes(5) + b"0123456789"


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 1 << 20])
def test_any_object_that_has_bytes_is_written(kernel: ModuleType, fileno: int, size: int) -> None:
    data = os.urandom(size)
    for each in (data, bytearray(data), memoryview(b"x" + data)[1:]):
        os.ftruncate(fileno, 0)
        kernel.write_all(fileno, each, 0)
        assert os.pread(fileno, size + 1, 0) == data


def test_numbers_of_several_bytes_are_written_whole(kernel: ModuleType, fileno: int) -> None:
    kernel.write_all(fileno, memoryview(bytes(range(16))).cast("Q"), 0)

    assert os.pread(fileno, 100, 0) == bytes(range(16))


def test_a_failure_has_the_number_of_the_system(kernel: ModuleType, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)) as caught:
            kernel.write_all(descriptor, b"x", 0)
    finally:
        os.close(descriptor)

    assert caught.value.errno == errno.EBADF
