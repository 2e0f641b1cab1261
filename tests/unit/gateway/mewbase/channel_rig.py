"""mewbase's protocol without a socket: real frames and channels, ports that remember."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import bson

from gateway.broker.access.authentication import Authentication
from gateway.broker.access.model import User, UserPermission
from gateway.log.records.openings import OpeningRoom
from gateway.mewbase.binders.binders import open_binders
from gateway.mewbase.front import MewbaseFront
from gateway.mewbase.link import ChannelLink, MewbaseContext
from gateway.mewbase.sources import EventReading
from gateway.mewbase.subscription import ChannelSubscription
from gateway.pending import Pending
from gateway.server.front import DeliverySource
from gateway.settings.mewbase import MewbaseSettings
from tests.mewbase_client import frame
from tests.unit.gateway.stream.link_rig import MIB, Broker, Ports

T = TypeVar("T")
Fields = dict[str, Any]


@dataclass(eq=False)
class ChannelPorts(Ports):
    """A connection of the protocol as its front sees it."""

    open_commands: int = 0
    sources: list[DeliverySource] = field(default_factory=list)
    """Those that have been woken, each once."""
    is_finished: bool = False
    is_admitted: bool = False
    heartbeats: list[int] = field(default_factory=list)

    def begin_command(self) -> None:
        self.open_commands += 1

    def end_command(self) -> None:
        self.open_commands -= 1

    def logged_in(self) -> None:
        assert not self.is_admitted

    def admitted(self) -> None:
        self.is_admitted = True

    def finish(self) -> None:
        self.is_finished = True

    def limit(self, delay_ms: int, step: str) -> None:
        assert delay_ms > 0, step

    def beat(self, interval_s: int, send: Callable[[], object]) -> None:
        send()
        self.heartbeats.append(interval_s)

    def wake(self, source: DeliverySource) -> None:
        if source not in self.sources:
            self.sources.append(source)


class ChannelRig:
    """The parts that all connections of the protocol share."""

    def __init__(self, broker: Broker, **settings: Any) -> None:  # noqa: ANN401 - of any kind
        self.broker = broker
        self.settings = MewbaseSettings(**settings)
        self.reading = EventReading(self.wait, OpeningRoom(64 * MIB, self.in_thread, self.wait))
        opening = open_binders(
            broker.store_rig.store,
            broker.virtual_host,
            self.settings,
            [],
            {},
            reading=self.reading,
            thread_of=lambda _name: self.in_thread,
        )
        self.binders = broker.store_rig.run(opening)

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled in the next turn; anything longer is never over."""
        pending: Pending[None] = Pending()
        if not delay_ms:
            self.broker.loop.call_soon(pending.settle, None)
        return pending

    def in_thread(self, work: Callable[[], T]) -> Pending[T]:
        done: Pending[T] = Pending()
        self.broker.loop.call_soon(lambda: done.settle(work()))
        return done

    def client(
        self,
        *,
        authentication: Authentication | None = None,
        is_loopback: bool = True,
        has_room: bool = True,
    ) -> ChannelClient:
        """Return a client that has not logged in."""
        broker = self.broker
        context = MewbaseContext(
            access=broker.access,
            authentication=authentication or broker.host.authentication,
            connections=broker.connections,
            virtual_hosts=broker.virtual_hosts.find,
            service=broker.service,
            has_room=lambda: has_room,
            binders=self.binders,
            reading=self.reading,
            settings=self.settings,
        )
        return ChannelClient(broker, context, ChannelPorts(peer_is_loopback=is_loopback))

    def guest(self) -> ChannelClient:
        """Return a client that has logged in as guest."""
        client = self.client()
        assert client.ask("CONNECT", **GUEST) == {"ok": True}
        return client

    def allow(self, user: str, *, write: str = "", read: str = "") -> None:
        """Let a user, which there may not be yet, write to and read some channels."""
        broker, guest = self.broker, self.broker.access.user("guest")
        assert guest is not None
        broker.store_rig.run(broker.access.put_user(User(user, guest.password_hash)))
        permission = UserPermission(
            user=user, virtual_host="/", configure="", write=write, read=read
        )
        broker.store_rig.run(broker.access.put_permission(permission))


GUEST: Fields = {"version": "0.1", "authInfo": {"username": "guest", "password": "guest"}}


class ChannelClient:
    """One client, and what it was sent."""

    def __init__(self, broker: Broker, context: MewbaseContext, ports: ChannelPorts) -> None:
        self.broker = broker
        self.ports = ports
        self.front = MewbaseFront(context, ports)
        self.front.start()

    @property
    def link(self) -> ChannelLink:
        """The connection as handlers see it."""
        return self.front.link

    def hand_in(self, kind: str, **fields: object) -> None:
        """Hand in a frame, and wait for nothing."""
        buffer = bytearray(frame(kind, fields))
        assert self.front.take(buffer, 0, len(buffer)) == len(buffer)

    def finish(self) -> None:
        """Turn until every request that was handed in is through."""
        self.broker.loop.run_until(lambda: not self.ports.open_commands)

    def send(self, kind: str, **fields: object) -> None:
        """Hand in a frame, and see it through."""
        self.hand_in(kind, **fields)
        self.finish()

    def taken(self) -> list[tuple[str, Fields]]:
        """Take away the frames that were sent: the type of each, and its fields."""
        frames, self.ports.frames = self.ports.frames, []
        found: list[tuple[str, Fields]] = []
        for data in frames:
            position = 0
            while position < len(data):  # several may have been sent as one
                size = int.from_bytes(data[position : position + 4], "little")
                document = bson.decode(data[position : position + size])
                found.append((document["type"], document["frame"]))
                position += size
        return found

    def ask(self, kind: str, **fields: object) -> Fields:
        """Hand in a frame; return the fields of the only one that was sent for it."""
        self.send(kind, **fields)
        self.broker.loop.run_until(lambda: bool(self.ports.frames))
        ((_, answer),) = self.taken()
        return answer

    def publish(self, channel: str, *events: Fields) -> None:
        """Publish events, each of which is stored."""
        for event in events:
            assert self.ask("PUB", channel=channel, event=event, rID=1) == {"rID": 1, "ok": True}

    def subscribe(self, channel: str, **fields: object) -> ChannelSubscription:
        """Subscribe; from the first position, if no other is given."""
        answer = self.ask("SUBSCRIBE", **{"channel": channel, "rID": 2, "startPos": 0} | fields)
        assert answer["ok"] is True, answer
        return self.link.subscriptions[answer["subID"]]

    def sent(self) -> list[Fields]:
        """Ask woken sources until they give nothing now; return the events that were sent."""
        while self.ports.sources:
            source = self.ports.sources.pop(0)
            while (piece := source.next(bytearray())) is not None or source.is_sifting:
                if piece is not None:
                    self.ports.send(piece.head)
        return [fields for kind, fields in self.taken() if kind == "RECEV"]

    def sent_until(self, is_over: Callable[[], object]) -> list[Fields]:
        """Turn until something holds; return the events that were sent meanwhile."""
        found: list[Fields] = []

        def look() -> bool:
            found.extend(self.sent())
            return bool(is_over())

        self.broker.loop.run_until(look)
        return found

    def caught_up(self, subscription: ChannelSubscription) -> list[Fields]:
        """Return the events that are sent until a subscription is at the channel's end."""
        return self.sent_until(lambda: subscription.details().offset_lag == 0)

    def events(self, count: int) -> list[Fields]:
        """Return the next events that are sent, so many."""
        found: list[Fields] = []

        def look() -> bool:
            found.extend(each["event"] for each in self.sent())
            return len(found) >= count

        self.broker.loop.run_until(look)
        assert len(found) == count, found
        return found
