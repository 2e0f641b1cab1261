import pytest

from gateway.stream.properties import (
    ALL_BYTES_MAX,
    ONE_BYTES_MAX,
    REST_BYTES_MAX,
    Properties,
    TooLarge,
)
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.unit.gateway.stream.link_rig import Broker

ENTRY = len("x") + 4


def test_properties_are_kept_as_they_came() -> None:
    given = {"name": "n", "filter.0": "a", "filter.1": "b", "note": "ü"}

    kept = Properties(given)

    assert kept == given
    assert kept.wire_bytes == sum(len((k + v).encode()) + 4 for k, v in given.items())


def test_what_is_not_known_has_a_bound_of_its_own() -> None:
    Properties({"x": "v" * (REST_BYTES_MAX - ENTRY)})
    with pytest.raises(TooLarge, match="not known"):
        Properties({"x": "v" * (REST_BYTES_MAX - ENTRY + 1)})
    with pytest.raises(TooLarge, match="not known"):
        Properties({f"x{number}": "" for number in range(REST_BYTES_MAX // ENTRY)})


def test_a_subscription_may_have_a_thousand_filter_values() -> None:
    uuid = "0" * 36
    Properties({f"filter.{number}": uuid for number in range(1_000)})
    with pytest.raises(TooLarge, match="of a subscription"):
        Properties({"filter.0": "v" * ONE_BYTES_MAX})


def test_all_subscriptions_together_have_a_bound() -> None:
    one = Properties({"filter.0": "v" * 1_000})
    Properties(one, ALL_BYTES_MAX - one.wire_bytes)
    with pytest.raises(TooLarge, match="of all subscriptions"):
        Properties(one, ALL_BYTES_MAX - one.wire_bytes + 1)


def test_a_connection_keeps_no_more_whatever_it_subscribes_with(broker: Broker) -> None:
    client = broker.link()
    client.create("s")
    largest = {"filter.0": "v" * (ONE_BYTES_MAX - len("filter.0") - 4)}
    codes = [
        client.code("subscribe", m.Subscribe(number, "s", FIRST, 1, largest))
        for number in range(20)
    ]
    most = ALL_BYTES_MAX // ONE_BYTES_MAX
    refused = ResponseCode.PRECONDITION_FAILED
    assert codes == [ResponseCode.OK] * most + [refused] * (20 - most)

    assert client.code("unsubscribe", m.Unsubscribe(0)) == ResponseCode.OK
    assert client.code("subscribe", m.Subscribe(0, "s", FIRST, 1, largest)) == ResponseCode.OK
    notes = {f"note-{number}": "v" * 60_000 for number in range(15)}
    too_large = m.Subscribe(99, "s", FIRST, 1, notes)
    assert broker.link().code("subscribe", too_large) == refused
