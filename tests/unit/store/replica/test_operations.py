"""Operations on files: their bytes, what they repeat of each other, and bytes that are none."""

import struct
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.replica.operations import (
    OPERATION_BYTES,
    REPEATED_BYTES_MIN,
    Create,
    Cut,
    Kind,
    MakeDirectory,
    Operation,
    Punch,
    Remove,
    Rename,
    UnreadableOperation,
    Write,
    Zero,
    pack,
    size_of,
    unpack,
)

NUMBERS: Final = st.integers(0, 2**64 - 1)
PARTS: Final = st.text("abcdäö.-0123456789", min_size=1, max_size=12).filter(
    lambda part: part != ".."
)
PATHS: Final = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
BLOCKS: Final = tuple(bytes([number]) * size for number in (0, 1, 2) for size in (63, 64, 65, 300))
DATA: Final = st.one_of(
    st.binary(max_size=200), st.lists(st.sampled_from(BLOCKS), max_size=6).map(b"".join)
)
OPERATIONS: Final = st.lists(
    st.one_of(
        st.builds(Write, PATHS, NUMBERS, DATA),
        st.builds(Zero, PATHS, NUMBERS, NUMBERS),
        st.builds(Cut, PATHS, NUMBERS),
        st.builds(Punch, PATHS, NUMBERS, NUMBERS),
        st.builds(Create, PATHS),
        st.builds(MakeDirectory, PATHS),
        st.builds(Rename, PATHS, PATHS),
        st.builds(Remove, PATHS),
    ),
    max_size=12,
)


def unpacked(data: bytes | bytearray) -> list[Operation]:
    return list(unpack(memoryview(bytes(data))))


def block(seed: int, size: int = 1000) -> bytes:
    """Return bytes of which no part is a part of another block."""
    return b"".join(struct.pack("<II", seed, number) for number in range(size // 8))


def joined(size: int, pieces: Sequence[tuple[int, int]], literals: bytes = b"") -> bytes:
    """Return the bytes of a write in pieces, behind those of a write of a thousand bytes."""
    head = bytes(pack([Write("a", 0, block(1))]))
    body = struct.pack("<QII", 0, size, len(pieces))
    packed = b"".join(struct.pack("<iI", *piece) for piece in pieces)
    return head + struct.pack("<BH", Kind.JOINED, 1) + b"b" + body + packed + literals


@given(OPERATIONS)
def test_operations_come_back_as_they_were_packed(operations: list[Operation]) -> None:
    assert unpacked(pack(operations)) == operations


@given(OPERATIONS)
def test_operations_take_no_more_than_their_sizes_say(operations: list[Operation]) -> None:
    plain = [each for each in operations if all(map(str.isascii, _paths(each)))]

    assert len(pack(plain)) <= sum(map(size_of, plain))


def _paths(operation: Operation) -> list[str]:
    return [operation.path, *([operation.target] if isinstance(operation, Rename) else [])]


def test_a_write_that_repeats_earlier_ones_is_stored_once() -> None:
    first, second, head, foot = block(1, 40_000), block(2, 20_000), b"head", b"foot" * 9
    whole = head + first + b"between" + second + foot
    operations: list[Operation] = [
        Write("data/1", 100, first),
        Write("data/2", 0, second),
        Write("journal/1", 4096, whole),
    ]

    packed = pack(operations)

    assert len(packed) < len(first) + len(second) + 200
    assert unpacked(packed) == operations


def test_each_of_two_frames_repeats_what_was_written_before_it() -> None:
    blocks = [block(seed) for seed in range(4)]
    operations: list[Operation] = [
        Write("data/1", 0, blocks[0]),
        Write("data/1", 1000, blocks[1]),
        Write("journal/1", 0, b"1" + blocks[0] + blocks[1]),
        Write("data/1", 2000, blocks[2]),
        Write("data/1", 3000, blocks[3]),
        Write("journal/1", 3000, b"2" + blocks[2] + b"3" + blocks[3]),
    ]

    packed = pack(operations)

    assert len(packed) < 4 * 1000 + 300
    assert unpacked(packed) == operations


@pytest.mark.parametrize(
    ("size", "is_repeated"),
    [(REPEATED_BYTES_MIN - 1, False), (REPEATED_BYTES_MIN, True), (REPEATED_BYTES_MIN + 1, True)],
)
def test_a_write_is_repeated_from_the_least_size_on(size: int, *, is_repeated: bool) -> None:
    data = block(7, 80)[:size]

    packed = pack([Write("a", 0, data), Write("b", 0, data)])

    assert packed.count(data) == (1 if is_repeated else 2)
    assert unpacked(packed) == [Write("a", 0, data), Write("b", 0, data)]


def test_data_that_comes_in_another_order_comes_back_whole() -> None:
    one, two = block(1), block(2)
    operations: list[Operation] = [
        Write("a", 0, one),
        Write("a", 1000, two),
        Write("b", 0, two + one),
    ]

    assert unpacked(pack(operations)) == operations


@given(OPERATIONS, st.data())
def test_damaged_bytes_are_unreadable_or_other_operations(
    operations: list[Operation], data: st.DataObject
) -> None:
    packed = pack(operations)
    for _ in range(data.draw(st.integers(1, 3))):
        if packed:
            place = data.draw(st.integers(0, len(packed) - 1))
            packed[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(packed)))

    try:
        found = unpacked(packed[:end])
    except UnreadableOperation:
        return
    assert sum(len(each.data) for each in found if isinstance(each, Write)) <= end


@given(st.binary(max_size=300))
def test_any_bytes_are_operations_or_unreadable(data: bytes) -> None:
    with suppress(UnreadableOperation):
        unpacked(data)


def test_every_shortened_operation_is_unreadable() -> None:
    packed = pack([Write("a", 0, block(1)[:80]), Write("b", 0, b"x" + block(1)[:80] + b"y")])
    whole = {0, OPERATION_BYTES + 1 + 80, len(packed)}

    for end in set(range(len(packed))) - whole:
        with pytest.raises(UnreadableOperation):
            unpacked(packed[:end])


@pytest.mark.parametrize(
    ("size", "pieces", "literals"),
    [
        (2**32 - 1, [(16, 1000)], b""),
        (999, [(16, 1000)], b""),
        (1001, [(16, 1000)], b""),
        (4, [(-1, 2**32 - 1)], b"abcd"),
        (1100, [(16, 1100)], b""),
        (4, [(-2, 4)], b"abcd"),
        (4, [(2**31 - 1, 4)], b"abcd"),
    ],
    ids=["far too large", "too small", "too large", "literal", "behind", "negative", "far"],
)
def test_pieces_whose_sizes_lie_are_unreadable(
    size: int, pieces: list[tuple[int, int]], literals: bytes
) -> None:
    with pytest.raises(UnreadableOperation):
        unpacked(joined(size, pieces, literals))


def test_pieces_that_repeat_the_same_bytes_over_and_over_take_no_memory() -> None:
    data = joined(2**32 - 1, [(16, 1000)] * 20_000)

    tracemalloc.start()
    try:
        with pytest.raises(UnreadableOperation):
            unpacked(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 4 * len(data)


def test_sizes_of_4_gib_take_no_memory() -> None:
    data = struct.pack("<BH", Kind.WRITE, 1) + b"a" + struct.pack("<QI", 0, 2**32 - 1) + b"x"

    tracemalloc.start()
    try:
        with pytest.raises(UnreadableOperation):
            unpacked(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 100_000


@pytest.mark.parametrize("kind", [0, len(Kind) + 1, 255])
def test_a_kind_that_is_not_known_is_unreadable(kind: int) -> None:
    with pytest.raises(UnreadableOperation, match=f"kind {kind} is not known"):
        unpacked(struct.pack("<BH", kind, 1) + b"a")


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "data/../../x", "data/..", "a\0b", "a//b"])
def test_a_path_that_leads_out_of_the_directory_is_unreadable(path: str) -> None:
    for operation in (Create(path), Write(path, 0, b"x"), Rename("a", path)):
        with pytest.raises(UnreadableOperation, match="leads out"):
            unpacked(pack([operation]))


def test_a_path_that_is_no_text_is_unreadable() -> None:
    with pytest.raises(UnreadableOperation, match="no text"):
        unpacked(struct.pack("<BH", Kind.CREATE, 2) + b"\xff\xfe")
