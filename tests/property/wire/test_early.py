"""Laws of the early dialect: its codec, messages in parts, and blocks of every shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pravega.early.session import Conversation
from hutch.pravega import early_messages as m
from hutch.pravega.codec import HEAD_BYTES
from hutch.pravega.commands import CommandCode
from hutch.pravega.early_block import Block
from hutch.pravega.early_codec import EARLY, MessageParts, cut
from hutch.pravega.early_messages import EARLY_COMMANDS
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from tests.early_rig import APPENDER, stored
from tests.golden.early_exchanges import EXCHANGES
from tests.property.wire.pravega_strategies import data as some_bytes
from tests.property.wire.pravega_strategies import messages_of

each_command = pytest.mark.parametrize("command", EARLY_COMMANDS, ids=lambda row: row.name)
KEEP_ALIVE = m.KeepAlive(b"k")
GOLDEN = [
    b"".join(step.frame for step in exchange.steps if step.kind == ">") for exchange in EXCHANGES
]
FRAMES = st.sampled_from(GOLDEN) | st.sampled_from(EARLY_COMMANDS).flatmap(messages_of).map(
    EARLY.encode
)


@each_command
@given(data=st.data())
def test_every_command_is_decoded_as_it_was_encoded(
    command: CommandCode, data: st.DataObject
) -> None:
    message = data.draw(messages_of(command))

    frame = EARLY.encode(message)

    assert EARLY.frame_bytes(frame, 0, len(frame)) == len(frame)
    assert EARLY.decode(command.code, frame[HEAD_BYTES:]) == message


@given(code=st.integers(-130, 130), payload=st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(code: int, payload: bytes) -> None:
    try:
        message = EARLY.decode(code, payload)
    except WireError:
        return
    assert EARLY.decode(code, EARLY.encode(message)[HEAD_BYTES:]) == message


def requests_of(session: Conversation, frames: bytes) -> list[WireMessage | Block]:
    """Let a session take frames; return what they ask for."""
    position, found = 0, []
    while position < len(frames):
        size = EARLY.frame_bytes(frames, position, len(frames))
        if not size or position + size > len(frames):
            break
        request = session.take(memoryview(frames)[position : position + size])
        position += size
        if request is not None:
            found.append(request)
    return found


@given(payload=st.binary(max_size=300), most=st.integers(64, 200))
def test_what_the_server_cuts_is_whole_for_a_client(payload: bytes, most: int) -> None:
    message = m.KeepAlive(payload)

    assert requests_of(Conversation(), cut(EARLY.encode(message), most)) == [message]


@st.composite
def parts_of(draw: st.DrawFn, message: WireMessage) -> list[WireMessage]:
    """Draw a way to send a message: whole, or in two parts and more."""
    frame = EARLY.encode(message)
    places = sorted(draw(st.lists(st.integers(0, len(frame)), max_size=3)))
    if not places:
        return [message]
    pieces = [frame[a:b] for a, b in zip([0, *places], [*places, len(frame)], strict=True)]
    kinds = [m.FIRST, *[m.MIDDLE] * (len(pieces) - 2), m.LAST]
    return [m.PartialMessage(*each) for each in zip(kinds, pieces, strict=True)]


@given(events=st.lists(some_bytes, max_size=5), dropped=st.integers(0, 2), data=st.data())
def test_a_block_of_any_legal_shape_stores_its_events(
    events: list[bytes], dropped: int, data: st.DataObject
) -> None:
    sent = [data.draw(parts_of(Event(each))) for each in events]
    is_cut = bool(events) and len(sent[-1]) > 1 and data.draw(st.booleans())
    kept = events if is_cut or dropped > len(events) else events[: len(events) - dropped]
    size = sum(HEAD_BYTES + len(each) for each in kept)
    before = [part for parts in sent for part in parts]
    behind: list[WireMessage] = []
    if is_cut:
        count = data.draw(st.integers(1, len(sent[-1]) - 1))
        behind = [KEEP_ALIVE, *before[-count:]]
        before = before[:-count]
    room = sum(len(EARLY.encode(each)) for each in before) + data.draw(st.integers(0, 50))
    begin = m.BeginAppendBlock(APPENDER, 7, room)
    end = m.EndAppendBlock(APPENDER, 7 + size, size)

    messages = [begin, *before, end, *behind]
    found = requests_of(Conversation(), b"".join(map(EARLY.encode, messages)))

    block = found.pop()
    assert isinstance(block, Block)
    assert bytes(block.data) == stored(*kept)
    assert (block.start, block.end) == (7, 7 + size)
    assert found == ([begin, KEEP_ALIVE] if is_cut else [begin])


@given(
    frames=st.lists(FRAMES, max_size=8),
    place=st.integers(0, 400),
    inserted=st.binary(max_size=4),
)
def test_any_conversation_is_requests_or_refused_and_keeps_little(
    frames: list[bytes], place: int, inserted: bytes
) -> None:
    data = b"".join(frames)
    session = Conversation(block_bytes_max=200)
    try:
        found = requests_of(session, data[:place] + inserted + data[place:])
    except WireError:
        return
    for request in found:
        if isinstance(request, Block):
            assert len(request.data) <= 200
    assert session.kept_bytes <= len(data) + len(inserted)


@given(parts=st.lists(st.tuples(st.integers(-1, 3), st.binary(max_size=12)), max_size=6))
def test_any_parts_are_a_whole_frame_or_refused(parts: list[tuple[int, bytes]]) -> None:
    joining = MessageParts()
    try:
        for kind, data in parts:
            whole = joining.take(m.PartialMessage(kind, data))
            if whole is not None:
                assert EARLY.frame_bytes(whole, 0, len(whole)) == len(whole)
    except WireError:
        return
