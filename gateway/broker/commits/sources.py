"""Bytes of a commit's part: the chunks of its stages, one behind the other, or one in its row.

Stages that were open when the server stopped are counted from their bytes when they are next used.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import PartRow
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stage_segment import StageSegment
from gateway.log.unit import parts_of
from gateway.pending import Pending
from hutch.formats.chunk import EVENT_HEAD_BYTES
from store.api import APPEND_BYTES_MAX, READ_BYTES_MAX, ReadResult, SegmentInfo
from store.errors import CorruptSegment, NoSuchSegment

READ_BYTES: Final = 520 * 1024
"""Bytes read at once, unless a chunk is larger: a chunk as the sink makes them.

They are read, checked and written in one turn of the event loop, while every other stream waits.
"""


class StageLost(CorruptSegment):
    """Bytes of a commit are not there, and will not come back."""


class StagesSource:
    """Chunks of some stages for one stream.

    Attributes:
        size: Bytes of all.
    """

    def __init__(
        self,
        ports: CommitsPorts,
        data_of: Callable[[Stage], Awaitable[bytes | memoryview]],
        parts: Sequence[Stage],
    ) -> None:
        """Read parts in order; `data_of` reads one that has no segment of its own."""
        self._ports = ports
        self._data_of = data_of
        self._parts = parts
        self.size = sum(stage.size_bytes for stage in parts)

    async def read(self, position: int) -> bytes | memoryview:
        """Return whole chunks from `position` on, the first byte of one; READ_BYTES or so.

        A piece behind the first one is read in another turn of the event loop.

        Raises:
            StageLost: A stage has lost bytes.
            StoreError: It cannot be read now.
        """
        if position:
            await self._ports.wait(0)
        pieces: list[bytes | memoryview] = []
        size = 0
        for stage in self._parts:
            if position >= stage.size_bytes:
                position -= stage.size_bytes
                continue
            is_first = not pieces
            if not is_first and size + stage.size_bytes > READ_BYTES:
                break
            piece = await self._read_stage(stage, position)
            pieces.append(piece)
            size += len(piece)
            if position + len(piece) < stage.size_bytes:
                break
            position = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _read_stage(self, stage: Stage, position: int) -> bytes | memoryview:
        if not stage.has_segment:
            data = await self._data_of(stage)
            if len(data) != stage.size_bytes:
                raise _lost(stage)
            return data[position:]
        wanted = min(READ_BYTES, stage.size_bytes - position)
        data = await self._read_segment(stage, position, wanted)
        whole = whole_chunks(data)
        if not whole:
            wanted = size_of_chunk(data)
            if wanted > min(APPEND_BYTES_MAX, stage.size_bytes - position):
                raise _lost(stage)
            data += await self._read_segment(stage, position + len(data), wanted - len(data))
            whole = whole_chunks(data)
        return memoryview(data)[:whole]

    async def _read_segment(self, stage: Stage, position: int, size: int) -> bytes:
        name = self._ports.segment_of(stage.number)
        pieces: list[bytes] = []
        while size:
            read: Pending[ReadResult] = Pending()
            self._ports.store.read(name, position, min(size, READ_BYTES_MAX), done=read.settle)
            try:
                data = (await read).data
            except NoSuchSegment as error:
                raise _lost(stage) from error
            if not data:
                raise _lost(stage)
            pieces.append(data)
            position += len(data)
            size -= len(data)
        return b"".join(pieces)


class RowSource:
    """The one chunk of a part that lies in the part's row.

    Attributes:
        size: Its bytes.
    """

    def __init__(
        self, ports: CommitsPorts, key: bytes, size: int, held: bytes | None = None
    ) -> None:
        """Begin; `held` is the chunk, for the first one that reads it."""
        self.size = size
        self._ports = ports
        self._key = key
        self._held = held

    async def read(self, position: int) -> bytes:
        """Return the chunk from a position on.

        Raises:
            StageLost: The row has lost it.
            StoreError: It cannot be read now.
        """
        held, self._held = self._held, None  # a part that has to wait must not stay in memory
        if held is None:
            value = await self._ports.read(self._key)
            held = b"" if value is None else PartRow.unpack(value)[1]
        if len(held) != self.size:
            raise StageLost(f"the row {self._key!r} has lost its chunk")
        return held[position:]


def _lost(stage: Stage) -> StageLost:
    return StageLost(f"stage {stage.number} of stream {stage.stream!r} has lost bytes")


def size_of_chunk(data: bytes) -> int:
    """Return the size of the chunk that some bytes begin with; it may be damaged."""
    return EVENT_HEAD_BYTES + int.from_bytes(data[4:EVENT_HEAD_BYTES], "big")


def whole_chunks(data: bytes) -> int:
    """Return the size of the whole chunks at the beginning of some bytes."""
    end = position = 0
    while position + EVENT_HEAD_BYTES <= len(data):
        position += EVENT_HEAD_BYTES + int.from_bytes(data[position + 4 : position + 8], "big")
        if position <= len(data):
            end = position
    return end


async def find_segment(ports: CommitsPorts, number: int) -> SegmentInfo | None:
    """Return how much of a stage is stored; None if it has no segment. Raises StoreError."""
    found: Pending[SegmentInfo] = Pending()
    ports.store.info(ports.segment_of(number), done=found.settle)
    try:
        return await found
    except NoSuchSegment:
        return None


async def resume(ports: CommitsPorts, stage: Stage, source: StagesSource) -> StageSegment:
    """Count the frames and records of an open stage; return its segment, to go on writing.

    Every chunk is checked: the client does not send again what it was told is stored.

    Raises:
        StageLost: Bytes of it are damaged or gone.
        StoreError: It cannot be read now.
    """
    position = sequence = records = 0
    while position < source.size:
        data = await source.read(position)
        parts = parts_of(data, stage.seal_seed)
        if not parts:
            raise StageLost(f"stage {stage.number} is damaged at byte {position}")
        position += len(data)
        sequence += len(parts)
        records += sum(part.records for part in parts)
    segment = StageSegment(ports.store, ports.segment_of(stage.number), ports.usage)
    await segment.go_on(sequence)
    stage.sequence, stage.records = sequence, records
    return segment
