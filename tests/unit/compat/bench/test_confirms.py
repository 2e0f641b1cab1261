import socket
import struct
from collections.abc import Iterator

import pytest

from compat.bench.confirms import ConfirmArena
from compat.bench.errors import BenchError, CheckFailed


def confirm(*ids: int, publisher: int = 0) -> bytes:
    body = struct.pack(f">HHBI{len(ids)}Q", 3, 1, publisher, len(ids), *ids)
    return struct.pack(">I", len(body)) + body


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.settimeout(0)
    with near, far:
        yield near, far


Pair = tuple[socket.socket, socket.socket]


def arena_of(pair: Pair, data: bytes, messages: int = 4) -> ConfirmArena:
    near, far = pair
    arena = ConfirmArena(messages)
    far.sendall(data)
    assert arena.receive(near)
    return arena


def test_the_reference_confirm_is_counted(pair: Pair) -> None:
    golden = bytes.fromhex("00000019 00030001 00 00000002 0000000000000001 0000000000000002")
    assert arena_of(pair, golden).confirmed == 2


def test_confirms_are_counted_however_they_are_split(pair: Pair) -> None:
    near, far = pair
    arena = ConfirmArena(4)
    for byte in confirm(0, 1) + confirm(2) + confirm(3):
        far.sendall(bytes([byte]))
        assert arena.receive(near)
    assert (arena.confirmed, arena.frames) == (4, 3)
    arena.check(block_count=1, block_messages=4)


def test_nothing_to_receive_is_told(pair: Pair) -> None:
    assert not ConfirmArena(1).receive(pair[0])


def test_ids_may_come_in_any_order(pair: Pair) -> None:
    arena_of(pair, confirm(3, 1) + confirm(0, 2)).check(block_count=1, block_messages=4)


def test_heartbeats_are_no_confirms(pair: Pair) -> None:
    heartbeat = bytes.fromhex("00000004 0017 0001")
    arena = arena_of(pair, heartbeat + confirm(0) + heartbeat, 1)
    arena.check(block_count=1, block_messages=1)


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((0, 1, 2), "1 missing, 0 never sent, 0 more than once"),
        ((0, 1, 2, 2), "1 missing, 0 never sent, 1 more than once"),
        ((0, 1, 2, 9), "1 missing, 1 never sent, 0 more than once"),
        ((0, 1, 2, 3, 3), "0 missing, 0 never sent, 1 more than once"),
    ],
)
def test_ids_that_are_not_those_sent_are_found(
    pair: Pair, ids: tuple[int, ...], reason: str
) -> None:
    with pytest.raises(CheckFailed, match=reason):
        arena_of(pair, confirm(*ids)).check(block_count=1, block_messages=4)


def test_a_confirm_for_another_publisher_is_found(pair: Pair) -> None:
    arena = arena_of(pair, confirm(0, publisher=0) + confirm(1, publisher=0), 2)
    arena.check(block_count=1, block_messages=2)
    with pytest.raises(CheckFailed, match="another's"):
        arena.check(block_count=1, block_messages=2, slots_of_publisher=1)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("00000013 0004 0001 00 00000001 0000000000000000 0012", "refused"),
        ("00000009 0010 0001 0006 0001 61", "took the stream away"),
        ("0000000c 0016 0001 00000001 000d 0000", "closed"),
        ("00000008 0008 0001 00000000", "unexpected command 0x0008"),
    ],
)
def test_anything_but_confirms_ends_the_run(pair: Pair, frame: str, reason: str) -> None:
    padding = bytes(8)  # a whole confirm's header must be there before a frame is judged
    with pytest.raises(BenchError, match=reason):
        arena_of(pair, bytes.fromhex(frame) + padding)


def test_a_confirm_whose_count_disagrees_with_its_size_is_found(pair: Pair) -> None:
    with pytest.raises(CheckFailed, match="has size"):
        arena_of(pair, confirm(1, 2).replace(b"\0\0\0\2\0", b"\0\0\0\3\0", 1))


def test_a_server_that_hangs_up_ends_the_run(pair: Pair) -> None:
    near, far = pair
    far.close()
    with pytest.raises(BenchError, match="hung up"):
        ConfirmArena(1).receive(near)
