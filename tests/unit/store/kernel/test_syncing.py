import errno
import os
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from tests.property.gateway.kernel_builds import BUILDS, load
from tests.waiting import HANG_S


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("store.kernel.syncing", request.param)


def ask(kernel: ModuleType, *filenos: int) -> list[int]:
    """What the loop answers to some descriptors, after which it has ended."""
    requests, to_loop = os.pipe()
    from_loop, answers = os.pipe()
    thread = threading.Thread(target=kernel.sync_on_request, args=(requests, answers))
    thread.start()
    numbers = []
    for fileno in filenos:
        os.write(to_loop, fileno.to_bytes(4, sys.byteorder, signed=True))
        numbers.append(int.from_bytes(os.read(from_loop, 4), sys.byteorder, signed=True))
    os.close(to_loop)
    thread.join(HANG_S)
    assert not thread.is_alive()
    for each in (requests, from_loop, answers):
        os.close(each)
    return numbers


def test_a_file_is_synced_again_and_again(kernel: ModuleType, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x")
        file.flush()

        assert ask(kernel, file.fileno(), file.fileno()) == [0, 0]


def test_what_cannot_be_synced_is_answered_with_the_reason_and_the_next_is_synced(
    kernel: ModuleType, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    with (tmp_path / "file").open("wb") as file:
        assert ask(kernel, 1_000_000, reader, file.fileno()) == [errno.EBADF, errno.EINVAL, 0]
    os.close(reader)
    os.close(writer)


def test_the_loop_ends_when_nobody_can_ask_any_more(kernel: ModuleType) -> None:
    assert ask(kernel) == []
