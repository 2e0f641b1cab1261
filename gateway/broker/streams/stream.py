"""A stream of a virtual host, as all its users share it."""

from dataclasses import dataclass, field
from typing import Protocol

from gateway.broker.rules.arguments import StreamArguments
from gateway.broker.rules.policies import Governed
from gateway.broker.streams.catalogue import StreamEntry
from gateway.log.log import StreamLog
from gateway.log.reading.extent import Extent
from gateway.log.reading.retention import Limits
from gateway.pending import Pending
from store.errors import NoSuchSegment


class Watcher(Protocol):
    """A connection, as the streams it uses see it."""

    def stream_gone(self, stream: "Stream") -> None:
        """Drop every publisher and subscription of the stream and tell the client."""
        ...


@dataclass(slots=True, eq=False)
class Stream:
    """A stream that exists.

    Attributes:
        bound_by: Keys, in the catalogue's table, of the bindings that lead to it: they go with it.
        governed: What policies say of it.
    """

    entry: StreamEntry
    arguments: StreamArguments
    log: StreamLog | None = None
    opening: Pending[StreamLog] | None = None
    watchers: set[Watcher] = field(default_factory=set)
    bound_by: set[bytes] = field(default_factory=set)
    is_deleted: bool = False
    limits: Limits | None = None
    """Its limits; None until they are needed (`StreamLogs.limits_of`)."""
    limits_as_of: tuple[object, object] = (None, None)
    """The state of `governed` that they take into account."""
    evaluation: Pending[None] | None = None
    """Under way while what may go is looked for and removed."""
    is_to_be_evaluated: bool = False
    """True if it is to be checked again when that is through."""
    is_ahead_remarked: bool = False
    """True if the log says that its timestamps lie in the future."""
    removed_bytes: int = 0
    """Removed by retention since the log told of it."""
    removal_is_told_at_s: float = 0.0
    """Before then (`time.monotonic`) the log tells of no more."""
    index_garbage: int = 0
    """Entries of the stored index that went since it was truncated."""
    resting: Extent | None = None
    """Bounds that it has while its log is not open; None until they are looked up."""
    governed: Governed = field(init=False)

    def __post_init__(self) -> None:
        self.governed = Governed(self.entry.name)

    @property
    def name(self) -> str:
        """As clients say it."""
        return self.entry.name

    def be_gone(self) -> None:
        """Note that it is deleted; its policies are looked for no more."""
        self.is_deleted = True
        self.governed.end()

    def end_log(self) -> None:
        """End its log, since its data is deleted: the log refers no more to what refers to it."""
        if self.log is not None:
            self.log.fail(NoSuchSegment(f"stream {self.name!r} is deleted"))
