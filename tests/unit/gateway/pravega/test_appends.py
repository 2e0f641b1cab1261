"""The shapes of appends over the wire, one by one and in runs."""

import itertools
from uuid import UUID

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.codec import HEAD, decode, encode
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from tests.pravega_client import WRITER, WireClient, end, event
from tests.pravega_rig import WireServer

OTHER = UUID(int=99)
MIB = 1 << 20
EVENT = event(b"abc")
"""Eleven bytes."""
PADDING, PARTIAL = -1, -2


def block(data: bytes, *, writer: UUID = WRITER) -> m.AppendBlock:
    return m.AppendBlock(writer, data)


def fill(code: int, data: bytes) -> bytes:
    """Return a frame that fills the end of a block."""
    return HEAD.pack(code, len(data)) + data


@pytest.fixture
def writer(client: WireClient) -> WireClient:
    """A client with a writer on the segment `s`."""
    client.create("s")
    client.set_up("s")
    return client


# The shapes


def test_a_block_of_exact_size_is_one_append(writer: WireClient) -> None:
    writer.send(block(2 * EVENT), end(8, b"", whole=22, count=2))
    assert writer.must(m.DataAppended) == m.DataAppended(WRITER, 8, m.ABSENT, 2, 22)
    assert writer.content("s") == 2 * EVENT


def test_padding_is_not_stored(writer: WireClient) -> None:
    writer.send(block(EVENT + fill(PADDING, bytes(100))), end(8, b"", whole=11))
    assert writer.must(m.DataAppended).current_segment_write_offset == 11
    assert writer.content("s") == EVENT


def test_an_event_that_is_split_between_block_and_end_is_joined(writer: WireClient) -> None:
    split = event(b"0123456789")
    writer.send(block(EVENT + fill(PARTIAL, split[:7])), end(10, split[7:], whole=11, count=2))
    assert writer.must(m.DataAppended).current_segment_write_offset == 29
    assert writer.content("s") == EVENT + split


def test_the_bytes_of_the_java_encoder_are_stored_as_four_events(writer: WireClient) -> None:
    whole = event(b"abcde")
    sent = (
        "00000003 00000040 000102030405060708090a0b0c0d0e0f"
        + (3 * whole).hex()
        + "fffffffe 00000001 00 00000004 00000038 000102030405060708090a0b0c0d0e0f"
        + "00000027 0000000c"
        + whole[1:].hex()
        + "00000004 0000000000000004 0000000000000002"
    )
    writer.socket.sendall(bytes.fromhex(sent))
    assert writer.must(m.DataAppended).event_number == 4
    assert writer.content("s") == 4 * whole


def test_bytes_that_are_no_events_are_stored_as_they_are(writer: WireClient) -> None:
    writer.append(1, b"raw")
    writer.send(block(b"bytes"), end(2, b"", whole=5))
    writer.must(m.DataAppended)
    assert writer.content("s") == b"rawbytes"


def test_a_conditional_append_stores_a_whole_event(writer: WireClient) -> None:
    failed = writer.ask(m.ConditionalAppend(WRITER, 1, 9, b"abc", 4), m.ConditionalCheckFailed)
    assert failed == m.ConditionalCheckFailed(WRITER, 1, 4)
    appended = writer.ask(m.ConditionalAppend(WRITER, 1, 0, b"abc", 4), m.DataAppended)
    assert appended == m.DataAppended(WRITER, 1, m.ABSENT, 4, 11)
    assert writer.content("s") == EVENT


def test_keep_alives_and_reads_may_come_inside_a_block(writer: WireClient) -> None:
    writer.append(1, b"before")
    writer.send(block(EVENT), m.KeepAlive(), m.ReadSegment("s", 0, 100, "", 6))
    assert {type(writer.receive()), type(writer.receive())} == {m.KeepAlive, m.SegmentRead}
    writer.send(end(2, b"", whole=11))
    writer.must(m.DataAppended)
    assert writer.content("s") == b"before" + EVENT


def test_an_end_of_version_5_has_no_request_id(writer: WireClient) -> None:
    frame = encode(end(1, b"abc"))[8:-8]
    writer.socket.sendall(HEAD.pack(4, len(frame)) + frame)
    assert writer.must(m.DataAppended).request_id == m.UNKNOWN


def test_bytes_behind_the_last_field_are_ignored(writer: WireClient) -> None:
    frame = encode(end(1, b"abc"))[8:] + b"more"
    writer.socket.sendall(HEAD.pack(4, len(frame)) + frame)
    assert writer.must(m.DataAppended).request_id == 2


def test_a_block_and_its_end_may_carry_more_than_a_frame(writer: WireClient) -> None:
    first, rest = b"a" * (9 * MIB), b"b" * (8 * MIB)
    writer.send(block(fill(PARTIAL, first)), end(1, rest, whole=0))
    assert writer.must(m.DataAppended).current_segment_write_offset == 17 * MIB
    assert writer.content("s") == first + rest


# Refused


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (EVENT, end(1, b"more", whole=11)),
        (EVENT, end(1, b"", whole=10)),
        (EVENT, end(1, b"", whole=12)),
        (EVENT, end(1, b"", whole=-1)),
        (EVENT + fill(PADDING, bytes(5)), end(1, b"more", whole=11)),
        (EVENT + fill(7, bytes(5)), end(1, b"", whole=11)),
        (EVENT + HEAD.pack(PADDING, 6) + bytes(5), end(1, b"", whole=11)),
        (EVENT, end(1, b"", whole=11, count=0)),
        (9 * MIB * b"a", end(1, b"", whole=9 * MIB, count=-1)),
        (fill(PARTIAL, 9 * MIB * b"a"), end(1, 8 * MIB * b"b" + b"c", whole=0)),
    ],
    ids=[
        "a full block and data",
        "bytes left over",
        "more whole events than bytes",
        "a negative size",
        "padding and data",
        "a command that fills no block",
        "padding that is longer than the block",
        "no events",
        "fewer events than none",
        "more than 17 MiB",
    ],
)
def test_what_is_none_of_the_shapes_is_refused_and_nothing_written(
    server: WireServer, writer: WireClient, data: bytes, last: m.AppendBlockEnd
) -> None:
    writer.send(block(data), last)
    refused = writer.must(e.ErrorMessage)
    assert (refused.request_id, refused.segment, refused.error_code) == (2, "s", 0)
    assert writer.is_ended()
    with server.client() as reader:
        assert reader.content("s") == b""


@pytest.mark.parametrize(
    "frames",
    [
        [block(EVENT), block(EVENT)],
        [block(EVENT), end(1, b"", whole=11, writer=OTHER)],
        [block(EVENT), m.ConditionalBlockEnd(WRITER, 1, 0, b"x", 4)],
        [block(EVENT), m.ConditionalAppend(WRITER, 1, 0, b"x", 4)],
        [block(EVENT, writer=UUID(int=5))],
        [end(-1, b"x")],
        [m.ConditionalBlockEnd(UUID(int=5), 1, 0, b"x", 4)],
    ],
    ids=[
        "a block in a block",
        "an End of another writer",
        "a conditional block in a block",
        "a conditional append in a block",
        "a block of no writer",
        "a number below 0",
        "a conditional append of no writer",
    ],
)
def test_what_may_not_come_ends_the_connection(
    server: WireServer, writer: WireClient, frames: list[WireMessage]
) -> None:
    writer.set_up("s", OTHER)
    writer.send(*frames)
    assert writer.is_ended()
    with server.client() as reader:
        assert reader.content("s") == b""


def test_an_end_is_read_here_as_the_codec_reads_it_however_it_is_cut(server: WireServer) -> None:
    """The layout of this one message is written twice: a run of them is read without the codec."""
    payload = encode(end(1, b"abc"))[8:] + b"more"
    outcomes = set()
    for length in range(len(payload) + 1):
        with server.client() as client:
            segment = f"s{length}"
            client.create(segment)
            client.set_up(segment)
            client.socket.sendall(HEAD.pack(4, length) + payload[:length])
            try:
                read = decode(4, payload[:length])
            except WireError:
                assert client.is_ended(), length
                outcomes.add("ended")
                continue
            assert isinstance(read, m.AppendBlockEnd)
            assert client.must(m.DataAppended).request_id == read.request_id
            assert client.content(segment) == read.data
            outcomes.add("appended")
    assert outcomes == {"ended", "appended"}


@pytest.mark.parametrize("size", [-1, 1 << 30, 1000])
def test_data_of_a_size_that_lies_ends_the_connection(writer: WireClient, size: int) -> None:
    frame = bytearray(encode(end(1, b"abc")))
    frame[28:32] = size.to_bytes(4, signed=True)
    writer.socket.sendall(frame)
    assert writer.is_ended()


def test_what_came_before_a_bad_append_is_stored(server: WireServer, writer: WireClient) -> None:
    writer.send(end(1, b"one"), end(2, b"two"), end(1, b"back"))
    writer.drain()
    with server.client() as reader:
        assert reader.content("s") == b"onetwo"
        assert reader.set_up("s").last_event_number == 2


# Runs


def acknowledged(client: WireClient, last: int) -> list[m.DataAppended]:
    """Receive acknowledgements up to a number."""
    replies: list[m.DataAppended] = []
    while not replies or replies[-1].event_number < last:
        replies.append(client.must(m.DataAppended))
    return replies


def test_a_run_is_acknowledged_in_order_each_reply_naming_the_one_before(
    writer: WireClient,
) -> None:
    writer.send(*(end(n, b"%04d" % n) for n in range(2_000)))
    replies = acknowledged(writer, 1_999)
    assert replies[0].previous_event_number == m.ABSENT
    for before, after in itertools.pairwise(replies):
        assert after.previous_event_number == before.event_number < after.event_number
        assert before.current_segment_write_offset < after.current_segment_write_offset
    assert writer.content("s") == b"".join(b"%04d" % n for n in range(2_000))


def test_the_appends_of_one_read_become_one_acknowledgement_of_each_writer(
    writer: WireClient,
) -> None:
    writer.create("t")
    writer.set_up("t", OTHER)
    writer.send(
        end(1, b"a"),
        end(1, b"x", writer=OTHER),
        end(2, b"b"),
        end(5, b"y", writer=OTHER),
    )
    replies = {writer.must(m.DataAppended), writer.must(m.DataAppended)}
    assert replies == {
        m.DataAppended(WRITER, 2, m.ABSENT, 2, 2),
        m.DataAppended(OTHER, 5, m.ABSENT, 2, 2),
    }
    assert (writer.content("s"), writer.content("t")) == (b"ab", b"xy")


def test_a_conditional_append_in_a_run_sees_what_came_before_it(writer: WireClient) -> None:
    writer.send(
        end(1, b"ab"),
        m.ConditionalBlockEnd(WRITER, 2, 2, b"cd", 4),
        m.ConditionalBlockEnd(WRITER, 3, 2, b"no", 4),
        end(3, b"ef"),
    )
    assert writer.must(m.DataAppended).event_number == 1
    assert writer.must(m.DataAppended).event_number == 2
    assert writer.must(m.ConditionalCheckFailed).event_number == 3
    assert writer.must(m.DataAppended) == m.DataAppended(WRITER, 3, 2, 2, 6)
    assert writer.content("s") == b"abcdef"


def test_a_number_that_is_sent_twice_in_a_run_is_written_once(writer: WireClient) -> None:
    writer.send(end(1, b"a"), end(1, b"a"), end(2, b"b"), end(2, b"b"))
    assert acknowledged(writer, 2)[-1].current_segment_write_offset == 2
    assert writer.content("s") == b"ab"


def test_a_run_that_fails_is_refused_once_and_the_connection_goes_on(
    server: WireServer, writer: WireClient
) -> None:
    with server.client() as other:
        other.ask(m.SealSegment(1, "s", ""), m.SegmentSealed)
    writer.send(end(1, b"a"), end(2, b"b"))
    writer.must(e.SegmentIsSealed)
    writer.send(end(3, b"c"), m.ConditionalBlockEnd(WRITER, 4, 0, b"d", 4), m.KeepAlive())
    writer.must(m.KeepAlive)


def test_a_writer_of_a_deleted_segment_is_refused(writer: WireClient) -> None:
    writer.ask(m.DeleteSegment(1, "s", ""), m.SegmentDeleted)
    assert writer.ask(end(1, b"a"), e.NoSuchSegment).request_id == 2


def test_an_overtaken_writer_never_gets_an_acknowledgement(
    server: WireServer, writer: WireClient
) -> None:
    writer.append(5, b"mine")
    with server.client() as successor:
        successor.set_up("s")
        successor.append(6, b"its")
    writer.send(end(5, b"mine"), end(6, b"its"), end(7, b"lost"))
    assert writer.must(e.InvalidEventNumber).writer_id == WRITER
    assert writer.is_ended()


def test_frames_in_pieces_of_any_size_are_stored_once_and_in_order(writer: WireClient) -> None:
    frames = b"".join(
        encode(each)
        for n in range(0, 60, 3)
        for each in (
            end(n, b"%d," % n),
            block(b"%d," % (n + 1) + fill(PADDING, bytes(n))),
            end(n + 1, b"", whole=len(b"%d," % (n + 1))),
            end(n + 2, b"%d," % (n + 2)),
        )
    )
    position = 0
    for size in itertools.cycle((1, 7, 40, 3, 100)):
        if position >= len(frames):
            break
        writer.socket.sendall(frames[position : position + size])
        position += size
    acknowledged(writer, 59)
    assert writer.content("s") == b"".join(b"%d," % n for n in range(60))
