from hutch.client import inbox
from hutch.client.inbox import INBOX_BYTES_MAX, Inbox


def test_frames_come_out_in_the_order_in_which_they_came() -> None:
    kept = Inbox()
    for frame in (b"a", b"b", b"c"):
        assert kept.keep(memoryview(frame))

    assert [kept.take() for _ in range(len(kept))] == [b"a", b"b", b"c"]


def test_a_frame_is_a_copy() -> None:
    kept, frame = Inbox(), bytearray(b"first")
    kept.keep(memoryview(frame))
    frame[:] = b"other"

    assert kept.take() == b"first"


def test_the_bytes_that_are_kept_have_a_bound_and_taking_one_makes_room() -> None:
    kept, half = Inbox(), bytes(INBOX_BYTES_MAX // 2 - inbox._FRAME_BYTES)

    assert kept.keep(memoryview(half))
    assert kept.keep(memoryview(half))
    assert not kept.keep(memoryview(b""))
    kept.take()
    assert kept.keep(memoryview(b"x"))


def test_tiny_frames_are_bounded_too() -> None:
    kept = Inbox()
    count = INBOX_BYTES_MAX // inbox._FRAME_BYTES + 1

    assert not all(kept.keep(memoryview(b"")) for _ in range(count))
    kept.clear()
    assert not kept
    assert kept.keep(memoryview(b"x"))


def test_a_first_frame_is_taken_whatever_its_size() -> None:
    kept = Inbox()

    assert kept.keep(memoryview(bytes(INBOX_BYTES_MAX + 1)))
    assert not kept.keep(memoryview(b""))


def test_a_frame_that_is_wanted_is_taken_and_the_others_keep_their_order() -> None:
    inbox = Inbox()
    for frame in (b"a1", b"b1", b"a2", b"b2"):
        inbox.keep(memoryview(frame))

    assert inbox.take_first(lambda frame: frame[:1] == b"b") == b"b1"
    assert inbox.take_first(lambda frame: frame[:1] == b"c") is None
    assert inbox.take_first(lambda frame: frame[:1] == b"b") == b"b2"
    assert [inbox.take(), inbox.take()] == [b"a1", b"a2"]
    assert inbox._bytes == 0


def test_unwanted_frames_are_dropped_and_make_room() -> None:
    inbox = Inbox()
    for frame in (b"a1", b"b1", b"a2"):
        inbox.keep(memoryview(frame))

    inbox.drop(lambda frame: frame.startswith(b"a"))

    assert inbox.take() == b"b1"
    assert (len(inbox), inbox._bytes) == (0, 0)
