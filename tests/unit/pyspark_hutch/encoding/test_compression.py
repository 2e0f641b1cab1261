"""Codecs, each read by another implementation of it."""

import gzip

import cramjam
import numpy as np
import pyarrow as pa
import pytest

from hutch.formats.entries import SubBatchCodec
from pyspark_hutch.encoding import compression
from pyspark_hutch.encoding.compression import compress
from pyspark_hutch.encoding.crc32c import crc32c

KIB = 1 << 10
MIB = KIB << 10
NOISE = np.random.default_rng(1).bytes(MIB)
TEXT = b"some text that comes again and again, " * 3_000
SOURCES = {
    "empty": b"",
    "short": b"x",
    "text": TEXT,
    "noise": NOISE[: 200 * KIB],
    "64 KiB less one": TEXT[: 64 * KIB - 1],
    "64 KiB": TEXT[: 64 * KIB],
    "64 KiB and one": TEXT[: 64 * KIB + 1],
    "two blocks of lz4": TEXT * 37 + NOISE + TEXT,
    "zeros": bytes(300 * KIB),
}


@pytest.fixture(params=["with cramjam", "without"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setattr(compression, "cramjam", None)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> bytes:
    return SOURCES[request.param]


def test_no_compression_leaves_the_bytes(source: bytes) -> None:
    assert compress(SubBatchCodec.NONE, memoryview(source)) == source


def test_gzip_is_read_by_python(source: bytes) -> None:
    assert gzip.decompress(compress(SubBatchCodec.GZIP, memoryview(source))) == source


@pytest.mark.usefixtures("installed")
def test_framed_snappy_is_read_by_cramjam_with_its_checksums(source: bytes) -> None:
    packed = compress(SubBatchCodec.SNAPPY, memoryview(source))

    assert bytes(cramjam.snappy.decompress(packed)) == source
    if source:
        assert packed.startswith(b"\xff\x06\x00\x00sNaPpY")


def test_lz4_is_read_by_two_others(source: bytes) -> None:
    packed = compress(SubBatchCodec.LZ4, memoryview(source))

    assert bytes(cramjam.lz4.decompress(packed)) == source
    if source:
        found = pa.Codec("lz4").decompress(packed, len(source), asbytes=True)
        assert found == source


def test_blocks_of_lz4_do_not_depend_on_each_other() -> None:
    """The Java client's library refuses a frame whose flag says that they may."""
    packed = compress(SubBatchCodec.LZ4, memoryview(SOURCES["two blocks of lz4"]))

    assert packed[4] == 0x60


def test_zstd_is_read_by_cramjam(source: bytes) -> None:
    assert (
        bytes(cramjam.zstd.decompress(compress(SubBatchCodec.ZSTD, memoryview(source)))) == source
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "codec", [SubBatchCodec.GZIP, SubBatchCodec.SNAPPY, SubBatchCodec.LZ4, SubBatchCodec.ZSTD]
)
def test_text_that_comes_again_gets_smaller(codec: SubBatchCodec) -> None:
    assert len(compress(codec, memoryview(TEXT))) < len(TEXT) / 10


@pytest.mark.parametrize(
    ("source", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_has_its_published_values(source: bytes, crc: int) -> None:
    assert crc32c(memoryview(source)) == crc


@pytest.mark.parametrize("size", [255, 256, 257, 511, 512, 1_000, 4_096])
def test_the_checksum_in_lanes_is_that_byte_by_byte(size: int) -> None:
    crc = 0xFFFF_FFFF
    for octet in NOISE[:size]:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)

    assert crc32c(memoryview(NOISE[:size])) == crc ^ 0xFFFF_FFFF
