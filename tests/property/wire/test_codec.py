"""Laws of the codec: what is encoded is decoded alike, and no bytes do worse than ProtocolError."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hutch.stream import codec, pipeline
from hutch.stream.codec import (
    Decoded,
    encode_command,
    encode_reply,
    encode_request,
    refusal_reply,
)
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Command, Sender
from hutch.stream.errors import MalformedFrame, ProtocolError
from hutch.stream.layout import layout_of
from tests.golden.golden import Golden, load
from tests.property.wire.strategies import (
    correlation_ids_of,
    heads_of,
    messages_of,
    requests_of,
)

Decode = Callable[[bytes], Decoded]

COMMANDS = pipeline.TABLE.commands
FRAMES = load()
decode_request: Decode = partial(codec.decode_request, table=pipeline.TABLE)
decode_reply: Decode = partial(codec.decode_reply, table=pipeline.TABLE)
DECODERS: dict[Sender, Decode] = {Sender.CLIENT: decode_request, Sender.SERVER: decode_reply}
LARGEST_BYTES = 1 << 20
CPU_S_MAX = 1.5

each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda row: row.name)
each_answered = pytest.mark.parametrize(
    "command", [row for row in COMMANDS if row.reply is not None], ids=lambda row: row.name
)
each_side = pytest.mark.parametrize("side", DECODERS, ids=lambda side: side.name)


def decoded_or_refused(decode: Decode, frame: bytes) -> Decoded | None:
    """Decode bytes that may be nonsense; anything but ProtocolError fails the test."""
    try:
        return decode(frame)
    except ProtocolError as error:
        close_code, text = error.close_code, str(error)
    assert text
    assert close_code == ResponseCode.UNKNOWN_FRAME
    return None


def encoded_again(side: Sender, decoded: Decoded) -> bytes:
    """Encode what was decoded, as the side that sent it; without the size."""
    name, _, is_response, correlation_id, message = decoded
    if is_response:
        return encode_reply(name, correlation_id, message)[4:]
    encode = encode_request if side is Sender.CLIENT else encode_command
    frame = encode(name, message, correlation_id=correlation_id, version=decoded.version)
    return frame[4:]


@each_command
@given(data=st.data())
def test_every_command_is_decoded_as_it_was_encoded(command: Command, data: st.DataObject) -> None:
    version, message = data.draw(requests_of(command))
    correlation_id = data.draw(correlation_ids_of(command))
    side = Sender.CLIENT if Sender.CLIENT in command.sender else Sender.SERVER
    expected = Decoded(command, version, False, correlation_id, message)  # noqa: FBT003

    frame = encoded_again(side, expected)

    assert DECODERS[side](frame) == expected


@each_answered
@given(data=st.data())
def test_every_answer_is_decoded_as_it_was_encoded(command: Command, data: st.DataObject) -> None:
    assert command.reply is not None
    message = data.draw(messages_of(layout_of(command.reply)))
    correlation_id = data.draw(correlation_ids_of(command))
    decode = decode_request if command.sender is Sender.SERVER else decode_reply

    frame = encode_reply(command, correlation_id, message)

    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert decode(frame[4:]) == Decoded(command, 1, True, correlation_id, message)  # noqa: FBT003


@each_side
@given(frame=st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(side: Sender, frame: bytes) -> None:
    decoded_or_refused(DECODERS[side], frame)


@each_side
@given(data=st.data())
def test_any_bytes_behind_a_head_are_decoded_or_refused(side: Sender, data: st.DataObject) -> None:
    frame = data.draw(st.sampled_from(heads_of(side))) + data.draw(st.binary(max_size=60))

    decoded = decoded_or_refused(DECODERS[side], frame)

    if decoded is not None:
        assert DECODERS[side](encoded_again(side, decoded)) == decoded


@given(
    golden=st.sampled_from(FRAMES),
    place=st.integers(0, 200),
    removed=st.integers(0, 4),
    inserted=st.binary(max_size=4),
)
def test_a_damaged_frame_is_decoded_or_refused(
    golden: Golden, place: int, removed: int, inserted: bytes
) -> None:
    frame = golden.frame
    place = min(place, len(frame))
    damaged = frame[:place] + inserted + frame[place + removed :]

    for side, decode in DECODERS.items():
        decoded = decoded_or_refused(decode, damaged)
        if decoded is not None:
            assert decode(encoded_again(side, decoded)) == decoded


@given(data=st.data())
def test_a_frame_cut_anywhere_is_decoded_or_refused(data: st.DataObject) -> None:
    command = data.draw(st.sampled_from([row for row in COMMANDS if Sender.CLIENT in row.sender]))
    version, message = data.draw(requests_of(command))
    correlation_id = data.draw(correlation_ids_of(command))
    frame = encode_request(command, message, correlation_id=correlation_id, version=version)[4:]

    for size in range(len(frame)):
        decoded_or_refused(decode_request, frame[:size])


@pytest.mark.parametrize("head", heads_of(Sender.CLIENT), ids=bytes.hex)
@pytest.mark.parametrize(
    "filler",
    [b"\0", b"\xff", b"\0\0\0\1", b"\0\1a", b"\0\0\0\0\xff\xff\xff\xff"],
    ids=bytes.hex,
)
def test_the_largest_frame_is_judged_in_bounded_time(head: bytes, filler: bytes) -> None:
    frame = (head + filler * (LARGEST_BYTES // len(filler) + 1))[:LARGEST_BYTES]
    before = time.process_time()

    decoded_or_refused(decode_request, frame)

    assert time.process_time() - before < CPU_S_MAX


@pytest.mark.parametrize(
    "start",
    [
        "000d 0001 00000001 0001 61 00000000",  # a map of nothing but empty strings
        "000f 0001 00000001 00000000",  # a list of empty names
        "001d 0001 00000001 0001 61 ffffffff",  # a count far above what the frame can hold
        "0007 0001 00000001 01 0001 61 0001 0001 00000000",  # properties
        "001b 0001 00000001 00000000",  # command versions
        "4805 0001 00000001 0000 0000000000000000 0001f000",  # stages
    ],
)
def test_the_largest_frame_of_empty_items_is_judged_in_bounded_time(start: str) -> None:
    frame = bytes.fromhex(start)
    frame += bytes((LARGEST_BYTES - len(frame)) // 12 * 12)
    before = time.process_time()

    decoded_or_refused(decode_request, frame)

    assert time.process_time() - before < CPU_S_MAX


@each_answered
@pytest.mark.parametrize("code", ResponseCode)
def test_a_refusal_carries_its_code_and_nothing_else(command: Command, code: ResponseCode) -> None:
    if command.name in {"metadata", "tune", "credit"}:
        with pytest.raises(ValueError, match="no answer that is a refusal"):
            refusal_reply(command, 7, code)
        return
    decode = decode_request if command.sender is Sender.SERVER else decode_reply

    decoded = decode(refusal_reply(command, 7, code)[4:])

    assert decoded.command is command
    assert decoded.correlation_id == 7
    layout = layout_of(type(decoded.message))
    found = {name: getattr(decoded.message, name) for name, _ in layout.fields}
    assert found == {name: wire_type.zero for name, wire_type in layout.fields} | {"code": code}


@pytest.mark.parametrize(
    "start", ["4800 0001 00000001 {:08x}", "4801 0001 00000001 {:08x}"], ids=lambda start: start[:4]
)
def test_a_list_of_more_streams_than_allowed_is_malformed_before_it_is_read(start: str) -> None:
    most = pipeline.STREAMS_MAX
    for count, words in ((most, "^(?!list)"), (most + 1, "list is too long")):
        frame = bytes.fromhex(start.format(count)) + b"\0" + b"\xff" * 40_000

        with pytest.raises(MalformedFrame, match=words):
            decode_request(frame)
