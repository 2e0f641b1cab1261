"""A client of any protocol: how it enters, which streams it uses, and what it may do with them."""

import logging
from typing import Any

import pytest

from gateway.broker.access.access import Demand
from gateway.broker.access.model import Right, User, UserPermission
from gateway.broker.connections import ConnectionDetails
from gateway.broker.errors import AccessRefused, InternalError, StreamDoesNotExist
from gateway.broker.hosts.client_session import ClientSession
from gateway.broker.streams.catalogue import Stream
from gateway.pending import Pending, start
from hutch.stream import messages as m
from tests.unit.gateway.stream.link_rig import Broker, Ports


class Idle(ClientSession):
    """A client of a protocol that uses no streams, as far as it says."""

    def __init__(self, broker: Broker) -> None:
        self.ports = Ports()
        super().__init__(broker.host, self.ports, "stream")

    def details(self) -> ConnectionDetails:
        return ConnectionDetails("PLAIN", 0, 0, self.transport)


class Busy(Idle):
    """One that publishes to some streams and reads some."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.to: set[Stream] = set()
        self.of: set[Stream] = set()

    def written(self) -> set[Stream]:
        return self.to

    def read(self) -> set[Stream]:
        return self.of


@pytest.fixture
def app(broker: Broker) -> Broker:
    """A broker with the streams `a`, `b` and `c`, and the user `app`, which has every right."""
    broker.link().create("a", "b", "c")
    guest = broker.access.user("guest")
    assert guest is not None
    broker.store_rig.run(broker.access.put_user(User("app", guest.password_hash)))
    allow(broker, ".*", ".*")
    return broker


def allow(broker: Broker, write: str, read: str) -> None:
    broker.store_rig.run(
        broker.access.put_permission(
            UserPermission(user="app", virtual_host="/", configure=".*", write=write, read=read)
        )
    )


def entered(broker: Broker) -> Busy:
    session = Busy(broker)
    session.begin("app", broker.virtual_host)
    return session


def turns_of_others(session: Idle, work: Pending[Any]) -> int:
    """Let others have a turn whenever some work waits for that; return how often it did."""
    turns = 0
    while not work.is_settled:
        assert len(session.ports.turns) == 1
        session.ports.end_turns()
        turns += 1
    return turns


# Entering


def test_one_that_uses_no_streams_has_nothing_to_show_and_nothing_to_lose(app: Broker) -> None:
    session = Idle(app)
    session.begin("app", app.virtual_host)
    stream = app.stream("a")
    session.watch(stream)

    assert session.client_properties == {}
    assert (session.publisher_details(), session.consumer_details()) == ([], [])
    assert (session.written(), session.read()) == (set(), set())
    session.lose_access()
    assert session in stream.watchers
    session.lose(stream)
    assert session not in stream.watchers


def test_administrators_see_it_from_the_time_that_it_is_in_until_it_ends(app: Broker) -> None:
    session = Idle(app)
    before = len(app.connections)
    session.begin("app", app.virtual_host)
    assert session in list(app.connections)
    assert (session.user, session.virtual_host_name) == ("app", "/")
    assert session.streams is app.streams

    session.end("enough")

    assert len(app.connections) == before
    assert session.is_closed
    assert session.ports.is_stopped


def test_one_that_is_cut_off_is_not_sent_what_is_queued(
    app: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    session = entered(app)

    session.cut_off("it takes nothing")

    assert (session.ports.is_aborted, session.ports.is_stopped) == (True, False)
    line = "connection cut off peer=127.0.0.1:50000 user='app' reason=it takes nothing"
    assert line in caplog.messages


def test_the_reason_to_refuse_is_the_first_that_holds(app: Broker) -> None:
    session = Idle(app)

    def reason(user: str = "app", virtual_host: str = "/") -> str:
        return session.reason_to_refuse(user, virtual_host)

    assert reason() == ""
    app.store_rig.run(app.access.set_virtual_host_limits("/", {"max-connections": 0}))
    assert reason() == "the limit of connections of the user or the virtual host is reached"
    assert reason("stranger") == "the user may not enter it"
    app.has_room = False
    assert reason("stranger") == "stream.connections_max is reached"
    assert reason("stranger", "nowhere") == "there is none of that name"


# What it says


def test_lines_that_a_client_can_cause_are_counted_by_its_address_without_the_port(
    app: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Idle(app), Idle(app)
    other.ports.peer = "127.0.0.1:50001"
    far = Idle(app)
    far.ports.peer = "192.0.2.7:50000"
    assert (one.address, far.address) == ("127.0.0.1", "192.0.2.7")

    for number in range(20):
        one.say(logging.getLogger("test").warning, "one number=%d", number)
    other.say(logging.getLogger("test").warning, "other")
    far.say(logging.getLogger("test").warning, "far")

    said = [each.message for each in caplog.records if each.name == "test"]
    assert "one number=0" in said
    assert "one number=19" not in said
    assert "other" not in said
    assert said[-1] == "far unsaid=11"


def test_a_stream_is_shown_with_its_virtual_host(app: Broker) -> None:
    assert str(entered(app).shown(app.stream("a"))) == "a virtual_host=/"


# Rights


def test_a_great_many_demands_let_others_have_turns_and_stop_at_the_first_that_is_not_met(
    app: Broker,
) -> None:
    session = entered(app)
    allow(app, "^(a|b)$", "")
    met = [Demand((Right.WRITE,), "a")] * 2_000
    missing = Demand((Right.WRITE,), "c")

    judged = start(session.refused_slowly([*met, missing, Demand((Right.READ,), "a")]))

    assert turns_of_others(session, judged) >= 2
    assert judged.result() == missing
    assert app.store_rig.run(session.refused_slowly(met[:1])) is None


def test_streams_are_refused_that_are_written_or_read_without_the_right(
    app: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = entered(app)
    a, b, c = (app.stream(name) for name in "abc")
    session.to, session.of = {a, b}, {b, c}
    allow(app, "^a$", "^b$")
    assert {each.name for each in app.store_rig.run(session.refused_streams())} == {"b", "c"}

    monkeypatch.setattr("gateway.broker.yielding._TURN_S", 0.0)
    judged = start(session.refused_streams())
    assert turns_of_others(session, judged) >= 1
    assert {each.name for each in judged.result()} == {"b", "c"}


def test_without_any_right_all_that_is_used_is_lost(app: Broker) -> None:
    session = entered(app)
    a, b, c = (app.stream(name) for name in "abc")
    session.to, session.of = {a}, {b}
    for stream in (a, b, c):
        session.watch(stream)

    session.lose_access()

    assert [session in stream.watchers for stream in (a, b, c)] == [False, False, True]


# Streams that are used


def test_a_stream_cannot_be_watched_that_is_gone_or_by_a_client_that_is(app: Broker) -> None:
    stream, gone = app.stream("a"), app.stream("b")
    app.link().tell("delete_stream", m.DeleteStream("b"))
    app.link().create("b")
    session = entered(app)

    with pytest.raises(StreamDoesNotExist):
        session.watch(gone)
    app.store_rig.run(app.access.delete_permission("app", "/"))
    with pytest.raises(AccessRefused, match="meanwhile"):
        session.watch(stream)
    session.close()
    with pytest.raises(InternalError, match="the connection is gone"):
        session.watch(stream)
    assert not stream.watchers
    assert not gone.watchers


def test_a_stream_is_watched_until_nothing_uses_it(app: Broker) -> None:
    session = entered(app)
    stream = app.stream("a")
    session.to, session.of = {stream}, {stream}
    session.watch(stream)

    for used in (session.to, session.of):
        session.unwatch_if_unused(stream)
        assert session in stream.watchers
        used.clear()
    session.unwatch_if_unused(stream)

    assert session not in stream.watchers


def test_only_what_is_still_watched_is_lost(app: Broker) -> None:
    session = entered(app)
    lost: list[str] = []
    session.lose = lambda stream: lost.append(stream.name)  # type: ignore[method-assign]
    session.watch(app.stream("a"))

    session.lose_each([app.stream("a"), app.stream("b")])
    session.stream_gone(app.stream("c"))

    assert lost == ["a", "c"]


def test_only_a_client_that_publishes_is_held_while_there_is_no_room(app: Broker) -> None:
    session = entered(app)
    session.of = {app.stream("a")}
    held: list[bool] = []

    session.hold_publishing()
    held.append(session.ports.is_held)
    session.to = {app.stream("a")}
    session.hold_publishing()
    held.append(session.ports.is_held)
    session.release_publishing()
    held.append(session.ports.is_held)

    assert held == [False, True, False]


def test_what_it_watched_forgets_it_when_it_ends(app: Broker) -> None:
    session = entered(app)
    streams = [app.stream(name) for name in "ab"]
    for stream in streams:
        session.watch(stream)

    session.close()

    assert all(session not in stream.watchers for stream in streams)
    session.lose_each(streams)
    assert session.is_closed
