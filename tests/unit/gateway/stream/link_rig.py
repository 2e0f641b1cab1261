"""A link without a connection: real streams on a real store, ports that remember, no socket."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gateway.broker.access.access import open_access
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.model import User, UserPermission
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.users_file import first_users
from gateway.broker.connections import Connections
from gateway.broker.hosts.virtual_host import VirtualHost, open_virtual_host
from gateway.broker.hosts.virtual_hosts import VirtualHostsPorts, open_virtual_hosts
from gateway.broker.service import ScarceResource, ServiceState
from gateway.broker.streams.openings import Openings
from gateway.broker.streams.streams import Stream, Streams, StreamsPorts
from gateway.log import names
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkBuffers
from gateway.log.ports import LogPorts
from gateway.network.transport import Transport
from gateway.pending import Pending
from gateway.server.front import DeliverySource, WriteBacklog
from gateway.settings.model import Settings, UsersSettings
from gateway.stream import publishing
from gateway.stream.advertising import Advertising
from gateway.stream.consuming import DELIVER_HEAD_BYTES, CreditSubscription
from gateway.stream.context import LinkSettings, StreamContext
from gateway.stream.dispatch import dispatch
from gateway.stream.link import Link
from gateway.stream.session import Session
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import Decoded, decode_reply, encode_reply, encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME, State
from store.api import SegmentStore
from store.errors import StoreError
from tests.chunks import Delivery, Entry, delivery_of, filtered_body, publish_body
from tests.conformance.harness import Loop
from tests.unit.gateway.log.log_rig import LogRig

M = TypeVar("M", bound=m.Message)

MIB = 1 << 20
CORRELATION_ID = 7
FIRST_CHUNK_MS = 1
PEER_PROPERTIES = {"product": "Hutch", "version": "4.3.6"}


@dataclass(eq=False)
class Ports:
    """A connection as its link sees it; frames are kept instead of sent."""

    peer: str = "127.0.0.1:50000"
    local: str = "127.0.0.1:5552"
    peer_is_loopback: bool = True
    is_held: bool = False
    certificate_user: str | None = None
    takes_regions: bool = False
    frames: list[bytes] = field(default_factory=list)
    delays: list[tuple[int, Pending[None]]] = field(default_factory=list)
    turns: list[Pending[None]] = field(default_factory=list)
    """Of others, for which a long command waits; `end_turns` lets it go on."""
    tuned_count: int = 0
    woken: list[CreditSubscription] = field(default_factory=list)
    intakes: list[tuple[int, WriteBacklog | None]] = field(default_factory=list)
    """For each run of Publish frames, the entries that wait for a confirm, and their log."""
    settled_count: int = 0
    is_stopped: bool = False
    is_aborted: bool = False
    transport: Transport = field(default_factory=lambda: Transport(100, 200))
    time_limits: dict[int, Callable[[], object]] = field(default_factory=dict)
    """What is to be done later, with a number each, in the order in which it was asked for."""
    later_count: int = 0

    def end_turns(self) -> None:
        """Let commands go on that have let others have a turn."""
        turns, self.turns = self.turns, []
        for others in turns:
            others.settle(None)

    def begun(self) -> None:
        pass

    def send(self, frame: bytes) -> None:
        self.frames.append(bytes(frame))

    def wait(self, delay_ms: int) -> Pending[None]:
        pending: Pending[None] = Pending()
        if delay_ms:
            self.delays.append((delay_ms, pending))
        else:
            self.turns.append(pending)
        return pending

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        if delay_ms == FIRST_CHUNK_MS:
            action()
            return lambda: None
        # Of anything longer the test says when it is over.
        number = self.later_count = self.later_count + 1
        self.time_limits[number] = action
        return lambda: self.time_limits.pop(number, None)

    def limit(self, delay_ms: int, step: str) -> None:
        raise AssertionError(delay_ms, step)  # the front's affair

    def beat(self, interval_s: int, send: Callable[[], object]) -> None:
        del interval_s, send
        self.tuned_count += 1

    def wake(self, source: DeliverySource) -> None:
        assert isinstance(source, CreditSubscription)
        self.woken.append(source)

    def settled(self, count: int) -> None:
        self.settled_count += count

    def begin_command(self) -> None:
        raise AssertionError("the front's affair")

    count_command = end_command = logged_in = admitted = finish = begin_command

    def taken(self, count: int, backlog: WriteBacklog | None) -> None:
        self.intakes.append((count, backlog))

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False

    def stop(self, within_s: float) -> None:
        assert within_s <= 1
        self.is_stopped = True

    def abort(self) -> None:
        self.is_aborted = True


def run_at_once(function: Callable[[], bool]) -> Pending[bool]:
    """Stand in for the threads that compare passwords."""
    pending: Pending[bool] = Pending()
    pending.settle(function())
    return pending


@cache
def quick_first_users() -> tuple[list[User], list[UserPermission]]:
    """Return the users of a first start, with hashes that cost less than the rest of a rig."""
    users, permissions = first_users(UsersSettings())
    return [replace(user, password_hash=PasswordHash.of(user.name)) for user in users], permissions


def link_settings(frame_bytes_max: int, refusal_delay_ms: int) -> LinkSettings:
    return LinkSettings(
        frame_bytes_max=frame_bytes_max,
        initial_frame_bytes_max=8192,
        chunk_bytes_max=frame_bytes_max - DELIVER_HEAD_BYTES,
        heartbeat_s=60,
        handshake_step_timeout_ms=10_000,
        refusal_delay_ms=refusal_delay_ms,
        sub_batch_uncompressed_bytes_max=64 * MIB,
        advertised_host="localhost",
        advertised_port=5552,
    )


class Broker:
    """What all links share: the streams of one virtual host over a store."""

    def __init__(
        self,
        directory: Path,
        *,
        frame_bytes_max: int = MIB,
        refusal_delay_ms: int = 3_000,
        anonymous: str | None = None,
        consumer_update_timeout_ms: int = 60_000,
        open_store: Callable[[Loop, Path], SegmentStore] | None = None,
        loop: Loop | None = None,
    ) -> None:
        self.store_rig = LogRig(
            directory, frame_bytes_max=frame_bytes_max, open_store=open_store, loop=loop
        )
        self.loop = self.store_rig.loop
        self.now_ms = 1_000_000
        self.has_room = True
        self.fatal_errors: list[StoreError] = []
        self.refused: list[StoreError] = []
        self.frame_bytes_max = frame_bytes_max
        buffers = ChunkBuffers(frame_bytes_max - DELIVER_HEAD_BYTES)

        def log_ports(**callbacks: Any) -> LogPorts[StreamLog]:  # noqa: ANN401 - those of LogPorts
            return LogPorts(
                buffers=buffers,
                clock_ms=lambda: self.now_ms,
                schedule=self.loop.call_soon,
                **callbacks,
            )

        store = self.store_rig.store
        openings = self.openings = Openings(store)
        self.store_rig.run(openings.begin())
        ports = StreamsPorts(
            store=store,
            openings=openings,
            log_ports=log_ports,
            schedule=self.loop.call_soon,
            clock_ms=lambda: self.now_ms,
            fatal=self.fatal_errors.append,
            references_max=100,
            is_disk_full=lambda: ScarceResource.DISK in self.service.alarms,
            wait=self._wait,
            refused=self.refused.append,
        )
        self._open_hosts(store, ports)
        self.service = ServiceState(self.connections, consumer_update_timeout_ms)
        self.host = StreamContext(
            advertising=Advertising(Settings(), "127.0.0.1"),
            access=self.access,
            authentication=self._authentication(anonymous),
            connections=self.connections,
            virtual_hosts=self.virtual_hosts.find,
            settings=link_settings(frame_bytes_max, refusal_delay_ms),
            peer_properties=PEER_PROPERTIES,
            has_room=lambda: self.has_room,
            service=self.service,
        )

    def _authentication(self, anonymous: str | None) -> Authentication:
        self.passwords = PasswordCheck(run_at_once, lambda: self.now_ms / 1000)
        self.attempts = AttemptLedger(lambda: self.now_ms / 1000)
        refusals = Refusals(lambda: self.now_ms / 1000)
        return Authentication(
            self.access, self.passwords, self.attempts, refusals, anonymous=anonymous
        )

    def _wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled in another turn, or never: nothing is tried again by itself."""
        pending: Pending[None] = Pending()
        if not delay_ms:
            self.loop.call_soon(pending.settle, None)
        return pending

    def _open_hosts(self, store: SegmentStore, ports: StreamsPorts) -> None:
        """Open users and virtual hosts as a server does."""
        self.connections = Connections()
        self.access = self.store_rig.run(open_access(store, self.connections))
        if self.access.is_fresh:
            self.store_rig.run(self.access.seed(*quick_first_users()))
        self.virtual_hosts = self.store_rig.run(
            open_virtual_hosts(
                VirtualHostsPorts(
                    store,
                    lambda name: open_virtual_host(name, ports),
                    self.access,
                    self.connections,
                )
            )
        )

    @property
    def virtual_host(self) -> VirtualHost:
        """The default one."""
        found = self.virtual_hosts.find("/")
        assert found is not None
        return found

    @property
    def streams(self) -> Streams:
        """Those of the default virtual host."""
        return self.virtual_host.streams

    def link(
        self,
        *,
        is_open: bool = True,
        peer_is_loopback: bool = True,
        user: str = "guest",
        virtual_host: str = "/",
        has_pipeline: bool = False,
    ) -> "LinkRig":
        rig = LinkRig(self, peer_is_loopback=peer_is_loopback)
        if has_pipeline:
            rig.session.greet(pipeline.PROPERTIES)
        if is_open:
            rig.open(user, virtual_host)
        return rig

    def stream(self, name: str) -> Stream:
        return self.streams.find(name)

    def log(self, name: str) -> StreamLog:
        return self.store_rig.run(self.streams.logs.of(self.streams.find(name)))

    def settle(self, name: str) -> None:
        """Turn until everything published to a stream is committed."""
        log = self.log(name)
        self.loop.run_until(lambda: log.is_idle)

    def lose_segment(self, name: str) -> None:
        """Take a stream's segment away in the store, behind the broker's back."""
        segment = names.data_segment("/", name, self.stream(name).entry.generation)
        self.store_rig.do(self.store_rig.store.delete_segment, segment)

    def stop(self) -> None:
        """End in good order, as the server does."""
        self.store_rig.run(self.virtual_hosts.close())
        self.store_rig.run(self.openings.end())
        self.close()

    def close(self) -> None:
        self.store_rig.close()


class LinkRig:
    """One link, spoken to in frames."""

    def __init__(self, broker: Broker, *, peer_is_loopback: bool) -> None:
        self.broker = broker
        self.ports = Ports(peer_is_loopback=peer_is_loopback)
        self.session = Session(broker.frame_bytes_max, 8192, 60)
        self.link = Link(broker.host, self.session, self.ports)

    def open(self, user: str, virtual_host: str) -> None:
        """Go through the handshake without a word."""
        entered = self.broker.virtual_hosts.find(virtual_host)
        assert entered is not None
        self.session.state = State.OPEN
        self.session.log_in(user, "PLAIN")
        self.session.enter(virtual_host)
        self.link.enter(entered)

    # Commands

    def start(self, name: str, message: m.Message, *, version: int = 1) -> list[Exception | None]:
        """Hand in a command; the list gets what `dispatch` says of it when it is through."""
        row = self.session.table.by_name[name]
        correlation_id = CORRELATION_ID if row.is_correlated else None
        frame = encode_request(row, message, correlation_id=correlation_id, version=version)
        return self.start_frame(frame[4:])

    def start_frame(self, frame: bytes) -> list[Exception | None]:
        done: list[Any] = []
        dispatch(self.link, frame, done.append)
        return done

    def finish(self, done: list[Exception | None]) -> None:
        """Turn until a command that was handed in is through."""

        def is_through() -> bool:
            self.ports.end_turns()
            return bool(done)

        self.broker.loop.run_until(is_through)
        assert done == [None], done

    def tell(self, name: str, message: m.Message) -> None:
        """Hand in a command and see it through."""
        self.finish(self.start(name, message))

    def request(self, name: str, message: m.Message) -> m.Message:
        """Hand in a command; give its answer, which is the only frame of its kind."""
        self.tell(name, message)
        return self.answer_to(name)

    def answer_to(self, name: str) -> m.Message:
        answers = [each for each in self.received() if each.is_response]
        (answer,) = [each for each in answers if each.command.name == name]
        if answer.correlation_id is not None:
            assert answer.correlation_id == CORRELATION_ID
        self.ports.frames.remove(self.frame_of(answer))
        return answer.message

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        answer = self.request(name, message)
        assert isinstance(answer, kind)
        return answer

    def code(self, name: str, message: m.Message) -> int:
        code = getattr(self.request(name, message), "code", None)
        assert isinstance(code, int)
        return code

    def answer(
        self, name: str, message: m.Message, correlation_id: int | None = CORRELATION_ID
    ) -> None:
        """Hand in an answer to what the server asked, and see it through."""
        self.finish(self.start_answer(name, message, correlation_id))

    def start_answer(
        self, name: str, message: m.Message, correlation_id: int | None
    ) -> list[Exception | None]:
        """Hand in an answer; the list is that of `start`."""
        if not BY_NAME[name].is_correlated:
            correlation_id = None
        return self.start_frame(encode_reply(name, correlation_id, message)[4:])

    # Frames

    def received(self) -> list[Decoded]:
        """Every frame that was sent and not taken yet."""
        table = self.session.table
        return [decode_reply(frame[4:], table) for frame in self.ports.frames]

    def frame_of(self, decoded: Decoded) -> bytes:
        return self.ports.frames[self.received().index(decoded)]

    def take(self, name: str) -> list[Any]:
        """Every message of a command that was sent, in order; they are taken away."""
        found = [each for each in self.received() if each.command.name == name]
        frames = [self.frame_of(each) for each in found]
        self.ports.frames = [each for each in self.ports.frames if each not in frames]
        return [each.message for each in found]

    # Publishing

    def publish(self, publisher_id: int, *entries: tuple[int, Entry]) -> int:
        """Hand in a Publish frame, as the connection does; return where it goes on."""
        body = b"\0\2\0\1" + publish_body(publisher_id, entries)
        return self.publish_frames(len(body).to_bytes(4) + body)

    def publish_frames(self, frames: bytes) -> int:
        return publishing.take(self.link, bytearray(frames), 0, len(frames))

    def publish_filtered(self, publisher_id: int, *entries: tuple[int, str | None, bytes]) -> int:
        body = b"\0\2\0\2" + filtered_body(publisher_id, entries)
        frame = bytearray(len(body).to_bytes(4) + body)
        return publishing.take_with_filters(self.link, frame, 0, len(frame))

    def confirmed(self) -> list[tuple[int, tuple[int, ...]]]:
        """Publisher and ids of every confirm that was sent."""
        return [(each.publisher_id, each.publishing_ids) for each in self.take("publish_confirm")]

    def refused(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Publisher, and ids with codes, of every publish error that was sent."""
        return [
            (each.publisher_id, [(error.publishing_id, error.code) for error in each.errors])
            for each in self.take("publish_error")
        ]

    def declare(self, publisher_id: int, stream: str, reference: str = "") -> None:
        message = m.DeclarePublisher(publisher_id, reference, stream)
        assert self.code("declare_publisher", message) == ResponseCode.OK

    def create(self, *streams: str) -> None:
        for name in streams:
            assert self.code("create_stream", m.CreateStream(name, {})) == ResponseCode.OK

    # Delivering

    def deliver(self, subscription_id: int) -> list[Delivery]:
        """Everything that a subscription gives now, as the connection would send it."""
        subscription = self.link.subscriptions[subscription_id]
        scratch = bytearray(self.broker.frame_bytes_max)
        found: list[Delivery] = []
        while frame := subscription.next(scratch):
            assert frame.region is None
            found.append(delivery_of(decode_reply(frame.head[4:])))
            assert int.from_bytes(frame.head[:4]) == len(frame.head) - 4
        return found
