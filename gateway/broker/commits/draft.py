"""A commit before it is written down: its owner, its stages, and a part for each stream."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.broker.commits.batch import BatchRecords
from gateway.broker.commits.commit_order import CommitPart
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import PartRow, part_key
from gateway.broker.commits.sources import RowSource, StagesSource
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stages import Stages
from gateway.broker.errors import PreconditionFailed
from gateway.broker.streams.catalogue import Stream
from gateway.log.unit import pack_blank
from hutch.formats.chunk import seal_seed
from store.api import TableEntry


class DraftPart(Protocol):
    """The part for one stream, before its commit has a number."""

    def entry(self, number: int) -> TableEntry:
        """Return its row in the commit of a number."""
        ...

    def part(self, number: int) -> CommitPart:
        """Return what the commit of this number puts into the stream, ready to be written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A commit before it is written down.

    Attributes:
        user: The user that commits.
        sink: The sink; empty for a commit that is not remembered.
        batch: The batch of the sink.
        stages: The stages that it uses up.
        targets: The streams that are asked for.
        parts: One for each stream that gets records.
        records: Number of records.
        size_bytes: Their size as they are stored.
    """

    user: str
    sink: str = ""
    batch: int = 0
    stages: Sequence[Stage] = ()
    targets: Collection[Stream]
    parts: Sequence[DraftPart]
    records: int
    size_bytes: int

    @property
    def shown(self) -> str:
        """It in words, for errors."""
        if not self.stages and not self.sink:
            return f"a transaction of user {self.user!r}"
        return f"batch {self.batch} of sink {self.sink!r}"


class StagesPart:
    """Stages for one stream."""

    def __init__(self, ports: CommitsPorts, stages: Stages, some: Sequence[Stage]) -> None:
        self._ports = ports
        self._stages = stages
        self._some = some

    def entry(self, number: int) -> TableEntry:
        """Return its row in the commit of a number."""
        first = self._some[0]
        row = PartRow(first.stream, tuple(stage.number for stage in self._some))
        return TableEntry(part_key(number, first.generation), row.pack())

    def part(self, number: int) -> CommitPart:
        """Return what the commit of this number puts into the stream, ready to be written."""
        first = self._some[0]
        source = StagesSource(self._ports, self._stages.data_of, self._some)
        return CommitPart(number, first.stream, first.generation, source)


class ChunkPart:
    """Records for one stream, as the one chunk that they become.

    Attributes:
        size: Bytes of the chunk.
    """

    def __init__(self, ports: CommitsPorts, some: BatchRecords) -> None:
        """Make the chunk. Raises PreconditionFailed: The stream's records fit none."""
        self._ports = ports
        self._stream, self._generation = some.stream.name, some.stream.entry.generation
        seed = seal_seed(ports.streams.storage.names_of(some.stream.entry).data_segment)
        try:
            blank = pack_blank(some.count, some.count, some.data, seal_seed=seed)
        except ValueError as error:
            raise PreconditionFailed(f"stream {self._stream!r}: {error}") from error
        self._chunk = bytes(blank)
        self.size = len(self._chunk)

    def entry(self, number: int) -> TableEntry:
        """Return its row in the commit of a number."""
        row = PartRow(self._stream, chunk_bytes=self.size)
        return TableEntry(part_key(number, self._generation), row.pack(self._chunk))

    def part(self, number: int) -> CommitPart:
        """Return what the commit of this number puts into the stream, ready to be written."""
        key = part_key(number, self._generation)
        source = RowSource(self._ports, key, self.size, self._chunk)
        return CommitPart(number, self._stream, self._generation, source)
