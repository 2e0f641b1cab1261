"""Laws of the codec of Pravega's protocol, and of the forming of appends."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hutch.pravega.block import append_pieces
from hutch.pravega.codec import HEAD, HEAD_BYTES, decode, encode, frame_bytes
from hutch.pravega.commands import BY_CLASS, COMMANDS, CommandCode
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage, layout_of
from hutch.pravega.messages import AppendBlockEnd, Padding, PartialEvent
from hutch.pravega.modified_utf8 import decode_text, encode_text
from tests.golden.pravega_frames import FRAMES, WRITER
from tests.property.wire.pravega_strategies import data as some_bytes
from tests.property.wire.pravega_strategies import messages_of

each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda row: row.name)
GOLDEN = [bytes.fromhex(text) for _, text, _ in FRAMES]


def decoded_or_refused(code: int, payload: bytes) -> WireMessage | None:
    """Decode bytes that may be nonsense; anything but WireError fails the test.

    What is decoded is the same when it is encoded and decoded again.
    """
    try:
        message = decode(code, payload)
    except WireError:
        return None
    assert decode(code, encode(message)[HEAD_BYTES:]) == message
    return message


@each_command
@given(data=st.data())
def test_every_law_of_payloads_holds_for_every_command(
    command: CommandCode, data: st.DataObject
) -> None:
    """All laws are asked of the same messages: to draw one costs more than to try them all."""
    message = data.draw(messages_of(command))
    payload = encode(message)[HEAD_BYTES:]
    place = data.draw(st.integers(0, len(payload)))
    removed, other = data.draw(st.integers(0, 4)), data.draw(some_bytes)

    is_decoded_as_it_was_encoded(command, message)
    if command.name not in {"AppendBlock", "Event", "PartialEvent", "Padding"}:
        # Not those whose last field is all that is left.
        assert decode(command.code, payload + other) == message, "bytes behind it are ignored"
    is_that_of_an_older_version_without_its_newer_fields(command, message)
    decoded_or_refused(command.code, payload[:place])
    decoded_or_refused(command.code, payload[:place] + other[:4] + payload[place + removed :])


def is_decoded_as_it_was_encoded(command: CommandCode, message: WireMessage) -> None:
    frame = encode(message)

    assert HEAD.unpack_from(frame) == (command.code, len(frame) - HEAD_BYTES)
    assert frame_bytes(frame, 0, len(frame)) == len(frame)
    assert decode(command.code, frame[HEAD_BYTES:]) == message


def is_that_of_an_older_version_without_its_newer_fields(
    command: CommandCode, message: WireMessage
) -> None:
    layout = layout_of(command.message)
    names = [name for name, _ in layout.fields]
    first = len(names) - len(layout.defaults)
    assert set(names[first:]) == set(layout.defaults)
    payload, ends = bytearray(), {}
    for place, (name, wire_type) in enumerate(layout.fields):
        ends[place] = len(payload)
        wire_type.write(getattr(message, name), payload)

    for place in range(first, len(names)):
        older = decode(command.code, payload[: ends[place]])

        assert [getattr(older, name) for name in names[:place]] == [
            getattr(message, name) for name in names[:place]
        ]
        assert all(getattr(older, name) == layout.defaults[name] for name in names[place:])


@each_command
@given(payload=st.binary(max_size=120))
def test_any_bytes_are_a_message_or_refused(command: CommandCode, payload: bytes) -> None:
    decoded_or_refused(command.code, payload)


@given(code=st.integers(-(2**31), 2**31 - 1), payload=st.binary(max_size=40))
def test_any_code_is_known_or_refused(code: int, payload: bytes) -> None:
    decoded_or_refused(code, payload)


@given(buffer=st.binary(max_size=20) | st.sampled_from(GOLDEN), position=st.integers(0, 12))
def test_the_size_of_any_frame_is_known_or_refused(buffer: bytes, position: int) -> None:
    try:
        size = frame_bytes(buffer, position, len(buffer))
    except WireError:
        return
    assert size == 0 if len(buffer) - position < HEAD_BYTES else size >= HEAD_BYTES


@given(text=st.text())
@example("\0\U0010ffff\ud7ff\ue000")
def test_text_is_read_as_it_was_written(text: str) -> None:
    assert decode_text(encode_text(text)) == text


@given(data=st.binary(max_size=30))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text = decode_text(data)
    except WireError:
        return
    assert encode_text(text) == data.replace(b"\0", b"\xc0\x80")


@given(
    events=st.lists(some_bytes, min_size=1, max_size=5),
    room=st.integers(0, 200),
    is_late=st.booleans(),
)
def test_a_client_that_fills_a_block_gets_its_events_stored(
    events: list[bytes], room: int, *, is_late: bool
) -> None:
    stored = [b"\0\0\0\0" + len(event).to_bytes(4) + event for event in events]
    whole = b""
    while stored and len(whole) + len(stored[0]) <= room:
        whole += stored.pop(0)
    rest = b"" if is_late or not stored else stored[0]
    left, message = room - len(whole), PartialEvent if rest else Padding
    first = (rest or bytes(left))[:left]
    block = whole + HEAD.pack(BY_CLASS[message].code, len(first)) + first
    end = AppendBlockEnd(WRITER, len(whole), rest[left:], 1, 1, 1)

    assert b"".join(append_pieces(block, end)) == whole + rest


@given(block=st.none() | st.binary(max_size=60), whole=st.integers(-2, 70), data=some_bytes)
def test_any_block_and_end_are_an_append_or_refused(
    block: bytes | None, whole: int, data: bytes
) -> None:
    end = AppendBlockEnd(WRITER, whole, data, 1, 1, 1)
    try:
        stored = b"".join(append_pieces(block, end))
    except WireError:
        return
    if block is None:
        assert stored == data
    else:
        assert stored.startswith(block[:whole])
        assert stored.endswith(data)
        assert len(stored) <= len(block) + len(data)
