"""Records behind one another are stepped over, and never beyond the end."""

import mmap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log.kernel import records

bodies = st.lists(st.binary(max_size=300), max_size=8)


def packed(some: list[bytes]) -> bytes:
    return b"".join(len(each).to_bytes(4) + each for each in some)


def behind(source: bytes, count: int, *, position: int = 0, bytes_max: int = 1 << 20) -> int:
    return records.behind(source, position, count, bytes_max)


@given(bodies, st.binary(max_size=9))
def test_the_position_behind_so_many_records_is_found(some: list[bytes], rest: bytes) -> None:
    source = packed(some)
    for count in range(len(some) + 1):
        end = len(packed(some[:count]))
        assert behind(source, count) == end
        assert behind(rest + source + rest, count, position=len(rest)) == end + len(rest)


@given(bodies, st.data())
def test_what_is_cut_off_is_not_stepped_over(some: list[bytes], data: st.DataObject) -> None:
    source = packed(some)
    assert behind(source, len(some) + 1) == -1
    if some:
        cut = data.draw(st.integers(0, len(source) - 1))
        assert behind(source[:cut], len(some)) == -1


@pytest.mark.parametrize(("size", "is_taken"), [(9, True), (10, True), (11, False)])
def test_a_record_has_a_largest_size(size: int, *, is_taken: bool) -> None:
    assert (behind(packed([b"", bytes(size)]), 2, bytes_max=10) > 0) is is_taken


@pytest.mark.parametrize("head", [b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
def test_a_head_that_is_no_record_s_is_not_stepped_over(head: bytes) -> None:
    assert behind(head + bytes(20), 1, bytes_max=1 << 40) == -1


@pytest.mark.parametrize("made", [bytearray, memoryview])
def test_any_buffer_is_taken(made: Callable[[bytes], bytes]) -> None:
    assert behind(made(packed([b"ab"])), 1) == 6
    with mmap.mmap(-1, 6) as room:
        room[:] = packed([b"ab"])
        assert behind(room, 1) == 6  # type: ignore[arg-type]
