from operator import attrgetter

import pytest

from hutch.stream import pipeline
from hutch.stream.codec import Decoded, decode_reply, decode_request
from hutch.stream.commands import COMMANDS, Command, Sender
from hutch.stream.errors import MalformedFrame, UnknownCommand
from hutch.stream.layout import layout_of
from hutch.stream.messages import (
    ConsumerUpdateReply,
    KernelBody,
    Message,
    ResolveOffsetSpec,
    Subscribe,
)
from hutch.stream.wire_types import OFFSET_NUMBERS, Trailing
from tests.chunks import delivery_of
from tests.golden.golden import Golden, in_words, load

FRAMES = load()
LENIENT = {Subscribe, ResolveOffsetSpec}
SIDES = {"client": Sender.CLIENT, "server": Sender.SERVER}

each_frame = pytest.mark.parametrize("golden", FRAMES, ids=str)


@each_frame
def test_a_frame_means_what_is_written_beside_it(golden: Golden) -> None:
    decoded = golden.decode()

    assert decoded.command is golden.row
    assert decoded.version == golden.version
    assert decoded.is_response == golden.is_response
    assert decoded.correlation_id == golden.correlation_id
    assert in_words(decoded.message) == golden.fields


@each_frame
def test_a_frame_is_encoded_byte_for_byte_with_its_size_in_front(golden: Golden) -> None:
    encoded = golden.encode(golden.decode().message)

    assert encoded.hex() == (len(golden.canonical).to_bytes(4) + golden.canonical).hex()


@each_frame
def test_a_frame_may_be_any_buffer(golden: Golden) -> None:
    view = memoryview(bytearray(b"...." + golden.frame))[4:]

    assert golden.decode(view).message == golden.decode().message


@each_frame
def test_a_frame_cut_short_is_malformed_or_ends_where_it_may(golden: Golden) -> None:
    whole = golden.decode()
    for size in range(len(golden.frame)):
        decoded = cut_at(golden, size)
        if decoded is not None:
            leftover_bytes = size - (len(golden.encode(decoded.message)) - 4)
            assert decoded.correlation_id == whole.correlation_id
            assert may_end(whole.message, decoded.message, leftover_bytes), size


def cut_at(golden: Golden, size: int) -> Decoded | None:
    """Decode the first bytes of a frame; None if they are malformed."""
    try:
        return golden.decode(golden.frame[:size])
    except MalformedFrame as error:
        position = error.position
    assert 0 <= position <= size
    return None


def may_end(whole: Message, cut: Message, leftover_bytes: int) -> bool:
    """Whether a cut frame was rightly accepted.

    Only a last field that reads to the end of the frame may lose bytes: a list or map whole items
    (its count is not looked at), an optional map everything, or all but its count or a part of it.
    """
    *before, (last, wire_type) = layout_of(type(cut)).fields
    if any(getattr(whole, name) != getattr(cut, name) for name, _ in before):
        return False
    if isinstance(wire_type, Trailing) and not getattr(cut, last):
        return leftover_bytes in ({0, 1, 2, 3, 4} if type(cut) in LENIENT else {0, 4})
    return wire_type.is_last and (leftover_bytes == 0 or ignores_leftovers(cut))


def ignores_leftovers(message: Message) -> bool:
    """Whether any bytes may follow: an answer to ConsumerUpdate whose type has no number."""
    return isinstance(message, ConsumerUpdateReply) and message.offset.type not in OFFSET_NUMBERS


@each_frame
def test_a_frame_with_a_byte_too_many_is_malformed(golden: Golden) -> None:
    longer = golden.frame + b"\0"
    if isinstance(golden.decode().message, KernelBody):
        assert len(golden.encode(golden.decode(longer).message)) == len(longer) + 4
        return  # the kernel judges it
    message = golden.decode().message
    if ignores_leftovers(message) or (type(message) in LENIENT and is_without_properties(golden)):
        assert golden.decode(longer).message == message
        return

    with pytest.raises(MalformedFrame):
        golden.decode(longer)


def is_without_properties(golden: Golden) -> bool:
    return not golden.fields["properties"] and len(golden.frame) - len(golden.canonical) < 4


@pytest.mark.parametrize("command", pipeline.TABLE.commands, ids=attrgetter("name"))
@pytest.mark.parametrize("side", SIDES)
def test_every_command_has_frames_for_each_version_and_direction(
    command: Command, side: str
) -> None:
    other = Sender.BOTH & ~SIDES[side]
    expected = {(version, False) for version in range(1, command.version_max + 1)}
    wanted = (expected if SIDES[side] in command.sender else set()) | (
        {(1, True)} if command.reply is not None and other in command.sender else set()
    )
    found = {
        (golden.version, golden.is_response)
        for golden in FRAMES
        if golden.command == command.name and golden.sender == side
    }

    assert found == wanted


def test_no_two_frames_share_a_name() -> None:
    names = [str(golden) for golden in FRAMES]

    assert sorted(set(names)) == sorted(names)


def deliveries(origin: str) -> list[Golden]:
    return [frame for frame in FRAMES if frame.command == "deliver" and frame.origin == origin]


@pytest.mark.parametrize("golden", deliveries("derived"), ids=str)
def test_a_golden_chunk_checks_out(golden: Golden) -> None:
    delivery = delivery_of(golden.decode())

    assert delivery.committed_chunk_id == (None if golden.version == 1 else 10)
    assert delivery.chunk.chunk_id == 10
    assert delivery.chunk.trailer_size == 13
    assert delivery.chunk.records() == [b"a", b"b"]


@pytest.mark.parametrize("golden", deliveries("captured"), ids=str)
def test_a_captured_chunk_holds_what_was_published(golden: Golden) -> None:
    delivery = delivery_of(golden.decode())

    published = [b"a", b"b", b"aa", b"bb", b"cc", b"dd", b"x", b"y"]
    first, records = delivery.chunk.chunk_id, delivery.chunk.records()
    assert records == published[first : first + len(records)]
    assert (delivery.committed_chunk_id is None) == (golden.version == 1)


@each_frame
def test_the_table_of_pipelines_changes_no_frame_of_the_standard_one(golden: Golden) -> None:
    decode = decode_request if golden.sender == "client" else decode_reply

    if golden.row in COMMANDS:
        assert decode(golden.frame, pipeline.TABLE) == decode(golden.frame)
        return
    with pytest.raises(UnknownCommand):
        decode(golden.frame)
