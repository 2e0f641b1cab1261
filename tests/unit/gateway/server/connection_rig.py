"""A connection without a socket: the test feeds its edge, and says when time passes.

With the store in memory nothing happens on a thread, so that "nothing is left to do" can be told.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from gateway.server.connections.connection import Connection
from gateway.server.connections.edge import Owner, PlainEdge
from gateway.server.connections.shared import Shared
from gateway.server.front import ConnectionLimits, Region
from gateway.server.loop.schedule import Schedule
from gateway.stream.front import StreamFront, StreamKind
from gateway.stream.link import Link
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, decode_reply
from store.api import SegmentStore
from tests.chunks import publish_body
from tests.conformance.harness import Loop
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.stream.link_rig import Broker

MIB = 1 << 20
AT_ONCE_S = 0.002
"""When a first chunk is on its way, which waits for a moment."""


class Timer:
    """What `call_later` returns."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class TimedLoop(Loop):
    """A loop with timers; its clock stands still until `pass_time`."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._timers: list[tuple[float, int, Timer, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer:
        timer = Timer()
        entry = (self.now_s + delay_s, next(self._numbers), timer, lambda: callback(*args))
        heapq.heappush(self._timers, entry)
        return timer

    def run_all(self) -> None:
        """Turn until nothing is left to do; timers that are due count."""
        while self._ready or self._due():
            self.turn()

    def turn(self) -> None:
        """Let timers go off that are due, then run what is ready now."""
        while (entry := self._due()) is not None:
            heapq.heappop(self._timers)
            if not entry[2].is_cancelled:
                entry[3]()
        super().turn()

    def _due(self) -> tuple[float, int, Timer, Callable[[], object]] | None:
        if self._timers and self._timers[0][0] <= self.now_s:
            return self._timers[0]
        return None

    def pass_time(self, seconds: float) -> None:
        """Let timers go off in their order."""
        end_s = self.now_s + seconds
        self.run_all()
        while self._timers and self._timers[0][0] <= end_s:
            self.now_s = self._timers[0][0]
            self.run_all()
        self.now_s = end_s

    @property
    def timer_count(self) -> int:
        """Timers that wait and are not cancelled."""
        return sum(not timer.is_cancelled for _, _, timer, _ in self._timers)


@dataclass(eq=False)
class Edge(PlainEdge):
    """A socket that takes everything, or so many bytes."""

    takes_regions: bool = False
    room: int = 1 << 62
    """How many bytes the peer takes until it reads again."""
    sent: bytearray = field(default_factory=bytearray)
    is_reading: bool = False
    is_closed: bool = False
    """FIN was sent, or the connection was cut."""
    is_aborted: bool = False
    owner: Owner | None = None
    _unsent: list[bytes] = field(default_factory=list)
    _closes_when_sent: bool = False

    def __post_init__(self) -> None:
        self.received_bytes = self.sent_bytes = 0

    @property
    def is_drained(self) -> bool:
        return not self._unsent

    def start(self, owner: Owner) -> None:
        self.owner = owner
        self.resume_reading()

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = not self.is_closed and not self._closes_when_sent

    def write(self, frame: bytes | memoryview) -> None:
        if not self.is_closed:
            self._unsent.append(bytes(frame))

    def write_region(self, region: Region) -> None:
        raise AssertionError(region)

    def flush(self) -> bool:
        if self.is_closed:
            return False
        while self._unsent:
            piece = self._unsent[0][: self.room]
            self.sent += piece
            self.sent_bytes = len(self.sent)
            self.room -= len(piece)
            rest = self._unsent[0][len(piece) :]
            if rest:
                self._unsent[0] = rest
                return False
            self._unsent.pop(0)
        if self._closes_when_sent:
            self._end()
        return True

    def reads(self, size: int) -> None:
        """The peer reads: there is room for so many bytes more."""
        self.room += size
        was_full = not self.is_drained
        if self.flush() and was_full and self.owner is not None and not self.is_closed:
            self.owner.writable()

    def left_bytes(self) -> int:
        return sum(map(len, self._unsent))

    def close_when_sent(self) -> None:
        self.pause_reading()
        self._closes_when_sent = True
        if self.is_drained:
            self._end()

    def abort(self) -> None:
        self.is_aborted = True
        self._unsent.clear()
        self._end()

    def _end(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.is_reading = False
            owner, self.owner = self.owner, None
            if owner is not None:
                owner.lost()


class Server:
    """What connections share: a broker on a store in memory, or on a real one."""

    def __init__(
        self,
        directory: Path,
        *,
        open_store: Callable[[Loop, Path], SegmentStore] | None = None,
        receive_buffer_bytes: int = 64 * 1024,
        refusal_delay_ms: int = 3_000,
        consumer_update_timeout_ms: int = 60_000,
        **settings: Any,  # noqa: ANN401 - those of Limits and LinkSettings
    ) -> None:
        self.loop = TimedLoop()
        self.broker = Broker(
            directory,
            refusal_delay_ms=refusal_delay_ms,
            consumer_update_timeout_ms=consumer_update_timeout_ms,
            open_store=open_store or (lambda loop, _: ModelStore(loop, Model())),
            loop=self.loop,
        )
        limits = ConnectionLimits(
            close_timeout_ms=settings.pop("end_timeout_ms", 10_000),
            unconfirmed_max=settings.pop("unconfirmed_max", 50_000),
            unconfirmed_resume=settings.pop("unconfirmed_resume", 40_000),
            backlog_pause_bytes=settings.pop("backlog_pause_bytes", MIB),
            backlog_bytes_max=settings.pop("backlog_bytes_max", 16 * MIB),
        )
        loop: Any = self.loop
        host = self.broker.host
        link_settings = replace(host.settings, **settings)
        self.kind = StreamKind(replace(host, settings=link_settings), limits)
        self.closed: list[Connection] = []
        self.shared = Shared(
            loop=loop,
            schedule=Schedule(loop),
            receive_buffer=bytearray(receive_buffer_bytes),
            scratch=bytearray(MIB),
            say=host.authentication.refusals.say,
        )

    def connect(self) -> "Client":
        return Client(self)

    def close(self) -> None:
        self.broker.close()


class Client:
    """A peer: bytes in, frames out."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.loop = server.loop
        self.edge = Edge()
        edge = cast(PlainEdge, self.edge)
        self.connection = Connection(
            server.shared, server.kind, edge, self, "127.0.0.1:50000", is_loopback=True
        )
        front = self.connection.front
        assert isinstance(front, StreamFront)
        self.link: Link = front.link
        self.connection.start(self.connection)
        self._taken = 0

    def logged_in(self, edge: PlainEdge) -> None:
        """The connection says that its client is no stranger any more."""

    def closed(self, connection: Connection) -> None:
        """The connection says that it is over."""
        self.server.closed.append(connection)

    def feed(self, data: bytes, pieces: Iterable[int] = ()) -> int:
        """Send bytes in pieces, as far as they are read; gives how many were."""
        sizes = iter(pieces)
        position = 0
        while position < len(data):
            self.loop.run_all()
            if not self.edge.is_reading or self.edge.owner is None:
                break
            place = self.edge.owner.place()
            size = min(next(sizes, len(data)), len(place), len(data) - position)
            place[:size] = data[position : position + size]
            del place  # a view keeps its buffer from growing
            position += size
            self.edge.received_bytes += size
            self.edge.owner.received(size)
        return position

    def send(self, data: bytes) -> None:
        """Send bytes, and let happen what they lead to at once."""
        self.feed(data)
        self.loop.pass_time(AT_ONCE_S)

    def is_over(self) -> bool:
        """Whether the server has ended the connection."""
        return self.edge.is_closed

    def is_read(self) -> bool:
        """Whether the server would read what is sent."""
        return self.edge.is_reading

    def frames(self) -> list[bytes]:
        """The frames that were sent and not taken yet, without their sizes."""
        found: list[bytes] = []
        sent = self.edge.sent
        while self._taken + 4 <= len(sent):
            end = self._taken + 4 + int.from_bytes(sent[self._taken : self._taken + 4])
            if end > len(sent):
                break
            found.append(bytes(sent[self._taken + 4 : end]))
            self._taken = end
        return found

    def received(self) -> list[Decoded]:
        table = self.link.session.table
        return [decode_reply(frame, table) for frame in self.frames()]


def publish(*entries: tuple[int, bytes], publisher_id: int = 0) -> bytes:
    body = b"\0\2\0\1" + publish_body(publisher_id, entries)
    return len(body).to_bytes(4) + body


def names(client: Client) -> list[str]:
    return [frame.command.name for frame in client.received()]


def declare(client: Client, reference: str = "") -> None:
    client.send(frame_of("declare_publisher", m.DeclarePublisher(0, reference, "s")))
    assert names(client) == ["declare_publisher"]
