"""Sub-batches of every codec, in the framings that clients use, and none larger than it says."""

import gzip
import tracemalloc
from collections.abc import Callable

import cramjam
import pyarrow as pa
import pytest

from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX, SubBatch
from hutch.formats.sub_batches import BadSubBatch, uncompressed
from pyspark_hutch.decoding.codecs import CODECS

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
RAW = b"".join(len(b"event %d" % n).to_bytes(4) + b"event %d" % n for n in range(9_000))


def decompress(codec: int, source: bytes, start: int, end: int, size: int) -> bytes:
    """Decompress the body of a sub-batch of one record."""
    return uncompressed(source, SubBatch(codec, 1, size, start, end), CODECS)


def snappy_block(raw: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(raw, asbytes=True))


def snappy_frame(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + len(body).to_bytes(3, "little") + body


def mixed_frames(raw: bytes) -> bytes:
    """Frames of each kind: as they are, compressed, padding, and one that may be skipped."""
    half = len(raw) // 2
    return b"".join(
        (
            b"\xff\x06\x00\x00sNaPpY",
            snappy_frame(1, b"crc!" + raw[:half]),
            snappy_frame(0xFE, bytes(7)),
            snappy_frame(0x80, b"whatever"),
            b"\xff\x06\x00\x00sNaPpY",
            snappy_frame(0, b"crc!" + snappy_block(raw[half:])),
        )
    )


def members(raw: bytes) -> bytes:
    half = len(raw) // 2
    return gzip.compress(raw[:half]) + gzip.compress(raw[half:])


def lz4_blocks_alone(raw: bytes) -> bytes:
    """A frame without the size of its content, as clients of Go write it."""
    return bytes(pa.Codec("lz4").compress(raw, asbytes=True))


FORMS: dict[str, tuple[int, Callable[[bytes], object]]] = {
    "none": (NONE, bytes),
    "gzip": (GZIP, gzip.compress),
    "gzip in two members": (GZIP, members),
    "framed snappy": (SNAPPY, cramjam.snappy.compress),
    "framed snappy with every kind of frame": (SNAPPY, mixed_frames),
    "a block of snappy": (SNAPPY, snappy_block),
    "lz4": (LZ4, cramjam.lz4.compress),
    "lz4 without its size": (LZ4, lz4_blocks_alone),
    "zstd": (ZSTD, cramjam.zstd.compress),
    "zstd in two frames": (
        ZSTD,
        lambda raw: b"".join(bytes(cramjam.zstd.compress(half)) for half in (raw[:99], raw[99:])),
    ),
}


@pytest.mark.parametrize(("codec", "compress"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("raw", [RAW, RAW[:1000]], ids=["large", "small"])
def test_every_codec_gives_its_records(
    codec: int, compress: Callable[[bytes], object], raw: bytes
) -> None:
    body = bytes(compress(raw))  # type: ignore[call-overload]  # a Buffer of cramjam or bytes

    assert decompress(codec, b"<<" + body + b">>", 2, 2 + len(body), len(raw)) == raw


@pytest.mark.parametrize(("codec", "compress"), list(FORMS.values())[1:], ids=list(FORMS)[1:])
@pytest.mark.parametrize("difference", [-1, 1, -999, 999])
def test_another_size_than_it_says_is_refused(
    codec: int, compress: Callable[[bytes], object], difference: int
) -> None:
    body = bytes(compress(RAW))  # type: ignore[call-overload]  # a Buffer of cramjam or bytes

    with pytest.raises(BadSubBatch, match=f"is not {len(RAW) + difference} bytes compressed"):
        decompress(codec, body, 0, len(body), len(RAW) + difference)


@pytest.mark.parametrize(("codec", "compress"), list(FORMS.values())[1:], ids=list(FORMS)[1:])
@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_body_cut_short_is_refused_or_whole(
    codec: int, compress: Callable[[bytes], object], cut: int
) -> None:
    body = bytes(compress(RAW))[:-cut]  # type: ignore[call-overload]  # a Buffer of cramjam or bytes

    try:
        raw = decompress(codec, body, 0, len(body), len(RAW))
    except BadSubBatch:
        return
    # What ends a frame of lz4 says nothing of its content.
    assert codec == LZ4
    assert raw == RAW


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize(
    "body",
    [b"", b"\0", b"garbage", bytes(100), b"\xff" * 100, b"\xff\x06\x00\x00sNaPpY\x00\xff\xff\xff",
     b"\xff\x06\x00\x00sNaPpY\x02\x00\x00\x00", b"\xff\x06\x00\x00sNaPpY\x01\x02\x00\x00ab"],
    ids=range(8),
)  # fmt: skip
def test_garbage_is_refused(codec: int, body: bytes) -> None:
    with pytest.raises(BadSubBatch, match="is not 50 bytes compressed by"):
        decompress(codec, body, 0, len(body), 50)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(BadSubBatch, match=f"unknown codec, {codec}"):
        decompress(codec, b"x", 0, 1, 1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_size_above_the_limit_is_refused_before_anything_is_done(codec: int) -> None:
    size = UNCOMPRESSED_BYTES_MAX
    with pytest.raises(BadSubBatch, match=f"says that it has {size + 1} bytes"):
        decompress(codec, b"x", 0, 1, size + 1)
    with pytest.raises(BadSubBatch, match=f"is not {size} bytes"):
        decompress(codec, b"x", 0, 1, size)


@pytest.mark.parametrize(("codec", "compress"), list(FORMS.values())[1:], ids=list(FORMS)[1:])
def test_a_body_that_grows_beyond_what_it_says_takes_no_memory(
    codec: int, compress: Callable[[bytes], object]
) -> None:
    bomb = bytes(compress(bytes(1 << 23)))  # type: ignore[call-overload]  # a Buffer of cramjam or bytes
    before = pa.default_memory_pool().max_memory()
    tracemalloc.start()

    with pytest.raises(BadSubBatch):
        decompress(codec, bomb, 0, len(bomb), 1000)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * len(bomb) + (1 << 20)
    assert pa.default_memory_pool().max_memory() <= before + (1 << 21)
