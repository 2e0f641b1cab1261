from collections.abc import Sequence

import pytest

from store.errors import StoreError
from store.local.commit.records import (
    APPEND,
    APPEND_BYTES,
    CHANGE_HEAD,
    DURABLE,
    HAS_WRITER,
    INLINE,
    KIND_APPEND,
    NO_WRITER,
    Append,
    Attributes,
    Create,
    Delete,
    Merge,
    Record,
    Seal,
    Truncate,
    attributes_record,
    create_record,
    delete_record,
    frame_at,
    frame_of,
    merge_record,
    seal_record,
    sequence_at,
    truncate_record,
)

SALT = 99
WRITER = bytes(range(16))
VALUES = [(WRITER, -(2**63)), (bytes(16), 2**63 - 1)]


def decoded(*changes: bytes) -> Sequence[Record]:
    frame = frame_at(frame_of(7, 1_000, 6, changes, SALT), 0, 7, SALT)
    assert frame is not None
    return frame.records


def append_of(flags: int, data: bytes) -> bytes:
    size = APPEND_BYTES + (len(data) if flags & INLINE else 0)
    head = APPEND.pack(size, KIND_APPEND, flags, 0, 3, 4, 5, len(data), 6, WRITER, -8)
    return head + (data if flags & INLINE else b"")


@pytest.mark.parametrize(
    ("change", "record"),
    [
        (create_record(1, "s/ü", None, durable=True), Create(1, "s/ü", None, durable=True)),
        (create_record(1, "t", 0, durable=False), Create(1, "t", 0, durable=False)),
        (create_record(1, "t", 8, durable=False), Create(1, "t", 8, durable=False)),
        (attributes_record(2, VALUES, durable=True), Attributes(2, VALUES, durable=True)),
        (seal_record(3, durable=True), Seal(3, durable=True)),
        (truncate_record(3, 2**40, durable=False), Truncate(3, 2**40, durable=False)),
        (merge_record(3, 4, VALUES, durable=True), Merge(3, 4, VALUES, durable=True)),
        (merge_record(3, 4, [], durable=True), Merge(3, 4, [], durable=True)),
        (delete_record(2**40, durable=True), Delete(2**40, durable=True)),
        (
            append_of(DURABLE | INLINE | HAS_WRITER, b"data"),
            Append(3, 4, 5, 4, 6, b"data", WRITER, -8, durable=True),
        ),
        (append_of(0, b"data"), Append(3, 4, 5, 4, 6, None, None, -8, durable=False)),
    ],
)
def test_a_change_comes_back_as_it_was(change: bytes, record: Record) -> None:
    assert decoded(change) == [record]


def test_a_frame_holds_its_changes_in_order_and_says_its_size_and_time() -> None:
    changes = [seal_record(1, durable=True), delete_record(2, durable=False)]
    data = frame_of(7, 1_234, 6, changes, SALT)
    frame = frame_at(b"before" + data + b"behind", 6, 7, SALT)
    assert frame is not None
    assert (frame.sequence, frame.at_ms, frame.size) == (7, 1_234, len(data))
    assert frame.records == [Seal(1, durable=True), Delete(2, durable=False)]


def test_a_frame_of_no_change_is_a_frame() -> None:
    assert decoded() == []


def test_every_flipped_bit_is_noticed() -> None:
    data = frame_of(7, 1_000, 6, [append_of(INLINE, b"payload")], SALT)
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert frame_at(bytes(damaged), 0, 7, SALT) is None


def test_a_frame_that_is_cut_is_none() -> None:
    data = frame_of(7, 1_000, 6, [append_of(INLINE, b"payload")], SALT)
    assert [cut for cut in range(len(data)) if frame_at(data[:cut], 0, 7, SALT)] == []


@pytest.mark.parametrize(("sequence", "salt"), [(6, SALT), (8, SALT), (7, SALT + 1)])
def test_a_frame_of_another_sequence_or_opening_is_none(sequence: int, salt: int) -> None:
    data = frame_of(7, 1_000, 6, [seal_record(1, durable=True)], SALT)
    assert frame_at(data, 0, sequence, salt) is None


def test_zeros_are_no_frame() -> None:
    assert sequence_at(bytes(4_096), 0, 0) is None


def test_a_change_of_an_unknown_kind_is_refused_and_not_skipped() -> None:
    change = CHANGE_HEAD.pack(CHANGE_HEAD.size, 200, 0, 0, 1)
    with pytest.raises(StoreError, match="of kind 200, which is none"):
        decoded(change)


def test_a_writer_of_zeros_is_a_writer_if_the_flag_says_so() -> None:
    head = APPEND.pack(APPEND_BYTES, KIND_APPEND, HAS_WRITER, 0, 3, 4, 5, 0, 0, NO_WRITER, 1)
    (record,) = decoded(head)
    assert isinstance(record, Append)
    assert record.writer == NO_WRITER
