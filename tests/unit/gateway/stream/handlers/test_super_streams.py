"""Super streams over the protocol: what is answered, and what is there afterwards."""

import tracemalloc
from collections.abc import Iterable, Sequence

import pytest

from gateway.broker.access.access import Access, Demand
from gateway.broker.hosts import client_session
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.stream.link import RIGHTS
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission
from hutch.stream.errors import MalformedFrame
from hutch.stream.offsets import FIRST
from tests.unit.gateway.stream.link_rig import LinkRig

OK = ResponseCode.OK
UNKNOWN = ResponseCode.STREAM_DOES_NOT_EXIST
EXISTS = ResponseCode.STREAM_ALREADY_EXISTS
PRECONDITION = ResponseCode.PRECONDITION_FAILED
REFUSED = ResponseCode.ACCESS_REFUSED
INTERNAL = ResponseCode.INTERNAL_ERROR
EITHER = Permission.READ_OR_WRITE


def create(
    client: LinkRig,
    name: str = "x",
    count: int = 3,
    *,
    partitions: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    arguments: dict[str, str] | None = None,
) -> int:
    if partitions is None:
        partitions = [f"{name}-{number}" for number in range(count)]
    if keys is None:
        keys = [str(number) for number in range(len(partitions))]
    message = m.CreateSuperStream(name, tuple(partitions), tuple(keys), arguments or {})
    return client.code("create_super_stream", message)


def delete(client: LinkRig, name: str = "x") -> int:
    return client.code("delete_super_stream", m.DeleteSuperStream(name))


def partitions(client: LinkRig, name: str = "x") -> tuple[int, tuple[str, ...]]:
    answer = client.ask(m.StreamsReply, "partitions", m.Partitions(name))
    return answer.code, answer.streams


def route(client: LinkRig, key: str, name: str = "x") -> tuple[int, tuple[str, ...]]:
    answer = client.ask(m.StreamsReply, "route", m.Route(key, name))
    return answer.code, answer.streams


def exists(client: LinkRig, stream: str) -> bool:
    answer = client.ask(m.MetadataReply, "metadata", m.Metadata((stream,)))
    return answer.streams[0].code == OK


def refuse(monkeypatch: pytest.MonkeyPatch, *refused: tuple[Permission, str]) -> None:
    """Take permissions away, as an administrator would."""
    taken = {(RIGHTS[permission], name) for permission, name in refused}

    def first(_access: Access, _user: str, _host: str, demands: Iterable[Demand]) -> Demand | None:
        # A demand of one right of two is met by the other one.
        return next((each for each in demands if tuple(each) in taken), None)

    monkeypatch.setattr(client_session, "refused", first)


# Creating


def test_a_super_stream_has_its_partitions_in_order_and_a_route_to_each(client: LinkRig) -> None:
    assert create(client, partitions=["p-b", "p-c", "p-a"], keys=["beta", "gamma", "alpha"]) == OK

    assert partitions(client) == (OK, ("p-b", "p-c", "p-a"))
    assert route(client, "gamma") == (OK, ("p-c",))
    assert route(client, "delta") == (OK, ())
    assert all(exists(client, each) for each in ("p-a", "p-b", "p-c"))


def test_a_key_may_lead_to_several_partitions(client: LinkRig) -> None:
    assert create(client, keys=["same", "other", "same"]) == OK

    assert route(client, "same") == (OK, ("x-0", "x-2"))


def test_a_super_stream_may_be_without_partitions(client: LinkRig) -> None:
    assert create(client, count=0) == OK

    assert partitions(client) == (OK, ())
    assert delete(client) == OK
    assert partitions(client) == (UNKNOWN, ())


@pytest.mark.parametrize("name", ["", "\r\n", "amq.x"])
def test_a_bad_name_of_the_super_stream_is_refused(client: LinkRig, name: str) -> None:
    assert create(client, name, partitions=["p"]) == PRECONDITION
    assert not exists(client, "p")


@pytest.mark.parametrize("bad", ["", "\n", "amq.p"])
def test_a_bad_name_of_a_partition_is_refused(client: LinkRig, bad: str) -> None:
    assert create(client, partitions=["p", bad]) == PRECONDITION
    assert not exists(client, "p")
    assert partitions(client) == (UNKNOWN, ())


def test_line_ends_are_taken_out_of_all_names(client: LinkRig) -> None:
    assert create(client, "x\r\n", partitions=["x\n-0"]) == OK

    assert partitions(client) == (OK, ("x-0",))
    assert create(client, "y", partitions=["p", "p\n"]) == PRECONDITION


@pytest.mark.parametrize(
    ("names", "keys"), [(["p", "q"], ["0"]), (["p"], ["0", "1"]), (["p", "p"], ["0", "1"])]
)
def test_each_partition_has_one_key_and_is_named_once(
    client: LinkRig, names: list[str], keys: list[str]
) -> None:
    assert create(client, partitions=names, keys=keys) == PRECONDITION
    assert not exists(client, "p")


def test_a_name_that_is_taken_by_an_exchange_or_a_stream_is_told(client: LinkRig) -> None:
    assert create(client) == OK

    assert create(client) == EXISTS
    assert create(client, partitions=["other"]) == EXISTS
    assert create(client, "y", partitions=["y-0", "x-1"]) == EXISTS
    assert create(client, "y", partitions=["y-0", "s"]) == EXISTS
    assert not exists(client, "y-0")
    assert partitions(client, "y") == (UNKNOWN, ())
    assert create(client, "s") == OK  # a stream of that name is no hindrance


@pytest.mark.parametrize(
    "arguments", [{"stream-filter-size-bytes": "3"}, {"max-length-bytes": "many"}]
)
def test_a_bad_argument_is_an_internal_error_and_leaves_nothing(
    client: LinkRig, arguments: dict[str, str]
) -> None:
    assert create(client, arguments=arguments) == INTERNAL
    assert not exists(client, "x-0")
    assert partitions(client) == (UNKNOWN, ())


def test_partitions_are_streams_with_the_arguments_and_a_balanced_leader(client: LinkRig) -> None:
    assert create(client, count=2, arguments={"max-age": "1h"}) == OK

    balanced = {"max-age": "60m", "queue-leader-locator": "balanced"}
    assert client.code("create_stream", m.CreateStream("x-0", balanced)) == EXISTS
    assert client.code("create_stream", m.CreateStream("x-0", {"max-age": "1h"})) == PRECONDITION
    assert create(client, "y", 1, arguments={"queue-leader-locator": "random"}) == OK
    random = {"queue-leader-locator": "random"}
    assert client.code("create_stream", m.CreateStream("y-0", random)) == EXISTS


def test_two_super_streams_of_one_name_at_once_are_one(client: LinkRig) -> None:
    other = client.broker.link()
    links = (client, other)
    messages = [
        m.CreateSuperStream("x", (f"{each}-0", "shared"), ("0", "1"), {}) for each in ("a", "b")
    ]
    started = [
        link.start("create_super_stream", message)
        for link, message in zip(links, messages, strict=True)
    ]
    for link, done in zip(links, started, strict=True):
        link.finish(done)

    codes = [each.answer_to("create_super_stream") for each in links]
    assert codes == [m.Status(OK), m.Status(EXISTS)]
    assert partitions(client) == (OK, ("a-0", "shared"))
    assert not exists(client, "b-0")


def test_two_super_streams_that_want_each_others_partitions_do_not_wait_for_ever(
    client: LinkRig,
) -> None:
    other = client.broker.link()
    first = client.start(
        "create_super_stream", m.CreateSuperStream("x", ("p", "q"), ("0", "1"), {})
    )
    second = other.start(
        "create_super_stream", m.CreateSuperStream("y", ("q", "p"), ("0", "1"), {})
    )
    client.finish(first)
    other.finish(second)

    assert client.answer_to("create_super_stream") == m.Status(OK)
    assert other.answer_to("create_super_stream") == m.Status(EXISTS)


# Limits


def test_a_thousand_partitions_are_allowed_and_one_more_is_refused_before_any_is_made(
    client: LinkRig,
) -> None:
    assert create(client, count=1_000) == OK
    assert partitions(client) == (OK, tuple(f"x-{number}" for number in range(1_000)))
    names = tuple(f"y-{number}" for number in range(1_001))
    message = m.CreateSuperStream("y", names, names, {})

    streams = client.broker.streams.names()
    assert client.code("create_super_stream", message) == PRECONDITION

    assert client.broker.streams.names() == streams
    assert not client.broker.streams.storage.leftovers
    assert partitions(client, "y") == (UNKNOWN, ())
    assert not exists(client, "y-0")
    assert delete(client) == OK
    assert not exists(client, "x-999")


def test_the_limit_is_a_setting(client: LinkRig) -> None:
    client.broker.virtual_host.partitions_max = 2

    assert create(client, count=3) == PRECONDITION
    assert create(client, count=2) == OK


# Deleting


def test_deleting_takes_the_partitions_along_and_tells_who_uses_them_after_the_reply(
    client: LinkRig,
) -> None:
    assert create(client, count=2) == OK
    user = client.broker.link()
    user.declare(1, "x-0")
    client.declare(1, "x-1")

    client.tell("delete_super_stream", m.DeleteSuperStream("x"))

    names = [each.command.name for each in client.received()]
    assert names == ["delete_super_stream", "metadata_update"]
    assert client.answer_to("delete_super_stream") == m.Status(OK)
    assert [each.stream for each in client.take("metadata_update")] == ["x-1"]
    assert [each.stream for each in user.take("metadata_update")] == ["x-0"]
    assert user.link.publishers == {}
    assert not exists(client, "x-0")
    assert partitions(client) == (UNKNOWN, ())
    assert route(client, "0") == (UNKNOWN, ())


@pytest.mark.parametrize("name", ["", "amq.direct", "nowhere", "s"])
def test_what_is_no_super_stream_is_not_found_by_a_deletion(client: LinkRig, name: str) -> None:
    assert delete(client, name) == UNKNOWN
    assert exists(client, "s")


def test_a_deleted_super_stream_can_be_made_again(client: LinkRig) -> None:
    assert create(client) == OK
    assert delete(client) == OK
    assert delete(client) == UNKNOWN

    assert create(client, count=1, keys=["k"]) == OK
    assert partitions(client) == (OK, ("x-0",))


def test_a_deleted_partition_is_bound_no_more_also_if_made_again(client: LinkRig) -> None:
    assert create(client) == OK
    assert client.code("delete_stream", m.DeleteStream("x-1")) == OK

    assert partitions(client) == (OK, ("x-0", "x-2"))
    assert route(client, "1") == (OK, ())
    client.create("x-1")
    assert partitions(client) == (OK, ("x-0", "x-2"))
    assert delete(client) == OK
    assert exists(client, "x-1")


# Other exchanges


def test_the_default_exchange_leads_to_every_stream_by_its_name(client: LinkRig) -> None:
    client.create("t")

    assert route(client, "t", "") == (OK, ("t",))
    assert route(client, "nowhere", "") == (OK, ())
    assert partitions(client, "") == (OK, ("s", "t"))


@pytest.mark.parametrize(
    "name",
    ["amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic", "amq.rabbitmq.trace"],
)
def test_exchanges_that_are_always_there_are_empty(client: LinkRig, name: str) -> None:
    assert partitions(client, name) == (OK, ())
    assert route(client, "key", name) == (OK, ())


@pytest.mark.parametrize("name", ["nowhere", "s", "amq.nothing"])
def test_what_is_no_exchange_has_neither_routes_nor_partitions(client: LinkRig, name: str) -> None:
    assert partitions(client, name) == (UNKNOWN, ())
    assert route(client, "key", name) == (UNKNOWN, ())


def declare(client: LinkRig, name: str, kind: str, other: str | None = None) -> None:
    arguments = {} if other is None else {"alternate-exchange": other}
    client.broker.store_rig.run(
        client.link.virtual_host.exchanges.declare(Exchange(name, kind, arguments=arguments))
    )


def bind(client: LinkRig, source: str, stream: str, key: str) -> None:
    client.broker.store_rig.run(
        client.link.virtual_host.exchanges.bind(
            Binding(source=source, destination=stream, routing_key=key)
        )
    )


def test_what_an_exchange_cannot_route_goes_by_its_alternate_one_each_asked_once(
    client: LinkRig,
) -> None:
    client.create("t")
    for name, kind, other in (
        ("first", "direct", "second"),
        ("second", "topic", "third"),
        ("third", "direct", "first"),
        ("to-nobody", "direct", "gone"),
        ("to-default", "direct", ""),
    ):
        declare(client, name, kind, other)
    for source, stream, key in (("first", "s", "a"), ("third", "s", "b"), ("third", "t", "b")):
        bind(client, source, stream, key)

    assert route(client, "a", "first") == (OK, ("s",))
    assert route(client, "b", "first") == (OK, ("s", "t"))
    assert route(client, "a", "second") == (OK, ("s",))
    assert route(client, "c", "first") == (OK, ())
    assert route(client, "s", "to-nobody") == (OK, ())
    assert route(client, "s", "to-default") == (OK, ())
    assert partitions(client, "first") == (OK, ("s",))


# Permissions


@pytest.mark.parametrize(
    "missing",
    [
        (Permission.CONFIGURE, "x"),
        (Permission.CONFIGURE, "x-1"),
        (Permission.READ, "x"),
        (Permission.WRITE, "x-2"),
    ],
)
def test_creating_and_deleting_take_every_permission(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, missing: tuple[Permission, str]
) -> None:
    with monkeypatch.context() as patch:
        refuse(patch, missing)
        assert create(client) == REFUSED
    assert not exists(client, "x-0")
    assert create(client) == OK

    with monkeypatch.context() as patch:
        refuse(patch, missing)
        assert delete(client) == REFUSED
    assert partitions(client) == (OK, ("x-0", "x-1", "x-2"))
    assert delete(client) == OK


def test_permission_to_configure_is_asked_for_before_the_exchange_is_looked_up(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, (Permission.CONFIGURE, "nowhere"), (Permission.READ, "nowhere-2"))

    assert delete(client, "nowhere") == REFUSED
    assert delete(client, "nowhere-2") == UNKNOWN


def test_a_route_takes_permission_to_write_to_the_exchange_and_to_what_it_leads_to(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create(client) == OK
    refuse(monkeypatch, (Permission.WRITE, "x-1"), (Permission.WRITE, "y"))

    assert route(client, "0") == (OK, ("x-0",))
    assert route(client, "1") == (REFUSED, ())
    assert route(client, "1", "y") == (REFUSED, ())


def test_the_default_exchange_is_called_amq_default_where_permissions_are_looked_up(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        refuse(patch, (Permission.WRITE, ""), (EITHER, ""))
        assert route(client, "s", "") == (OK, ("s",))
        assert partitions(client, "") == (OK, ("s",))
    refuse(monkeypatch, *((each, "amq.default") for each in (Permission.WRITE, EITHER)))
    assert route(client, "s", "") == (REFUSED, ())
    assert route(client, "nowhere", "") == (REFUSED, ())
    assert partitions(client, "") == (REFUSED, ())


def test_partitions_take_permission_to_read_or_write_them_all(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create(client) == OK
    refuse(monkeypatch, (Permission.READ_OR_WRITE, "x-1"), (Permission.READ_OR_WRITE, "y"))

    assert partitions(client) == (REFUSED, ())
    assert partitions(client, "y") == (REFUSED, ())


def test_metadata_refuses_single_streams(client: LinkRig, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create("t")
    refuse(monkeypatch, (Permission.READ_OR_WRITE, "t"), (Permission.READ_OR_WRITE, "nowhere"))

    answer = client.ask(m.MetadataReply, "metadata", m.Metadata(("s", "t", "nowhere")))

    assert {each.stream: (each.code, each.leader) for each in answer.streams} == {
        "s": (OK, 0),
        "t": (REFUSED, 0xFFFF),
        "nowhere": (REFUSED, 0xFFFF),
    }


# Partitions are streams


def test_a_partition_is_published_to_and_read(client: LinkRig) -> None:
    assert create(client, count=2) == OK
    client.declare(1, "x-1")
    client.publish(1, (1, b"a"))
    client.broker.settle("x-1")

    assert client.confirmed() == [(1, (1,))]
    subscribe = m.Subscribe(1, "x-1", FIRST, 10, {})
    assert client.code("subscribe", subscribe) == OK
    client.broker.loop.run_for(0.05)
    assert len(client.deliver(1)) == 1


@pytest.mark.parametrize("count", [500_000, 2**32 - 1])
def test_a_list_that_is_absurdly_long_is_not_even_read(client: LinkRig, count: int) -> None:
    name = b"\x00\x01x"
    frame = b"\x00\x1d\x00\x01" + bytes(4) + name + count.to_bytes(4) + bytes(2 * 500_000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedFrame):
            client.start_frame(frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < len(frame) * 2  # a copy of the frame, and no list of names
