"""A connection of the stream client, which waits, in an event loop, which does not.

The client sends and asks in one piece: up to its time limit it holds up the loop, which is that of
one route. What a server pushes is taken as it comes.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self, TypeVar

from gateway.bridge.ends import E, EndLink, EndUnreachable, RouteEnd
from gateway.bridge.routes import End
from hutch.client import ClientError, Connection, Endpoint, ServerSilent
from hutch.client.channel import BEATS
from hutch.client.connection import Confirmed, DeliveredChunk
from hutch.client.login import ServerUrl, connect, described
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode, in_words
from hutch.stream.commands import BY_NAME
from hutch.stream.offsets import OffsetSpec

TIMEOUT_S: Final = 60.0
"""A server with a full disk takes nothing for long."""
CONNECT_S: Final = 10.0
SILENT_BEATS: Final = 2.5
"""Heartbeats without a byte from the server, after which it is given up."""
_RESOLVE: Final = BY_NAME["resolve_offset_spec"].key

T = TypeVar("T")
M = TypeVar("M", bound=m.Message)
Take = Callable[["StreamLink", DeliveredChunk | Confirmed | m.Message], None]


class StreamLink(EndLink):
    """A connection whose frames a loop takes.

    Attributes:
        client: The client's connection.
    """

    def __init__(self, end: End, client: Connection, take: Take) -> None:
        """Take messages that the server pushes, from now on."""
        super().__init__(end)
        self.client: Final = client
        self._loop: Final = asyncio.get_running_loop()
        self._take = take
        self._heard_at = time.monotonic()
        self._loop.add_reader(client.fileno(), self._ready)
        self._beat()

    @classmethod
    async def to(cls, end: End, endpoint: Endpoint, route: str, take: Take) -> Self:
        """Connect to one of the servers of an end, and log in. Raises Unreachable."""
        shown = described("hutch bridge", f"hutch bridge, route {route}")

        def make() -> Connection:
            login = replace(ServerUrl.of(end.uri).login, properties=shown)
            client = Connection(endpoint, connect(endpoint, CONNECT_S, tls=end.tls()), TIMEOUT_S)
            try:
                client.log_in(login)
            except BaseException:
                client.disconnect()
                raise
            return client

        try:
            return cls(end, await asyncio.to_thread(make), take)
        except (ClientError, OSError) as error:
            raise EndUnreachable(f"{end.name}: {error}") from None

    def do(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:  # noqa: ANN401  # the work's
        """Do some work of the client; messages that come are taken later. Raises Unreachable."""
        if self.lost.done():
            self.lost.result()
        try:
            return work(*arguments, **named)
        except ClientError as error:
            raise self.unreachable(error) from None
        finally:
            self._loop.call_soon(self._drain)

    def send(self, work: Callable[..., object], *arguments: object) -> None:
        """Send something by the client. Raises Unreachable."""
        try:
            work(*arguments)
        except ClientError as error:
            raise self.unreachable(error) from None
        if self.client.inbox:
            self._loop.call_soon(self._drain)

    def ask(self, kind: type[M], name: str, question: m.Message) -> M:
        """Return the server's answer. Raises Unreachable."""
        answer: M = self.do(self.client.ask, kind, name, question)
        return answer

    @cached_property
    def resolves(self) -> bool:
        """True if the server tells where reading would begin, as RabbitMQ does from 4.3 on."""
        question = m.ExchangeCommandVersions(())
        known = self.ask(m.CommandVersionsReply, "exchange_command_versions", question).commands
        return _RESOLVE in {command.key for command in known}

    def place_of(self, stream: str, spec: OffsetSpec) -> int:
        """Return the first offset of the chunk where reading would begin."""
        question = m.ResolveOffsetSpec(stream, spec, {})
        reply = self.ask(m.ResolvedOffset, "resolve_offset_spec", question)
        if reply.code != ResponseCode.OK:
            raise EndUnreachable(f"{self.end.name}: stream {stream!r}: {in_words(reply.code)}")
        return reply.offset

    def fail(self, error: BaseException) -> None:
        """End the connection, and all that waits for it."""
        self._disconnect()
        super().fail(error)

    async def close(self) -> None:
        """Disconnect, with a goodbye if nothing is wrong."""
        self._disconnect()

    def _disconnect(self) -> None:
        if self.client.fileno() >= 0:
            self._loop.remove_reader(self.client.fileno())
            self.client.timeout_s = 1.0
            with suppress(ClientError, OSError):
                self.client.close()

    def _ready(self) -> None:
        self._heard_at = time.monotonic()
        self._drain()

    def _drain(self) -> None:
        """Take all that has come: TLS and the client keep bytes that no loop sees."""
        try:
            while self.client.fileno() >= 0:
                self._take(self, self.client.pushed(0.0))
        except ServerSilent:
            pass
        except Exception as error:  # noqa: BLE001  # it would be heard of nowhere else
            self.fail(error)

    def _beat(self) -> None:
        heartbeat_s = self.client.heartbeat_s
        if not heartbeat_s or self.client.fileno() < 0:
            return
        if time.monotonic() - self._heard_at > SILENT_BEATS * heartbeat_s:
            self.fail(ClientError("the server is silent"))
            return
        with suppress(ClientError):  # the next read tells
            self.client.beat()
        self._loop.call_later(heartbeat_s / BEATS, self._beat)


class StreamEnd(RouteEnd[E]):
    """An end at servers of streams; it is connected to each that leads one of its streams.

    Attributes:
        leaders: The connection for each stream, in the order of partitions.
    """

    leaders: dict[str, StreamLink]

    def taken(self, _link: StreamLink, pushed: DeliveredChunk | Confirmed | m.Message) -> None:
        """Take what a server pushes. Raises Unreachable if a stream has gone."""
        if isinstance(pushed, m.MetadataUpdate):
            raise EndUnreachable(f"stream {pushed.stream!r}: {in_words(pushed.code)}")

    async def first(self) -> StreamLink:
        """Connect to the server that the route names. Raises Unreachable."""
        return await self._link(ServerUrl.of(self.end.uri).endpoint)

    async def streams(self) -> tuple[str, ...]:
        """Return the end's streams: none for a super stream that does not exist."""
        if stream := getattr(self.end, "stream", None):
            return (stream,)
        question = m.Partitions(getattr(self.end, "super_stream", ""))
        reply = (await self.first()).ask(m.StreamsReply, "partitions", question)
        if reply.code not in (ResponseCode.OK, ResponseCode.STREAM_DOES_NOT_EXIST):
            raise EndUnreachable(f"{self.end.name}: {in_words(reply.code)}")
        return reply.streams

    async def connect(self, streams: Sequence[str]) -> None:
        """Connect to the leaders of streams. Raises Unreachable, as for a missing stream."""
        if not streams:
            raise EndUnreachable(f"{self.end.name} does not exist")
        first = await self.first()
        reply = first.ask(m.MetadataReply, "metadata", m.Metadata(streams))
        brokers = {broker.reference: broker for broker in reply.brokers}
        here = first.client.open_properties
        found: dict[str, StreamLink] = {}
        for told in reply.streams:
            broker = brokers.get(told.leader)
            if told.code != ResponseCode.OK or broker is None:
                words = "has no leader" if told.code == ResponseCode.OK else in_words(told.code)
                raise EndUnreachable(f"{self.end.name}: stream {told.stream!r}: {words}")
            place = {"advertised_host": broker.host, "advertised_port": str(broker.port)}
            is_here = all(here.get(key, value) == value for key, value in place.items())
            leader = first if is_here else await self._link(Endpoint(broker.host, broker.port))
            found[told.stream] = leader
        self.leaders = {stream: found[stream] for stream in streams}

    async def _link(self, endpoint: Endpoint) -> StreamLink:
        for link in self.links:
            if isinstance(link, StreamLink) and link.client.endpoint == endpoint:
                return link
        made = await StreamLink.to(self.end, endpoint, self.route.name, self.taken)
        self.links.append(made)
        return made
