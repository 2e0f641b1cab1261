import json
import time
from typing import Any

import pytest

from gateway.management.definitions.reading import read_definitions
from gateway.management.errors import DefinitionsError
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.kinds.policies import OPERATOR_POLICIES
from gateway.management.kinds.streams import STREAMS
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.kinds.virtual_hosts import HOSTS
from tests.unit.gateway.management.definitions.definitions_rig import FULL, ONE_HOST, queue, read


def problems(**sections: object) -> str:
    with pytest.raises(DefinitionsError) as error:
        read(**sections)
    return str(error.value)


def test_a_real_export_is_read_whole() -> None:
    result = read_definitions(FULL)

    definitions = result.definitions
    assert set(definitions.of(HOSTS)) == {("", "/"), ("", "orders"), ("", "empty")}
    assert definitions.of(HOSTS)["", "orders"].tags == ("production", "eu")
    assert definitions.of(HOSTS)["", "orders"].limits == {
        "max-connections": 100,
        "max-queues": 1000,
    }
    assert {user.name for user in definitions.of(USERS).values()} == {
        "app",
        "nopass",
        "old",
        "guest",
    }
    assert definitions.of(USERS)["", "app"].tags == ("management", "policymaker")
    assert len(definitions.of(PERMISSIONS)) == 5
    assert {stream.name for stream in definitions.of(STREAMS).values()} == {
        "log",
        "plain",
        *(f"invoices-{number}" for number in range(3)),
        "regions-emea",
        "regions-amer",
    }
    assert definitions.of(STREAMS)["orders", "log"].arguments == {
        "initial-cluster-size": "1",
        "max-age": "30D",
        "max-length-bytes": "20000000000",
        "queue-leader-locator": "balanced",
        "stream-filter-size-bytes": "32",
        "stream-max-segment-size-bytes": "100000000",
    }
    assert {
        exchange.name for exchange in definitions.of(EXCHANGES).values() if exchange.is_super_stream
    } == {"invoices", "regions"}
    assert [(one.name, one.definition) for one in definitions.of(OPERATOR_POLICIES).values()] == [
        ("op", {"max-length-bytes": 50_000_000_000})
    ]
    assert {(row.kind, row.name) for row in result.skipped} == {
        ("queue", "classic"),
        ("queue", "quorum"),
        ("exchange", "amq.rabbitmq.log"),
        ("exchange", "heads"),
        ("binding", "events → fan"),
        ("topic permission", "app"),
        ("global parameter", "cluster_tags"),
        ("global parameter", "thing"),
    }
    assert all(row.reason for row in result.skipped)


def test_the_export_of_one_virtual_host_goes_to_that_one_or_to_the_named_one() -> None:
    own = read_definitions(ONE_HOST).definitions
    other = read_definitions(ONE_HOST, virtual_host="copy").definitions

    assert set(own.of(HOSTS)) == {("", "orders")}
    assert own.of(HOSTS)["", "orders"].limits == {"max-connections": 100, "max-queues": 1000}
    assert set(other.of(HOSTS)) == {("", "copy")}
    assert {host for host, _ in other.of(STREAMS)} == {"copy"}
    assert len(other.of(BINDINGS)) == len(own.of(BINDINGS)) == 9
    assert not own.of(USERS)


def test_an_export_of_one_virtual_host_that_does_not_say_which_wants_it_named() -> None:
    entry = queue()
    del entry["vhost"]
    content = json.dumps({"queues": [entry], "exchanges": [], "bindings": []}).encode()

    assert set(read_definitions(content, virtual_host="x").definitions.of(STREAMS)) == {
        ("x", "log")
    }
    with pytest.raises(DefinitionsError, match="name it"):
        read_definitions(content)


def test_a_whole_export_cannot_be_sent_into_one_virtual_host() -> None:
    with pytest.raises(DefinitionsError, match="not the export of one virtual host"):
        read_definitions(FULL, virtual_host="copy")


def test_every_fault_is_named_by_its_object_and_all_are_told_at_once() -> None:
    text = problems(
        users=[{"name": "app", "password_hash": 5}, {"password_hash": ""}, 7],
        permissions=[{"user": "app", "vhost": "/", "configure": "", "write": ""}],
        queues=[queue(arguments={"x-max-length-bytes": 1e39})],
        bindings={},
    )

    assert text.splitlines() == [
        "users[0] 'app': password_hash is 5, not text",
        "users[1]: name is missing",
        "users[2]: is not an object with its fields",
        "permissions[0] 'app' in virtual host '/': read is missing",
        (
            "queues[0] 'log' in virtual host '/': argument x-max-length-bytes is 1e+39,"
            " not a whole number"
        ),
        "bindings: is not a list",
    ]  # fmt: skip


def test_a_section_is_a_list_or_missing() -> None:
    assert read(users=[]).definitions.of(USERS) == read().definitions.of(USERS) == {}
    assert problems(users={}) == "users: is not a list"


def test_a_huge_number_names_its_object() -> None:
    content = b'{"vhosts":[{"name":"/"}],"queues":[{"name":"q","vhost":"/","arguments":{"a":%s}}]}'

    with pytest.raises(DefinitionsError) as error:
        read_definitions(content % (b"7" * 100_000))

    assert str(error.value) == "queues[0] 'q' in virtual host '/': has a number of 100000 digits"


def test_the_same_object_twice_is_taken_once_and_two_of_one_name_are_refused() -> None:
    user = {"name": "app", "password_hash": "", "tags": []}

    assert len(read(users=[user, user]).definitions.of(USERS)) == 1
    assert "users[1] 'app': is there before" in problems(users=[user, user | {"tags": ["x"]}])


def test_limits_of_a_virtual_host_may_be_a_parameter_as_in_older_exports() -> None:
    parameter = {
        "component": "vhost-limits",
        "vhost": "/",
        "name": "limits",
        "value": {"max-connections": 7, "max-x": 1},
    }

    result = read(parameters=[parameter])
    other = read(parameters=[parameter | {"vhost": "other"}])

    assert result.definitions.of(HOSTS)["", "/"].limits == {"max-connections": 7}
    assert result.notes["hosts", ("", "/")] == ["limit max-x left out: it is not known"]
    assert other.limits == {"other": {"max-connections": 7}}
    assert other.notes["hosts", ("", "other")] == ["limit max-x left out: it is not known"]
    assert "limits is 'x'" in problems(parameters=[parameter | {"value": {"limits": "x"}}]).replace(
        "limit limits", "limits"
    )


def test_partitions_without_an_order_are_numbered_by_their_names() -> None:
    names = [f"orders-{number}" for number in (10, 9, 0)]
    result = read(
        queues=[queue(name) for name in names],
        exchanges=[
            {
                "name": "orders",
                "vhost": "/",
                "type": "direct",
                "arguments": {"x-super-stream": True},
            }
        ],
        bindings=[
            {"source": "orders", "vhost": "/", "destination": name, "destination_type": "queue"}
            for name in names
        ],
    )

    orders = {
        binding.destination: binding.arguments["x-stream-partition-order"]
        for binding in result.definitions.of(BINDINGS).values()
    }
    assert orders == {"orders-0": 0, "orders-9": 1, "orders-10": 2}
    assert len(result.notes) == 3


def entries(count: int) -> dict[str, Any]:
    each = count // 4
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": f"user-{number}", "password_hash": "", "tags": "a,b", "pad": "x" * 700}
            for number in range(each)
        ],
        "permissions": [
            {"user": f"user-{number}", "vhost": "/", "configure": "", "write": ".*", "read": "^a"}
            for number in range(each)
        ],
        "queues": [queue(f"stream-{number}", pad="x" * 800) for number in range(each)],
        "exchanges": [{"name": "events", "vhost": "/", "type": "topic"}],
        "bindings": [
            {"source": "events", "vhost": "/", "destination": f"stream-{number}", "pad": "x" * 300}
            for number in range(each)
        ],
    }


@pytest.mark.slow
def test_a_hundred_thousand_objects_in_fifty_megabytes_are_read_in_seconds() -> None:
    content = json.dumps(entries(100_000)).encode()
    assert len(content) > 48_000_000
    started = time.process_time()

    result = read_definitions(content)

    assert time.process_time() - started < 30
    assert len(result.definitions.of(USERS)) == len(result.definitions.of(BINDINGS)) == 25_000


def test_a_file_of_faults_is_refused_with_the_first_of_them() -> None:
    text = problems(users=[{"name": f"user-{number}", "tags": 1} for number in range(20_000)])

    assert text.startswith("users[0] 'user-0': tags is 1")
    assert text.endswith("… and 19950 more")


@pytest.mark.parametrize("document", [{}, {"queues": []}, {"bindings": [], "parameters": []}])
def test_a_file_that_says_nothing_is_an_import_of_nothing(document: dict[str, object]) -> None:
    result = read_definitions(json.dumps(document).encode())

    assert result.definitions == Definitions()
    assert not result.skipped


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("bindings", {"source": "e", "vhost": "/", "destination": "log"}),
        ("parameters", {"component": "vhost-limits", "vhost": "/", "value": {"max-queues": 1}}),
        ("policies", {"name": "p", "vhost": "/", "pattern": "", "definition": {"max-age": "1h"}}),
        ("queues", queue()),
    ],
)
def test_a_file_whose_entries_name_their_virtual_host_is_of_a_whole_broker(
    section: str, entry: dict[str, object]
) -> None:
    result = read_definitions(json.dumps({section: [entry]}).encode())

    assert not result.definitions.of(HOSTS)
    assert result.limits == ({"/": {"max-queues": 1}} if section == "parameters" else {})


def test_entries_may_name_the_virtual_host_that_they_are_sent_to_and_no_other() -> None:
    content = json.dumps({"queues": [queue()]}).encode()

    assert set(read_definitions(content, virtual_host="/").definitions.of(STREAMS)) == {
        ("/", "log")
    }
    with pytest.raises(DefinitionsError, match="not the export of one virtual host"):
        read_definitions(content, virtual_host="copy")


def test_what_nobody_misses_is_told_from_what_is_lost() -> None:
    result = read(
        queues=[queue("old", type="classic")],
        exchanges=[{"name": "amq.direct", "vhost": "/", "type": "direct"}],
        bindings=[{"source": "", "vhost": "/", "destination": "log"}],
        topic_permissions=[{"user": "guest", "vhost": "/"}],
        global_parameters=[{"name": "internal_cluster_id", "value": "x"}],
    )

    assert [row.kind for row in result.skipped if row.is_lost] == ["queue", "topic permission"]
    assert [row.kind for row in result.skipped if not row.is_lost] == [
        "exchange",
        "binding",
        "global parameter",
    ]
