"""Publish frames, taken by the server's own kernel."""

import pytest

from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.encoding.frames import FrameLimits, MessagePacker, PublishFrame
from pyspark_hutch.encoding.messages import messages_of
from tests.unit.pyspark_hutch.encoding.batches import (
    batch,
    ids_from,
    raw_messages,
    simple,
    taken,
    whole,
)

MIB = 1 << 20
HEAD_BYTES = 9  # of a frame, after its size: key, version, publisher, count
ENTRY_BYTES = 12  # before a message: publishing id, size


def frames_of(
    bodies: list[bytes], limits: FrameLimits, filters: list[str | None] | None = None
) -> list[PublishFrame]:
    messages = raw_messages(bodies, filters)
    packer = MessagePacker("s", 0, limits)
    frames = list(packer.add(messages, ids_from(1, len(messages))))
    assert list(packer.flush()) == []
    return frames


def test_a_frame_has_its_bytes() -> None:
    (frame,) = MessagePacker("s", 7, FrameLimits(MIB)).add(
        raw_messages([b"one", b""]), ids_from(2**64 - 2, 2)
    )

    assert bytes(frame.data).hex(" ") == (
        "00 00 00 24 00 02 00 01 07 00 00 00 02 "
        "ff ff ff ff ff ff ff fe 00 00 00 03 6f 6e 65 "
        "ff ff ff ff ff ff ff ff 00 00 00 00"
    )
    assert (frame.ids.tolist(), frame.records) == ([2**64 - 2, 2**64 - 1], 2)


def test_a_frame_with_filter_values_has_its_bytes() -> None:
    (frame,) = frames_of([b"one", b"", b"x"], FrameLimits(MIB), ["ab", None, ""])

    assert bytes(frame.data).hex(" ") == (
        "00 00 00 39 00 02 00 02 00 00 00 00 03 "
        "00 00 00 00 00 00 00 01 00 02 61 62 00 00 00 03 6f 6e 65 "
        "00 00 00 00 00 00 00 02 ff ff 00 00 00 00 "
        "00 00 00 00 00 00 00 03 00 00 00 00 00 01 78"
    )


def test_the_server_takes_messages_with_all_their_sections() -> None:
    messages = messages_of(
        batch(
            body=[b"a", b"b" * 300, b""],
            properties=[{"to": "t"}, None, {"subject": "s"}],
            application_properties=[None, [("k", "v")], []],
        )
    )

    (frame,) = MessagePacker("s", 3, FrameLimits(MIB)).add(messages, ids_from(10, 3))

    assert simple(taken(frame, 3).stored) == whole(messages)


def test_the_server_takes_filter_values() -> None:
    (frame,) = frames_of([b"a", b"bb", b"c"], FrameLimits(MIB), ["x", None, "ü"])

    outcome = taken(frame)

    assert simple(outcome.stored) == [b"a", b"bb", b"c"]
    assert outcome.filters == {b"x", b"", "ü".encode()}


def test_the_places_of_filter_values_are_right_in_every_frame() -> None:
    frames = frames_of([b"a", b"b", b"c"], FrameLimits(MIB, frame_bytes=1), ["x", None, "zz"])

    assert [taken(frame).filters for frame in frames] == [{b"x"}, {b""}, {b"zz"}]


def test_frames_end_where_the_next_entry_would_be_too_much() -> None:
    entry = ENTRY_BYTES + 100
    for room, counts in (
        (3 * entry - 1, [2, 2, 1]),
        (3 * entry, [3, 2]),
        (3 * entry + 1, [3, 2]),
    ):
        for limits in (
            FrameLimits(MIB, frame_bytes=HEAD_BYTES + room),
            FrameLimits(HEAD_BYTES + room),
        ):
            frames = frames_of([b"x" * 100] * 5, limits)
            assert [frame.records for frame in frames] == counts
            assert [i for frame in frames for i in taken(frame).ids] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("entries_max", "counts"), [(1, [1] * 5), (2, [2, 2, 1]), (5, [5])])
def test_frames_end_at_their_count_of_entries(entries_max: int, counts: list[int]) -> None:
    frames = frames_of([b"x"] * 5, FrameLimits(MIB, entries_max=entries_max))

    assert [taken(frame).records for frame in frames] == counts


def test_a_message_larger_than_a_usual_frame_has_its_own() -> None:
    frames = frames_of([b"a", b"b" * 2_000, b"c"], FrameLimits(MIB, frame_bytes=1_000))

    assert [frame.records for frame in frames] == [1, 1, 1]
    assert [simple(taken(frame).stored)[0][:1] for frame in frames] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(("spare", "fits"), [(-1, False), (0, True), (1, True)])
@pytest.mark.parametrize("filter_value", [None, "four"])
def test_a_message_that_fits_no_frame_is_refused_with_size_and_limit(
    spare: int,
    fits: bool,  # noqa: FBT001  # a parameter
    filter_value: str | None,
) -> None:
    needed = HEAD_BYTES + ENTRY_BYTES + 2_000 + (0 if filter_value is None else 6)
    filters = None if filter_value is None else [filter_value, filter_value]
    packer = MessagePacker("orders", 0, FrameLimits(needed + spare))
    frames = packer.add(raw_messages([b"a", b"b" * 2_000], filters), ids_from(1, 2))

    assert taken(next(frames)).ids == [1]
    if fits:
        assert len(next(frames).data) == needed + 4
    else:
        with pytest.raises(MessageTooLarge) as caught:
            next(frames)
        assert str(caught.value) == (
            f"stream 'orders': a message needs a frame of {needed:,} bytes, "
            f"and the server takes at most {needed - 1:,}"
        )
        assert (caught.value.size, caught.value.limit) == (needed, needed - 1)


def test_a_server_without_a_limit_takes_any_message() -> None:
    (frame,) = frames_of([b"x" * (2 * MIB)], FrameLimits(0))

    assert taken(frame).records == 1


def test_no_messages_are_no_frames() -> None:
    assert frames_of([], FrameLimits(MIB)) == []


def test_without_a_publisher_a_frame_is_the_entries_as_the_server_stores_them() -> None:
    messages, ids = raw_messages([b"one", b"", b"x" * 300]), ids_from(1, 3)
    (published,) = MessagePacker("s", 0, FrameLimits(MIB)).add(messages, ids)

    (bare,) = MessagePacker("s", None, FrameLimits(MIB)).add(messages, ids)

    assert bytes(bare.data) == taken(published).stored
    assert (len(bare.ids), bare.records) == (3, 3)


def test_entries_alone_leave_room_for_the_head_that_is_asked_for() -> None:
    limits = FrameLimits(1_000, head_bytes=34)
    room = 1_000 + 4 - 34

    def largest(size: int) -> list[PublishFrame]:
        packer = MessagePacker("s", None, limits)
        return list(packer.add(raw_messages([bytes(size)]), ids_from(1, 1)))

    (frame,) = largest(room - 4)
    assert len(frame.data) == room
    with pytest.raises(MessageTooLarge, match="1,001"):
        largest(room - 3)
