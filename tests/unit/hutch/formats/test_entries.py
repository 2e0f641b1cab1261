"""The form of entries: what is packed is found again, and what is cut off ends the walk."""

import struct

import pytest

from gateway.settings.model import Settings
from hutch.formats.entries import (
    RECORD_HEAD,
    SUB_BATCH_RECORDS_MAX,
    UNCOMPRESSED_BYTES_MAX,
    SubBatch,
    SubBatchCodec,
    entries_in,
    pack_sub_batch,
    sub_batch_at,
)
from tests import chunks

RECORD = RECORD_HEAD.pack(3) + b"abc"
BATCH = pack_sub_batch(SubBatchCodec.GZIP, 7, 500, b"body")


@pytest.mark.parametrize("codec", SubBatchCodec)
def test_a_sub_batch_is_packed_as_the_protocol_draws_it(codec: SubBatchCodec) -> None:
    packed = pack_sub_batch(codec, SUB_BATCH_RECORDS_MAX, 1 << 31, b"body")

    assert packed == chunks.SubBatch(codec, 65_535, 1 << 31, b"body").encoded()
    assert sub_batch_at(b"<<" + packed, 2) == SubBatch(codec, 65_535, 1 << 31, 13, 17)


def test_the_codecs_have_the_numbers_of_the_protocol() -> None:
    names = ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD")

    assert {name: SubBatchCodec[name] for name in names} == {
        name: getattr(chunks, name) for name in names
    }


def test_a_server_takes_what_a_reader_opens() -> None:
    assert Settings().stream.sub_batch_uncompressed_bytes_max == UNCOMPRESSED_BYTES_MAX


def test_unused_bits_are_no_part_of_the_codec() -> None:
    assert sub_batch_at(b"\xcf" + BATCH[1:], 0).codec == SubBatchCodec.ZSTD


def test_the_head_of_a_sub_batch_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(struct.error):
        sub_batch_at(BATCH[:10], 0)


def test_entries_are_walked_one_by_one() -> None:
    source = b"xx" + RECORD + BATCH + RECORD_HEAD.pack(0) + RECORD + b"yy"

    walked = list(entries_in(source, 2, len(source) - 2))

    assert [source[start:end] for start, end, _ in walked] == [b"abc", b"body", b"", b"abc"]
    assert [batch and batch.records for _, _, batch in walked] == [None, 7, None, None]


@pytest.mark.parametrize(
    ("last", "count"),
    [(RECORD[:3], 1), (RECORD[:4], 2), (BATCH[:10], 1), (BATCH[:11], 2), (BATCH[:-1], 2)],
    ids=["a head", "a record", "a sub-batch's head", "its body", "the body's end"],
)
def test_a_walk_ends_with_what_is_cut_off(last: bytes, count: int) -> None:
    source = RECORD + last

    walked = list(entries_in(source + BATCH, 0, len(source)))

    assert len(walked) == count
    assert walked[-1][1] == len(RECORD) or walked[-1][1] > len(source)
