"""Record of a table, and its form in the controller's table."""

import dataclasses
import enum
import json
from dataclasses import dataclass
from typing import Self

from gateway.pravega.controller.epochs import Segment
from gateway.pravega.controller.history import evenly
from gateway.pravega.controller.names import segment_name
from gateway.pravega.controller.tables.names import stream_of


class TableState(enum.Enum):
    """State of a table; those that end in -ING have steps left to do."""

    CREATING = "creating"
    ACTIVE = "active"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """Configuration of a table, which never changes.

    Attributes:
        partitions: Number of its parts.
        primary: Bytes of a primary key.
        secondary: Bytes of a secondary key. Where both are 0, keys have any length.
        rollover_bytes: Size of a file of a part; 0 leaves it to the store.
    """

    partitions: int = 1
    primary: int = 0
    secondary: int = 0
    rollover_bytes: int = 0

    @property
    def key_length(self) -> int:
        """Bytes of a key as the store has it; 0: any."""
        return self.primary + self.secondary


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueTable:
    """A table.

    Attributes:
        first: Number of its first part.
    """

    scope: str
    name: str
    config: TableConfig
    state: TableState
    first: int

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Its parts, with primary keys of the same width."""
        return evenly(self.config.partitions, self.first, 0).made

    @property
    def next_number(self) -> int:
        """The number behind those of its parts."""
        return self.first + self.config.partitions

    @property
    def segment_names(self) -> list[str]:
        """Names of its parts in the store."""
        stream = stream_of(self.name)
        return [segment_name(self.scope, stream, each.identity) for each in self.segments]

    def to_bytes(self) -> bytes:
        """Return the record's form in the controller's table."""
        fields = dataclasses.asdict(self) | {"state": self.state.value}
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` gave."""
        fields = json.loads(data)
        fields["config"] = TableConfig(**fields["config"])
        fields["state"] = TableState(fields["state"])
        return cls(**fields)
