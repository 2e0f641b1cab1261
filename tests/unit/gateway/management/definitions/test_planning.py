import json

import pytest

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.management.definitions.planning import ALREADY, plan_import
from gateway.management.definitions.reading import read_definitions
from gateway.management.definitions.report import ImportOutcome
from gateway.management.errors import DefinitionsError
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.people import USERS
from gateway.management.kinds.streams import STREAMS, DeclaredStream
from gateway.management.kinds.topology import BINDINGS
from gateway.management.kinds.virtual_hosts import HOSTS, Host
from tests.unit.gateway.management.definitions.definitions_rig import (
    FULL,
    ONE_HOST,
    applied,
    plan,
    queue,
    row,
    with_default_host,
)


def planned(content: bytes, current: Definitions) -> tuple[Definitions, int, set[str]]:
    result = plan_import(read_definitions(content), current)
    reasons = {row.reason for row in result.rows if row.outcome is not ImportOutcome.SKIPPED}
    return applied(result, current), result.change_count, reasons


def test_a_real_export_goes_in_and_the_second_time_there_is_nothing_to_do() -> None:
    after, changes, _ = planned(FULL, with_default_host())
    again, more, reasons = planned(FULL, after)

    assert changes == 34
    assert more == 0
    assert again == after
    assert all(reason.endswith(ALREADY) for reason in reasons)


def test_an_import_that_was_cut_off_is_finished_by_the_next() -> None:
    whole, _, _ = planned(FULL, with_default_host())
    content = read_definitions(FULL)
    plan = plan_import(content, with_default_host())
    for key in list(plan.changes.of(BINDINGS))[2:]:
        del plan.changes.of(BINDINGS)[key]
    for key in list(plan.changes.of(STREAMS))[:3]:
        del plan.changes.of(STREAMS)[key]
    cut_off = applied(plan, with_default_host())

    after, changes, _ = planned(FULL, cut_off)

    assert after == whole
    assert 0 < changes < 12


def test_the_export_of_one_virtual_host_makes_it_where_it_is_missing() -> None:
    after, _, _ = planned(ONE_HOST, Definitions())

    assert set(after.of(HOSTS)) == {("", "orders")}
    assert len(after.of(STREAMS)) == 7


def test_every_object_of_the_file_has_a_line_in_the_report() -> None:
    result = plan(
        users=[{"name": "app", "password_hash": ""}],
        queues=[queue("log", arguments={"x-overflow": "y"}), queue("work", type="classic")],
    )

    assert row(result.rows, "app").outcome is ImportOutcome.IMPORTED
    assert row(result.rows, "log").outcome is ImportOutcome.ADAPTED
    assert "x-overflow" in row(result.rows, "log").reason
    assert row(result.rows, "work").outcome is ImportOutcome.SKIPPED
    assert len(result.rows) == 4


def test_bindings_of_what_is_not_here_are_left_out_and_say_so() -> None:
    exchange = {"name": "events", "vhost": "/", "type": "topic"}
    result = plan(
        queues=[queue("log"), queue("work", type="classic")],
        exchanges=[exchange, {"name": "heads", "vhost": "/", "type": "headers"}],
        bindings=[
            {"source": source, "vhost": "/", "destination": destination}
            for source, destination in (("events", "log"), ("events", "work"), ("heads", "log"))
        ],
    )

    assert row(result.rows, "events → log").outcome is ImportOutcome.IMPORTED
    assert row(result.rows, "events → work").reason == "there is no stream 'work' here"
    assert row(result.rows, "heads → log").reason == "there is no exchange 'heads' here"


def test_references_to_nothing_refuse_the_whole_file() -> None:
    with pytest.raises(DefinitionsError) as error:
        plan(
            permissions=[
                {"user": "who", "vhost": "/", "configure": "", "write": "", "read": ""},
            ],
            queues=[queue("log", vhost="nowhere")],
            policies=[
                {"name": "p", "vhost": "x", "pattern": "", "definition": {"max-age": "7D"}},
            ],
        )

    assert str(error.value).splitlines() == [
        "permission of 'who' in virtual host '/': there is no user 'who'",
        "policy 'p' in virtual host 'x': there is no virtual host 'x'",
        "stream 'log' in virtual host 'nowhere': there is no virtual host 'nowhere'",
    ]


def test_what_refers_to_what_the_server_has_needs_nothing_of_it_in_the_file() -> None:
    current = with_default_host()
    current.of(USERS)["", "app"] = User("app", None)
    permission = {"user": "app", "vhost": "/", "configure": "", "write": "", "read": ""}

    assert plan(current, vhosts=[], permissions=[permission]).change_count == 1


def test_a_stream_that_exists_with_other_arguments_stays_as_it_is() -> None:
    first = plan(queues=[queue("log", arguments={"x-max-age": "1h"})])
    current = applied(first, with_default_host())

    same = plan(current, queues=[queue("log", arguments={"x-max-age": "60m"})])
    other = plan(current, queues=[queue("log", arguments={"x-max-age": "2h"})])

    assert same.change_count == other.change_count == 0
    assert row(same.rows, "log").reason == ALREADY
    assert row(other.rows, "log").outcome is ImportOutcome.SKIPPED
    assert "max-age='1h'" in row(other.rows, "log").reason


def test_an_exchange_that_exists_otherwise_stays_as_it_is() -> None:
    exchange = {"name": "events", "vhost": "/", "type": "topic"}
    current = applied(plan(exchanges=[exchange]), with_default_host())

    result = plan(current, exchanges=[exchange | {"type": "fanout"}])

    assert result.change_count == 0
    assert row(result.rows, "events").outcome is ImportOutcome.SKIPPED


def test_a_user_is_overwritten_and_keeps_a_hash_that_no_export_can_hold() -> None:
    current = with_default_host()
    foreign = PasswordHash(Algorithm.ARGON2ID, "$argon2id$…")
    current.of(USERS)["", "new"] = User("new", foreign, ("a",), loopback_only=True)
    current.of(USERS)["", "old"] = User("old", PasswordHash(Algorithm.MD5, "hash"))

    result = plan(
        current,
        users=[{"name": name, "password_hash": "", "tags": "b"} for name in ("new", "old")],
    )
    after = applied(result, current)

    assert after.of(USERS)["", "new"] == User("new", foreign, ("b",), loopback_only=True)
    assert after.of(USERS)["", "old"] == User("old", None, ("b",))
    assert "stays" in row(result.rows, "new").reason


def test_a_super_stream_has_a_bounded_number_of_partitions() -> None:
    exchange = {
        "name": "orders",
        "vhost": "/",
        "type": "direct",
        "arguments": {"x-super-stream": True},
    }
    names = [f"orders-{number}" for number in range(1001)]
    bindings = [{"source": "orders", "vhost": "/", "destination": name} for name in names]
    queues = [queue(name) for name in names]

    most = plan(exchanges=[exchange], queues=queues, bindings=bindings[:1000])

    assert len(most.changes.of(BINDINGS)) == 1000
    with pytest.raises(DefinitionsError, match="super stream of 1001 partitions; at most 1000"):
        plan(exchanges=[exchange], queues=queues, bindings=bindings)
    with pytest.raises(DefinitionsError, match="1001 partitions"):
        plan(applied(most, with_default_host()), bindings=bindings[1000:])


@pytest.mark.parametrize(
    ("in_file", "before", "is_room"),
    [
        ({"limits": {"max-queues": 3}}, {}, True),
        ({"limits": {"max-queues": 2}}, {}, False),
        ({"limits": {"max-queues": -1}}, {"max-queues": 0}, True),
        ({}, {"max-queues": 0}, True),  # the file takes the limit away
        (None, {"max-queues": 3}, True),
        (None, {"max-queues": 2}, False),
    ],
)
def test_there_must_be_room_for_streams_under_the_limits_that_there_will_be(
    in_file: dict[str, object] | None,
    before: dict[str, int],
    is_room: bool,  # noqa: FBT001
) -> None:
    current = with_default_host()
    current.of(HOSTS)["", "/"] = Host("/", limits=before)
    current.of(STREAMS)["/", "old"] = DeclaredStream("old", {})
    hosts = [] if in_file is None else [{"name": "/"} | in_file]
    queues = [queue(name) for name in ("old", "a", "b")]

    if is_room:
        assert plan(current, vhosts=hosts, queues=queues).change_count
    else:
        with pytest.raises(DefinitionsError, match="'/': 3 streams would be in it; its limit"):
            plan(current, vhosts=hosts, queues=queues)


def test_a_limit_below_what_is_there_already_is_taken() -> None:
    current = with_default_host()
    current.of(STREAMS)["/", "old"] = DeclaredStream("old", {})
    hosts = [{"name": "/", "limits": {"max-queues": 0}}]

    assert plan(current, vhosts=hosts, queues=[queue("old")]).change_count == 1


def test_limits_alone_are_for_a_virtual_host_that_is_there() -> None:
    parameter = {"component": "vhost-limits", "vhost": "/", "value": {"max-queues": 1}}
    read_alone = read_definitions(json.dumps({"parameters": [parameter]}).encode())
    current = with_default_host()
    current.of(HOSTS)["", "/"] = Host("/", "about", ("tag",), "stream", {"max-connections": 1})

    changed = applied(plan_import(read_alone, current), current)

    assert changed.of(HOSTS)["", "/"] == Host("/", "about", ("tag",), "stream", {"max-queues": 1})
    with pytest.raises(DefinitionsError, match="limits of virtual host '/': there is none"):
        plan_import(read_alone, Definitions())


def test_what_goes_into_a_virtual_host_leaves_what_the_file_does_not_say_of_it() -> None:
    content = json.dumps({"queues": [{"name": "log", "type": "stream"}]}).encode()
    current = with_default_host()
    current.of(HOSTS)["", "/"] = Host("/", "about", ("tag",), "stream", {"max-queues": 1})

    result = plan_import(read_definitions(content, virtual_host="/"), current)

    assert not result.changes.of(HOSTS)
    assert len(result.changes.of(STREAMS)) == 1
    made = plan_import(read_definitions(content, virtual_host="new"), current)
    assert made.changes.of(HOSTS) == {("", "new"): Host("new")}


def test_what_is_kept_as_it_is_is_not_lost_and_what_lacks_an_end_is() -> None:
    current = with_default_host()
    current.of(STREAMS)["/", "log"] = DeclaredStream("log", {})
    queues = [queue("log", arguments={"x-max-age": "1h"})]
    bindings = [{"source": "nowhere", "vhost": "/", "destination": "log"}]

    rows = plan(current, queues=queues, bindings=bindings).rows

    assert {row.kind: row.is_lost for row in rows} == {
        "virtual host": False,
        "stream": False,
        "binding": True,
    }
