"""The conversation: where each message may come, and what it gives."""

import pytest

from gateway.pravega.early.session import Conversation, Request
from hutch.pravega import early_messages as m
from hutch.pravega.early_block import Block
from hutch.pravega.early_codec import EARLY, cut
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from tests.early_rig import APPENDER, block, stored

BEGIN = m.BeginAppendBlock(APPENDER, 0, 1_000)
LONG = Event(b"x" * 30)
WHOLE = stored(LONG.data)
KEEP_ALIVE = m.KeepAlive(b"k")


def parts_of(message: WireMessage, *sizes: int) -> list[WireMessage]:
    """Return a message in parts: of these sizes, and the rest."""
    frame, parts = EARLY.encode(message), list[WireMessage]()
    for size in sizes:
        parts.append(m.PartialMessage(m.MIDDLE if parts else m.FIRST, frame[:size]))
        frame = frame[size:]
    return [*parts, m.PartialMessage(m.LAST, frame)]


def taken(*messages: WireMessage, session: Conversation | None = None) -> list[Request]:
    """Return the requests that messages make."""
    session = session or Conversation()
    found = [session.take(memoryview(EARLY.encode(each))) for each in messages]
    return [each for each in found if each is not None]


def block_of(*messages: WireMessage) -> Block:
    """Return the block that messages bring, behind its beginning."""
    begun, *others, whole = taken(*messages)
    assert isinstance(begun, m.BeginAppendBlock)
    assert all(isinstance(each, m.KeepAlive) for each in others)
    assert isinstance(whole, Block)
    return whole


@pytest.mark.parametrize(
    "message",
    [m.SetupAppend(APPENDER, "s"), m.ReadSegment("s", 0, 8), KEEP_ALIVE, BEGIN],
    ids=lambda each: type(each).__name__,
)
def test_a_message_is_taken_whole_and_in_parts(message: WireMessage) -> None:
    assert taken(message) == [message]
    assert taken(*parts_of(message, 3)) == [message]
    assert taken(*parts_of(message, 0, 0, 5, 2)) == [message]


def test_a_block_is_given_when_it_is_whole() -> None:
    assert bytes(block_of(*block(0, b"one", b"two")).data) == stored(b"one", b"two")


def test_an_event_and_an_end_may_come_in_parts_within_a_block() -> None:
    begin, *events, end = block(0, b"one", b"two")
    begin = m.BeginAppendBlock(APPENDER, 0, 22 + 2 * 3 * 9)
    parts = [part for each in [*events, end] for part in parts_of(each, 2, 7)]

    assert bytes(block_of(begin, *parts).data) == stored(b"one", b"two")


def test_the_rest_of_the_last_event_may_come_behind_the_end() -> None:
    first, middle, last = parts_of(LONG, 4, 20)
    end = m.EndAppendBlock(APPENDER, 11 + 38, 11 + 38)
    expected = stored(b"abc") + WHOLE

    for messages in (
        (first, end, middle, last),
        (first, middle, end, last),
        (first, KEEP_ALIVE, end, KEEP_ALIVE, middle, last),
    ):
        assert bytes(block_of(BEGIN, Event(b"abc"), *messages).data) == expected


def test_the_length_before_the_end_counts_what_was_sent_of_a_cut_event() -> None:
    first, last = parts_of(LONG, 4)
    end = m.EndAppendBlock(APPENDER, 38, 38)

    assert bytes(block_of(m.BeginAppendBlock(APPENDER, 0, 13), first, end, last).data) == WHOLE
    with pytest.raises(WireError, match="more messages"):
        taken(m.BeginAppendBlock(APPENDER, 0, 12), first, end, last)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([Event(b"x")], "command 0 outside a block"),
        ([m.EndAppendBlock(APPENDER, 0, 0)], "command 4 outside a block"),
        (parts_of(Event(b"x"), 2), "command 0 outside a block"),
        ([BEGIN, BEGIN], "command 3 within a block"),
        ([BEGIN, KEEP_ALIVE], "command 100 within a block"),
        ([BEGIN, m.ReadSegment("s", 0, 8)], "command 8 within a block"),
        ([BEGIN, *parts_of(m.SetupAppend(APPENDER, "s"), 2)], "command 1 within a block"),
        ([parts_of(LONG, 2)[0], BEGIN], "command 3 between the parts"),
        ([BEGIN, parts_of(LONG, 2)[0], Event(b"x")], "command 0 between the parts"),
        ([parts_of(LONG, 2)[0], m.EndAppendBlock(APPENDER, 0, 0)], "command 4 between"),
        (parts_of(m.PartialMessage(m.FIRST, b""), 2), "a part of a message in parts"),
        ([m.AppendSetup("s", APPENDER, 0)], "no command 2"),
    ],
)
def test_a_message_in_the_wrong_place_is_refused(messages: list[WireMessage], words: str) -> None:
    with pytest.raises(WireError, match=words):
        taken(*messages)


def test_behind_the_end_only_the_rest_of_the_cut_event_may_come() -> None:
    first, last = parts_of(LONG, 4)
    end = m.EndAppendBlock(APPENDER, 38, 38)

    for wrong in (Event(b"x"), end, BEGIN, m.ReadSegment("s", 0, 8)):
        with pytest.raises(WireError, match="between the parts"):
            taken(BEGIN, first, end, wrong)
    with pytest.raises(WireError, match="command 100 within a block"):
        taken(BEGIN, *_end_between(parts_of(m.KeepAlive(bytes(30)), 4), end))
    with pytest.raises(WireError, match="a block of 38 bytes has 39"):
        taken(BEGIN, *_end_between(parts_of(Event(bytes(31)), 4), end))
    assert bytes(block_of(BEGIN, first, end, last).data) == WHOLE


def _end_between(parts: list[WireMessage], end: WireMessage) -> list[WireMessage]:
    return [*parts[:-1], end, parts[-1]]


def test_a_session_goes_on_behind_a_block() -> None:
    session = Conversation()

    assert len(taken(*block(0, b"one"), *block(11, b"two"), session=session)) == 4
    assert taken(KEEP_ALIVE, session=session) == [KEEP_ALIVE]


def test_a_session_counts_what_it_keeps() -> None:
    session = Conversation()
    assert session.kept_bytes == 0

    taken(BEGIN, Event(b"abc"), parts_of(LONG, 5)[0], session=session)

    assert session.kept_bytes == 11 + 5


def test_a_message_that_was_cut_by_the_rule_of_the_server_is_taken() -> None:
    frames, session = cut(EARLY.encode(m.KeepAlive(bytes(200))), 64), Conversation()
    found = None
    while frames:
        size = EARLY.frame_bytes(frames, 0, len(frames))
        found = session.take(memoryview(frames[:size]))
        frames = frames[size:]

    assert found == m.KeepAlive(bytes(200))
