"""The servers behind the endpoints: places of streams, and questions to many streams."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple, TypeVar

from hutch.client.connection import Connection
from hutch.client.errors import BadAnswer, ClientError, Refused, ServerGone, refusal, require_ok
from hutch.client.errors import ServerSilent as Silent
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import OffsetSpec
from pyspark_hutch.client.pool import POOL, Name
from pyspark_hutch.options.connection_settings import BrokerSettings

LOG: Final = logging.getLogger(__name__)

_METADATA_NAMES: Final = 500
"""Names in one Metadata request: a frame of 1 MiB holds some 4,000 of the longest."""

_PAUSE_S_MAX: Final = 30.0
_TRANSIENT: Final = (ServerGone, Silent)

_SUPER: Final = (
    "a super stream of that name does: take superStream (in hutch pipeline --super-stream, or "
    "--to-super-stream)"
)
_PLAIN: Final = (
    "a stream of that name does: take stream (in hutch pipeline leave out --super-stream, or "
    "--to-super-stream)"
)

R = TypeVar("R")
M = TypeVar("M", bound=m.Message)


class Bounds(NamedTuple):
    """The range of offsets that a stream holds.

    Attributes:
        first: The first offset that is there; equal to `next` if nothing is.
        next: The offset behind the last committed one.
        generation: Another one after the stream was deleted and made again; None where the server
            does not say.
        size_bytes: Of the range; None where the server does not say.
    """

    first: int
    next: int
    generation: int | None = None
    size_bytes: int | None = None


class Server(NamedTuple):
    """A server, as it says at login.

    Attributes:
        has_pipeline: Whether it has the commands of pipelines.
        shown: Its address, product and version, for errors.
    """

    has_pipeline: bool
    shown: str


class Cluster:
    """Asks the servers of one set of settings; connections come from the pool of the process."""

    def __init__(
        self, settings: BrokerSettings, name: Name, *, retries_first: bool = False
    ) -> None:
        """Keep the settings.

        Args:
            settings: Addresses, credentials and time limits.
            name: Of the connections, as administrators see them.
            retries_first: Whether a server that has never answered is worth more than one try.
        """
        self.settings: Final = settings
        self.name: Final = name
        self._is_known = retries_first

    @contextmanager
    def connection(self, endpoint: Endpoint | None = None) -> Iterator[Connection]:
        """Lend a connection to one server, or to the first endpoint that accepts us."""
        with ExitStack() as stack:
            if endpoint is not None:
                yield stack.enter_context(POOL.connection(endpoint, self.settings, self.name))
                return
            failures: list[str] = []
            for candidate in self.settings.endpoints:
                lent = POOL.connection(candidate, self.settings, self.name)
                try:
                    connection = stack.enter_context(lent)
                except _TRANSIENT as error:
                    failures.append(str(error))
                    continue
                yield connection
                return
            raise ServerGone("; ".join(failures))

    def retried(self, what: str, work: Callable[[], R]) -> R:
        """Do some work again after a lost connection, as often as the settings allow.

        Args:
            what: The work in words, for the log line that each further try gets.
            work: Connects anew each time.
        """
        pauses = self.pauses()
        while True:
            try:
                found = work()
            except _TRANSIENT as error:
                pause_s = next(pauses, None) if self._is_known else None
                if pause_s is None:
                    raise
                LOG.warning("%s: %s; another try in %.1f s", what, error, pause_s)
                time.sleep(pause_s)
            else:
                self._is_known = True
                return found

    def pauses(self) -> Iterator[float]:
        """Yield the seconds to wait before each further try, each time twice as many."""
        pause_s = self.settings.planner_retry_interval_ms / 1000
        for _ in range(self.settings.planner_retries):
            yield pause_s
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def server(self) -> Server:
        """Return the server's description of itself, from the login."""

        def ask() -> Server:
            with self.connection() as connection:
                said = connection.peer_properties
                product = " ".join(filter(None, (said.get("product"), said.get("version"))))
                return Server(connection.has_pipeline, f"{connection.endpoint} ({product})")

        return self.retried("what the server can do", ask)

    def partitions(self, super_stream: str) -> tuple[str, ...]:
        """Return the streams of a super stream, in their order."""
        reply = self._partitions(super_stream)
        if reply.code == ResponseCode.STREAM_DOES_NOT_EXIST:
            raise self.missing(super_stream, is_super=True)
        require_ok(f"super stream {super_stream!r}", reply.code)
        return reply.streams

    def _partitions(self, super_stream: str) -> m.StreamsReply:
        about = f"partitions of {super_stream!r}"
        return self.ask(about, m.StreamsReply, "partitions", m.Partitions(super_stream))

    def ask(self, about: str, kind: type[M], name: str, request: m.Message) -> M:
        """Ask any of the servers, again after a lost connection; return the answer.

        Args:
            about: The request in words, for the log line that each further try gets.
            kind: Class of the answer; another one is a BadAnswer.
            name: Of the command.
            request: Its message.
        """

        def work() -> M:
            with self.connection() as connection:
                return connection.ask(kind, name, request)

        return self.retried(about, work)

    def missing(self, name: str, *, is_super: bool = False) -> ClientError:
        """Return the error for a stream that is not there; ask whether one of the other kind is.

        Args:
            name: The name.
            is_super: Whether it was to be that of a super stream.
        """
        about = f"{'super ' if is_super else ''}stream {name!r}"
        found: Sequence[str] | Mapping[str, Endpoint] = ()
        with suppress(ClientError):  # the first error is the one to tell
            if is_super:
                found = self.leaders([name], skips_missing=True)
            else:
                found = self._partitions(name).streams
        error = refusal(about, ResponseCode.STREAM_DOES_NOT_EXIST)
        if not found:
            return error
        other = _PLAIN if is_super else _SUPER
        return Refused(f"{error}, but {other}", ResponseCode.STREAM_DOES_NOT_EXIST)

    def leaders(
        self, streams: Sequence[str], *, skips_missing: bool = False
    ) -> dict[str, Endpoint]:
        """Return where each stream is to be read.

        Args:
            streams: Their names.
            skips_missing: Whether a stream that does not exist is left out; else it is Refused.
        """
        found = self.retried("where streams live", lambda: self._leaders(streams))
        for name in streams if not skips_missing else ():
            if name not in found:
                raise self.missing(name)
        return found

    def _leaders(self, streams: Sequence[str]) -> dict[str, Endpoint]:
        requests: list[tuple[str, m.Message]] = [
            ("metadata", m.Metadata(tuple(streams[first : first + _METADATA_NAMES])))
            for first in range(0, len(streams), _METADATA_NAMES)
        ]
        with self.connection() as connection:
            replies = list(connection.requests(requests))
        codes: dict[str, int] = {}
        found: dict[str, Endpoint] = {}
        for reply in replies:
            if not isinstance(reply, m.MetadataReply):
                raise BadAnswer(f"{connection.endpoint} answered metadata with {reply}")
            brokers = {one.reference: Endpoint(one.host, one.port) for one in reply.brokers}
            for stream in reply.streams:
                codes[stream.stream] = stream.code
                if stream.leader in brokers:
                    is_followed = self.settings.advertised
                    leader = brokers[stream.leader] if is_followed else connection.endpoint
                    found[stream.stream] = leader
        return {name: found[name] for name in streams if _has_leader(name, codes.get(name), found)}

    def bounds(self, leaders: Mapping[str, Endpoint]) -> dict[str, Bounds]:
        """Return the range that each stream holds now."""
        asked = [(stream, m.StreamStats(stream)) for stream in leaders]
        replies = self.ask_leaders(leaders, "stream_stats", asked)
        return {
            stream: _bounds(stream, reply)
            for (stream, _), reply in zip(asked, replies, strict=True)
        }

    def resolve(
        self, leaders: Mapping[str, Endpoint], places: Iterable[tuple[str, OffsetSpec]]
    ) -> list[int]:
        """Return the first offset of the chunk where reading from each place would begin."""
        asked = [(stream, m.ResolveOffsetSpec(stream, place, {})) for stream, place in places]
        found = []
        replies = self.ask_leaders(leaders, "resolve_offset_spec", asked)
        for (stream, _), reply in zip(asked, replies, strict=True):
            if not isinstance(reply, m.ResolvedOffset):
                raise BadAnswer(f"stream {stream!r}: an offset was answered with {reply}")
            require_ok(f"stream {stream!r}", reply.code)
            found.append(reply.offset)
        return found

    def ask_leaders(
        self,
        leaders: Mapping[str, Endpoint],
        name: str,
        asked: Sequence[tuple[str, m.Message]],
    ) -> list[m.Message]:
        """Send requests about streams, each to its stream's leader, many before the first answer.

        Args:
            leaders: Where each stream lives.
            name: Of the command.
            asked: Stream and request.

        Returns:
            The answers, in the order of the requests.
        """
        by_leader: dict[Endpoint, list[int]] = {}
        for index, (stream, _) in enumerate(asked):
            by_leader.setdefault(leaders[stream], []).append(index)
        answers: dict[int, m.Message] = {}
        for leader, indexes in by_leader.items():
            requests = [(name, asked[index][1]) for index in indexes]
            answers.update(zip(indexes, self._ask(leader, requests), strict=True))
        return [answers[index] for index in range(len(asked))]

    def _ask(self, leader: Endpoint, requests: Sequence[tuple[str, m.Message]]) -> list[m.Message]:
        def ask() -> list[m.Message]:
            with self.connection(leader) as connection:
                return list(connection.requests(requests))

        return self.retried(f"questions to {leader}", ask)


def bounds_by(connection: Connection, stream: str) -> Bounds:
    """Return the range that a stream holds now, by the server of a connection."""
    return _bounds(stream, connection.request("stream_stats", m.StreamStats(stream)))


def _has_leader(stream: str, code: int | None, found: Mapping[str, Endpoint]) -> bool:
    """Return False for a stream that does not exist; raise for one that cannot be used."""
    if code is None:
        raise BadAnswer(f"no answer says where stream {stream!r} lives")
    if code == ResponseCode.STREAM_DOES_NOT_EXIST:
        return False
    require_ok(f"stream {stream!r}", code)
    if stream not in found:
        raise ServerGone(f"stream {stream!r} has no leader now")
    return True


def _bounds(stream: str, reply: m.Message) -> Bounds:
    if not isinstance(reply, m.StreamStatsReply):
        raise BadAnswer(f"stream {stream!r}: statistics were answered with {reply}")
    require_ok(f"stream {stream!r}", reply.code)
    numbers = reply.statistics
    if "committed_offset" not in numbers:
        raise ClientError(
            f"stream {stream!r}: the broker's statistics lack committed_offset, which reading "
            "needs; RabbitMQ has it from 4.3 on"
        )
    following = numbers["committed_offset"] + 1
    first = numbers.get("first_chunk_id", -1)
    if first < 0:
        first = following
    if not 0 <= first <= following:
        raise ServerGone(f"stream {stream!r} ends before it begins, says its server: {reply}")
    return Bounds(first, following)
