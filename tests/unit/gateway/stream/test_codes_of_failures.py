"""The codes that one RabbitMQ node cannot be made to give: when Hutch gives them, and when not."""

from collections.abc import Callable

import pytest

from gateway.log.damage.errors import CorruptChunk
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, NEXT
from store.errors import DiskFull, SegmentFailed, StoreError
from store.local.store import LocalStore
from tests.unit.gateway.stream.handlers.test_handshake import log_in
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
    monkeypatch.setattr("gateway.broker.streams.stream_logs.open_log", open_log)
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

        code = log_in(fresh, m.SaslAuthenticate(mechanism, data))

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
    (segment,) = [each for each in store.catalogue.names.values() if not each.is_table]
    segment.failure = SegmentFailed("for the test")
    segment.block()
    client.publish(1, (2, b"refused"))
    client.broker.settle("s")

    assert client.code("declare_publisher", m.DeclarePublisher(2, "", "s")) == NOT_AVAILABLE
    assert client.code("subscribe", m.Subscribe(1, "s", FIRST, 1, {})) == ResponseCode.OK


def test_readers_of_what_cannot_be_read_lose_their_subscription_and_publishers_stay(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = broker.link(), broker.link()
    client.create("s")
    client.declare(1, "s")
    client.publish(1, (1, b"a"))
    broker.settle("s")
    client.request("subscribe", m.Subscribe(1, "s", FIRST, 5, {}))
    other.request("subscribe", m.Subscribe(1, "s", NEXT, 5, {}))
    reader = broker.log("s").reader

    def refuse(*_arguments: object) -> bytes:
        raise SegmentFailed("cannot read: Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(broker.log("s"), "reader", Refusing(reader, refuse))
        while client.link.subscriptions:
            client.deliver(1)

    assert client.take("metadata_update") == [m.MetadataUpdate(NOT_AVAILABLE, "s")]
    assert client.link.subscriptions == {}
    assert list(client.link.publishers) == [1]
    assert caplog.text.count("stream cannot be read stream=s ") == 1
    client.publish(1, (2, b"b"))
    broker.settle("s")
    assert client.confirmed() == [(1, (1,)), (1, (2,))]
    assert other.link.subscriptions.keys() == {1}


class Refusing:
    """A reader whose reads from memory fail."""

    def __init__(self, reader: object, read_cached: Callable[..., bytes]) -> None:
        self._reader = reader
        self.read_cached = read_cached

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)


def test_named_publishers_are_refused_where_publishing_ids_are_damaged(broker: Broker) -> None:
    client = broker.link()
    client.create("s")
    client.declare(1, "s")
    broker.log("s").sequences.restore([b"\x05ab"])

    assert (
        client.code("declare_publisher", m.DeclarePublisher(2, "named", "s"))
        == ResponseCode.INTERNAL_ERROR
    )
    assert (
        client.code("query_publisher_sequence", m.QueryPublisherSequence("named", "s"))
        == ResponseCode.INTERNAL_ERROR
    )
    assert client.code("declare_publisher", m.DeclarePublisher(3, "", "s")) == ResponseCode.OK
