from uuid import UUID

import pytest

from hutch.pravega.early_block import Block
from hutch.pravega.early_messages import BeginAppendBlock, EndAppendBlock
from hutch.pravega.errors import WireError
from tests.early_rig import APPENDER

EVENT = b"\0\0\0\0\0\0\0\1a"
"""The frame of an event, which is what is stored."""
LARGEST = 50


def begun(offset: int = 100, room: int = 1_000) -> Block:
    return Block(BeginAppendBlock(APPENDER, offset, room), LARGEST)


def end(offset: int, length: int, appender: UUID = APPENDER) -> EndAppendBlock:
    return EndAppendBlock(appender, offset, length)


def test_a_plain_block_has_its_events_as_they_came() -> None:
    block = begun(room=18)
    block.add(EVENT, 9)
    block.add(EVENT, 9)

    assert block.finish(end(118, 18), None)
    assert (block.start, block.end, bytes(block.data)) == (100, 118, EVENT * 2)


def test_a_shorter_block_has_the_first_of_its_events() -> None:
    block = begun()
    for _ in range(3):
        block.add(EVENT, 9)

    assert block.finish(end(109, 9), None)
    assert (block.end, bytes(block.data)) == (109, EVENT)


def test_a_longer_block_waits_for_the_rest_of_its_last_event() -> None:
    block = begun(room=9 + 12)
    block.add(EVENT, 9)

    assert not block.finish(end(118, 18), 12)
    block.complete(EVENT)
    assert (block.end, bytes(block.data)) == (118, EVENT * 2)


@pytest.mark.parametrize(("offset", "room"), [(-1, 0), (0, -1)])
def test_a_beginning_with_a_negative_number_is_refused(offset: int, room: int) -> None:
    with pytest.raises(WireError, match="a block at"):
        begun(offset, room)


@pytest.mark.parametrize(
    ("ended", "cut_bytes", "words"),
    [
        (end(109, 9, UUID(int=1)), None, "in one of another"),
        (end(110, 9), None, "of 9 bytes from 100 to 110"),
        (end(99, -1), None, "of -1 bytes"),
        (end(118, 18), None, "of 18 bytes without a cut event at 9"),
        (end(109, 9), 0, "of 9 bytes with a cut event at 9"),
        (end(100, 0), 11, "of 0 bytes with a cut event at 9"),
        (end(104, 4), None, "ends within an event"),
        (end(151, 51), 12, "a block of 51 bytes, and 50 is the most"),
        (end(118, 18), 12, "more messages"),
    ],
)
def test_an_end_that_is_not_the_blocks_is_refused(
    ended: EndAppendBlock, cut_bytes: int | None, words: str
) -> None:
    block = begun(room=20)
    block.add(EVENT, 9)

    with pytest.raises(WireError, match=words):
        block.finish(ended, cut_bytes)


def test_an_end_may_not_come_later_than_the_beginning_said() -> None:
    block = begun(room=17)
    block.add(EVENT, 9)

    with pytest.raises(WireError, match="more messages in a block"):
        block.add(EVENT, 9)


def test_a_block_that_grows_too_large_is_refused_at_once() -> None:
    block = begun()
    for _ in range(5):
        block.add(EVENT, 9)

    with pytest.raises(WireError, match="a block of 54 bytes"):
        block.add(EVENT, 9)


@pytest.mark.parametrize("event", [EVENT[:-1], EVENT + b"b"])
def test_the_cut_event_must_have_the_size_that_was_promised(event: bytes) -> None:
    block = begun()
    block.finish(end(109, 9), 5)

    with pytest.raises(WireError, match="a block of 9 bytes has"):
        block.complete(event)
