"""A super stream that has lost partitions gets them again, in their places."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.broker.errors import ExchangeExists, PreconditionFailed
from gateway.broker.hosts.mending import mend_super_stream, super_streams_of
from gateway.broker.hosts.super_streams import create_super_stream
from gateway.broker.locks import Check, unchecked
from gateway.broker.topology.exchanges import Binding, Exchange
from hutch.stream import messages as m
from tests.unit.gateway.stream.link_rig import Broker

PARTITIONS = ("x-0", "x-1", "x-2")
KEYS = ("0", "1", "2")
HOUR = {"max-age": "1h"}
DAY = {"max-age": "24h"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker with the super stream `x`, of which records live for an hour."""
    broker = Broker(tmp_path)
    broker.store_rig.run(create_super_stream(broker.virtual_host, "x", PARTITIONS, KEYS, HOUR))
    yield broker
    broker.close()


def lose(broker: Broker, *partitions: str) -> None:
    for each in partitions:
        broker.link().tell("delete_stream", m.DeleteStream(each))
    assert not set(partitions) & set(partitions_of(broker))


def mend(
    broker: Broker,
    name: str = "x",
    arguments: Mapping[str, str] | None = None,
    check: Check = unchecked,
) -> None:
    host = broker.virtual_host
    mending = mend_super_stream(host, name, PARTITIONS, KEYS, arguments or {}, check=check)
    broker.store_rig.run(mending)


def partitions_of(broker: Broker) -> tuple[str, ...]:
    return tuple(broker.virtual_host.exchanges.partitions("x"))


def max_age(broker: Broker, stream: str) -> str | None:
    return broker.stream(stream).entry.arguments.get("max-age")


def test_a_lost_partition_is_made_like_the_first_and_has_its_place_again(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lose(broker, "x-1")

    mend(broker)

    assert partitions_of(broker) == PARTITIONS
    assert broker.virtual_host.exchanges.route("x", "1") == ["x-1"]
    assert max_age(broker, "x-1") == "1h"
    (line,) = (each for each in caplog.messages if each.startswith("super stream mended"))
    assert line.endswith("partitions=1")
    broker.close()
    again = Broker(tmp_path)
    assert partitions_of(again) == PARTITIONS
    again.close()


def test_arguments_that_are_given_count_for_what_is_made_alone(broker: Broker) -> None:
    lose(broker, "x-0", "x-2")

    mend(broker, arguments=DAY)

    assert partitions_of(broker) == PARTITIONS
    assert [max_age(broker, each) for each in PARTITIONS] == ["24h", "1h", "24h"]


def test_one_without_any_partition_gets_all_without_arguments(broker: Broker) -> None:
    lose(broker, *PARTITIONS)

    mend(broker)

    assert partitions_of(broker) == PARTITIONS
    assert {max_age(broker, each) for each in PARTITIONS} == {None}


def test_a_stream_of_a_lost_partitions_name_is_bound_as_it_is(broker: Broker) -> None:
    lose(broker, "x-2")
    broker.store_rig.run(broker.streams.create("x-2", DAY))
    there = broker.stream("x-2")

    mend(broker)

    assert partitions_of(broker) == PARTITIONS
    assert broker.stream("x-2") is there
    assert max_age(broker, "x-2") == "24h"


@pytest.mark.parametrize("name", ["x", "e"])
def test_what_lacks_nothing_or_is_no_super_stream_is_said_to_exist(
    broker: Broker, name: str
) -> None:
    exchanges = broker.virtual_host.exchanges
    broker.store_rig.run(exchanges.declare(Exchange("e")))

    with pytest.raises(ExchangeExists):
        mend(broker, name)

    assert not exchanges.partitions("e")
    assert partitions_of(broker) == PARTITIONS


def test_a_right_that_goes_meanwhile_ends_it_at_the_partition_that_is_next(broker: Broker) -> None:
    lose(broker, "x-0", "x-2")

    def check() -> None:
        if "x-0" in partitions_of(broker):
            raise PreconditionFailed("no right any more")

    with pytest.raises(PreconditionFailed, match="no right any more"):
        mend(broker, check=check)

    assert partitions_of(broker) == ("x-0", "x-1")
    assert "x-2" not in broker.streams


def test_the_super_streams_of_a_stream_are_those_that_it_is_a_partition_of(broker: Broker) -> None:
    host = broker.virtual_host
    run = broker.store_rig.run
    run(host.exchanges.declare(Exchange("e")))
    run(create_super_stream(host, "y", ("y-0",), ("0",), {}))
    run(host.exchanges.bind(Binding(source="e", destination="x-1", routing_key="k")))
    run(host.exchanges.bind(Binding(source="y", destination="x-1", routing_key="1")))

    assert sorted(super_streams_of(host, "x-1")) == ["x", "y"]
    assert super_streams_of(host, "x-0") == ["x"]
    lose(broker, "x-0")
    assert super_streams_of(host, "x-0") == []
