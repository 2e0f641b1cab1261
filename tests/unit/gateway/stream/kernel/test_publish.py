"""Each rule of the Publish kernel by an example, compiled and interpreted."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.chunks import GZIP, ZSTD, SubBatch, filtered_body, publish_body
from tests.property.gateway import publish_model
from tests.property.gateway.kernel_builds import BUILDS, load
from tests.property.gateway.publish_calls import run
from tests.property.gateway.publish_model import (
    BAD_SUB_BATCH,
    CHUNK_FULL,
    MALFORMED,
    NEEDS_BYTES,
    OTHER_FRAME,
    Call,
)

MIB = 1 << 20


@pytest.fixture(params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return load("gateway.stream.kernel.publish", request.param)


def frame(*entries: tuple[int, bytes | SubBatch], publisher: int = 0) -> bytes:
    body = b"\0\2\0\1" + publish_body(publisher, entries)
    return len(body).to_bytes(4) + body


def filtered_call(*entries: tuple[int, str | None, bytes], **options: Any) -> Call:  # noqa: ANN401 - fields of Call
    body = b"\0\2\0\2" + filtered_body(0, entries)
    source = len(body).to_bytes(4) + body
    return Call(source, position=13, frame_end=len(source), filtered=True, **options)


def simple(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


# Frames


def test_entries_of_many_frames_are_stored_without_their_ids(kernel: ModuleType) -> None:
    source = frame((1, b"one"), (2, b"")) + frame() + frame((3, b"three"))

    out = run(kernel, Call(source))

    assert out.reason == NEEDS_BYTES
    assert (out.position, out.frame_end) == (len(source), 0)
    assert out.ids == [1, 2, 3]
    assert out.stored == simple(b"one") + simple(b"") + simple(b"three")
    assert out.records == 3


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_frame_that_is_not_complete_is_left_alone(kernel: ModuleType, cut: int) -> None:
    first, second = frame((1, b"one")), frame((2, b"two bytes"))
    assert cut <= len(second)
    source = first + second[: len(second) - cut]

    out = run(kernel, Call(source))

    left = len(second) - cut
    assert out.reason == (OTHER_FRAME if 4 <= left < 13 else NEEDS_BYTES)
    assert (out.position, out.ids) == (len(first), [1])


@pytest.mark.parametrize(
    "other",
    [
        frame((5, b"another publisher"), publisher=1),
        bytes.fromhex("00000004 0017 0001") + bytes(20),
        bytes.fromhex("0000000d 0002 0002 00 00000000 00000000"),
        bytes.fromhex("0000000d 8002 0001 00 00000000 00000000"),
        bytes.fromhex("00000008 0002 0001 00000000") + bytes(20),
        bytes.fromhex("00100001 0002 0001 00 00000000") + bytes(20),
        bytes.fromhex("ffffffff 0002 0001 00 00000000") + bytes(20),
    ],
    ids=["publisher", "heartbeat", "version 2", "response", "too short", "too large", "largest"],
)
def test_what_is_no_publish_of_this_publisher_is_left_to_the_caller(
    kernel: ModuleType, other: bytes
) -> None:
    source = frame((1, b"one")) + other

    out = run(kernel, Call(source))

    assert (out.reason, out.position, out.ids) == (OTHER_FRAME, 20 + 8, [1])


@pytest.mark.parametrize("excess", [0, 1])
def test_a_frame_of_exactly_the_largest_size_is_taken(kernel: ModuleType, excess: int) -> None:
    source = frame((1, bytes(100)))

    out = run(kernel, Call(source, frame_bytes_max=len(source) - 4 - excess))

    assert out.reason == (OTHER_FRAME if excess else NEEDS_BYTES)


def test_the_announced_count_is_not_looked_at(kernel: ModuleType) -> None:
    source = bytearray(frame((1, b"a"), (2, b"b")))
    source[9:13] = b"\xff\xff\xff\xff"

    assert run(kernel, Call(bytes(source))).ids == [1, 2]


# Entries


THREE = frame((1, b"one"), (2, SubBatch.of([b"x", b"y"])), (3, b"three"))
THREE_ENDS = [13, 13 + 15, 13 + 15 + 29, len(THREE)]


@pytest.mark.parametrize("size", range(len(THREE) - 4))
def test_a_frame_cut_at_any_byte_keeps_the_entries_before_the_cut(
    kernel: ModuleType, size: int
) -> None:
    source = size.to_bytes(4) + THREE[4 : 4 + size] + bytes(40)
    call = Call(source, limit=4 + size)

    out = run(kernel, call)

    assert out == publish_model.take(call)
    taken = sum(end <= 4 + size for end in THREE_ENDS[1:])
    if size < 9:
        assert out.reason == OTHER_FRAME
    elif 4 + size in THREE_ENDS:
        assert (out.reason, len(out.ids)) == (NEEDS_BYTES, taken)
    else:
        assert (out.reason, len(out.ids)) == (MALFORMED, taken)
        assert out.position == THREE_ENDS[taken]


@pytest.mark.parametrize("value", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_frame_damaged_at_any_byte_does_what_the_rules_say(
    kernel: ModuleType, value: int
) -> None:
    for place in range(len(THREE)):
        source = bytearray(THREE)
        source[place] = value
        call = Call(bytes(source), is_named=True, last=1)

        assert run(kernel, call) == publish_model.take(call), place


@pytest.mark.parametrize("codec", range(8))
def test_only_compressions_that_exist_are_taken(kernel: ModuleType, codec: int) -> None:
    batch = SubBatch(codec, 1, 4, b"any")

    out = run(kernel, Call(frame((1, b"before"), (2, batch), (3, b"after"))))

    assert out.reason == (NEEDS_BYTES if codec <= ZSTD else BAD_SUB_BATCH)
    assert out.ids == ([1, 2, 3] if codec <= ZSTD else [1])


@pytest.mark.parametrize(
    ("batch", "is_good"),
    [
        (SubBatch(GZIP, 0, 4, b"x"), False),
        (SubBatch(GZIP, 1, 3, b"x"), False),
        (SubBatch(GZIP, 1, 4, b"x"), True),
        (SubBatch(GZIP, 1, 4, b""), False),
        (SubBatch(0, 1, 4, b""), True),
        (SubBatch(GZIP, 65_535, 262_140, b"x"), True),
        (SubBatch(GZIP, 65_535, 262_139, b"x"), False),
        (SubBatch(GZIP, 1, 64 * MIB, b"x"), True),
        (SubBatch(GZIP, 1, 64 * MIB + 1, b"x"), False),
        (SubBatch(GZIP, 1, 2**32 - 1, b"x"), False),
    ],
)
def test_a_sub_batch_is_judged_by_its_head(
    kernel: ModuleType, batch: SubBatch, *, is_good: bool
) -> None:
    source = frame((1, b"before"), (2, batch), (3, b"after"))

    out = run(kernel, Call(source))

    if is_good:
        assert (out.reason, out.ids) == (NEEDS_BYTES, [1, 2, 3])
        assert out.records == batch.record_count + 2
        assert out.stored == simple(b"before") + batch.encoded() + simple(b"after")
    else:
        assert (out.reason, out.ids) == (BAD_SUB_BATCH, [1])
        assert (out.position, out.frame_end) == (13 + 8 + 10, len(source))


def test_a_bad_sub_batch_is_refused_even_if_its_id_is_a_duplicate(kernel: ModuleType) -> None:
    call = Call(frame((1, SubBatch(7, 1, 4, b"x"))), is_named=True, last=5)

    assert run(kernel, call).reason == BAD_SUB_BATCH


def test_the_unused_bits_of_a_sub_batch_are_stored_as_zero(kernel: ModuleType) -> None:
    source = bytearray(frame((1, SubBatch.of([b"x"], GZIP))))
    source[21] |= 0x0F

    out = run(kernel, Call(bytes(source)))

    assert out.stored[0] == 0x90


# Duplicates


@pytest.mark.parametrize(
    ("last", "published", "stored", "duplicates"),
    [
        (7, [10, 9, 11], [10, 11], [9]),
        (None, [0], [0], []),
        (0, [0], [], [0]),
        (None, [1, 1, 2, 2], [1, 2], [1, 2]),
        (None, [5, 3, 4, 6], [5, 6], [3, 4]),
        (2**63 - 1, [2**63 - 1, 2**63, 2**63 + 1], [2**63, 2**63 + 1], [2**63 - 1]),
        (2**63, [5, 2**63, 2**64 - 1], [2**64 - 1], [5, 2**63]),
        (2**64 - 1, [2**64 - 1, 0, 2**63], [], [2**64 - 1, 0, 2**63]),
        (None, [2**64 - 1, 2**64 - 1], [2**64 - 1], [2**64 - 1]),
    ],
)
def test_an_id_at_or_below_the_last_of_a_named_publisher_is_a_duplicate(
    kernel: ModuleType,
    last: int | None,
    published: list[int],
    stored: list[int],
    duplicates: list[int],
) -> None:
    source = frame(*((each, b"%d" % each) for each in published))

    out = run(kernel, Call(source, is_named=True, last=last))

    assert (out.ids, out.duplicates) == (stored, duplicates)
    assert out.stored == b"".join(simple(b"%d" % each) for each in stored)
    assert out.last == max([*stored, *([] if last is None else [last])])


def test_without_a_name_ids_mean_nothing(kernel: ModuleType) -> None:
    source = frame((3, b""), (3, b""), (0, b""), (2**64 - 1, b""))

    out = run(kernel, Call(source, last=10))

    assert (out.ids, out.duplicates) == ([3, 3, 0, 2**64 - 1], [])


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_call_stops_before_a_duplicate_that_it_cannot_report(
    kernel: ModuleType, room: int
) -> None:
    source = frame((1, b"a"), (2, b"b"), (3, b"c"), (9, b"new"))

    out = run(kernel, Call(source, is_named=True, last=5, duplicates_max=room))

    assert out.duplicates == [1, 2, 3][:room]
    assert out.reason == (CHUNK_FULL if room < 3 else NEEDS_BYTES)
    assert out.ids == ([] if room < 3 else [9])


# Full chunks


SIX = frame(*((number, bytes(number)) for number in range(1, 7)))


@pytest.mark.parametrize("capacity", range(60, 120))
def test_a_chunk_takes_entries_up_to_its_capacity_and_the_next_call_goes_on(
    kernel: ModuleType, capacity: int
) -> None:
    call = Call(SIX, written=60, entries_max=1000, capacity=capacity, target_bytes=200)

    out = run(kernel, call)

    ends = [60 + sum(4 + size for size in range(1, count + 1)) for count in range(7)]
    count = sum(end <= capacity for end in ends) - 1
    assert out.ids == list(range(1, count + 1))
    if count == 6:
        assert out.reason == NEEDS_BYTES
        return
    assert (out.reason, out.frame_end) == (CHUNK_FULL, len(SIX))
    rest = run(kernel, replace(call, position=out.position, frame_end=out.frame_end, capacity=200))
    assert rest.ids == list(range(count + 1, 7))
    assert (rest.reason, rest.position) == (NEEDS_BYTES, len(SIX))


@pytest.mark.parametrize("room", range(8))
def test_a_chunk_takes_so_many_entries_as_it_has_places(kernel: ModuleType, room: int) -> None:
    out = run(kernel, Call(SIX, written=60, entries_max=room))

    assert len(out.ids) == min(room, 6)
    assert out.reason == (CHUNK_FULL if room < 6 else NEEDS_BYTES)


@pytest.mark.parametrize(("target_bytes", "is_taken"), [(163, False), (164, True), (500, True)])
def test_an_entry_above_the_capacity_is_taken_alone_into_an_empty_chunk_with_the_room(
    kernel: ModuleType, target_bytes: int, *, is_taken: bool
) -> None:
    source = frame((1, bytes(104)), (2, b"next"))

    out = run(kernel, Call(source, written=56, capacity=100, target_bytes=target_bytes))

    assert out.reason == CHUNK_FULL
    assert out.ids == ([1] if is_taken else [])


def test_an_entry_above_the_capacity_is_not_taken_into_a_chunk_that_holds_something(
    kernel: ModuleType,
) -> None:
    begun = Call(frame((1, bytes(104))), written=60, entries_max=65_534, capacity=100)
    behind = Call(frame((1, b"small"), (2, bytes(104))), capacity=100)

    assert run(kernel, begun).ids == []
    assert run(kernel, behind).ids == [1]


def test_a_duplicate_needs_no_room_in_the_chunk(kernel: ModuleType) -> None:
    source = frame((1, bytes(500)), (2, bytes(500)))

    out = run(kernel, Call(source, is_named=True, last=2, capacity=60, target_bytes=60))

    assert (out.reason, out.duplicates) == (NEEDS_BYTES, [1, 2])


# Filter values


def test_a_filtered_frame_stores_its_entries_as_any_other_and_gathers_the_values(
    kernel: ModuleType,
) -> None:
    call = filtered_call((1, "pear", b"one"), (2, "fig", b"two"), (3, "pear", b"three"))

    out = run(kernel, call)

    assert (out.reason, out.position) == (NEEDS_BYTES, len(call.source))
    assert out.ids == [1, 2, 3]
    assert out.stored == simple(b"one") + simple(b"two") + simple(b"three")
    assert out.filters == {b"pear", b"fig"}


@pytest.mark.parametrize("value", [None, ""])
def test_no_filter_value_and_an_empty_one_are_the_same(
    kernel: ModuleType, value: str | None
) -> None:
    assert run(kernel, filtered_call((1, value, b"x"))).filters == {b""}


def test_filter_values_of_duplicates_and_of_entries_that_do_not_fit_are_not_gathered(
    kernel: ModuleType,
) -> None:
    call = filtered_call(
        (1, "old", b"x"), (3, "new", b"x"), (4, "later", b"x"), is_named=True, last=1, capacity=61
    )

    out = run(kernel, call)

    assert (out.duplicates, out.ids, out.reason) == ([1], [3], CHUNK_FULL)
    assert out.filters == {b"new"}


def test_the_longest_filter_value_fits(kernel: ModuleType) -> None:
    value = "f" * 0xFFFE

    assert run(kernel, filtered_call((1, value, b"x"))).filters == {value.encode()}


def test_a_sub_batch_with_a_filter_value_is_malformed(kernel: ModuleType) -> None:
    source = bytearray(filtered_call((1, "a", b"x"), (2, "b", bytes(20))).source)
    place = 13 + 16 + 11
    assert source[place : place + 4] == b"\0\0\0\x14"
    source[place] = 0x80
    call = Call(bytes(source), position=13, frame_end=len(source), filtered=True)

    out = run(kernel, call)

    assert (out.reason, out.ids, out.position) == (MALFORMED, [1], 13 + 16)


FILTERED = filtered_call((1, "pear", b"one"), (2, None, b"two"), (3, "", b"three"))


@pytest.mark.parametrize("end", range(13, len(FILTERED.source) + 1))
def test_a_filtered_frame_cut_at_any_byte_keeps_the_entries_before_the_cut(
    kernel: ModuleType, end: int
) -> None:
    call = replace(FILTERED, frame_end=end, limit=end)

    out = run(kernel, call)

    assert out == publish_model.take(call)
    ends = [13, 13 + 21, 13 + 21 + 17, len(FILTERED.source)]
    assert out.reason == (NEEDS_BYTES if end in ends else MALFORMED)
    assert len(out.ids) == sum(each <= end for each in ends[1:])


# Refused frames


def test_ids_of_a_refused_frame_are_all_its_ids_whatever_its_entries_are(
    kernel: ModuleType,
) -> None:
    source = frame((2**64 - 1, b"x"), (0, SubBatch(7, 0, 0, b"bad")), (5, b""))
    found = kernel.publishing_ids_of(bytearray(source), 13, len(source), 1)

    assert found == ([2**64 - 1, 0, 5], len(source))


def test_ids_of_a_refused_filtered_frame(kernel: ModuleType) -> None:
    source = bytearray(FILTERED.source)

    assert kernel.publishing_ids_of(source, 13, len(source), 2) == ([1, 2, 3], len(source))


@pytest.mark.parametrize("end", range(13, len(THREE)))
def test_ids_of_a_refused_frame_end_where_an_entry_does_not_fit(
    kernel: ModuleType, end: int
) -> None:
    ids, position = kernel.publishing_ids_of(bytearray(THREE), 13, end, 1)

    assert ids == [1, 2, 3][: len(ids)]
    assert position == max(each for each in THREE_ENDS if each <= end)
    assert position == THREE_ENDS[len(ids)]


@pytest.mark.parametrize(
    ("version", "frame"),
    [
        (1, "00000015 0008 0001 07 68656164"),
        (2, "0000001d 0008 0002 07 0102030405060708 68656164"),
    ],
)
def test_a_deliver_frame_says_how_long_the_chunk_is(
    kernel: ModuleType, version: int, frame: str
) -> None:
    made = kernel.deliver_of(version, 7, 0x0102030405060708, 16, b"head")

    assert made == bytes.fromhex(frame)
