"""Which policy counts for a stream, which can be, and what changes with one."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.broker import yielding as slices
from gateway.broker.errors import UnusableValue
from gateway.broker.patterns import Pattern
from gateway.broker.rules import ranking
from gateway.broker.rules.arguments import StreamArguments
from gateway.broker.rules.policies import Governed, NoSuchPolicy, Policies, Policy, check_policy
from gateway.broker.rules.policy_settings import KNOWN, NOT_OF_STREAMS
from gateway.broker.topology.exchange import Exchange
from gateway.log.names import operator_policy_table, policy_table
from gateway.pending import start
from store.errors import DiskFull
from tests.unit.gateway.stream.link_rig import Broker


@pytest.fixture(autouse=True)
def no_turn_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each search end in the turn in which it begins, however busy the machine is."""
    monkeypatch.setattr(slices, "_TURN_S", math.inf)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.close()


@pytest.fixture
def policies(broker: Broker) -> Policies:
    return broker.virtual_host.policies


def put(broker: Broker, *policies: Policy) -> None:
    for policy in policies:
        broker.store_rig.run(broker.virtual_host.policies.put(policy))


def sized(name: str, pattern: str, size: int, **options: Any) -> Policy:  # noqa: ANN401 - those of Policy
    return Policy(name, pattern=pattern, definition={"max-length-bytes": size}, **options)


def governed(policies: Policies, stream: str) -> Governed:
    """Return what policies say of a stream."""
    found = Governed(stream)
    start(policies.look_for_stream(found)).result()
    return found


def size_of(policies: Policies, stream: str) -> int | None:
    return governed(policies, stream).over(StreamArguments()).max_length_bytes


def test_the_policy_of_the_highest_priority_counts_and_it_alone(
    broker: Broker, policies: Policies
) -> None:
    put(
        broker,
        sized("low", ".*", 1, priority=-1),
        sized("middle", "^orders", 2),
        Policy("high", pattern="-eu$", definition={"max-age": "1h"}, priority=3),
    )

    assert size_of(policies, "others") == 1
    assert size_of(policies, "orders-us") == 2
    assert size_of(policies, "orders-eu") is None
    assert governed(policies, "orders-eu").policy == Policy(
        "high", pattern="-eu$", apply_to="all", definition={"max-age": "1h"}, priority=3
    )


def test_of_equal_priorities_the_first_by_name_counts(broker: Broker, policies: Policies) -> None:
    put(broker, sized("b", "s", 2), sized("a", "s", 1))

    assert size_of(policies, "s") == 1


def test_priorities_may_be_broken_or_very_large(broker: Broker, policies: Policies) -> None:
    put(broker, sized("whole", "s", 1, priority=1), sized("broken", "s", 2, priority=1.5))
    assert size_of(policies, "s") == 2

    put(broker, sized("large", "s", 3, priority=2**1100))
    assert size_of(policies, "s") == 3


@pytest.mark.parametrize("key", sorted(NOT_OF_STREAMS))
def test_a_policy_with_a_setting_that_streams_do_not_have_does_not_act_and_hides_none(
    broker: Broker, policies: Policies, key: str
) -> None:
    high = {"max-length-bytes": 2, key: 1}
    put(broker, sized("low", "s", 1), Policy("high", pattern="s", definition=high, priority=5))

    acting = governed(policies, "s").policy

    assert acting is not None
    assert (acting.name, size_of(policies, "s")) == ("low", 1)
    assert len(policies.all()) == 2


@pytest.mark.parametrize("key", sorted(KNOWN - NOT_OF_STREAMS - {"max-length-bytes"}))
def test_a_policy_with_a_setting_that_streams_may_have_acts(
    broker: Broker, policies: Policies, key: str
) -> None:
    value: object = "1h" if key == "max-age" else 20

    put(broker, sized("low", "s", 1))
    put(
        broker, Policy("p", pattern="s", definition={"max-length-bytes": 2, key: value}, priority=5)
    )

    assert size_of(policies, "s") == 2


def test_why_a_policy_applies_to_no_stream_is_logged(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    put(broker, Policy("p", pattern="s", definition={"overflow": "drop-head", "max-length": 1}))

    assert "applies to no stream name=p because_of=['max-length', 'overflow']" in caplog.text


def test_a_pattern_is_sought_anywhere_in_a_name(broker: Broker, policies: Policies) -> None:
    put(broker, sized("p", "b.d", 1))

    assert size_of(policies, "abcde") == 1
    assert size_of(policies, "abd") is None


@pytest.mark.parametrize(
    ("apply_to", "counts"),
    [
        ("all", True),
        ("queues", True),
        ("streams", True),
        ("classic_queues", False),
        ("quorum_queues", False),
        ("exchanges", False),
    ],
)
def test_policies_for_other_things_are_kept_and_do_not_count(
    broker: Broker, policies: Policies, apply_to: str, *, counts: bool
) -> None:
    policy = sized("p", ".*", 1, apply_to=apply_to)

    put(broker, policy)

    assert policies.all() == [policy]
    assert (governed(policies, "s").policy == policy) is counts


def test_what_a_policy_defines_takes_the_place_of_the_arguments(
    broker: Broker, policies: Policies
) -> None:
    put(
        broker,
        Policy(
            "p",
            pattern=".*",
            definition={
                "max-age": "2h",
                "stream-max-segment-size-bytes": 1_000_000,
                "stream-filter-size-bytes": 32,
                "consumer-timeout": 7,
            },
        ),
    )
    given = {"max-age": "1D", "max-length-bytes": "5000", "stream-initial-offset": "9"}

    merged = governed(policies, "s").over(StreamArguments.parse(given))

    assert merged.texts() == {
        "max-age": "2h",
        "max-length-bytes": "5000",
        "stream-max-segment-size-bytes": "1000000",
        "stream-filter-size-bytes": "32",
        "stream-initial-offset": "9",
    }


def test_policies_are_there_after_a_restart(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    kept = Policy(
        "kept",
        pattern="^k",
        apply_to="streams",
        definition={"max-age": "1h", "other": [1, {"x": None}]},
        priority=5,
    )
    put(broker, kept, sized("changed", "a", 1), sized("gone", "g", 1))
    put(broker, sized("changed", "b", 2))
    broker.store_rig.run(broker.virtual_host.policies.delete("gone"))
    broker.close()

    again = Broker(tmp_path)

    assert again.virtual_host.policies.all() == [sized("changed", "b", 2), kept]
    assert size_of(again.virtual_host.policies, "b") == 2
    again.close()


def test_a_kept_policy_that_is_no_longer_good_is_named_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path)
    row = sized("odd", "(", 1).pack()
    broker.store_rig.run(broker.virtual_host.policies._kept.write({b"odd": row}))
    broker.close()

    again = Broker(tmp_path)

    assert again.virtual_host.policies.all() == []
    assert "policy cannot be used name=odd" in caplog.text
    assert "Traceback" not in caplog.text
    again.close()


def test_deleting_what_is_not_there_is_said(broker: Broker, policies: Policies) -> None:
    with pytest.raises(NoSuchPolicy, match="'p'"):
        broker.store_rig.run(policies.delete("p"))


def test_what_the_store_refuses_does_not_count(
    broker: Broker, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise DiskFull("for the test")

    monkeypatch.setattr(policies._kept, "write", fail)

    with pytest.raises(DiskFull):
        put(broker, sized("p", ".*", 1))
    assert policies.all() == []


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy("", pattern=".*"), "name of a policy"),
        (Policy("p\0", pattern=".*"), "NUL"),
        (Policy("p", pattern="("), "pattern of policy 'p'"),
        (Policy("p", pattern="(?=x"), "pattern of policy 'p'"),
        (Policy("p", pattern="x", apply_to="streamz"), "applies to one of all"),
        (Policy("p", pattern="x", priority=True), "must be a number"),
        (Policy("p", pattern="x", priority=float("inf")), "must be a number"),
        (Policy("p", pattern="x", priority=float("nan")), "must be a number"),
        (Policy("p", pattern="x", priority="1"), "must be a number"),  # type: ignore[arg-type]
        (Policy("p", pattern="x", definition={"x": object()}), "not valid JSON"),
        (Policy("p", pattern="x", definition={"x": "y" * 70_000}), "at most 65536 bytes"),
        (Policy("p", pattern="x", definition={"max-age": "soon"}), "no age"),
        (Policy("p", pattern="x", definition={"max-age": 5}), "no text"),
        (Policy("p", pattern="x", definition={"max-length-bytes": -1}), "below 0"),
        (Policy("p", pattern="x", definition={"max-length-bytes": True}), "no whole number"),
        (Policy("p", pattern="x", definition={"max-length-bytes": 1.5}), "no whole number"),
        (Policy("p", pattern="x", definition={"max-length-bytes": "5000"}), "no whole number"),
        (Policy("p", pattern="x", definition={"max-age": "0s"}), "no age"),
        (Policy("p", pattern="x"), "is empty"),
        (Policy("p", pattern="x", definition={"stream-max-segment-size-bytes": 8}), "below 9"),
        (Policy("p", pattern="x", definition={"stream-filter-size-bytes": 256}), "above 255"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_words(
    broker: Broker, policies: Policies, policy: Policy, reason: str
) -> None:
    with pytest.raises(UnusableValue, match=reason):
        check_policy(policy)
    with pytest.raises(UnusableValue, match=reason):
        put(broker, policy)
    assert policies.all() == []


@pytest.mark.parametrize(
    ("of_user", "of_operator", "size"), [(5000, 4000, 4000), (3000, 4000, 3000), (None, 4000, 4000)]
)
def test_beside_an_operators_policy_the_smaller_size_counts(
    broker: Broker, policies: Policies, of_user: int | None, of_operator: int, size: int
) -> None:
    if of_user is not None:
        put(
            broker,
            Policy("p", pattern="s", definition={"max-length-bytes": of_user, "max-age": "1h"}),
        )

    broker.store_rig.run(policies.operators.put(sized("o", "s", of_operator)))

    given = StreamArguments.parse({"max-length-bytes": "700"})
    assert governed(policies, "s").over(given).max_length_bytes == size
    assert governed(policies, "s").effective()["max-length-bytes"] == size
    assert ("max-age" in governed(policies, "s").effective()) is (of_user is not None)


def test_of_operators_policies_one_counts_as_of_others(broker: Broker, policies: Policies) -> None:
    for policy in (
        sized("low", "s", 4000),
        sized("high", "s", 5000, priority=1),
        sized("for exchanges", "s", 1, priority=2, apply_to="exchanges"),
        Policy(
            "ttl",
            pattern="s",
            apply_to="all",
            definition={"max-length-bytes": 2, "message-ttl": 5},
            priority=3,
        ),
    ):
        broker.store_rig.run(policies.operators.put(policy))

    assert size_of(policies, "s") == 5000


def test_operators_policies_are_there_after_a_restart_and_change_streams_when_they_go(
    tmp_path: Path,
) -> None:
    broker = Broker(tmp_path)
    broker.store_rig.run(broker.virtual_host.policies.operators.put(sized("o", "s", 4000)))
    put(broker, sized("o", "s", 9000))
    broker.close()

    again = Broker(tmp_path)
    policies, told = again.virtual_host.policies, []
    policies.changed = lambda: told.append(size_of(policies, "s"))

    assert policies.operators.all() == [sized("o", "s", 4000)]
    assert size_of(policies, "s") == 4000
    again.store_rig.run(policies.operators.delete("o"))
    assert told == [9000]
    again.close()


def test_policies_go_with_their_virtual_host(broker: Broker) -> None:
    run = broker.store_rig.run
    host = run(broker.virtual_hosts.create("h"))
    run(host.policies.put(sized("p", ".*", 1)))
    run(host.policies.operators.put(sized("p", ".*", 1)))
    assert broker.virtual_host.policies.all() == []

    run(broker.virtual_hosts.delete("h"))

    again = run(broker.virtual_hosts.create("h")).policies
    assert again.all() == again.operators.all() == []
    assert operator_policy_table("h") not in {policy_table("h"), operator_policy_table("/")}
    assert policy_table("h") != policy_table("/")


def test_what_was_found_counts_until_policies_are_looked_for_again(
    broker: Broker, policies: Policies
) -> None:
    put(broker, sized("p", "s", 1))
    found = governed(policies, "s")
    state = found.state

    put(broker, sized("p", "s", 2))

    assert found.over(StreamArguments()).max_length_bytes == 1
    assert found.state == state
    start(policies.look_for_stream(found)).result()
    assert found.over(StreamArguments()).max_length_bytes == 2
    assert found.state != state


def test_policies_of_exchanges_are_not_those_of_streams(broker: Broker, policies: Policies) -> None:
    put(broker, sized("s", "e", 1, apply_to="streams"), sized("e", "e", 2, apply_to="exchanges"))
    exchange = Governed("e")

    start(policies.look_for_exchange(exchange)).result()

    assert exchange.definition == {"max-length-bytes": 2}
    assert exchange.operator_policy is None
    assert size_of(policies, "e") == 1


@pytest.mark.parametrize("is_told", [True, False])
def test_a_search_that_takes_above_a_second_is_told_with_the_slowest_policy(
    broker: Broker,
    policies: Policies,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_told: bool,
) -> None:
    put(broker, sized("quick", "x", 1), sized("slow", "(y)", 1, priority=1))
    now_s = 0.0

    def matches(pattern: Pattern, _name: str) -> bool:
        nonlocal now_s
        now_s += 0.9 if pattern.text == "(y)" else 0.05 + 0.1 * is_told
        return False

    monkeypatch.setattr(Pattern, "matches", matches)
    monkeypatch.setattr(ranking, "thread_time", lambda: now_s)
    monkeypatch.setattr("gateway.broker.rules.policies._took_long._again_at", 0.0)

    governed(policies, "s")

    line = (
        "patterns take long, simplify or delete the slowest policy name=slow virtual_host=/ ms=900"
        " patterns=2 ms_of_all=1050 matched_with='s' unsaid="
    )
    assert (line in caplog.text) is is_told


def test_what_is_deleted_is_looked_for_no_more(broker: Broker, policies: Policies) -> None:
    run, host = broker.store_rig.run, broker.virtual_host
    stream = run(host.streams.create("s", {}))
    run(host.exchanges.declare(Exchange("e")))
    exchange = host.exchanges.declared("e")
    run(host.streams.delete("s", lambda _: None))
    run(host.exchanges.delete("e"))
    put(broker, sized("p", ".*", 1))

    start(policies.look_for_stream(stream.governed)).result()
    start(policies.look_for_exchange(exchange.governed)).result()

    assert stream.governed.state == exchange.governed.state == (None, None)
