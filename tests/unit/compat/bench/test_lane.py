"""A lane's parts, on a pair of sockets."""

import socket
import struct
from array import array
from collections.abc import Iterator

import pytest

from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import HEARTBEAT, entry_of
from compat.bench.lane import Inbox, Marks, Outbox
from tests.unit.compat.bench.stand_in import CHUNK_HEAD
from tests.unit.compat.bench.test_confirms import confirm

BODY_BYTES = 8
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    near.settimeout(0)
    with near, far:
        yield near, far


def inbox_of(near: socket.socket) -> Inbox:
    return Inbox(near, body_bytes=BODY_BYTES, send=near.sendall)


def delivery(chunk_id: int, records: int, crc: int) -> bytes:
    data = entry_of(BODY_BYTES) * records
    head = CHUNK_HEAD.pack(0x50, 0, records, records, 0, 1, chunk_id, crc, len(data), 0, 0)
    body = struct.pack(">HHB", 8, 1, 0) + head + data
    return struct.pack(">I", len(body)) + body


def test_each_of_a_count_has_the_time_at_which_it_was_reached() -> None:
    marks = Marks()
    for time_ns, count in ((100, 2), (150, 2), (200, 3)):
        marks.note(time_ns, count)

    assert marks.latencies_ns([10, 20, 30]) == array("q", [90, 80, 170])
    assert marks.count == 3


def test_what_does_not_fit_is_sent_before_what_comes_after_it(pair: Pair) -> None:
    near, far = pair
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    outbox = Outbox(near)
    data = bytes(range(256)) * 4096
    outbox.send(data)
    assert outbox.is_full
    outbox.send(b"credit")

    received = b""
    while len(received) < len(data) + len(b"credit"):
        received += far.recv(1 << 20)
        outbox.flush()

    assert received == data + b"credit"
    assert not outbox.is_full


def test_chunks_and_confirms_of_one_socket_are_told_apart_however_they_are_split(
    pair: Pair,
) -> None:
    near, far = pair
    inbox = inbox_of(near)
    crc = inbox._crc_of(2)
    heartbeat = struct.pack(">IHH", 4, HEARTBEAT, 1)
    for byte in confirm(0, 1) + delivery(0, 2, crc) + heartbeat + confirm(2):
        far.sendall(bytes([byte]))
        inbox.step()

    assert list(inbox.confirmed) == [0, 1, 2]
    assert (inbox.records, inbox.chunks) == (2, 1)


def test_nothing_to_receive_is_no_error(pair: Pair) -> None:
    inbox = inbox_of(pair[0])
    inbox.step()
    assert inbox.records == 0


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (delivery(1, 1, 0), CheckFailed),
        (delivery(0, 1, 0), CheckFailed),
        (struct.pack(">IHHBI", 17, 3, 1, 0, 2) + bytes(8), CheckFailed),
        (struct.pack(">IHH", 4, 4, 1), BenchError),
        (struct.pack(">IHH", 4, 0x16, 1), BenchError),
    ],
    ids=["offset", "crc", "size of a confirm", "publish error", "close"],
)
def test_what_must_not_come_is_an_error(pair: Pair, data: bytes, error: type[Exception]) -> None:
    near, far = pair
    far.sendall(data)
    with pytest.raises(error):
        inbox_of(near).step()
