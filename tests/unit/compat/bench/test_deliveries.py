import contextlib
import random
import socket
import struct
import threading
import zlib
from collections.abc import Sequence
from itertools import pairwise

import pytest

from compat.bench import deliveries
from compat.bench.deliveries import DeliveryReader
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import entry_of

BODY = 10
HEARTBEAT = bytes.fromhex("00000004 0017 0001")


def deliver(chunk_id: int, records: int, **changes: int) -> bytes:
    data = entry_of(BODY) * records
    crc = zlib.crc32(data) ^ changes.get("crc", 0)
    head = struct.pack(
        ">BBHIqQQIIIB3x",
        changes.get("magic", 0x50),
        changes.get("kind", 0),
        changes.get("entries", records),
        records,
        0,
        1,
        chunk_id,
        crc,
        len(data),
        13,
        16,
    )
    if changes.get("damage"):
        data = data[:-1] + b"\0"
    size = 5 + len(head) + len(data) + changes.get("size", 0)
    return struct.pack(">IHHB", size, 8, 1, 0) + head + data


def read(
    pieces: Sequence[bytes],
    records: int,
    *,
    sample_every: int = 16,
    sample_first: int = 0,
    credit: int = 100,
) -> tuple[DeliveryReader, bytes]:
    """Feed pieces through a socket; return the reader and what it sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname(), timeout=10)
        far, _ = listener.accept()

    def feed() -> None:
        # Who finds a chunk wrong hangs up, and need not be sent the others.
        with contextlib.suppress(OSError):
            for piece in pieces:
                far.sendall(piece)
            far.shutdown(socket.SHUT_WR)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with near, far:
        reader = DeliveryReader(
            near,
            body_bytes=BODY,
            credit=credit,
            sample_every=sample_every,
            sample_first=sample_first,
        )
        reader.grant()
        try:
            reader.read_until(records)
            near.shutdown(socket.SHUT_WR)
            return reader, b"".join(iter(lambda: far.recv(1 << 20), b""))
        finally:
            near.close()
            feeder.join(5)


def test_chunks_are_read_however_they_are_split() -> None:
    data = HEARTBEAT + deliver(0, 3) + deliver(3, 1) + HEARTBEAT + deliver(4, 200)
    rng = random.Random(5)
    for _ in range(50):
        cuts = sorted(rng.sample(range(1, len(data)), 6))
        pieces = [data[a:b] for a, b in pairwise([0, *cuts, len(data)])]
        reader, _ = read(pieces, 204, sample_every=1)
        assert (reader.records, reader.chunks) == (204, 3)


@pytest.mark.parametrize("sample_every", [1, 16])
def test_large_chunks_are_read_whether_their_data_is_looked_at_or_not(sample_every: int) -> None:
    many = deliveries.DISCARD_FROM_BYTES // len(entry_of(BODY)) + 1
    counts = [many, many, 1, many, 2, many, 3]
    offsets = [sum(counts[:index]) for index in range(len(counts))]
    data = HEARTBEAT.join(map(deliver, offsets, counts))
    reader, _ = read([data], sum(counts), sample_every=sample_every)
    assert (reader.records, reader.chunks) == (sum(counts), len(counts))


def test_credit_is_granted_anew_by_halves() -> None:
    _, sent = read([deliver(index, 1) for index in range(10)], 10, credit=4)
    amounts = [struct.unpack_from(">H", sent, at + 9)[0] for at in range(0, len(sent), 11)]
    assert amounts[0] == 4
    assert 8 <= sum(amounts[1:]) <= 10
    assert all(amount >= 2 for amount in amounts)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (deliver(4, 1), "chunk 4 came where 3 was next"),
        (deliver(2, 1), "chunk 2 came where 3 was next"),
        (deliver(3, 1, magic=0x51), "begins with 0x51"),
        (deliver(3, 1, kind=1), "type 1"),
        (deliver(3, 1, size=1), "in a frame of"),
        (deliver(3, 2, entries=1), "2 records in 1 entries"),
        (deliver(3, 1, crc=1), "announces another CRC"),
        (deliver(3, 1, damage=1), "damaged"),
    ],
)
def test_a_chunk_that_is_not_the_next_one_is_found(second: bytes, reason: str) -> None:
    with pytest.raises(CheckFailed, match=reason):
        read([deliver(0, 3), second], 5, sample_every=1)


def test_a_sample_is_checked_even_if_not_everything_is() -> None:
    chunks = [deliver(index, 1) for index in range(deliveries.SAMPLE_EVERY)]
    damaged = deliver(deliveries.SAMPLE_EVERY, 1, damage=1)
    with pytest.raises(CheckFailed, match="damaged"):
        read([*chunks, damaged], 17)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [("00000007 8009 0001 0004 00", "credit refused"), ("00000008 0010 0001 0006 0000", "0x0010")],
)
def test_anything_but_chunks_ends_the_run(frame: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        read([deliver(0, 1), bytes.fromhex(frame)], 2)


@pytest.mark.parametrize("cut", [20, 100, 90_000])
@pytest.mark.parametrize("first", [0, 1])
def test_a_server_that_hangs_up_ends_the_run(cut: int, first: int) -> None:
    # The first chunk is sampled, so the second is the one whose data is discarded.
    chunks = [deliver(0, 1)] * first + [deliver(first, 10_000)[:cut]]
    with pytest.raises(BenchError, match="hung up"):
        read(chunks, 10_001)


def test_the_chunks_looked_at_begin_where_it_was_asked() -> None:
    chunks = [deliver(index, 1, damage=index in (1, 4)) for index in range(6)]
    reader, _ = read(chunks, 6, sample_every=3, sample_first=2)
    assert reader.chunks == 6
    with pytest.raises(CheckFailed):
        read(chunks, 6, sample_every=3, sample_first=1)
