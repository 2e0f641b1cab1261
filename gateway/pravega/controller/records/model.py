"""Records of streams and transactions, and their form in the controller's table.

A record also says which change of it is under way: `StreamState`. So a change that was cut short
by the end of the process can be finished by the next one.
"""

import dataclasses
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from gateway.pravega.controller.records.epochs import Epoch, History, StreamSegment
from gateway.pravega.names import segment_name


class StreamState(enum.Enum):
    """State of a stream; those that end in -ING have steps left to do."""

    CREATING = "creating"
    ACTIVE = "active"
    UPDATING = "updating"
    SCALING = "scaling"
    TRUNCATING = "truncating"
    SEALING = "sealing"
    SEALED = "sealed"
    DELETING = "deleting"

    @property
    def is_settled(self) -> bool:
        """No step is left to do."""
        return self in {StreamState.ACTIVE, StreamState.SEALED}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPolicy:
    """Configuration of a stream, in Pravega's numbers.

    Attributes:
        scale_type: 0 a fixed number of segments, 1 KB/s, 2 events/s.
        rate: KB/s or events/s of a segment.
        factor: Parts into which a busy segment is split.
        segments: Number of segments at creation.
        retention_type: 0 none, 1 time, 2 size.
        retention: Milliseconds or bytes that are kept.
        retention_max: The most that is kept, of the same unit.
        tags: For finding streams.
        aggregation_ms: Time limit of writers that note times.
        rollover_bytes: Size of a file of a segment; 0 leaves it to the store.
    """

    scale_type: int = 0
    rate: int = 0
    factor: int = 0
    segments: int = 1
    retention_type: int = 0
    retention: int = 0
    retention_max: int = 0
    tags: tuple[str, ...] = ()
    aggregation_ms: int = 0
    rollover_bytes: int = 0

    @property
    def is_state(self) -> bool:
        """True if a stream may hold a state of clients: it is one segment, and keeps everything."""
        return self.scale_type == 0 and self.segments == 1 and self.retention_type == 0


@dataclass(frozen=True, kw_only=True)
class StreamRecord:
    """A stream.

    Attributes:
        history: Its segments.
        coming: The epoch that a scaling makes.
        cut: Where the stream begins: offsets by segments. Empty: at its first segments' starts.
        first_number: The number of its first segment.
    """

    scope: str
    name: str
    policy: StreamPolicy
    state: StreamState
    history: History
    coming: Epoch | None = None
    cut: Mapping[int, int] = dataclasses.field(default_factory=dict)
    first_number: int = 0

    @cached_property
    def given_up(self) -> set[int]:
        """The segments of which nothing is left."""
        return self.history.before(self.cut)

    @property
    def held_by_commits(self) -> int:
        """Number of segments that hold data and were opened by commits."""
        return len(self.history.of_commits - self.given_up)

    def segment_name(self, identity: int) -> str:
        """Return a segment's name in the store."""
        return segment_name(self.scope, self.name, identity)

    def to_bytes(self) -> bytes:
        """Return the record's form in the table."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields["policy"] = dataclasses.asdict(self.policy)
        fields["history"] = self.history.epochs
        return json.dumps(fields, default=_value_of).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        fields["policy"]["tags"] = tuple(fields["policy"]["tags"])
        fields["policy"] = StreamPolicy(**fields["policy"])
        fields["state"] = StreamState(fields["state"])
        fields["history"] = History(tuple(map(_epoch, fields["history"])))
        fields["coming"] = fields["coming"] and _epoch(fields["coming"])
        fields["cut"] = {int(identity): offset for identity, offset in fields["cut"].items()}
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A deleted stream, as far as it is remembered.

    Attributes:
        next_number: The number behind those of all its segments.
        last: The segments that it had when it ended.
    """

    scope: str
    name: str
    next_number: int
    last: tuple[StreamSegment, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the record's form in the table."""
        return _packed(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        fields["last"] = tuple(StreamSegment(*each) for each in fields["last"])
        return cls(**fields)


class TransactionState(enum.IntEnum):
    """State of a transaction, in Pravega's numbers."""

    OPEN = 1
    COMMITTING = 2
    COMMITTED = 3
    ABORTING = 4
    ABORTED = 5

    @property
    def is_over(self) -> bool:
        """Nothing more will happen to it."""
        return self in {TransactionState.COMMITTED, TransactionState.ABORTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecord:
    """A transaction of a stream.

    Attributes:
        identity: 128 bits; the upper 32 are the epoch that it belongs to.
        lease_ms: Time without a ping after which it is aborted.
        began_ms: When it began, or was settled.
        back_to: Epoch whose ranges the stream gets back when the commit is through: a commit to
            segments that have been scaled away opens such segments for its time.
        user: The user that began it; '' where there are none.
        shape: The segments of its epoch, until it is over, so that the stream may forget them.
        ended_ms: When it was over.
    """

    scope: str
    stream: str
    identity: int
    state: TransactionState
    lease_ms: int
    began_ms: int
    back_to: int | None = None
    user: str = ""
    shape: tuple[StreamSegment, ...] = ()
    ended_ms: int = 0

    @property
    def epoch(self) -> int:
        """The epoch whose segments it writes beside."""
        return self.identity >> 96

    def to_bytes(self) -> bytes:
        """Return the record's form in the table."""
        return _packed(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        fields = json.loads(data)
        fields["state"] = TransactionState(fields["state"])
        fields["shape"] = tuple(StreamSegment(*each) for each in fields["shape"])
        return cls(**fields)


def _packed(record: TransactionRecord | Ended) -> bytes:
    return json.dumps(dataclasses.asdict(record), default=_value_of).encode()


def _value_of(member: StreamState) -> str:
    return member.value


def _epoch(fields: list[Any]) -> Epoch:
    number, at_ms, made, ended, of_commit = fields
    return Epoch(
        number, at_ms, tuple(StreamSegment(*each) for each in made), tuple(ended), of_commit
    )
