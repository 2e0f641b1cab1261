"""The codes that one RabbitMQ node cannot be made to give: when Hutch gives them, and when not."""

from collections.abc import Callable

import pytest

from gateway.log.errors import CorruptChunk
from gateway.stream.wire import messages as m
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.offsets import FIRST
from store.errors import DiskFull, SegmentFailed, StoreError
from store.local.store import LocalStore
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

NOT_AVAILABLE = ResponseCode.STREAM_NOT_AVAILABLE
OF_A_STREAM = (
    ("declare_publisher", m.DeclarePublisher(1, "", "s")),
    ("query_publisher_sequence", m.QueryPublisherSequence("ref", "s")),
    ("subscribe", m.Subscribe(1, "s", FIRST, 1, {})),
    ("query_offset", m.QueryOffset("ref", "s")),
    ("stream_stats", m.StreamStats("s")),
    ("resolve_offset_spec", m.ResolveOffsetSpec("s", FIRST, {})),
)


def fail(monkeypatch: pytest.MonkeyPatch, broker: Broker, operation: str) -> None:
    """Let an operation of the store fail from now on."""

    def refuse(*_arguments: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(DiskFull("for the test"))

    monkeypatch.setattr(broker.store_rig.store, operation, refuse)


@pytest.fixture
def unreadable(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> LinkRig:
    """A link to a server whose stream `s` is there, and cannot be opened."""
    client = broker.link()
    client.create("s")
    client.tell("store_offset", m.StoreOffset("ref", "s", 5))
    # So that the offset is known without the stream.
    assert client.code("query_offset", m.QueryOffset("ref", "s")) == ResponseCode.OK

    async def open_log(*_arguments: object, **_options: object) -> None:
        raise CorruptChunk("s", 7, "for the test")

    broker.streams.find("s").log = None
    monkeypatch.setattr("gateway.broker.streams.open_log", open_log)
    return client


@pytest.mark.parametrize(("name", "message"), OF_A_STREAM, ids=[name for name, _ in OF_A_STREAM])
def test_a_stream_that_cannot_be_opened_is_not_available(
    unreadable: LinkRig, name: str, message: m.Message
) -> None:
    assert unreadable.code(name, message) == NOT_AVAILABLE


def test_a_stream_that_cannot_be_opened_is_still_described(unreadable: LinkRig) -> None:
    """This is the one node that has it; asking there says what is wrong."""
    found = unreadable.ask(m.MetadataReply, "metadata", m.Metadata(("s",)))

    assert [stream.code for stream in found.streams] == [ResponseCode.OK]


def test_an_offset_that_the_store_cannot_read_is_not_available(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, client.broker, "read_table")

    assert client.code("query_offset", m.QueryOffset("ref", "s")) == NOT_AVAILABLE


def test_a_place_that_cannot_be_found_has_no_offset(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def locate(*_arguments: object) -> None:
        raise CorruptChunk("s", 7, "for the test")

    monkeypatch.setattr("gateway.stream.handlers.streams.locate", locate)

    code = client.code("resolve_offset_spec", m.ResolveOffsetSpec("s", FIRST, {}))

    assert code == ResponseCode.NO_OFFSET


@pytest.mark.parametrize("broker", [{"anonymous": "guest"}], indirect=True)
@pytest.mark.parametrize("data", [b"", b"\0", b"guest", b"\0guest\0guest"])
def test_no_mechanism_on_offer_asks_back(broker: Broker, data: bytes) -> None:
    for mechanism in ("PLAIN", "AMQPLAIN", "ANONYMOUS"):
        fresh = broker.link(is_open=False)
        fresh.request("peer_properties", m.PeerProperties({}))
        offer = fresh.ask(m.SaslHandshakeReply, "sasl_handshake", m.SaslHandshake())
        assert mechanism in offer.mechanisms

        code = fresh.code("sasl_authenticate", m.SaslAuthenticate(mechanism, data))

        assert code != ResponseCode.SASL_CHALLENGE


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_stream_that_takes_nothing_until_a_restart_takes_no_publishers(
    client: LinkRig, *, is_empty: bool
) -> None:
    client.declare(1, "s")
    if not is_empty:
        client.publish(1, (1, b"kept"))
        client.broker.settle("s")
    store = client.broker.store_rig.store
    assert isinstance(store, LocalStore)
    (segment,) = [each for each in store._catalogue.names.values() if not each.is_table]
    segment.failure = SegmentFailed("for the test")
    segment.block()
    client.publish(1, (2, b"refused"))
    client.broker.settle("s")

    assert client.code("declare_publisher", m.DeclarePublisher(2, "", "s")) == NOT_AVAILABLE
    assert client.code("subscribe", m.Subscribe(1, "s", FIRST, 1, {})) == ResponseCode.OK
