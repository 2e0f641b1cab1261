"""Frames of any messages and limits: the server takes every row once, in order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hutch.formats.entries import SubBatchCodec
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.encoding.frames import FrameLimits, MessagePacker, PublishFrame
from pyspark_hutch.encoding.sub_batches import SubBatchPacker
from tests.unit.pyspark_hutch.encoding.batches import ids_from, raw_messages, simple, taken
from tests.unit.pyspark_hutch.encoding.test_sub_batches import read

FRAME_HEAD_BYTES = 9
ENTRY_BYTES = 12

bodies = st.lists(st.integers(0, 90).map(lambda size: bytes([size]) * size), max_size=40)
filters = st.none() | st.text(max_size=4)


@st.composite
def limits(draw: st.DrawFn) -> FrameLimits:
    return FrameLimits(
        frame_bytes_max=draw(st.just(0) | st.integers(9, 400)),
        frame_bytes=draw(st.integers(1, 400)),
        entries_max=draw(st.integers(1, 10)),
    )


def until_too_large(
    packer: MessagePacker | SubBatchPacker, runs: list[list[bytes]]
) -> list[PublishFrame]:
    """Pack until a message is too large."""
    frames: list[PublishFrame] = []
    first = 1
    try:
        for run in runs:
            for frame in packer.add(raw_messages(run), ids_from(first, len(run))):
                frames.append(frame)  # noqa: PERF402  # those before the error count
            first += len(run)
        for frame in packer.flush():
            frames.append(frame)  # noqa: PERF402  # the same
    except MessageTooLarge as error:
        assert error.size > error.limit  # noqa: PT017  # an error is one of the outcomes
    return frames


@given(bodies, limits())
def test_frames_hold_every_message_once_in_order_and_within_their_limits(
    some: list[bytes], limit: FrameLimits
) -> None:
    frames = until_too_large(MessagePacker("s", 0, limit), [some])

    stored = [message for frame in frames for message in simple(taken(frame).stored)]
    fits = [
        FRAME_HEAD_BYTES + ENTRY_BYTES + len(body) <= (limit.frame_bytes_max or 1 << 30)
        for body in some
    ]
    assert stored == some[: fits.index(False) if False in fits else len(some)]
    for frame in frames:
        size = len(frame.data) - 4
        assert not limit.frame_bytes_max or size <= limit.frame_bytes_max
        assert frame.records <= limit.entries_max
        assert frame.records == 1 or size <= limit.frame_bytes


@given(bodies, limits())
def test_no_frame_could_have_taken_the_entry_after_it(
    some: list[bytes], limit: FrameLimits
) -> None:
    frames = until_too_large(MessagePacker("s", 0, limit), [some])

    room = min(limit.frame_bytes, limit.frame_bytes_max or limit.frame_bytes)
    for frame, following in pairwise(frames):
        entry = simple(taken(following).stored)[0]
        is_full = len(frame.ids) == limit.entries_max
        assert is_full or len(frame.data) - 4 + ENTRY_BYTES + len(entry) > room


@given(st.lists(st.tuples(st.binary(max_size=30), filters), max_size=20), st.integers(1, 200))
def test_filter_values_stay_with_their_messages(
    rows: list[tuple[bytes, str | None]], frame_bytes: int
) -> None:
    messages = raw_messages([body for body, _ in rows], [value for _, value in rows])
    packer = MessagePacker("s", 0, FrameLimits(0, frame_bytes=frame_bytes))

    place = 0
    for frame in packer.add(messages, ids_from(1, len(rows))):
        outcome = taken(frame)
        some = rows[place : place + frame.records]
        assert simple(outcome.stored) == [body for body, _ in some]
        if messages.filters is not None:
            assert outcome.filters == {(value or "").encode() for _, value in some}
        place += frame.records
    assert place == len(rows)


@pytest.mark.parametrize("codec", [SubBatchCodec.NONE, SubBatchCodec.LZ4])
@given(
    runs=st.lists(bodies, max_size=4),
    limit=limits(),
    records=st.integers(1, 12),
    sub_batch_bytes=st.integers(1, 500),
)
def test_sub_batches_hold_every_message_once_and_end_where_the_rows_say(
    codec: SubBatchCodec,
    runs: list[list[bytes]],
    limit: FrameLimits,
    records: int,
    sub_batch_bytes: int,
) -> None:
    def sub_batches(some: list[list[bytes]]) -> list[list[bytes]]:
        packer = SubBatchPacker(
            "s", 0, limit, codec=codec, records=records, sub_batch_bytes=sub_batch_bytes
        )
        frames = until_too_large(packer, some)
        for frame in frames:
            assert not limit.frame_bytes_max or len(frame.data) - 4 <= limit.frame_bytes_max
            assert len(frame.ids) <= limit.entries_max
        found = [each for frame in frames for each in read(frame, codec)]
        ids = [publishing_id for frame in frames for publishing_id in frame.ids.tolist()]
        assert ids == [sum(map(len, found[: index + 1])) for index in range(len(found))]
        return found

    found = sub_batches(runs)
    rows = [body for run in runs for body in run]

    assert all(len(each) <= records for each in found)
    assert [body for each in found for body in each] == rows[: sum(map(len, found))]
    if not limit.frame_bytes_max:
        assert sum(map(len, found)) == len(rows)
        assert found == sub_batches([rows])
        assert found == sub_batches([[body] for body in rows])
