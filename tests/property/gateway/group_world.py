"""Several connections with single active consumers over real handlers, against the model."""

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from compat.differential.group_model import ModelGroup, Told
from gateway.broker.topology.exchanges import PARTITION_ORDER, Binding
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start
from gateway.pending import Pending
from gateway.stream.handlers import consumers, streams
from gateway.stream.membership import Membership
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, NONE, OffsetSpec
from tests.chunks import SubBatch
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

STREAMS = {"s": -1, "p0": 0, "p1": 1, "p2": 2}
"""Every stream, with its place in the super stream `p`."""
SINGLE = {"single-active-consumer": "true", "name": "app"}
IDS = 6


@dataclass(eq=False)
class Client:
    """One connection, and what its program remembers."""

    rig: LinkRig
    members: dict[int, "Member"] = field(default_factory=dict)
    asked_count: int = 0
    busy: list[Exception | None] | None = None
    """What says that the answer it gave last is through, while that is not so."""


@dataclass(eq=False)
class Member:
    """One subscription, as its client knows it."""

    client: Client
    subscription_id: int
    stream: str
    question: tuple[int, bool] | None = None
    """Correlation id and whether to start, until it is answered."""
    is_starting: bool = False
    """It has answered, and the server looks for the place."""
    is_reading: bool = False


class World:
    """A broker, its clients, and a model of each group."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hutch-test-"))
        self.broker = Broker(self.directory, frame_bytes_max=4096)
        self.owner = self.broker.link()
        partitions = tuple(stream for stream, index in STREAMS.items() if index >= 0)
        request = m.CreateSuperStream("p", partitions, partitions, {})
        assert self.owner.code("create_super_stream", request) == ResponseCode.OK
        self.clients: list[Client] = []
        self.models: dict[str, ModelGroup] = {}
        self.published = 0
        self.is_slow = False
        self.searches: list[Pending[None]] = []
        self.patch = mock.patch.object(consumers, "locate_spec", self.locate)
        self.patch.start()
        self.owner.create("s")
        for stream in STREAMS:
            self.adopt(stream)

    def close(self) -> None:
        self.patch.stop()
        self.broker.close()
        shutil.rmtree(self.directory)

    async def locate(self, log: StreamLog, spec: OffsetSpec) -> Start:
        """Find a place, at once or whenever `find_place` says so."""
        if self.is_slow:
            search: Pending[None] = Pending()
            self.searches.append(search)
            await search
        return await streams.locate_spec(log, spec)

    def adopt(self, stream: str) -> None:
        """Take a stream that was made into the game."""
        self.owner.declare(list(STREAMS).index(stream), stream)
        self.models[stream] = ModelGroup(STREAMS[stream])

    def members(self) -> list[Member]:
        return [each for client in self.clients for each in client.members.values()]

    def idle(self) -> list[Client]:
        """Clients that the server listens to."""
        return [client for client in self.clients if client.busy is None]

    # What is told

    def expect(self, told: Iterable[Told]) -> None:
        """Take what every client was asked, which is this and nothing else, in this order."""
        expected: dict[Client, list[tuple[int, int, bool]]] = {}
        for member, is_active in told:
            assert isinstance(member, Member)
            client = member.client
            correlation_id = client.asked_count
            client.asked_count += 1
            member.question = (correlation_id, is_active)
            member.is_starting = member.is_reading = False
            expected.setdefault(client, []).append(
                (correlation_id, member.subscription_id, is_active)
            )
        for client in self.clients:
            assert self.asked(client) == expected.get(client, [])

    def asked(self, client: Client) -> list[tuple[int, int, bool]]:
        found: list[tuple[int, int, bool]] = []
        rest: list[bytes] = []
        for frame, decoded in zip(client.rig.ports.frames, client.rig.received(), strict=True):
            if isinstance(decoded.message, m.ConsumerUpdate):
                assert decoded.correlation_id is not None
                update = decoded.message
                found.append((decoded.correlation_id, update.subscription_id, update.active))
            else:
                rest.append(frame)
        client.rig.ports.frames = rest
        return found

    def leave(self, members: list[Member]) -> list[Told]:
        """Let members go in the model; return what that leads to."""
        told: list[Told] = []
        for stream in sorted({member.stream for member in members}, reverse=True):
            gone = [member for member in members if member.stream == stream]
            told += self.models[stream].unregister(gone)
        for member in members:
            del member.client.members[member.subscription_id]
        return told

    # What clients do

    def connect(self) -> None:
        self.clients.append(Client(self.broker.link()))

    def join(self, client: Client, subscription_id: int, stream: str) -> None:
        properties = SINGLE | ({"super-stream": "p"} if STREAMS[stream] >= 0 else {})
        request = m.Subscribe(subscription_id, stream, FIRST, 5, properties)
        code = client.rig.code("subscribe", request)
        if subscription_id in client.members:
            assert code == ResponseCode.SUBSCRIPTION_ID_ALREADY_EXISTS
            return
        assert code == ResponseCode.OK
        member = Member(client, subscription_id, stream)
        client.members[subscription_id] = member
        self.expect(self.models[stream].register(member))

    def join_with_another_index(self, client: Client, stream: str) -> None:
        """Nothing comes of it while the group has members; without any nobody tries."""
        free = set(range(256)) - set(client.members)
        if self.models[stream].rows:
            properties = SINGLE | ({"super-stream": "p"} if STREAMS[stream] < 0 else {})
            request = m.Subscribe(min(free), stream, FIRST, 5, properties)
            code = client.rig.code("subscribe", request)
            is_same = STREAMS[stream] < 0
            assert code == (ResponseCode.OK if is_same else ResponseCode.PRECONDITION_FAILED)
            if is_same:  # `s` is no part of `p`, whatever is said
                member = Member(client, min(free), stream)
                client.members[min(free)] = member
                self.expect(self.models[stream].register(member))

    def unsubscribe(self, member: Member) -> None:
        code = member.client.rig.code("unsubscribe", m.Unsubscribe(member.subscription_id))
        assert code == ResponseCode.OK
        self.expect(self.leave([member]))

    def vanish(self, client: Client) -> None:
        client.rig.link.close()
        self.forget(client)

    def forget(self, client: Client) -> None:
        assert client.rig.ports.time_limits == {}
        self.clients.remove(client)
        self.expect(self.leave(list(client.members.values())))

    def lose(self, client: Client, stream: str) -> None:
        """The client may not read the stream any more."""
        client.rig.link.lose(self.broker.stream(stream))
        assert client.rig.take("metadata_update") == [m.MetadataUpdate(6, stream)]
        self.expect(self.leave([each for each in client.members.values() if each.stream == stream]))

    def answer(self, client: Client, correlation_id: int, offset: OffsetSpec = NONE) -> None:
        """Answer a question, or what never was one, or not since long."""
        reply = m.ConsumerUpdateReply(ResponseCode.OK, offset)
        searching = len(self.searches)
        done = client.rig.start_answer("consumer_update", reply, correlation_id)
        members = client.members.values()
        member = next(
            (each for each in members if each.question and each.question[0] == correlation_id), None
        )
        if member is None or member.question is None:
            assert done == [None]
            self.expect([])
            return
        (_, is_active), member.question = member.question, None
        if not is_active:
            assert done == [None]
            self.expect(self.models[member.stream].answered_step_down(member))
            return
        if len(self.searches) > searching:
            client.busy, member.is_starting = done, True
        else:
            client.rig.finish(done)
            member.is_reading = True
        self.expect([])

    def find_place(self) -> None:
        """The oldest search for a place ends."""
        self.searches.pop(0).settle(None)
        for client in self.clients:
            if client.busy == [None]:
                client.busy = None
                for member in client.members.values():
                    member.is_reading |= member.is_starting
                    member.is_starting = False
        self.expect([])

    def time_is_up(self, client: Client) -> None:
        """The client took too long over its oldest question."""
        action = next(iter(client.rig.ports.time_limits.values()))
        action()
        assert client.rig.ports.is_stopped
        self.forget(client)

    def delete(self, stream: str) -> None:
        """Delete a stream under its consumers, and make it anew."""
        self.owner.tell("delete_stream", m.DeleteStream(stream))
        gone = [member for member in self.members() if member.stream == stream]
        self.leave(gone)
        for client in self.clients:
            updates = client.rig.take("metadata_update")
            is_told = any(member.client is client for member in gone)
            assert updates == [m.MetadataUpdate(6, stream)] * is_told
        self.expect([])
        self.owner.ports.frames.clear()
        self.owner.create(stream)
        if STREAMS[stream] >= 0:
            binding = Binding(
                source="p",
                destination=stream,
                routing_key=stream,
                arguments={PARTITION_ORDER: STREAMS[stream]},
            )
            self.broker.store_rig.run(self.broker.virtual_host.exchanges.bind(binding))
        self.adopt(stream)

    def publish(self, stream: str) -> None:
        """A chunk reaches who reads and nobody else, and is not lost for who reads later."""
        self.published += 1
        batch = SubBatch.of([b"%d" % self.published])
        self.owner.publish(list(STREAMS).index(stream), (self.published, batch))
        self.broker.settle(stream)
        self.owner.confirmed()

    def read(self) -> None:
        """Deliver all that can be."""
        for member in self.members():
            delivered = member.client.rig.deliver(member.subscription_id)
            assert member.is_reading or not delivered

    def credit(self, member: Member) -> None:
        """Give credit, which is refused to who does not read."""
        client = member.client
        client.rig.tell("credit", m.Credit(member.subscription_id, 2))
        errors = [each.code for each in client.rig.take("credit")]
        is_refused = not member.is_reading
        assert errors == [ResponseCode.PRECONDITION_FAILED] * is_refused

    # What always holds

    def check(self) -> None:
        groups = {group.members[0]: group for _, group in self.broker.virtual_host.groups}
        assert len(groups) == sum(bool(model.rows) for model in self.models.values())
        for client in self.clients:
            link = client.rig.link
            assert set(link.subscriptions) == set(client.members)
            asked = [each for each in client.members.values() if each.question is not None]
            assert len(link.questions) == len(client.rig.ports.time_limits) == len(asked)
            for number, member in client.members.items():
                assert link.subscriptions[number].is_reading is member.is_reading
        for stream, model in self.models.items():
            self.check_group(stream, model)

    def check_group(self, stream: str, model: ModelGroup) -> None:
        """One reads, or starts, or was asked something with a time limit: exactly one."""
        members = [each for each in self.members() if each.stream == stream]
        assert set(model.rows) == set(members)
        assert sum(each.is_reading for each in members) <= 1
        busy = [each for each in members if each.is_reading or each.is_starting or each.question]
        assert len(busy) == bool(members)
        generation = self.broker.stream(stream).entry.generation
        group = self.broker.virtual_host.groups.of(generation, "app")
        if group is None:
            assert members == []
            return
        assert isinstance(group.active, Membership)
        assert group.active.subscription is self.subscription_of(busy[0])
        theirs = [self.subscription_of(each) for each in model.rows if isinstance(each, Member)]
        assert [each.subscription for each in group.members if isinstance(each, Membership)] == (
            theirs
        )

    def subscription_of(self, member: Member) -> object:
        return member.client.rig.link.subscriptions[member.subscription_id]

    def settle(self) -> None:
        """Let everybody answer: then one of each group reads, the one whose turn it is."""
        self.is_slow = False
        while self.searches:
            self.find_place()
        while asked := [each for each in self.members() if each.question is not None]:
            assert asked[0].question is not None
            self.answer(asked[0].client, asked[0].question[0])
            self.check()
        for model in self.models.values():
            if model.rows:
                (reading,) = [e for e in model.rows if isinstance(e, Member) and e.is_reading]
                assert model.partition_index < 0 or reading is model.wanted
