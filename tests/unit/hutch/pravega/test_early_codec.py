import pytest

from hutch.pravega import early_messages as m
from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.commands import CommandSender
from hutch.pravega.early_codec import EARLY, WHOLE_BYTES_MAX, MessageParts, cut
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from tests.early_rig import APPENDER

U = "000102030405060708090a0b0c0d0e0f"
FRAMES: list[tuple[str, WireMessage]] = [
    ("fffffffe 00000003 01 6162", m.PartialMessage(m.MIDDLE, b"ab")),
    ("00000000 00000003 616263", Event(b"abc")),
    (f"00000001 00000013 {U} 0001 73", m.SetupAppend(APPENDER, "s")),
    (f"00000002 0000001b 0001 73 {U} 0000000000000007", m.AppendSetup("s", APPENDER, 7)),
    (f"00000003 0000001c {U} 0000000000000007 00010000", m.BeginAppendBlock(APPENDER, 7, 65536)),
    (f"00000004 0000001c {U} 0000000000000012 0000000b", m.EndAppendBlock(APPENDER, 18, 11)),
    (f"00000005 00000018 {U} 0000000000000012", m.DataAppended(APPENDER, 18)),
    ("00000008 0000000f 0001 73 0000000000000002 00000400", m.ReadSegment("s", 2, 1024)),
    (
        "00000009 0000000f 0001 73 0000000000000002 01 00 6162",
        m.SegmentRead("s", 2, at_tail=True, end_of_segment=False, data=b"ab"),
    ),
    ("00000064 00000002 6869", m.KeepAlive(b"hi")),
]
"""Fields in the order of the draft."""


@pytest.mark.parametrize(("text", "message"), FRAMES, ids=lambda each: type(each).__name__)
def test_fields_have_the_order_of_the_draft(text: str, message: WireMessage) -> None:
    frame = bytes.fromhex(text)

    assert EARLY.encode(message) == frame
    assert EARLY.decode(HEAD.unpack_from(frame)[0], frame[HEAD_BYTES:]) == message
    assert EARLY.frame_bytes(frame, 0, len(frame)) == len(frame)


def test_a_length_is_below_two_to_the_24th() -> None:
    assert EARLY.frame_bytes(b"\0\0\0\0\0\xff\xff\xff", 0, 8) == (1 << 24) + 7
    for length in (b"\1\0\0\0", b"\x80\0\0\0", b"\xff\xff\xff\xff"):
        with pytest.raises(WireError, match="a frame of code 0"):
            EARLY.frame_bytes(bytes(4) + length, 0, 8)


@pytest.mark.parametrize("code", [-3, -1, 2, 5, 6, 7, 9, 10, 99])
def test_what_no_client_may_send_is_refused(code: int) -> None:
    with pytest.raises(WireError, match=f"no command {code} may come"):
        EARLY.decode(code, bytes(64), CommandSender.CLIENT)


def joined(*parts: tuple[int, bytes]) -> bytes | None:
    """Return what the last of these parts completes."""
    joining = MessageParts()
    whole = [joining.take(m.PartialMessage(kind, data)) for kind, data in parts]
    assert not any(whole[:-1])
    return whole[-1]


def test_parts_are_joined_whatever_their_sizes() -> None:
    frame = EARLY.encode(Event(b"abc"))

    assert joined((m.FIRST, frame[:3]), (m.MIDDLE, b""), (m.LAST, frame[3:])) == frame
    assert joined((m.FIRST, frame), (m.LAST, b"")) == frame
    assert joined((m.FIRST, b""), (m.LAST, frame)) == frame


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([(3, b"")], "a part of kind 3"),
        ([(-1, b"")], "a part of kind -1"),
        ([(m.MIDDLE, b"")], "without a first one"),
        ([(m.LAST, b"")], "without a first one"),
        ([(m.FIRST, b""), (m.FIRST, b"")], "a first part before the last one"),
        ([(m.FIRST, b"\0\0\0\0\0\0\0\1ab")], "parts of 10 bytes for a message of 9"),
        ([(m.FIRST, b"\0\0\0\0"), (m.LAST, b"\0\0\0\1")], "the last part .* 8 bytes of 9"),
        ([(m.FIRST, b"\0\0\0\0"), (m.LAST, b"")], "the last part .* 4 bytes of 0"),
        ([(m.FIRST, b"\0\0\0\0\0\xff\xff\xf9")], "a message of 16777217 bytes in parts"),
        ([(m.FIRST, b"\0\0\0\0\1\0\0\0")], "a frame of code 0"),
    ],
)
def test_parts_that_are_no_message_are_refused(parts: list[tuple[int, bytes]], words: str) -> None:
    with pytest.raises(WireError, match=words):
        joined(*parts)


def test_a_joiner_counts_what_it_keeps_and_what_was_sent() -> None:
    frame, joining = EARLY.encode(Event(b"abc")), MessageParts()
    assert not joining.is_open

    joining.take(m.PartialMessage(m.FIRST, frame[:5]))
    assert (joining.is_open, joining.kept_bytes, joining.sent_bytes) == (True, 5, 14)
    joining.take(m.PartialMessage(m.LAST, frame[5:]))

    assert (joining.is_open, joining.kept_bytes, joining.sent_bytes) == (False, 0, 29)


@pytest.mark.parametrize("most", [64, 65, 100, 200])
def test_a_cut_message_comes_in_parts_that_are_not_too_large(most: int) -> None:
    frame = EARLY.encode(m.KeepAlive(bytes(range(250))))
    sent, joining, position, whole = cut(frame, most), MessageParts(), 0, None

    while position < len(sent):
        code, length = HEAD.unpack_from(sent, position)
        assert (code, HEAD_BYTES + length <= most) == (-2, True)
        position += HEAD_BYTES
        part = EARLY.decode(code, sent[position : position + length])
        assert isinstance(part, m.PartialMessage)
        whole = joining.take(part)
        position += length

    assert whole == frame


def test_a_message_that_is_small_enough_or_too_large_for_parts_is_not_cut() -> None:
    small, large = EARLY.encode(m.KeepAlive(bytes(56))), EARLY.encode(m.KeepAlive(bytes(1 << 23)))

    assert cut(small, 64) is small
    assert cut(large, 0) is large
    largest = bytes(WHOLE_BYTES_MAX + 1)
    assert cut(largest, 64) is largest
