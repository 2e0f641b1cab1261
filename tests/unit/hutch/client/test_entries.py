import gzip
import zlib
from collections.abc import Callable

import pytest

from hutch.client.entries import records_of
from hutch.client.errors import BadAnswer, ClientError
from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX
from hutch.formats.sub_batches import BadSubBatch
from tests.chunks import GZIP, HEADER, MAGIC_AND_VERSION, SNAPPY, Entry, SubBatch
from tests.fake_server import chunk


def chunk_of(*entries: Entry, first: int = 100, kind: int = 0) -> bytes:
    data = b"".join(
        entry.encoded() if isinstance(entry, SubBatch) else len(entry).to_bytes(4) + entry
        for entry in entries
    )
    crc = zlib.crc32(data)
    count = len(entries)
    return (
        HEADER.pack(
            MAGIC_AND_VERSION, kind, count, count, 1, 1, first, crc, len(data), 0, 0, bytes(3)
        )
        + data
    )


def test_simple_entries_and_sub_batches_count_their_records_alike() -> None:
    found = records_of(
        chunk_of(b"a", SubBatch.of([b"b", b""]), b"c", SubBatch.of([b"d"], GZIP), b"")
    )

    assert list(found) == list(enumerate([b"a", b"b", b"", b"c", b"d", b""], 100))


def test_gzip_of_several_members_is_opened() -> None:
    raw = [b"\0\0\0\1a", b"\0\0\0\1b"]
    body = b"".join(map(gzip.compress, raw))

    assert list(records_of(chunk_of(SubBatch(GZIP, 2, 10, body)))) == [(100, b"a"), (101, b"b")]


def test_other_codecs_are_those_that_are_given() -> None:
    data = chunk_of(SubBatch(SNAPPY, 1, 5, b"a\1\0\0\0"))

    with pytest.raises(ClientError, match="compressed by codec 2, which is not known here"):
        list(records_of(data))

    assert list(records_of(data, {SNAPPY: lambda body, _: body[::-1]})) == [(100, b"a")]


def test_a_chunk_of_another_kind_has_no_records() -> None:
    assert list(records_of(chunk_of(b"not a record", kind=1))) == []


DAMAGED = {
    "header cut short": chunk_of(b"a")[:47],
    "data cut short": chunk_of(b"abc")[:-1],
    "wrong checksum": chunk(0, [b"a"], crc=1).data,
    "an entry that is too long": chunk_of(b"abc").replace(b"\0\0\0\3abc", b"\0\0\0\4abc"),
}


def with_crc(data: bytes) -> bytes:
    """Give a chunk the checksum of what it holds."""
    return data[:32] + zlib.crc32(data[48:]).to_bytes(4) + data[36:]


@pytest.mark.parametrize(
    "data",
    [
        *DAMAGED.values(),
        with_crc(DAMAGED["an entry that is too long"]),
        with_crc(chunk_of(b"").replace(b"\0\0\0\4" + bytes(8), b"\0\0\0\2" + bytes(8))[:-2]),
        with_crc(chunk_of(SubBatch.of([b"abc"]))[:-1]),
    ],
)
def test_damage_is_told_and_never_read(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        list(records_of(data))


ONE = gzip.compress(b"\0\0\0\1a", mtime=0)
BAD: dict[str, tuple[SubBatch, str]] = {
    "fewer records": (SubBatch(0, 2, 5, b"\0\0\0\1a"), "does not hold 2 records in 5 bytes"),
    "more records": (SubBatch(0, 1, 10, b"\0\0\0\1a" * 2), "does not hold 1 records in 10 bytes"),
    "a sub-batch in it": (SubBatch(0, 1, 12, SubBatch.of([b"a"]).encoded()), "does not hold 1"),
    "a record that is too long": (SubBatch(0, 1, 5, b"\0\0\0\2a"), "does not hold 1 records"),
    "a head that is cut off": (SubBatch(0, 2, 7, bytes(7)), "does not hold 2 records in 7 bytes"),
    "no gzip": (SubBatch(GZIP, 1, 5, b"no gzip"), "is not 5 bytes compressed by gzip"),
    "gzip that is cut off": (SubBatch(GZIP, 1, 5, ONE[:-1]), "is not 5 bytes compressed by gzip"),
    "fewer bytes by its head": (SubBatch(GZIP, 1, 4, ONE), "is not 4 bytes compressed by gzip"),
    "more bytes by its head": (SubBatch(GZIP, 1, 6, ONE), "is not 6 bytes compressed by gzip"),
    "an unknown codec": (SubBatch(6, 1, 6, ONE), "is compressed by an unknown codec, 6"),
}


@pytest.mark.parametrize(("bad", "fault"), BAD.values(), ids=BAD)
def test_a_sub_batch_that_is_not_what_it_says_is_its_publishers_fault(
    bad: SubBatch, fault: str
) -> None:
    found = records_of(chunk_of(b"a", bad))

    assert next(found) == (100, b"a")
    with pytest.raises(ClientError) as caught:
        next(found)
    assert not isinstance(caught.value, BadAnswer)
    said = f"at offset 101 a publisher sent a sub-batch of {bad.record_count} records that {fault}"
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("raw_bytes", "is_tried"), [(UNCOMPRESSED_BYTES_MAX, True), (UNCOMPRESSED_BYTES_MAX + 1, False)]
)
def test_no_more_is_decompressed_than_a_server_takes(raw_bytes: int, is_tried: bool) -> None:  # noqa: FBT001  # a parameter of the test
    tried: list[int] = []

    def notes(_body: bytes, raw_bytes: int) -> bytes:
        tried.append(raw_bytes)
        return b""

    with pytest.raises(ClientError, match=f"{raw_bytes} bytes"):
        list(records_of(chunk_of(SubBatch(SNAPPY, 1, raw_bytes, b"x")), {SNAPPY: notes}))

    assert bool(tried) is is_tried


@pytest.mark.parametrize("error", [ValueError, OSError, zlib.error])
def test_a_codec_that_fails_is_the_publishers_fault(error: Callable[[], Exception]) -> None:
    def fails(_body: bytes, _raw_bytes: int) -> bytes:
        raise error()

    with pytest.raises(ClientError, match="that is not 5 bytes compressed by snappy"):
        list(records_of(chunk_of(SubBatch(SNAPPY, 1, 5, b"x")), {SNAPPY: fails}))


@pytest.mark.parametrize(("bad", "fault"), BAD.values(), ids=BAD)
def test_a_program_may_pass_over_a_sub_batch_that_cannot_be_opened(
    bad: SubBatch, fault: str
) -> None:
    told: list[tuple[int, bytes, str]] = []

    def refused(offset: int, body: bytes, error: BadSubBatch) -> None:
        told.append((offset, body, str(error)))

    found = list(records_of(chunk_of(b"a", bad, b"b"), refused=refused))

    assert found == [(100, b"a"), (101 + bad.record_count, b"b")]
    ((offset, body, words),) = told
    assert (offset, body) == (101, bad.body)
    assert fault in words


def test_a_codec_that_is_not_given_is_no_fault_of_the_publisher() -> None:
    with pytest.raises(ClientError, match="which is not known here"):
        list(records_of(chunk_of(SubBatch.of([b"a"], SNAPPY)), refused=lambda *_: None))
