import socket
import threading
import time
from collections.abc import Iterator

import pytest

from hutch.client.both_ways import send_both_ways
from tests.waiting import HANG_S

Pair = tuple[socket.socket, socket.socket]

MUCH = bytes(range(256)) * 80_000


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon() -> float:
    return time.monotonic() + HANG_S


def received(connected: socket.socket, count: int) -> bytes:
    connected.settimeout(HANG_S)
    found = bytearray()
    while len(found) < count:
        found += connected.recv(1 << 20)
    return bytes(found)


def test_small_data_is_sent_at_once_and_nothing_is_taken(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"waiting")

    send_both_ways(ours, b"data", soon(), lambda: pytest.fail("there was room"))

    assert theirs.recv(100) == b"data"


def test_much_data_reaches_a_side_that_writes_before_it_reads(pair: Pair) -> None:
    ours, theirs = pair
    taken = bytearray()
    seen: list[bytes] = []

    def write_then_read() -> None:
        theirs.settimeout(HANG_S)
        theirs.sendall(MUCH)
        seen.append(received(theirs, len(MUCH)))

    other = threading.Thread(target=write_then_read)
    other.start()

    def take() -> None:
        taken.extend(ours.recv(1 << 20))

    send_both_ways(ours, memoryview(MUCH), soon(), take)
    other.join(HANG_S)

    assert seen == [MUCH]
    assert bytes(taken) == MUCH[: len(taken)]
    assert taken


def test_a_side_that_neither_reads_nor_writes_is_given_up(pair: Pair) -> None:
    began = time.monotonic()

    with pytest.raises(TimeoutError, match="bytes could not be sent in time"):
        send_both_ways(pair[0], MUCH, began + 0.2, lambda: None)

    assert time.monotonic() - began < 20


def test_a_side_that_has_gone_is_an_error(pair: Pair) -> None:
    pair[1].close()

    with pytest.raises(OSError, match="pipe"):
        send_both_ways(pair[0], MUCH, soon(), lambda: None)


def test_what_taking_raises_is_raised(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"bad news")

    def take() -> None:
        raise ValueError(ours.recv(100))

    with pytest.raises(ValueError, match="bad news"):
        send_both_ways(ours, MUCH, soon(), take)
