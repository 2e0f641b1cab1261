"""Sub-batches of every codec, in the framings of clients, and none larger than it says."""

import gzip
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import cramjam
import pytest

from gateway.log.records.decompressing import (
    CODECS,
    LARGE_BYTES,
    check_records,
    decompressed_apart,
)
from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX, SubBatch, SubBatchCodec
from hutch.formats.sub_batches import BadSubBatch, uncompressed
from tests.chunks import COMPRESS
from tests.waiting import HANG_S

RAW = b"".join(len(b"event %d" % n).to_bytes(4) + b"event %d" % n for n in range(9_000))


def halves(compress: Callable[[bytes], Any]) -> Callable[[bytes], bytes]:
    """Compress in two parts, each with a head of its own."""
    return lambda raw: bytes(compress(raw[:99])) + bytes(compress(raw[99:]))


FORMS: dict[str, tuple[SubBatchCodec, Callable[[bytes], Any]]] = {
    "gzip": (SubBatchCodec.GZIP, gzip.compress),
    "gzip in two members": (SubBatchCodec.GZIP, halves(gzip.compress)),
    "framed snappy": (SubBatchCodec.SNAPPY, cramjam.snappy.compress),
    "framed snappy in two streams": (SubBatchCodec.SNAPPY, halves(cramjam.snappy.compress)),
    "a block of snappy": (SubBatchCodec.SNAPPY, cramjam.snappy.compress_raw),
    "lz4": (SubBatchCodec.LZ4, cramjam.lz4.compress),
    "zstd": (SubBatchCodec.ZSTD, cramjam.zstd.compress),
    "zstd in two frames": (SubBatchCodec.ZSTD, halves(cramjam.zstd.compress)),
}
COMPRESSED = pytest.mark.parametrize(("codec", "compress"), FORMS.values(), ids=FORMS)


def opened(codec: int, body: bytes, size: int, bytes_max: int = UNCOMPRESSED_BYTES_MAX) -> bytes:
    """Open a sub-batch behind two other bytes and before two more."""
    head = SubBatch(codec, 1, size, 2, 2 + len(body))
    return uncompressed(b"<<" + body + b">>", head, CODECS, bytes_max)


@COMPRESSED
@pytest.mark.parametrize("raw", [RAW, RAW[:1000]], ids=["large", "small"])
def test_every_codec_gives_its_records(
    codec: SubBatchCodec, compress: Callable[[bytes], Any], raw: bytes
) -> None:
    found = opened(codec, bytes(compress(raw)), len(raw))

    assert found == raw
    assert type(found) is bytes


@pytest.mark.parametrize("size", [0, len(RAW), 1 << 31])
def test_what_is_not_compressed_is_what_it_is(size: int) -> None:
    assert opened(SubBatchCodec.NONE, RAW, size, bytes_max=0) == RAW


@pytest.mark.parametrize("codec", SubBatchCodec)
def test_a_sub_batch_of_nothing_is_nothing(codec: SubBatchCodec) -> None:
    assert opened(codec, bytes(COMPRESS[codec](b"")), 0) == b""


@COMPRESSED
@pytest.mark.parametrize("difference", [-1, 1, -999, 999])
def test_another_size_than_it_says_is_refused(
    codec: SubBatchCodec, compress: Callable[[bytes], Any], difference: int
) -> None:
    size = len(RAW) + difference
    with pytest.raises(
        BadSubBatch, match=f"is not {size} bytes compressed by {codec.name.lower()}"
    ):
        opened(codec, bytes(compress(RAW)), size)


@COMPRESSED
@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_body_cut_short_is_refused(
    codec: SubBatchCodec, compress: Callable[[bytes], Any], cut: int
) -> None:
    with pytest.raises(BadSubBatch, match="is not"):
        opened(codec, bytes(compress(RAW))[:-cut], len(RAW))


@pytest.mark.parametrize(
    "codec", [SubBatchCodec.GZIP, SubBatchCodec.SNAPPY, SubBatchCodec.LZ4, SubBatchCodec.ZSTD]
)
@pytest.mark.parametrize(
    "body",
    [b"", b"\0", b"garbage", bytes(100), b"\xff" * 100, b"\xff\x06\x00\x00sNaPpY\x00\xff\xff\xff",
     b"\xff\x06\x00\x00sNaPpY\x02\x00\x00\x00", b"\xff\x06\x00\x00sNaPpY\x01\x02\x00\x00ab"],
    ids=range(8),
)  # fmt: skip
def test_garbage_is_refused(codec: SubBatchCodec, body: bytes) -> None:
    with pytest.raises(BadSubBatch, match="is not 50 bytes compressed by"):
        opened(codec, body, 50)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(BadSubBatch, match=f"unknown codec, {codec}"):
        opened(codec, b"x", 1)


@COMPRESSED
def test_the_limit_is_compared_with_what_the_head_says(
    codec: SubBatchCodec, compress: Callable[[bytes], Any]
) -> None:
    body = bytes(compress(RAW))
    assert opened(codec, body, len(RAW), bytes_max=len(RAW)) == RAW
    with pytest.raises(BadSubBatch, match=f"{len(RAW)} bytes, more than {len(RAW) - 1}"):
        opened(codec, body, len(RAW), bytes_max=len(RAW) - 1)


@COMPRESSED
def test_a_body_that_grows_beyond_what_it_says_takes_no_memory(
    codec: SubBatchCodec, compress: Callable[[bytes], Any]
) -> None:
    bomb = bytes(compress(bytes(1 << 23)))
    tracemalloc.start()
    try:
        with pytest.raises(BadSubBatch):
            opened(codec, bomb, 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 3 * len(bomb) + (1 << 20)


# In memory of their own


def opened_apart(codec: int, body: bytes, records: int, size: int) -> bytes:
    head = SubBatch(codec, records, size, 2, 2 + len(body))
    with decompressed_apart(b"<<" + body + b">>", head, UNCOMPRESSED_BYTES_MAX) as room:
        return room[:]


@COMPRESSED
def test_every_codec_gives_its_records_in_memory_of_their_own(
    codec: SubBatchCodec, compress: Callable[[bytes], Any]
) -> None:
    assert opened_apart(codec, bytes(compress(RAW)), 9_000, len(RAW)) == RAW


@COMPRESSED
def test_there_too_what_is_not_as_the_head_says_is_refused(
    codec: SubBatchCodec, compress: Callable[[bytes], Any]
) -> None:
    body, size = bytes(compress(RAW)), len(RAW)
    with pytest.raises(BadSubBatch, match="does not hold 9001 records"):
        opened_apart(codec, body, 9_001, size)
    with pytest.raises(BadSubBatch, match=f"is not {size + 1} bytes"):
        opened_apart(codec, body, 9_000, size + 1)
    with pytest.raises(BadSubBatch, match="bytes, more than"):
        opened_apart(codec, body, 9_000, UNCOMPRESSED_BYTES_MAX + 1)


def test_a_large_sub_batch_holds_no_record_that_no_publisher_could_send() -> None:
    for size, is_taken in ((LARGE_BYTES, True), (LARGE_BYTES + 1, False)):
        raw = size.to_bytes(4) + bytes(size)
        body = bytes(cramjam.zstd.compress(raw))
        if is_taken:
            assert opened_apart(SubBatchCodec.ZSTD, body, 1, len(raw)) == raw
        else:
            with pytest.raises(BadSubBatch, match="a record of more than 1048576 bytes"):
                opened_apart(SubBatchCodec.ZSTD, body, 1, len(raw))


def test_records_are_counted() -> None:
    check_records(RAW, SubBatch(SubBatchCodec.NONE, 9_000, 0, 0, 0))
    for count in (0, 8_999, 9_001):
        with pytest.raises(BadSubBatch, match=f"does not hold {count} records"):
            check_records(RAW, SubBatch(SubBatchCodec.NONE, count, 0, 0, 0))


@pytest.mark.parametrize(
    "codec", [SubBatchCodec.GZIP, SubBatchCodec.SNAPPY, SubBatchCodec.LZ4, SubBatchCodec.ZSTD]
)
def test_another_thread_runs_meanwhile(codec: SubBatchCodec) -> None:
    raw = b"".join(size.to_bytes(4) + bytes(size) for size in [LARGE_BYTES - 4] * 64)
    body = bytes(COMPRESS[codec](raw))
    count, counts = 0, []

    def work() -> None:
        counts.append(count)
        head = SubBatch(codec, 64, len(raw), 0, len(body))
        decompressed_apart(body, head, UNCOMPRESSED_BYTES_MAX).close()
        counts.append(count)

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(HANG_S)  # then a thread runs until it gives up the lock
    try:
        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            count += 1
            time.sleep(0)
    finally:
        sys.setswitchinterval(interval_s)

    assert counts[1] - counts[0] > 10
