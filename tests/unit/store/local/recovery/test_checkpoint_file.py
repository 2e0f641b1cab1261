from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from store.errors import OtherFormat, StoreError
from store.local.commit.journal import JournalPlace
from store.local.recovery.checkpoint_file import (
    BEGINNING_BYTES,
    FORMAT_NUMBER,
    CheckpointHead,
    SegmentImage,
    bytes_of_checkpoint,
    bytes_of_segment,
    check_size,
    head_of_checkpoint,
    image_of,
    segments_of_checkpoint,
)
from store.local.state.data_file import DataFile
from store.local.state.segment import Segment

PLACE = JournalPlace(2**33, 4, 5)
HEAD = CheckpointHead(
    place=PLACE,
    salt=2**64 - 1,
    next_segment=7,
    next_file=8,
    closed=True,
    store_id=2**64 - 2,
    journal_size=2**40,
    loose=(2**33, 9),
)
YES, NO = True, False
ATTRIBUTES = {bytes(16): 5, bytes(range(16)): -(2**63) + 1}
WRITERS = {b"w" * 16: 7, b"v" * 16: 2**63 - 1}
IMAGES = [
    SegmentImage(1, "a/ü", None, NO, NO, 10, 300, 1_700, ATTRIBUTES, WRITERS, [(0, 1), (200, 9)]),
    SegmentImage(2, "t", 0, YES, NO, 0, 0, 0, {}, {}, []),
    SegmentImage(3, "f", 8, NO, YES, 2**40, 2**41, 3, {}, WRITERS, [(2**40, 2)]),
]


def checkpoint() -> bytes:
    return bytes_of_checkpoint(HEAD, map(bytes_of_segment, IMAGES), len(IMAGES))


def test_a_checkpoint_comes_back_as_it_was() -> None:
    data = checkpoint()
    assert head_of_checkpoint(data) == HEAD
    assert list(segments_of_checkpoint(data)) == IMAGES


def read_in(data: bytes, zeros: int = 0) -> tuple[int, Callable[[int, int], bytes]]:
    """Size of a file with zeros behind data, and its reads, of which each is small."""

    def read(size: int, position: int) -> bytes:
        assert size < 1_000
        return data[position : position + size].ljust(
            min(size, len(data) + zeros - position), b"\0"
        )

    return len(data) + zeros, read


def test_the_size_of_a_checkpoint_is_known_without_reading_all_of_it() -> None:
    check_size(*read_in(checkpoint()))
    check_size(*read_in(bytes_of_checkpoint(HEAD, [], 0)))
    for zeros in (1, 3, 100, 2**40):
        with pytest.raises(StoreError, match=f"at byte {len(checkpoint())} does not fit"):
            check_size(*read_in(checkpoint(), zeros))
    for size in range(1, len(checkpoint())):
        with pytest.raises(StoreError, match="is damaged"):
            check_size(*read_in(checkpoint()[:size]))
    with pytest.raises(StoreError, match="does not begin like one"):
        check_size(*read_in(b"", 2**40))
    with pytest.raises(OtherFormat):
        check_size(*read_in(b"hutchcp\xff", 2**40))


def test_a_count_of_segments_that_are_not_there_is_not_looked_through() -> None:
    data = bytes_of_checkpoint(HEAD, [], 2**32 - 1)
    with pytest.raises(StoreError, match="does not fit"):
        check_size(*read_in(data, 1_000))


def test_an_empty_store_has_a_checkpoint() -> None:
    data = bytes_of_checkpoint(HEAD, [], 0)
    assert head_of_checkpoint(data) == HEAD
    assert list(segments_of_checkpoint(data)) == []


def test_damage_anywhere_is_noticed() -> None:
    data = checkpoint()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        is_number = position == BEGINNING_BYTES - 1
        with pytest.raises(StoreError, match="has format" if is_number else "damaged"):
            head_of_checkpoint(bytes(damaged))


@pytest.mark.parametrize("number", [0, 1, FORMAT_NUMBER - 1, FORMAT_NUMBER + 1, 255])
def test_another_number_is_refused_whatever_follows_it(number: int) -> None:
    beginning = checkpoint()[: BEGINNING_BYTES - 1] + bytes((number,))
    for data in (beginning, beginning + checkpoint()[BEGINNING_BYTES:], beginning + bytes(100)):
        with pytest.raises(OtherFormat) as told:
            head_of_checkpoint(data)
        assert str(told.value) == (
            f"this Hutch stores format {FORMAT_NUMBER}, the data directory has format {number}:"
            " made by an unreleased Hutch: start with an empty directory"
        )


@pytest.mark.parametrize("size", [0, 1, BEGINNING_BYTES - 1, BEGINNING_BYTES, 40, 90])
def test_a_cut_checkpoint_is_damaged(size: int) -> None:
    with pytest.raises(StoreError, match="damaged"):
        head_of_checkpoint(checkpoint()[:size])


def test_an_image_is_taken_of_the_committed_state_and_does_not_follow_it() -> None:
    segment = Segment(5, "a", None)
    segment.committed.length = 10
    segment.committed.extents = ((0, DataFile(3, 5)),)
    segment.committed.attributes.update([(bytes(16), 1)])
    segment.committed.attributes.append(b"w" * 16, 2)
    segment.pending.length = 99
    image = image_of(segment)
    segment.committed.attributes.update([(bytes(16), 3)])
    segment.committed.attributes.append(b"w" * 16, 4)
    segment.committed.extents = ()
    assert (image.length, image.attributes, image.extents) == (10, {bytes(16): 1}, [(0, 3)])
    assert image.writers == {b"w" * 16: 2}


@given(st.data())
def test_no_bit_of_a_checkpoint_with_a_right_checksum_leads_astray(data: st.DataObject) -> None:
    extents = [(0, 1), (60, 2)]
    images = [
        SegmentImage(number, "s", None, NO, NO, 0, 90, 7, {bytes(16): 1}, {}, extents)
        for number in range(3)
    ]
    head = CheckpointHead(
        place=JournalPlace(1, 1, 0),
        salt=5,
        next_segment=9,
        next_file=9,
        closed=True,
        store_id=6,
        journal_size=7,
        loose=(4, 5),
    )
    stored = bytearray(bytes_of_checkpoint(head, map(bytes_of_segment, images), len(images)))
    bit = data.draw(st.integers(16 * 8, len(stored) * 8 - 1))
    stored[bit // 8] ^= 1 << bit % 8
    stored[8:16] = xxh3_64_intdigest(stored[16:]).to_bytes(8, "little")

    try:
        head_of_checkpoint(bytes(stored))
        found = list(segments_of_checkpoint(bytes(stored)))
    except StoreError:
        return
    assert len(found) == 3
    assert all(image.start <= image.length for image in found)
