import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.certificates import Certificates, make
from hutch.client.errors import BadAnswer, ServerGone, ServerSilent
from hutch.client.frames import (
    FRAME_BYTES_MAX,
    INBOX_BYTES_MAX,
    KEPT_FRAME_BYTES,
    FrameReader,
    PushedFrames,
    send_both_ways,
)
from tests.waiting import HANG_S

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


def soon() -> float:
    return time.monotonic() + HANG_S


def test_frames_that_came_together_come_out_one_by_one(pair: Pair) -> None:
    reader = FrameReader(pair[0], "here")
    pair[1].sendall(framed(b"one") + framed(b"") + framed(b"three"))

    assert [bytes(reader.next(soon())) for _ in range(3)] == [b"one", b"", b"three"]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8), st.data())
def test_frames_cut_anywhere_come_out_whole(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, frames))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = FrameReader(ours, "here")
        found: list[bytes] = []
        for first, last in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            theirs.sendall(stream[first:last])
            try:
                while len(found) < len(frames):
                    found.append(bytes(reader.next(time.monotonic() + 0.0005)))
            except ServerSilent:
                continue
        while len(found) < len(frames):
            found.append(bytes(reader.next(soon())))

    assert found == frames


def test_a_frame_larger_than_the_buffer_comes_whole_and_the_next_one_too(pair: Pair) -> None:
    reader = FrameReader(pair[0], "here")
    large = bytes(range(256)) * (20 * 1024)
    stream = framed(b"before") + framed(large) + framed(b"behind")
    found: list[bytes] = []
    pair[1].settimeout(0)
    position = 0
    while len(found) < 3:
        with contextlib.suppress(BlockingIOError):
            position += pair[1].send(stream[position:])
        try:
            found.append(bytes(reader.next(time.monotonic() + 0.01)))
        except ServerSilent:
            continue

    assert found == [b"before", large, b"behind"]


def test_an_announced_size_takes_no_memory_before_its_bytes_come(pair: Pair) -> None:
    reader = FrameReader(pair[0], "here")
    before = len(reader._buffer)
    pair[1].sendall(FRAME_BYTES_MAX.to_bytes(4) + b"a few bytes")

    with pytest.raises(ServerSilent, match="here"):
        reader.next(time.monotonic() + 0.05)

    assert len(reader._buffer) == before


def test_a_size_above_the_limit_is_refused_at_once(pair: Pair) -> None:
    reader = FrameReader(pair[0], "host:1")
    pair[1].sendall((FRAME_BYTES_MAX + 1).to_bytes(4))

    with pytest.raises(BadAnswer, match="host:1 announced a frame of 268435457 bytes"):
        reader.next(soon())


def test_a_frame_that_dribbles_ends_at_the_deadline_and_is_not_lost(pair: Pair) -> None:
    reader = FrameReader(pair[0], "here")
    pair[1].sendall(framed(b"slowly")[:5])
    begun = time.monotonic()

    with pytest.raises(ServerSilent):
        reader.next(begun + 0.1)

    assert 0.1 <= time.monotonic() - begun < 20
    pair[1].sendall(framed(b"slowly")[5:])
    assert bytes(reader.next(soon())) == b"slowly"


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\5abc"])
def test_an_end_is_told_inside_and_between_frames(pair: Pair, sent: bytes) -> None:
    reader = FrameReader(pair[0], "host:1")
    pair[1].sendall(sent)
    pair[1].close()

    with pytest.raises(ServerGone, match="host:1 closed the connection"):
        reader.next(soon())


def test_a_socket_that_was_closed_here_is_a_lost_connection(pair: Pair) -> None:
    reader = FrameReader(pair[0], "host:1")
    pair[0].close()

    with pytest.raises(ServerGone, match="host:1"):
        reader.next(soon())


# ---- a deadline that has passed --------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secret_pair(pair: Pair, certificates: Certificates) -> Iterator[Pair]:
    """The same two ends, with TLS between them."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificates.server.certificate, certificates.server.key)
    ours = ssl.create_default_context(cafile=certificates.ca)
    found: list[ssl.SSLSocket] = []
    thread = threading.Thread(
        target=lambda: found.append(theirs.wrap_socket(pair[1], server_side=True))
    )
    thread.start()
    with ours.wrap_socket(pair[0], server_hostname="localhost") as wrapped:
        thread.join(HANG_S)
        with found[0]:
            yield wrapped, found[0]


@pytest.fixture(params=["plain", "TLS"])
def either(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.getfixturevalue("pair" if request.param == "plain" else "secret_pair")
    return found


def all_now(reader: FrameReader) -> list[bytes]:
    """Take what has come, without waiting."""
    found: list[bytes] = []
    with contextlib.suppress(ServerSilent):
        while True:
            found.append(bytes(reader.next(0.0)))
    return found


def test_a_deadline_that_has_passed_takes_what_has_come(either: Pair) -> None:
    reader = FrameReader(either[0], "here")
    assert all_now(reader) == []

    either[1].sendall(framed(b"one") + framed(b"two") + framed(b"three")[:6])
    found: list[bytes] = []
    while len(found) < 2:
        found += all_now(reader)
    assert found == [b"one", b"two"]
    assert all_now(reader) == []

    either[1].sendall(framed(b"three")[6:])
    while len(found) < 3:
        found += all_now(reader)
    assert found[2] == b"three"


def test_a_large_frame_comes_whole_without_waiting(either: Pair) -> None:
    reader = FrameReader(either[0], "here")
    large = bytes(range(256)) * 2_000
    thread = threading.Thread(target=either[1].sendall, args=(framed(large) + framed(b"next"),))
    thread.start()

    found: list[bytes] = []
    while len(found) < 2:
        found += all_now(reader)
    thread.join(HANG_S)

    assert found == [large, b"next"]


def test_waiting_goes_on_as_before_behind_a_deadline_that_had_passed(either: Pair) -> None:
    reader = FrameReader(either[0], "here")
    assert all_now(reader) == []
    thread = threading.Timer(0.05, either[1].sendall, (framed(b"later"),))
    thread.start()

    assert bytes(reader.next(soon())) == b"later"
    thread.join(HANG_S)


def test_an_end_is_told_without_waiting(either: Pair) -> None:
    reader = FrameReader(either[0], "host:1")
    either[1].sendall(framed(b"last"))
    either[1].close()

    found: list[bytes] = []

    def take_all() -> None:
        while True:
            with contextlib.suppress(ServerSilent):
                found.append(bytes(reader.next(0.0)))

    with pytest.raises(ServerGone, match="host:1"):
        take_all()
    assert found == [b"last"]


MUCH = bytes(range(256)) * 80_000


def received(connected: socket.socket, count: int) -> bytes:
    connected.settimeout(HANG_S)
    found = bytearray()
    while len(found) < count:
        found += connected.recv(1 << 20)
    return bytes(found)


def test_small_data_is_sent_at_once_and_nothing_is_taken(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"waiting")

    send_both_ways(ours, b"data", soon(), lambda: pytest.fail("there was room"))

    assert theirs.recv(100) == b"data"


def test_much_data_reaches_a_side_that_writes_before_it_reads(pair: Pair) -> None:
    ours, theirs = pair
    taken = bytearray()
    seen: list[bytes] = []

    def write_then_read() -> None:
        theirs.settimeout(HANG_S)
        theirs.sendall(MUCH)
        seen.append(received(theirs, len(MUCH)))

    other = threading.Thread(target=write_then_read)
    other.start()

    def take() -> None:
        taken.extend(ours.recv(1 << 20))

    send_both_ways(ours, memoryview(MUCH), soon(), take)
    other.join(HANG_S)

    assert seen == [MUCH]
    assert bytes(taken) == MUCH[: len(taken)]
    assert taken


def test_a_side_that_neither_reads_nor_writes_is_given_up(pair: Pair) -> None:
    began = time.monotonic()

    with pytest.raises(TimeoutError, match="bytes could not be sent in time"):
        send_both_ways(pair[0], MUCH, began + 0.2, lambda: None)

    assert time.monotonic() - began < 20


def test_a_side_that_has_gone_is_an_error(pair: Pair) -> None:
    pair[1].close()

    with pytest.raises(OSError, match="pipe"):
        send_both_ways(pair[0], MUCH, soon(), lambda: None)


def test_what_taking_raises_is_raised(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"bad news")

    def take() -> None:
        raise ValueError(ours.recv(100))

    with pytest.raises(ValueError, match="bad news"):
        send_both_ways(ours, MUCH, soon(), take)


def test_frames_come_out_in_the_order_in_which_they_came() -> None:
    kept = PushedFrames()
    for frame in (b"a", b"b", b"c"):
        assert kept.keep(memoryview(frame))

    assert [kept.take() for _ in range(len(kept))] == [b"a", b"b", b"c"]


def test_a_frame_is_a_copy() -> None:
    kept, frame = PushedFrames(), bytearray(b"first")
    kept.keep(memoryview(frame))
    frame[:] = b"other"

    assert kept.take() == b"first"


def test_the_bytes_that_are_kept_have_a_bound_and_taking_one_makes_room() -> None:
    kept, half = PushedFrames(), bytes(INBOX_BYTES_MAX // 2 - KEPT_FRAME_BYTES)

    assert kept.keep(memoryview(half))
    assert kept.keep(memoryview(half))
    assert not kept.keep(memoryview(b""))
    kept.take()
    assert kept.keep(memoryview(b"x"))


def test_tiny_frames_are_bounded_too() -> None:
    kept = PushedFrames()
    count = INBOX_BYTES_MAX // KEPT_FRAME_BYTES + 1

    assert not all(kept.keep(memoryview(b"")) for _ in range(count))
    kept.clear()
    assert not kept
    assert kept.keep(memoryview(b"x"))


def test_a_first_frame_is_taken_whatever_its_size() -> None:
    kept = PushedFrames()

    assert kept.keep(memoryview(bytes(INBOX_BYTES_MAX + 1)))
    assert not kept.keep(memoryview(b""))


def test_a_frame_that_is_wanted_is_taken_and_the_others_keep_their_order() -> None:
    inbox = PushedFrames()
    for frame in (b"a1", b"b1", b"a2", b"b2"):
        inbox.keep(memoryview(frame))

    assert inbox.take_first(lambda frame: frame[:1] == b"b") == b"b1"
    assert inbox.take_first(lambda frame: frame[:1] == b"c") is None
    assert inbox.take_first(lambda frame: frame[:1] == b"b") == b"b2"
    assert [inbox.take(), inbox.take()] == [b"a1", b"a2"]
    assert inbox._bytes == 0


def test_unwanted_frames_are_dropped_and_make_room() -> None:
    inbox = PushedFrames()
    for frame in (b"a1", b"b1", b"a2"):
        inbox.keep(memoryview(frame))

    inbox.drop(lambda frame: frame.startswith(b"a"))

    assert inbox.take() == b"b1"
    assert (len(inbox), inbox._bytes) == (0, 0)
