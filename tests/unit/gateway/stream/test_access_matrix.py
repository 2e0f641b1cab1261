"""Three rights, 31 commands, two virtual hosts: who may do what, and nobody else."""

from itertools import combinations, product

import pytest

from gateway.broker.access.model import Right, User, UserPermission
from gateway.stream.link import Link
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME, COMMANDS
from hutch.stream.errors import ProtocolError
from hutch.stream.offsets import FIRST
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

C, W, R = Right.CONFIGURE, Right.WRITE, Right.READ
RIGHTS = [frozenset(chosen) for size in range(4) for chosen in combinations((C, W, R), size)]
HOSTS = ("/", "v")
OTHER = {"/": "v", "v": "/"}

# One request for each command that a client may send once open, with the rights of which each
# set will do; nothing where none is needed.
NEEDS: dict[str, tuple[m.Message, tuple[set[Right], ...]]] = {
    "declare_publisher": (m.DeclarePublisher(1, "", "s"), ({W},)),
    "query_publisher_sequence": (m.QueryPublisherSequence("ref", "s"), ({R},)),
    "delete_publisher": (m.DeletePublisher(1), (set(),)),
    "subscribe": (m.Subscribe(1, "s", FIRST, 1, {}), ({R},)),
    "credit": (m.Credit(1, 1), (set(),)),
    "query_offset": (m.QueryOffset("ref", "s"), ({R},)),
    "unsubscribe": (m.Unsubscribe(1), (set(),)),
    "create_stream": (m.CreateStream("s", {}), ({C},)),
    "delete_stream": (m.DeleteStream("s"), ({C},)),
    "metadata": (m.Metadata(("s",)), ({R}, {W})),
    "sasl_authenticate": (m.SaslAuthenticate("PLAIN", b"\0app\0secret"), (set(),)),
    "close": (m.Close(1, ""), (set(),)),
    "route": (m.Route("key", "s"), ({W},)),
    "partitions": (m.Partitions("s"), ({R}, {W})),
    "exchange_command_versions": (m.ExchangeCommandVersions(()), (set(),)),
    "stream_stats": (m.StreamStats("s"), ({R},)),
    "resolve_offset_spec": (m.ResolveOffsetSpec("s", FIRST, {}), ({R},)),
}
UNANSWERED = {"publish", "store_offset", "heartbeat", "tune"}
"""Looked at below, each on its own."""
NOT_OF_A_CLIENT = {"publish_confirm", "publish_error", "deliver", "metadata_update"}
SUPER_STREAMS = {"create_super_stream", "delete_super_stream"}
NOT_ANY_MORE = {"peer_properties", "sasl_handshake", "open"}


@pytest.fixture
def two(broker: Broker) -> Broker:
    """Two virtual hosts with a stream each, and a user who may do nothing yet."""
    run = broker.store_rig.run
    run(broker.virtual_hosts.create("v"))
    for host in HOSTS:
        found = broker.virtual_hosts.find(host)
        assert found is not None
        run(found.streams.create("s", {}))
    guest = broker.access.user("guest")
    assert guest is not None
    # In RabbitMQ's cheap form: this is about rights.
    run(broker.access.put_user(User("app", guest.password_hash)))
    return broker


def allow(broker: Broker, host: str, rights: frozenset[Right]) -> None:
    """Give the user these rights here and exactly the others in the other virtual host."""
    for name in HOSTS:
        here = rights if name == host else frozenset(Right) - rights
        patterns = {right.value: "^(s|t|p|none)$" if right in here else "" for right in Right}
        broker.store_rig.run(
            broker.access.put_permission(UserPermission(user="app", virtual_host=name, **patterns))
        )


def test_every_command_has_its_place_here() -> None:
    assert len(COMMANDS) == 31
    assert {
        *NEEDS, *SUPER_STREAMS, *UNANSWERED, *NOT_OF_A_CLIENT, *NOT_ANY_MORE, "consumer_update"
    } == set(BY_NAME)  # fmt: skip


@pytest.mark.parametrize(("name", "host"), list(product(NEEDS, HOSTS)))
def test_a_command_is_refused_without_its_right_and_only_then(
    two: Broker, name: str, host: str
) -> None:
    request, enough = NEEDS[name]
    if name == "sasl_authenticate":
        request = m.SaslAuthenticate("PLAIN", b"\0app\0guest")
    for rights in RIGHTS:
        allow(two, host, rights)
        client = two.link(user="app", virtual_host=host)
        assert is_refused(client, name, request) is not any(rights >= each for each in enough)
        restore(two, host, client.link)


def is_refused(client: LinkRig, name: str, request: m.Message) -> bool:
    if name == "metadata":
        answer = client.ask(m.MetadataReply, name, request)
        [stream] = answer.streams
        assert bool(answer.brokers) is (stream.code == ResponseCode.OK)
        return stream.code == ResponseCode.ACCESS_REFUSED
    if name == "credit":
        answer_ = client.request(name, request)
        return getattr(answer_, "code", None) == ResponseCode.ACCESS_REFUSED
    return client.code(name, request) == ResponseCode.ACCESS_REFUSED


def restore(broker: Broker, host: str, link: Link) -> None:
    """Have the stream there again, nobody connected, and no super stream."""
    link.close()
    found = broker.virtual_hosts.find(host)
    assert found is not None
    if "s" not in found.streams.names():
        broker.store_rig.run(found.streams.create("s", {}))


@pytest.mark.parametrize("host", HOSTS)
def test_a_super_stream_is_managed_with_every_right_only(two: Broker, host: str) -> None:
    create = m.CreateSuperStream("t", ("p",), ("0",), {})
    delete = m.DeleteSuperStream("t")
    for rights in RIGHTS:
        allow(two, host, rights)
        app, guest = two.link(user="app", virtual_host=host), two.link(virtual_host=host)
        expected = ResponseCode.OK if len(rights) == len(Right) else ResponseCode.ACCESS_REFUSED
        give_guest_everything(two, host)
        assert app.code("create_super_stream", create) == expected
        guest.request("create_super_stream", create)
        # Of one that is not there, the right to delete it is all that is asked for.
        missing = ResponseCode.STREAM_DOES_NOT_EXIST if C in rights else ResponseCode.ACCESS_REFUSED
        assert app.code("delete_super_stream", m.DeleteSuperStream("none")) == missing
        assert app.code("delete_super_stream", delete) == expected
        guest.request("delete_super_stream", delete)


def give_guest_everything(broker: Broker, host: str) -> None:
    broker.store_rig.run(
        broker.access.put_permission(
            UserPermission(user="guest", virtual_host=host, configure=".*", write=".*", read=".*")
        )
    )


@pytest.mark.parametrize("host", HOSTS)
def test_an_offset_is_stored_with_the_right_to_read_only(two: Broker, host: str) -> None:
    for number, rights in enumerate(RIGHTS):
        allow(two, host, rights)
        client = two.link(user="app", virtual_host=host)
        client.tell("store_offset", m.StoreOffset(f"r{number}", "s", 7))
        allow(two, host, frozenset({R}))
        code = client.code("query_offset", m.QueryOffset(f"r{number}", "s"))
        assert (code == ResponseCode.OK) is (R in rights)


def test_who_subscribes_may_store_offsets_until_the_subscription_ends(two: Broker) -> None:
    allow(two, "/", frozenset({R}))
    client = two.link(user="app")
    assert client.code("subscribe", m.Subscribe(1, "s", FIRST, 1, {})) == ResponseCode.OK
    allow(two, "/", frozenset({W}))
    client.tell("store_offset", m.StoreOffset("ref", "s", 7))
    client.tell("unsubscribe", m.Unsubscribe(1))
    client.tell("store_offset", m.StoreOffset("ref", "s", 8))

    allow(two, "/", frozenset({R}))
    answer = two.link(user="app").request("query_offset", m.QueryOffset("ref", "s"))
    assert answer == m.StoredOffset(ResponseCode.OK, 7)


@pytest.mark.parametrize("host", HOSTS)
def test_publishing_goes_through_a_declared_publisher_only(two: Broker, host: str) -> None:
    for rights in RIGHTS:
        allow(two, host, rights)
        client = two.link(user="app", virtual_host=host)
        client.request("declare_publisher", m.DeclarePublisher(1, "", "s"))
        client.publish(1, (1, b"x"))
        assert (client.refused() == []) is (W in rights)


@pytest.mark.parametrize("name", [*NOT_OF_A_CLIENT, *NOT_ANY_MORE, "consumer_update"])
def test_what_a_client_may_not_say_at_all_is_no_matter_of_rights(two: Broker, name: str) -> None:
    for rights in RIGHTS:
        allow(two, "/", rights)
        client = two.link(user="app")
        with pytest.raises(ProtocolError):
            client.start_frame(BY_NAME[name].key.to_bytes(2) + b"\0\1" + bytes(30))
        assert client.received() == []


def test_names_are_judged_before_anything_is_said_of_them(two: Broker) -> None:
    """Whoever may do nothing learns nothing: not even which streams there are."""
    allow(two, "/", frozenset())
    client = two.link(user="app")

    for name, stream in product(("stream_stats", "delete_stream"), ("s", "nowhere")):
        request = m.StreamStats(stream) if name == "stream_stats" else m.DeleteStream(stream)
        assert client.code(name, request) == ResponseCode.ACCESS_REFUSED
    answer = client.ask(m.MetadataReply, "metadata", m.Metadata(("s", "nowhere")))
    assert {stream.code for stream in answer.streams} == {ResponseCode.ACCESS_REFUSED}


def test_a_name_is_judged_as_it_will_be(two: Broker) -> None:
    """CR and LF are taken out of the name of a new stream, and are no way around a pattern."""
    allow(two, "/", frozenset({C}))
    client = two.link(user="app")

    for name, code in (
        ("\nnone", ResponseCode.OK),
        ("secret\n", ResponseCode.ACCESS_REFUSED),
        ("", ResponseCode.PRECONDITION_FAILED),
        ("amq.x", ResponseCode.PRECONDITION_FAILED),
    ):
        assert client.code("create_stream", m.CreateStream(name, {})) == code
    assert two.streams.names() == ["none", "s"]
