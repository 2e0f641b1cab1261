"""What no quick run proves, since its servers behave: that confirms which are wrong are found."""

import socket
import struct

import pytest

from compat.bench.confirms import ConfirmArena
from compat.bench.errors import CheckFailed


def check(*ids: int) -> None:
    """Look at the confirms of four messages."""
    near, far = socket.socketpair()
    with near, far:
        far.sendall(struct.pack(f">IHHBI{len(ids)}Q", 9 + 8 * len(ids), 3, 1, 0, len(ids), *ids))
        arena = ConfirmArena(4)
        assert arena.receive(near)
    arena.check(block_count=1, block_messages=4)


def test_ids_may_come_in_any_order() -> None:
    check(3, 1, 0, 2)


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((0, 1, 2), "1 missing, 0 never sent, 0 more than once"),
        ((0, 1, 2, 9), "1 missing, 1 never sent, 0 more than once"),
        ((0, 1, 2, 3, 3), "0 missing, 0 never sent, 1 more than once"),
    ],
)
def test_ids_that_are_not_those_sent_are_found(ids: tuple[int, ...], reason: str) -> None:
    with pytest.raises(CheckFailed, match=reason):
        check(*ids)
