"""Exchanges and bindings: what is there, what leads where, and what a restart brings back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.errors import (
    ExchangeDoesNotExist,
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
)
from gateway.broker.topology.exchange import SUPER_STREAM
from gateway.broker.topology.exchanges import PARTITION_ORDER, Binding, Exchange, Exchanges
from hutch.stream import messages as m
from tests.unit.gateway.broker.streams.test_streams import refuse
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.link().create("s", "t", "u")
    yield broker
    broker.close()


def exchanges(broker: Broker) -> Exchanges:
    return broker.virtual_host.exchanges


def declare(broker: Broker, name: str = "e", kind: str = "direct", **options: Any) -> None:  # noqa: ANN401
    broker.store_rig.run(exchanges(broker).declare(Exchange(name, kind, **options)))


def bind(broker: Broker, stream: str, key: str = "", name: str = "e", **arguments: object) -> None:
    broker.store_rig.run(
        exchanges(broker).bind(
            Binding(source=name, destination=stream, routing_key=key, arguments=arguments)
        )
    )


def unbind(broker: Broker, stream: str, key: str = "", **arguments: object) -> None:
    broker.store_rig.run(
        exchanges(broker).unbind(
            Binding(source="e", destination=stream, routing_key=key, arguments=arguments)
        )
    )


def rows(broker: Broker) -> int:
    """How many exchanges and bindings are in the table."""
    catalogue = broker.streams.catalogue
    broker.store_rig.run(catalogue.load())
    found, catalogue.topology = catalogue.topology, []
    return len(found)


def restarted(broker: Broker, tmp_path: Path) -> Broker:
    broker.close()
    return Broker(tmp_path)


# Partitions


def test_a_partition_that_is_bound_twice_is_warned_of_with_the_names_of_its_bindings(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    declare(broker, arguments={SUPER_STREAM: True})
    declare(broker, "plain")
    for stream, key in (("s", "0"), ("t", "1")):
        bind(broker, stream, key)
        bind(broker, stream, key, "plain")
        bind(broker, stream, f"{key}-again", "plain")
    bind(broker, "s", "0")
    assert "bound more than once" not in caplog.text

    bind(broker, "s", "again", order=3)

    (line,) = [one for one in caplog.messages if "bound more than once" in one]
    assert line == (
        "partition bound more than once, and clients read it as often: remove all bindings but one"
        " super_stream=e virtual_host=/ stream=s bindings='0', 'again' {'order': 3}"
    )


def test_many_bindings_of_a_partition_at_once_are_warned_of_once_with_the_names_of_some(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    declare(broker, arguments={SUPER_STREAM: True})
    many = [Binding(source="e", destination="s", routing_key=f"{key}") for key in range(50)]

    broker.store_rig.run(exchanges(broker).bind(*many))

    (line,) = [one for one in caplog.messages if "bound more than once" in one]
    assert line.partition("bindings=")[2].count(", ") == 9


# Exchanges


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic"])
def test_an_exchange_and_its_bindings_outlive_a_restart(
    broker: Broker, tmp_path: Path, kind: str
) -> None:
    declare(broker, kind=kind, arguments={"a": [1, {"b": None}]}, internal=True)
    bind(broker, "t", "k", order=1)
    bind(broker, "s", "k")
    bind(broker, "s", "k", name="amq.direct")

    again = restarted(broker, tmp_path)

    found = exchanges(again)
    assert found.declared("e").exchange == Exchange(
        "e", kind, internal=True, arguments={"a": [1, {"b": None}]}
    )
    assert found.route("e", "k") == ["s", "t"]
    assert found.route("amq.direct", "k") == ["s"]
    assert len(found.bindings()) == 3
    assert (
        Binding(source="e", destination="t", routing_key="k", arguments={"order": 1})
        in found.bindings()
    )
    again.close()


def test_an_exchange_is_declared_again_only_as_what_it_is(broker: Broker) -> None:
    declare(broker, kind="topic")
    declare(broker, kind="topic")

    for name, other in (
        ("type", Exchange("e", "fanout")),
        ("durable", Exchange("e", "topic", durable=False)),
        ("auto_delete", Exchange("e", "topic", auto_delete=True)),
        ("internal", Exchange("e", "topic", internal=True)),
        ("alternate-exchange", Exchange("e", "topic", arguments={"alternate-exchange": "f"})),
    ):
        with pytest.raises(PreconditionFailed, match=f"inequivalent arg '{name}'"):
            broker.store_rig.run(exchanges(broker).declare(other))
    assert [each.name for each in exchanges(broker).all()].count("e") == 1


def test_other_arguments_of_an_exchange_may_be_asked_for_again_and_stay_what_they_are(
    broker: Broker,
) -> None:
    declare(broker, arguments={"x": 1, "alternate-exchange": "f"})

    for arguments in ({"alternate-exchange": "f"}, {"alternate-exchange": "f", "x": [2], "y": {}}):
        declare(broker, arguments=arguments)
    with pytest.raises(PreconditionFailed, match='received null but current is "f"'):
        declare(broker)

    assert exchanges(broker).declared("e").exchange.arguments == {
        "x": 1,
        "alternate-exchange": "f",
    }
    declare(broker, "amq.direct", arguments={"a": 1})
    assert exchanges(broker).declared("amq.direct").exchange.arguments == {}


@pytest.mark.parametrize(
    ("name", "kind"), [("", "direct"), ("amq.e", "direct"), ("e\n", "direct"), ("e", "headers"),
                       ("e", "x-random")]
)  # fmt: skip
def test_bad_names_and_unknown_types_are_refused(broker: Broker, name: str, kind: str) -> None:
    with pytest.raises(PreconditionFailed):
        declare(broker, name, kind)


@pytest.mark.parametrize("name", ["", "amq.direct"])
def test_what_is_always_there_cannot_be_deleted(broker: Broker, name: str) -> None:
    with pytest.raises(PreconditionFailed):
        broker.store_rig.run(exchanges(broker).delete(name))


def test_a_deleted_exchange_takes_its_bindings_along_and_leaves_the_streams(
    broker: Broker, tmp_path: Path
) -> None:
    declare(broker)
    bind(broker, "s", "k")
    broker.store_rig.run(exchanges(broker).delete("e"))

    with pytest.raises(ExchangeDoesNotExist):
        exchanges(broker).route("e", "k")
    declare(broker)
    assert exchanges(broker).route("e", "k") == []
    again = restarted(broker, tmp_path)
    assert exchanges(again).route("e", "k") == []
    assert "s" in again.streams
    again.close()


def test_what_is_not_durable_is_gone_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    declare(broker, durable=False)
    bind(broker, "s", "k")
    assert exchanges(broker).route("e", "k") == ["s"]
    assert rows(broker) == 0

    again = restarted(broker, tmp_path)

    assert "e" not in exchanges(again)
    again.close()


@pytest.mark.parametrize("way", ["unbound", "stream deleted"])
def test_an_exchange_that_is_to_go_with_its_last_binding_goes(
    broker: Broker, tmp_path: Path, way: str
) -> None:
    declare(broker, auto_delete=True)
    bind(broker, "s", "1")
    bind(broker, "s", "2")
    unbind(broker, "s", "1")
    assert "e" in exchanges(broker)

    if way == "unbound":
        unbind(broker, "s", "2")
    else:
        broker.link().tell("delete_stream", m.DeleteStream("s"))

    assert "e" not in exchanges(broker)
    assert rows(broker) == 0
    again = restarted(broker, tmp_path)
    assert "e" not in exchanges(again)
    again.close()


@pytest.mark.parametrize("operation", ["declare", "delete", "bind", "unbind"])
def test_what_the_store_refuses_has_not_happened(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    declare(broker)
    bind(broker, "s", "k")
    before = exchanges(broker).all(), exchanges(broker).bindings()
    changes = {
        "declare": lambda: declare(broker, "f"),
        "delete": lambda: broker.store_rig.run(exchanges(broker).delete("e")),
        "bind": lambda: bind(broker, "t", "k"),
        "unbind": lambda: unbind(broker, "s", "k"),
    }
    with monkeypatch.context() as patch:
        refuse(patch, broker, "update_table")
        refuse(patch, broker, "remove_keys")
        with pytest.raises(InternalError):
            changes[operation]()

    assert (exchanges(broker).all(), exchanges(broker).bindings()) == before
    changes[operation]()
    assert (exchanges(broker).all(), exchanges(broker).bindings()) != before


# Bindings


def test_bindings_that_differ_in_arguments_alone_are_two(broker: Broker) -> None:
    declare(broker)
    bind(broker, "s", "k")
    bind(broker, "s", "k")
    bind(broker, "s", "k", x=1)

    assert len(exchanges(broker).bindings()) == 2
    unbind(broker, "s", "k")
    assert exchanges(broker).route("e", "k") == ["s"]
    unbind(broker, "s", "k")
    unbind(broker, "s", "k", x=1)
    assert exchanges(broker).route("e", "k") == []


def test_a_binding_needs_both_its_ends(broker: Broker) -> None:
    declare(broker)
    with pytest.raises(ExchangeDoesNotExist):
        bind(broker, "s", name="nowhere")
    with pytest.raises(StreamDoesNotExist):
        bind(broker, "nowhere")
    for name in ("", "amq.headers", "amq.match"):
        with pytest.raises(PreconditionFailed):
            bind(broker, "s", name=name)
    with pytest.raises(PreconditionFailed):
        bind(broker, "s", bad=b"bytes")
    assert exchanges(broker).bindings() == []


def test_partitions_are_listed_by_the_order_of_their_bindings(broker: Broker) -> None:
    declare(broker)
    for stream, key, order in (("s", "1", 2), ("t", "2", "-5"), ("u", "3", None), ("s", "4", "x"),
                               ("t", "5", 7)):  # fmt: skip
        broker.store_rig.run(
            exchanges(broker).bind(
                Binding(
                    source="e",
                    destination=stream,
                    routing_key=key,
                    arguments={PARTITION_ORDER: order},
                )
            )
        )

    assert exchanges(broker).partitions("e") == ("t", "s", "t", "s", "u")
    assert exchanges(broker).orders_of("e", "t") == [-5, 7]
    assert exchanges(broker).orders_of("e", "u") == [None]
    assert exchanges(broker).orders_of("nowhere", "t") == []


def test_a_deleted_stream_takes_its_bindings_along(broker: Broker, tmp_path: Path) -> None:
    declare(broker)
    declare(broker, "f", "fanout")
    for name in ("e", "f", "amq.topic"):
        bind(broker, "s", "k", name)
        bind(broker, "t", "k", name)

    broker.link().tell("delete_stream", m.DeleteStream("s"))
    broker.link().create("s")

    assert {each.destination for each in exchanges(broker).bindings()} == {"t"}
    assert exchanges(broker).route("f", "k") == ["t"]
    assert rows(broker) == 5
    again = restarted(broker, tmp_path)
    assert exchanges(again).route("e", "k") == ["t"]
    again.close()


def test_a_binding_whose_stream_was_lost_leads_to_no_other_of_its_name(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    declare(broker)
    bind(broker, "s", "k")
    client = broker.link()
    with monkeypatch.context() as patch:
        refuse(patch, broker, "remove_keys")
        client.tell("delete_stream", m.DeleteStream("s"))
    assert rows(broker) == 2

    again = restarted(broker, tmp_path)
    again.link().create("s")

    assert exchanges(again).route("e", "k") == []
    assert rows(again) == 1
    again.close()
