import pytest

from hutch.pravega.codec import (
    FRAME_BYTES_MAX,
    HEAD,
    HEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    decode,
    encode,
    frame_bytes,
)
from hutch.pravega.commands import CommandSender
from hutch.pravega.errors import ListTooLong, WireError
from hutch.pravega.layout import TooLong, WireMessage
from hutch.pravega.messages import (
    SOURCES_MAX,
    AppendBlock,
    AttributeUpdate,
    Hello,
    KeepAlive,
    MergeSegmentsBatch,
    SegmentCreated,
)
from hutch.pravega.table_messages import RemoveTableKeys, TableRead
from hutch.pravega.wire_types import TABLE_ITEMS_MAX, KeyAndValue, TableKey
from tests.golden.pravega_frames import WRITER

HELLO = bytes.fromhex("ffffff81 00000008 00000011 00000005")


def decoded(message: WireMessage) -> WireMessage:
    frame = encode(message)
    return decode(HEAD.unpack_from(frame)[0], frame[HEAD_BYTES:])


def test_a_message_is_a_frame_and_a_frame_a_message() -> None:
    assert encode(Hello(17, 5)) == HELLO
    assert decode(-127, HELLO[8:]) == Hello(17, 5)


def test_a_payload_may_be_a_view_that_is_used_again() -> None:
    payload = bytearray(WRITER.bytes + b"abc")

    block = decode(3, memoryview(payload))
    payload[:] = bytes(len(payload))

    assert block == AppendBlock(WRITER, b"abc")


def test_the_size_of_a_frame_is_known_from_its_head() -> None:
    buffer = b"??" + HELLO + HELLO

    assert [frame_bytes(buffer, 2, end) for end in range(2, 12)] == [0] * 8 + [16] * 2
    assert frame_bytes(buffer, 18, len(buffer)) == 16


def test_the_largest_frame_is_taken_and_no_larger_one() -> None:
    assert frame_bytes(b"\0\0\0\3" + PAYLOAD_BYTES_MAX.to_bytes(4), 0, 8) == FRAME_BYTES_MAX
    for length in ("00fffff8", "7fffffff", "ffffffff", "80000000"):
        with pytest.raises(WireError, match="a frame of code 3 has a length of"):
            frame_bytes(bytes.fromhex("00000003" + length), 0, 8)


def test_the_largest_message_is_encoded_and_no_larger_one() -> None:
    largest = AppendBlock(WRITER, bytes(PAYLOAD_BYTES_MAX - 16))

    assert len(encode(largest)) == FRAME_BYTES_MAX
    with pytest.raises(ValueError, match="AppendBlock takes 16777208 bytes"):
        encode(AppendBlock(WRITER, largest.data + b"x"))


@pytest.mark.parametrize("code", [6, 13, 54, -3, -4, -5, -6, -126, 2**31 - 1])
def test_an_unknown_code_is_refused(code: int) -> None:
    with pytest.raises(WireError, match=f"no command {code} may come"):
        decode(code, b"")


def test_a_side_may_not_send_what_is_the_others() -> None:
    payload = encode(SegmentCreated(1, "s"))[8:]

    assert decode(21, payload, CommandSender.SERVER) == SegmentCreated(1, "s")
    with pytest.raises(WireError, match="no command 21"):
        decode(21, payload, CommandSender.CLIENT)
    for sender in CommandSender:
        assert decode(100, b"", sender) == KeepAlive()


def test_a_request_with_a_list_that_is_too_long_is_known_by_what_stands_before_the_list() -> None:
    keys = (TableKey(b"k"),) * (TABLE_ITEMS_MAX + 1)
    batch = MergeSegmentsBatch(8, "target", ("s",) * (SOURCES_MAX + 1), "token")

    too_many = decoded(RemoveTableKeys(7, "table", "token", keys))
    too_many_sources = decoded(batch)

    text = "RemoveTableKeys: a list of 10001 items is above 10000"
    assert too_many == TooLong(7, "table", text)
    text = "MergeSegmentsBatch: a list of 1001 items is above 1000"
    assert too_many_sources == TooLong(8, "target", text)


def test_an_answer_with_a_list_that_is_too_long_is_refused() -> None:
    entries = (KeyAndValue(TableKey(b"k"), b""),) * (TABLE_ITEMS_MAX + 1)

    with pytest.raises(ListTooLong, match="TableRead: a list of 10001 items"):
        decoded(TableRead(7, "table", entries))


@pytest.mark.parametrize("message", [AttributeUpdate(WRITER, 1, 2, 3), WireMessage()])
def test_what_is_no_command_is_not_encoded(message: WireMessage) -> None:
    with pytest.raises(ValueError, match="is no command"):
        encode(message)
