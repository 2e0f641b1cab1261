"""The rule for sub-batches: what is taken for good, and what is said of one that is not."""

import pickle
import zlib
from collections.abc import Callable

import pytest

from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX, SubBatch, SubBatchCodec
from hutch.formats.sub_batches import BadSubBatch, Decompress, require_records, uncompressed

BODY = b"ab"
SIZE = 4
CODECS: dict[int, Decompress] = {SubBatchCodec.ZSTD: lambda body, size: (body * 2)[:size]}


def head_of(codec: int = SubBatchCodec.ZSTD, size: int = SIZE) -> SubBatch:
    """The head of a sub-batch whose body lies behind two other bytes."""
    return SubBatch(codec, 3, size, 2, 2 + len(BODY))


def fault(head: SubBatch, source: bytes = b"<<ab>>", bytes_max: int = SIZE) -> str:
    with pytest.raises(BadSubBatch) as caught:
        uncompressed(source, head, CODECS, bytes_max)
    assert caught.value.head == head
    assert (
        str(caught.value) == f"a publisher sent a sub-batch of 3 records that {caught.value.fault}"
    )
    return caught.value.fault


def test_a_body_is_decompressed_to_the_size_in_the_head() -> None:
    assert uncompressed(memoryview(b"<<ab>>"), head_of(), CODECS) == b"abab"


@pytest.mark.parametrize("size", [0, 1, UNCOMPRESSED_BYTES_MAX + 1])
def test_one_that_is_not_compressed_has_the_size_that_it_has(size: int) -> None:
    assert uncompressed(b"<<ab>>", head_of(SubBatchCodec.NONE, size), {}) == BODY


@pytest.mark.parametrize("codec", [*SubBatchCodec, 5])
def test_a_body_that_is_not_all_there_is_said_to_be_cut_off(codec: int) -> None:
    assert fault(head_of(codec), b"<<a") == "is cut off"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_there_is_not_is_named(codec: int) -> None:
    assert fault(head_of(codec)) == f"is compressed by an unknown codec, {codec}"


def test_a_size_above_the_limit_is_told_before_anything_is_decompressed() -> None:
    assert uncompressed(b"<<ab>>", head_of(), CODECS, SIZE) == b"abab"
    assert fault(head_of(size=SIZE + 1)) == f"says that it has {SIZE + 1} bytes, more than {SIZE}"
    size = UNCOMPRESSED_BYTES_MAX + 1
    with pytest.raises(BadSubBatch, match=f"says that it has {size} bytes"):
        uncompressed(b"<<ab>>", head_of(size=size), CODECS)


@pytest.mark.parametrize("error", [ValueError, OSError, IndexError, zlib.error])
def test_an_error_of_a_codec_is_the_publishers_fault(error: Callable[[], Exception]) -> None:
    def fails(_body: bytes, _size: int) -> bytes:
        raise error()

    with pytest.raises(BadSubBatch, match="that is not 4 bytes compressed by lz4"):
        uncompressed(b"<<ab>>", head_of(SubBatchCodec.LZ4), {SubBatchCodec.LZ4: fails})


@pytest.mark.parametrize("given", [b"", b"abc", b"abcde"])
def test_another_number_of_bytes_than_the_head_says_is_told(given: bytes) -> None:
    with pytest.raises(BadSubBatch, match="that is not 4 bytes compressed by gzip"):
        uncompressed(b"<<ab>>", head_of(SubBatchCodec.GZIP), {SubBatchCodec.GZIP: lambda *_: given})


@pytest.mark.parametrize(("count", "end"), [(2, SIZE), (4, SIZE), (3, SIZE - 1), (3, SIZE + 1)])
def test_records_that_do_not_fit_the_head_are_told(count: int, end: int) -> None:
    require_records(head_of(), SIZE, 3, SIZE)
    with pytest.raises(BadSubBatch, match="that does not hold 3 records in 4 bytes"):
        require_records(head_of(), SIZE, count, end)


def test_what_is_wrong_survives_pickling() -> None:
    bad = BadSubBatch(head_of(), "is cut off")

    again = pickle.loads(pickle.dumps(bad))

    assert (str(again), again.head, again.fault) == (str(bad), bad.head, bad.fault)
