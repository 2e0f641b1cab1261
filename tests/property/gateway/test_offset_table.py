"""Checklist 34: every offset specification on every kind of stream, 60 cases and more.

What is expected is said by a list of chunks. RabbitMQ gives the same where it can be asked: the
scripts of `compat/differential/scripts/reading.py` and `offsets.py` put the same places to both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from gateway.log.derived import index as index_module
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, LAST, NEXT, OffsetSpec, OffsetType, at_offset
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

# When the chunks of each stream are written, in ms, and how many records each has.
START_MS: Final = 1_000_000
STREAMS: Final[dict[str, list[int]]] = {
    "empty": [],
    "one chunk": [3],
    "five chunks": [2, 2, 1, 4, 2],
    "many chunks": [1 + number % 3 for number in range(60)],
    "truncated": [2] * 10,
    "all truncated": [2] * 10,
}
GAP_MS: Final = 10
PLACES: Final = (
    "first", "last", "next",
    "offset 0", "before the first", "the first", "inside", "at a chunk", "the end", "beyond",
    "largest",
    "time 0", "time negative", "time of a chunk", "time between", "time of the end", "time after",
)  # fmt: skip


class Stocked:
    """A stream in a broker, and the chunks that it should still have: (offset, records, ms)."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.broker = Broker(directory)
        self.client: LinkRig = self.broker.link()
        self.client.create("s")
        self.client.declare(1, "s")
        self.chunks: list[tuple[int, int, int]] = []
        self.end = 0
        for count in STREAMS[kind]:
            self.broker.now_ms += GAP_MS
            self.client.publish(1, *((self.end + i, b"r%d" % i + bytes(50)) for i in range(count)))
            self.broker.settle("s")
            self.chunks.append((self.end, count, self.broker.now_ms))
            self.end += count
        if "truncated" in kind:
            self.truncate(len(self.chunks) if kind == "all truncated" else 6)

    def truncate(self, chunks: int) -> None:
        """Remove so many chunks."""
        removed = self.chunks[:chunks]
        before = removed[-1][0] + removed[-1][1]
        self.broker.store_rig.run(
            self.broker.streams.logs.truncate(self.broker.streams.find("s"), offset=before)
        )
        self.chunks = self.chunks[chunks:]

    def spec(self, place: str) -> OffsetSpec:
        first = self.chunks[0] if self.chunks else (self.end, 1, START_MS)
        middle = self.chunks[len(self.chunks) // 2] if self.chunks else first
        last = self.chunks[-1] if self.chunks else first
        offsets = {
            "offset 0": 0, "before the first": max(first[0] - 1, 0), "the first": first[0],
            "inside": middle[0] + middle[1] - 1, "at a chunk": middle[0], "the end": self.end,
            "beyond": self.end + 1, "largest": 2**64 - 1,
        }  # fmt: skip
        times = {
            "time 0": 0, "time negative": -(2**63), "time of a chunk": middle[2],
            "time between": middle[2] + 1, "time of the end": last[2], "time after": last[2] + 1,
        }  # fmt: skip
        if place in offsets:
            return at_offset(offsets[place])
        if place in times:
            return OffsetSpec(OffsetType.TIMESTAMP, times[place])
        return {"first": FIRST, "last": LAST, "next": NEXT}[place]

    def expected(self, spec: OffsetSpec) -> int:
        """Where reading begins: the offset of a chunk, or of what comes next."""
        if not self.chunks or spec.type is OffsetType.NEXT:
            return self.end
        if spec.type is OffsetType.FIRST:
            return self.chunks[0][0]
        if spec.type is OffsetType.LAST:
            return self.chunks[-1][0]
        if spec.type is OffsetType.OFFSET:
            found = [start for start, count, _ in self.chunks if start + count > spec.value]
        else:
            found = [start for start, _, time_ms in self.chunks if time_ms >= spec.value]
        return found[0] if found else self.end


@pytest.mark.parametrize("kind", STREAMS)
def test_a_reader_begins_where_the_table_says(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 300)
    stocked = Stocked(tmp_path, kind)
    reader = stocked.broker.link()
    for number, place in enumerate(PLACES):
        spec = stocked.spec(place)
        expected = stocked.expected(spec)

        answer = reader.ask(
            m.ResolvedOffset, "resolve_offset_spec", m.ResolveOffsetSpec("s", spec, {})
        )
        assert (answer.code, answer.offset) == (ResponseCode.OK, expected), place
        reader.tell("subscribe", m.Subscribe(number, "s", spec, 10_000, {}))
        found = read(stocked, reader, number, stocked.end - expected)
        assert found == list(range(expected, stocked.end)), place
    stocked.broker.close()


def read(stocked: Stocked, reader: LinkRig, number: int, count: int) -> list[int]:
    """The offsets of so many records, and of what comes with them."""
    found: list[int] = []
    while True:
        woken = len(reader.ports.woken)
        for delivery in reader.deliver(number):
            first = delivery.chunk.chunk_id
            found += range(first, first + delivery.chunk.record_count)
        if len(found) >= count:
            return found
        stocked.broker.loop.run_until(lambda w=woken: len(reader.ports.woken) > w)  # type: ignore[misc]  # bound at once
