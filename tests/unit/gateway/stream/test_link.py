"""What a connection owns and watches, and what is left when it is gone."""

from typing import Any

import pytest

from gateway.log.damage.errors import CorruptChunk
from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start
from gateway.log.recovery.log_opening import open_log
from gateway.pending import Pending
from gateway.stream.handlers.streams import locate_spec
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from hutch.stream.offsets import FIRST, NEXT
from tests.unit.gateway.stream.handlers.test_publishers import forbid
from tests.unit.gateway.stream.link_rig import Broker, LinkRig


def gone(name: str) -> m.MetadataUpdate:
    return m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, name)


def is_watching(client: LinkRig, name: str) -> bool:
    return client.link in client.broker.stream(name).watchers


def test_a_publisher_watches_its_stream_until_it_is_deleted(client: LinkRig) -> None:
    assert not is_watching(client, "s")
    client.declare(1, "s")
    client.declare(2, "s")

    client.tell("delete_publisher", m.DeletePublisher(1))
    assert is_watching(client, "s")
    client.tell("delete_publisher", m.DeletePublisher(2))

    assert not is_watching(client, "s")


def test_a_subscription_watches_its_stream_until_it_ends(client: LinkRig) -> None:
    client.declare(1, "s")
    client.tell("subscribe", m.Subscribe(1, "s", NEXT, 1, {}))
    client.tell("delete_publisher", m.DeletePublisher(1))
    assert is_watching(client, "s")

    client.tell("unsubscribe", m.Unsubscribe(1))

    assert not is_watching(client, "s")


@pytest.mark.parametrize(
    ("name", "message"),
    [("store_offset", m.StoreOffset("ref", "s", 1)), ("query_offset", m.QueryOffset("ref", "s"))],
)
def test_who_stores_or_asks_for_offsets_watches_the_stream(
    client: LinkRig, name: str, message: m.Message
) -> None:
    client.tell(name, message)

    client.broker.link().tell("delete_stream", m.DeleteStream("s"))

    assert client.take("metadata_update") == [gone("s")]


def test_who_only_asks_about_a_stream_does_not_watch_it(client: LinkRig) -> None:
    client.tell("metadata", m.Metadata(("s",)))
    client.tell("stream_stats", m.StreamStats("s"))
    client.tell("resolve_offset_spec", m.ResolveOffsetSpec("s", FIRST, {}))
    client.tell("query_publisher_sequence", m.QueryPublisherSequence("ref", "s"))

    assert not is_watching(client, "s")


def test_everybody_who_uses_a_stream_is_told_once_that_it_is_gone(client: LinkRig) -> None:
    other, stranger = client.broker.link(), client.broker.link()
    other.create("t")
    for each in (client, other):
        each.declare(1, "s")
        each.declare(2, "s", "ref")
        each.declare(3, "t")
        each.tell("subscribe", m.Subscribe(1, "s", FIRST, 1, {}))

    client.tell("delete_stream", m.DeleteStream("s"))

    assert [type(each.message) for each in client.received()[-2:]] == [m.Status, m.MetadataUpdate]
    for each in (client, other):
        assert each.take("metadata_update") == [gone("s")]
        assert set(each.link.publishers) == {3}
        assert each.link.subscriptions == {}
        assert each.link.references == set()
        assert is_watching(each, "t")
    assert stranger.received() == []


def test_a_stream_whose_store_fails_is_gone_for_its_users(client: LinkRig) -> None:
    client.declare(1, "s")
    log = client.broker.log("s")
    client.broker.lose_segment("s")

    client.publish(1, (1, b"a"))
    client.broker.loop.run_until(lambda: log.failure is not None)

    assert client.take("metadata_update") == [gone("s")]
    assert client.link.publishers == {}
    assert client.take("publish_confirm") == []


def test_nobody_subscribes_who_loses_the_right_while_the_place_is_looked_for(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate: Pending[None] = Pending()

    async def locate_late(*arguments: Any) -> Start:  # noqa: ANN401 - as `locate_spec`
        await gate
        return await locate_spec(*arguments)

    monkeypatch.setattr("gateway.stream.handlers.consumers.locate_spec", locate_late)
    done = client.start("subscribe", m.Subscribe(1, "s", FIRST, 1, {}))
    forbid(client, Permission.READ)
    client.link.lose_access()
    gate.settle(None)
    client.finish(done)

    assert client.answer_to("subscribe") == m.Status(ResponseCode.ACCESS_REFUSED)
    assert client.link.subscriptions == {}
    assert not is_watching(client, "s")


def test_an_append_to_a_stream_that_is_being_deleted_tells_nobody_before_the_reply(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.declare(1, "s")
    log = client.broker.log("s")
    gate: Pending[None] = Pending()
    remove = client.broker.streams.storage._remove

    async def remove_late(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as `_remove`
        await remove(*arguments, **options)
        await gate

    monkeypatch.setattr(client.broker.streams.storage, "_remove", remove_late)
    done = client.start("delete_stream", m.DeleteStream("s"))
    client.broker.loop.run_for(0.1)
    client.publish(1, (1, b"a"))
    client.broker.loop.run_until(lambda: log.failure is not None)
    gate.settle(None)
    client.finish(done)

    assert [type(each.message) for each in client.received()] == [m.Status, m.MetadataUpdate]


def test_names_of_a_dropped_publisher_are_free_again(client: LinkRig) -> None:
    client.declare(1, "s", "ref")

    client.tell("delete_publisher", m.DeletePublisher(1))

    client.declare(1, "s", "ref")


def test_a_lost_connection_leaves_nothing_behind(client: LinkRig) -> None:
    client.create("t")
    client.declare(1, "s", "ref")
    client.tell("subscribe", m.Subscribe(1, "t", FIRST, 1, {}))
    client.deliver(1)
    client.publish(1, (1, b"a"))
    client.ports.frames.clear()

    client.link.close()
    client.broker.settle("s")

    assert (client.link.publishers, client.link.subscriptions) == ({}, {})
    assert client.ports.frames == []
    assert client.ports.settled_count == 1
    assert not is_watching(client, "s")
    assert not is_watching(client, "t")
    assert client.broker.log("t").readers.waiting == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("declare_publisher", m.DeclarePublisher(1, "ref", "s")),
        ("subscribe", m.Subscribe(1, "s", FIRST, 1, {})),
        ("query_offset", m.QueryOffset("ref", "s")),
    ],
)
def test_a_handler_that_goes_on_after_the_connection_was_lost_leaves_nothing_behind(
    client: LinkRig, name: str, message: m.Message
) -> None:
    done = client.start(name, message)
    assert done == [], "the log has to be opened first"
    client.link.close()

    client.broker.loop.run_until(lambda: bool(done))

    assert not is_watching(client, "s")
    assert (client.link.publishers, client.link.subscriptions) == ({}, {})


@pytest.mark.parametrize("is_created_again", [True, False])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("declare_publisher", m.DeclarePublisher(1, "ref", "s")),
        ("subscribe", m.Subscribe(1, "s", FIRST, 1, {})),
    ],
)
def test_nothing_is_bound_to_a_stream_that_is_deleted_while_it_is_opened(
    client: LinkRig,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    message: m.Message,
    *,
    is_created_again: bool,
) -> None:
    gate: Pending[None] = Pending()

    async def open_late(*arguments: Any, **options: Any) -> StreamLog:  # noqa: ANN401 - as `open_log`
        opened = await open_log(*arguments, **options)
        await gate
        return opened

    monkeypatch.setattr("gateway.broker.streams.stream_logs.open_log", open_late)
    stream = client.broker.stream("s")
    other = client.broker.link()
    done = client.start(name, message)
    client.broker.loop.run_for(0.1)
    deleted = other.start("delete_stream", m.DeleteStream("s"))
    waiting = [(client, done), (other, deleted)]
    if is_created_again:
        waiting.append((other, other.start("create_stream", m.CreateStream("s", {}))))
    client.broker.loop.run_for(0.1)
    gate.settle(None)
    for each, started in waiting:
        each.finish(started)

    assert client.answer_to(name) == m.Status(ResponseCode.STREAM_DOES_NOT_EXIST)
    assert (client.link.publishers, client.link.subscriptions) == ({}, {})
    assert client.link.references == set()
    assert stream.watchers == set()


def test_nothing_is_bound_to_a_log_that_fails_while_the_place_is_looked_for(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate: Pending[None] = Pending()

    async def locate_late(*arguments: Any) -> Start:  # noqa: ANN401 - as `locate_spec`
        start = await locate_spec(*arguments)
        await gate
        return start

    monkeypatch.setattr("gateway.stream.handlers.consumers.locate_spec", locate_late)
    log = client.broker.log("s")
    done = client.start("subscribe", m.Subscribe(1, "s", FIRST, 1, {}))
    other = client.broker.link()
    other.declare(1, "s")
    client.broker.lose_segment("s")
    other.publish(1, (1, b"a"))
    client.broker.loop.run_until(lambda: log.failure is not None)
    gate.settle(None)
    client.finish(done)

    assert client.answer_to("subscribe") == m.Status(ResponseCode.STREAM_NOT_AVAILABLE)
    assert client.link.subscriptions == {}
    assert not is_watching(client, "s")


def test_a_stream_that_cannot_be_opened_is_not_available(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = broker.link()
    client.create("s")

    async def fail(*_arguments: object, **_options: object) -> None:
        raise CorruptChunk("s", 7, "for the test")

    monkeypatch.setattr("gateway.broker.streams.stream_logs.open_log", fail)

    code = ResponseCode.STREAM_NOT_AVAILABLE
    assert client.code("declare_publisher", m.DeclarePublisher(1, "", "s")) == code
    assert client.code("subscribe", m.Subscribe(1, "s", FIRST, 1, {})) == code
    assert client.code("stream_stats", m.StreamStats("s")) == code
    assert "stream cannot be opened stream=s" in caplog.text
    assert not is_watching(client, "s")


# What administrators are told


def test_a_connection_tells_how_it_logged_in_and_what_was_agreed_on(client: LinkRig) -> None:
    client.session.client_properties = {"product": "test"}

    assert client.link.client_properties == {"product": "test"}
    details = client.link.details()
    assert details.mechanism == "PLAIN"
    assert details.frame_bytes_max == client.session.frame_bytes_max
    assert details.heartbeat_s == client.session.heartbeat_s
    assert details.transport is client.ports.transport


def test_a_publisher_tells_what_it_published_and_what_became_of_it(client: LinkRig) -> None:
    client.declare(1, "s", "me")
    client.publish(1, (1, b"a"), (2, b"b"))

    (details,) = client.link.publisher_details()
    assert (details.number, details.reference, details.stream.name) == (1, "me", "s")
    assert (details.published, details.confirmed, details.errored) == (2, 0, 0)

    client.broker.settle("s")
    (details,) = client.link.publisher_details()
    assert (details.published, details.confirmed, details.errored) == (2, 2, 0)


def test_a_subscription_tells_how_far_it_is(client: LinkRig) -> None:
    client.declare(1, "s")
    for number in range(3):
        client.publish(1, (number, b"x"))
        client.broker.settle("s")
    subscribe = m.Subscribe(5, "s", FIRST, 1, {"name": "me"})
    assert client.code("subscribe", subscribe) == ResponseCode.OK

    (details,) = client.link.consumer_details()
    assert (details.number, details.stream.name) == (5, "s")
    assert (details.window, details.consumed, details.offset, details.offset_lag) == (1, 0, -1, 3)
    assert (details.is_active, details.is_single) == (True, False)
    assert details.properties == {"name": "me"}

    client.deliver(5)
    (details,) = client.link.consumer_details()
    sent = details.consumed
    assert sent >= 1
    assert (details.window, details.offset, details.offset_lag) == (0, sent - 1, 3 - sent)


def test_a_subscription_to_an_empty_stream_lags_behind_nothing(client: LinkRig) -> None:
    subscribe = m.Subscribe(5, "s", FIRST, 1, {})
    assert client.code("subscribe", subscribe) == ResponseCode.OK

    (details,) = client.link.consumer_details()
    assert (details.offset, details.offset_lag) == (-1, 0)
