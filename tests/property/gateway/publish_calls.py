"""Calls of the Publish kernel: made by Hypothesis, and made on a build of it."""

import struct
from types import ModuleType

from hypothesis import strategies as st

from tests.property.gateway.publish_model import Call, Outcome

MARK = 0xA5
IDS_MAX = 2_000  # more than any call here takes; the server's buffer has 65,535


def run(kernel: ModuleType, call: Call) -> Outcome:
    """Make a call on a build of the kernel; asserts that it wrote nowhere else."""
    target = bytearray([MARK]) * call.target_bytes
    ids = bytearray([MARK]) * (IDS_MAX * 8)
    duplicates = bytearray([MARK]) * (call.duplicates_max * 8)
    state = kernel.State()
    state.position = call.position
    state.frame_end = call.frame_end
    state.limit = call.end
    state.frame_bytes_max = call.frame_bytes_max
    state.publisher = call.publisher
    state.uncompressed_max = call.uncompressed_max
    state.written = call.written
    state.capacity = call.capacity
    state.entries_max = call.entries_max
    state.is_named = call.is_named
    state.has_last = call.last is not None
    state.last = 0 if call.last is None else call.last
    state.entries = state.records = state.duplicates = 77  # what an earlier call left
    filters: set[bytes] = set()
    source = bytearray(call.source)
    if call.filtered:
        reason = kernel.take_filtered(source, target, ids, duplicates, state, filters)
    else:
        reason = kernel.take_publishes(source, target, ids, duplicates, state)
    assert bytes(source) == call.source
    assert len(target) == call.target_bytes
    written = state.written
    untouched = target[: call.written] + target[written:]
    assert untouched == bytes([MARK]) * len(untouched)
    return Outcome(
        reason,
        state.position,
        state.frame_end,
        state.last if state.has_last else None,
        numbers(ids, state.entries),
        numbers(duplicates, state.duplicates),
        bytes(target[call.written : written]),
        state.records,
        filters,
    )


def numbers(packed: bytearray, count: int) -> list[int]:
    """The ids that a call has written; asserts that there are no more of them."""
    assert packed[count * 8 :] == bytes([MARK]) * (len(packed) - count * 8)
    return list(struct.unpack(f">{count}Q", packed[: count * 8]))


# Strategies

ids = st.one_of(
    st.integers(0, 12),
    st.sampled_from([2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]),
)
bodies = st.one_of(st.binary(max_size=12), st.integers(0, 80).map(bytes))


@st.composite
def sub_batches(draw: st.DrawFn) -> bytes:
    """A sub-batch, mostly good."""
    body = draw(bodies)
    records = draw(st.sampled_from([0, 1, 2, 3, 100, 65_535]))
    uncompressed = draw(st.sampled_from([records * 4, records * 4 + 9, max(records * 4 - 1, 0)]))
    first = 0x80 | draw(st.integers(0, 0x7F))
    if draw(st.booleans()):
        first &= 0xCF  # a codec that exists
    return struct.pack(">BHII", first, records, uncompressed, len(body)) + body


simple_entries = bodies.map(lambda body: len(body).to_bytes(4) + body)


@st.composite
def filter_values(draw: st.DrawFn) -> bytes:
    value = draw(st.none() | st.binary(max_size=6))
    return b"\xff\xff" if value is None else len(value).to_bytes(2) + value


@st.composite
def publish_frames(draw: st.DrawFn, version: int = 1) -> bytes:
    """A Publish frame of publisher 0 (mostly) with any count, sometimes of a wrong size."""
    entries = b""
    for _ in range(draw(st.integers(0, 5))):
        entries += draw(ids).to_bytes(8)
        if version > 1:
            entries += draw(filter_values())
        entries += draw(simple_entries | simple_entries | sub_batches())
    if draw(st.integers(0, 9)) == 0:
        entries = entries[: draw(st.integers(0, len(entries)))]
    publisher = draw(st.sampled_from([0] * 9 + [1]))
    count = draw(st.integers(0, 2**32 - 1))
    body = struct.pack(">HHBI", 2, version, publisher, count) + entries
    return len(body).to_bytes(4) + body


heads = st.sampled_from(
    [
        bytes.fromhex("00000004 00170001"),  # a heartbeat
        bytes.fromhex("00000008 00020001 00000000"),  # a Publish that is cut short
        bytes.fromhex("00000009 00020002 00 00000000"),
        bytes.fromhex("00000009 00020001 00 00000000"),
        bytes.fromhex("ffffffff 00020001 00 00000000"),
    ]
)


@st.composite
def calls(draw: st.DrawFn, *, filtered: bool = False) -> Call:
    """A call with anything the server could give it, and what a client could."""
    if filtered:
        source = draw(publish_frames(version=2))
        position, frame_end = 13, len(source)
    else:
        source = b"".join(draw(st.lists(publish_frames() | heads, max_size=4)))
        position = frame_end = 0
    damaged = bytearray(source)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        if len(damaged) > position:
            place = draw(st.integers(position, len(damaged) - 1))
            damaged[place] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    limit = len(source) if filtered else draw(st.just(len(source)) | st.integers(0, len(source)))
    written = draw(st.sampled_from([56, 56, 100]))
    capacity = draw(st.sampled_from([1 << 12, 1 << 12, 130, 200]))
    is_empty = written == 56
    return Call(
        bytes(damaged),
        position,
        frame_end,
        limit,
        frame_bytes_max=draw(st.sampled_from([1 << 20, 1 << 20, 60, 9])),
        uncompressed_max=draw(st.sampled_from([64 << 20, 2**32 - 1, 12])),
        written=written,
        capacity=capacity,
        target_bytes=max(capacity, written) + draw(st.sampled_from([0, 0, 64, 1 << 12])),
        entries_max=65_535 if is_empty else draw(st.sampled_from([65_534, 3, 2, 1])),
        duplicates_max=draw(st.sampled_from([512, 2, 1])),
        is_named=draw(st.booleans()),
        last=draw(st.none() | ids),
        filtered=filtered,
    )
