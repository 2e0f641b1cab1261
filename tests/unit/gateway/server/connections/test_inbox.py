"""Bytes between two reads: what is kept, and where the next ones go."""

import pytest

from gateway.server.connections.inbox import ConnectionInbox

SHARED_BYTES = 64


def read(inbox: ConnectionInbox, data: bytes) -> tuple[bytearray, int]:
    """Put bytes where the inbox wants them, as a socket does."""
    place = inbox.place()
    assert len(place) > 0
    assert len(data) <= len(place)
    place[: len(data)] = data
    del place  # a view keeps its buffer from growing
    return inbox.received(len(data))


def inbox() -> ConnectionInbox:
    return ConnectionInbox(bytearray(SHARED_BYTES))


def taken(made: ConnectionInbox) -> bytes:
    buffer, position, end = made.take_kept()
    return bytes(buffer[position:end])


def size_at(buffer: bytearray) -> int:
    """Size of the frame at the front, with its head of four bytes."""
    return 4 + int.from_bytes(buffer[:4])


def frame(size: int) -> bytes:
    return size.to_bytes(4) + bytes(range(256)) * (size // 256) + bytes(size % 256)


def test_what_is_read_is_given_from_the_front_of_the_shared_buffer() -> None:
    buffer, end = read(inbox(), b"abc")

    assert bytes(buffer[:end]) == b"abc"


def test_nothing_is_left_when_everything_was_handled() -> None:
    made = inbox()
    buffer, end = read(made, b"abc")
    made.keep(buffer, end, end, 0)

    buffer, end = read(made, b"de")

    assert bytes(buffer[:end]) == b"de"


def test_what_is_kept_comes_before_what_is_read_next() -> None:
    made = inbox()
    buffer, end = read(made, b"abcde")
    made.keep(buffer, 3, end, 0)

    buffer, end = read(made, b"fg")

    assert bytes(buffer[:end]) == b"defg"


def test_connections_that_share_the_buffer_do_not_mix_their_bytes() -> None:
    shared = bytearray(SHARED_BYTES)
    one, other = ConnectionInbox(shared), ConnectionInbox(shared)
    for made, data in ((one, b"\0\0\0\x09one"), (other, b"\0\0\0\x09other")):
        buffer, end = read(made, data)
        made.keep(buffer, 0, end, size_at(buffer))

    for made, data, rest in ((one, b"one", b"111"), (other, b"other", b"222")):
        buffer, end = read(made, rest)
        assert bytes(buffer[:end]) == b"\0\0\0\x09" + data + rest
        made.keep(buffer, end, end, 0)


def test_what_was_kept_is_given_once_after_a_pause() -> None:
    made = inbox()
    buffer, end = read(made, b"abcde")
    made.keep(buffer, 2, end, 0)

    assert taken(made) == b"cde"
    assert taken(made) == b""


def test_what_waits_again_and_again_is_not_copied_each_time() -> None:
    made = ConnectionInbox(bytearray(1 << 20))
    count = 10_000
    buffer, end = read(made, frame(60) * count)
    made.keep(buffer, 0, end, 0)
    copies = 0
    last = buffer

    for number in range(count):
        buffer, position, end = made.take_kept()
        copies += buffer is not last
        last = buffer
        assert end - position == 64 * (count - number)
        made.keep(buffer, position + 64, end, 0)

    assert taken(made) == b""
    assert copies <= 32, "a few: what little is left does not hold a large buffer"


def test_what_was_kept_twice_comes_before_what_is_read_next() -> None:
    made = inbox()
    buffer, end = read(made, b"abcdefgh")
    made.keep(buffer, 1, end, 0)
    buffer, position, end = made.take_kept()
    made.keep(buffer, position + 2, end, 0)

    buffer, end = read(made, b"ij")

    assert bytes(buffer[:end]) == b"defghij"


@pytest.mark.parametrize("first", [4, 5, 30, 64])
@pytest.mark.parametrize("size", [100, 1000, 9_996])
def test_a_frame_larger_than_the_shared_buffer_comes_whole_when_it_is_complete(
    first: int, size: int
) -> None:
    made = inbox()
    data = frame(size)
    buffer, end = read(made, data[:first])
    made.keep(buffer, 0, end, size_at(buffer))
    position = first
    while position < len(data):
        room = len(made.place())
        piece = data[position : position + min(room, 77)]
        position += len(piece)
        buffer, end = read(made, piece)
        assert end == (0 if position < len(data) else len(data))

    assert bytes(buffer[:end]) == data
    buffer, end = read(made, b"next")
    assert bytes(buffer[:end]) == b"next"


def test_a_large_frame_is_read_to_its_end_and_no_further() -> None:
    made = inbox()
    data = frame(1000)
    buffer, end = read(made, data[:60])
    made.keep(buffer, 0, end, size_at(buffer))
    position = 60

    while position < len(data):
        room = len(made.place())
        assert room <= len(data) - position
        read(made, data[position : position + room])
        position += room


def test_a_frame_that_announces_much_and_sends_little_takes_little_memory() -> None:
    made = ConnectionInbox(bytearray(1 << 20))
    buffer, end = read(made, (16 << 20).to_bytes(4) + bytes(1000))
    made.keep(buffer, 0, end, 4 + (16 << 20))

    assert made._large is not None
    assert len(made._large) < 200_000


def test_a_frame_whose_size_is_not_judged_gets_no_buffer_of_its_own() -> None:
    made = inbox()
    data = b"\xff\xff\xff\xff" + b"rest"
    buffer, end = read(made, data)

    made.keep(buffer, 0, end, 0)

    assert taken(made) == data
