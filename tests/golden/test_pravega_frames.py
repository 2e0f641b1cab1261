"""The golden frames of Pravega's wire protocol, in both directions."""

import pytest

from hutch.pravega.block import append_pieces
from hutch.pravega.codec import HEAD_BYTES, decode, encode, frame_bytes
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import AppendBlock, AppendBlockEnd
from tests.golden.pravega_frames import EVENT, FIVE, FRAMES

MESSAGES = {name: message for name, _, message in FRAMES}


@pytest.mark.parametrize(("name", "text", "message"), FRAMES, ids=[name for name, _, _ in FRAMES])
def test_a_frame_is_what_pravega_writes(name: str, text: str, message: WireMessage) -> None:
    frame = bytes.fromhex(text)

    assert frame_bytes(frame, 0, len(frame)) == len(frame), name
    assert decode(int.from_bytes(frame[:4], signed=True), frame[HEAD_BYTES:]) == message
    assert encode(message).hex() == frame.hex()


@pytest.mark.parametrize(
    ("block", "end", "stored"),
    [
        ("block_with_padding", "end_of_padding", EVENT),
        ("block_with_partial_event", "end_of_partial_event", EVENT * 2),
        ("block_of_three_events", "end_of_three_events", FIVE * 4),
        (None, "append_block_end_alone", EVENT),
    ],
)
def test_an_append_holds_the_events_that_were_sent(
    block: str | None, end: str, stored: bytes
) -> None:
    begun, ended = MESSAGES[block] if block else None, MESSAGES[end]
    assert begun is None or isinstance(begun, AppendBlock)
    assert isinstance(ended, AppendBlockEnd)

    assert b"".join(append_pieces(None if begun is None else begun.data, ended)) == stored
