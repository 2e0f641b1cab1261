import zlib

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.broker.streams.openings import EPOCH_MAX
from hutch.formats import chunk
from hutch.formats.chunk import (
    ChunkHeader,
    pack_head,
    pack_header,
    pack_trailer,
    unpack_header,
    unpack_trailer,
)

GOLDEN = bytes.fromhex(
    "50 00 0002 00000002 000001a1fd11c924 0000000000000001 000000000000000a 3cf28e08"
    "0000000a 0000000d 00 000000"
)
HEADER = ChunkHeader(
    entries=2,
    records=2,
    timestamp_ms=0x1A1FD11C924,
    epoch=1,
    chunk_id=10,
    crc=0x3CF28E08,
    data_bytes=10,
    trailer_bytes=13,
)

headers = st.builds(
    ChunkHeader,
    entries=st.integers(0, 2**16 - 1),
    records=st.integers(0, 2**32 - 1),
    timestamp_ms=st.integers(-(2**63), 2**63 - 1),
    epoch=st.integers(0, 2**64 - 1),
    chunk_id=st.integers(0, 2**64 - 1),
    crc=st.integers(0, 2**32 - 1),
    data_bytes=st.integers(0, 2**32 - 1),
    trailer_bytes=st.integers(0, 2**32 - 1),
)
references = st.binary(max_size=255)


def test_a_header_is_byte_for_byte_that_of_rabbitmq() -> None:
    assert pack_header(HEADER) == GOLDEN
    assert unpack_header(GOLDEN, 0) == HEADER


@given(headers, st.integers(0, 9))
def test_a_header_comes_back_from_any_place(header: ChunkHeader, place: int) -> None:
    assert unpack_header(bytes(place) + pack_header(header), place) == header


@given(headers)
def test_the_head_of_a_stored_chunk_is_the_head_of_its_event_and_its_header(
    header: ChunkHeader,
) -> None:
    buffer = bytearray(b"\xff" * 60)

    pack_head(buffer, header, 1000)

    assert buffer == bytes(4) + (1000).to_bytes(4) + pack_header(header) + b"\xff" * 4


def test_a_trailer_is_byte_for_byte_that_of_rabbitmq() -> None:
    assert pack_trailer({b"ref": 6}) == bytes.fromhex("00 03 726566 0000000000000006")


@given(st.dictionaries(references, st.integers(0, 2**64 - 1), max_size=8))
def test_a_trailer_comes_back_in_its_order(sequences: dict[bytes, int]) -> None:
    assert list(unpack_trailer(pack_trailer(sequences))) == list(sequences.items())


@given(st.dictionaries(references, st.integers(0, 2**64 - 1), max_size=4), st.data())
def test_a_trailer_that_is_cut_short_gives_what_is_whole(
    sequences: dict[bytes, int], data: st.DataObject
) -> None:
    packed = pack_trailer(sequences)
    end = data.draw(st.integers(0, len(packed)))

    found = list(unpack_trailer(packed[:end]))

    assert found == list(sequences.items())[: len(found)]
    assert len(pack_trailer(dict(found))) <= end


def test_a_trailer_stops_at_a_kind_that_it_does_not_know() -> None:
    known = pack_trailer({b"a": 1})

    assert list(unpack_trailer(known + b"\1\1b" + bytes(8) + known)) == [(b"a", 1)]


def test_the_checksum_is_that_of_zlib() -> None:
    assert chunk.crc32(b"entries") == zlib.crc32(b"entries")


@given(st.integers(0, 2**47 - 1), st.integers(0, EPOCH_MAX))
@example(2**47 - 1, EPOCH_MAX)
def test_an_event_number_holds_offset_and_epoch(next_offset: int, epoch: int) -> None:
    number = chunk.event_number(next_offset, epoch)

    assert 0 <= number < 2**63
    assert chunk.next_offset_and_epoch(number) == (next_offset, epoch)


def test_event_numbers_grow_with_the_offset_and_then_with_the_epoch() -> None:
    assert chunk.event_number(5, 0xFFFF) < chunk.event_number(6, 1) < chunk.event_number(6, 2)
