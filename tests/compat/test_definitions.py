"""Definitions go from RabbitMQ to Hutch and back, and mean the same in both."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.broker import RunningBroker
from tests.integration.server import HutchServer, server_environment

pytestmark = pytest.mark.timeout(300)

HOSTS = ("hutch-orders", "hutch-empty")
USERS = ("hutch-app", "hutch-old", "hutch-nopass")
VECTOR = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
KINDS = ("permissions", "policies", "queues", "exchanges", "bindings")


@pytest.fixture
def filled(rabbitmq: RunningBroker) -> Iterator[RunningBroker]:
    """A broker with definitions of every kind in virtual hosts of the test's own."""

    def put(path: str, body: Mapping[str, object], method: str = "PUT") -> None:
        rabbitmq.management(path, method, body)

    orders, empty = HOSTS
    put(f"vhosts/{orders}", {"description": "d", "tags": "a,b", "default_queue_type": "stream"})
    put(f"vhosts/{empty}", {})
    put("users/hutch-app", {"password": "test12", "tags": "management,policymaker"})
    put("users/hutch-old", {"password_hash": VECTOR, "tags": "administrator"})
    put("users/hutch-nopass", {"password_hash": "", "tags": ""})
    rights = {"configure": "^o", "write": "", "read": ".*"}
    for user in USERS:
        put(f"permissions/{orders}/{user}", rights)
    put("user-limits/hutch-app/max-connections", {"value": 50})
    put(f"vhost-limits/{orders}/max-queues", {"value": 1000})
    for name, definition, target in (
        ("keep", {"max-age": "7D", "max-length-bytes": 20_000_000_000}, "streams"),
        ("mixed", {"max-age": "1h", "max-length": 100}, "all"),
        ("classic", {"max-length": 100}, "classic_queues"),
    ):
        policy = {"pattern": "^o", "definition": definition, "apply-to": target, "priority": 1}
        put(f"policies/{orders}/{name}", policy)
    limit = {"pattern": "^o", "definition": {"max-length-bytes": 10_000_000}, "apply-to": "all"}
    put(f"operator-policies/{orders}/most", limit | {"priority": 2})
    arguments = {
        "x-queue-type": "stream",
        "x-max-length-bytes": 20_000_000_000,
        "x-stream-max-segment-size-bytes": 100_000_000,
        "x-max-age": "30D",
        "x-initial-cluster-size": 1,
        "x-queue-leader-locator": "balanced",
        "x-stream-filter-size-bytes": 32,
    }
    put(f"queues/{orders}/log", {"durable": True, "arguments": arguments})
    put(f"stream/super-streams/{orders}/invoices", {"partitions": 3})
    put(f"stream/super-streams/{orders}/regions", {"binding-keys": "emea,amer"})
    put(f"exchanges/{orders}/events", {"type": "topic", "durable": True})
    for exchange in ("events", "amq.topic"):
        put(f"bindings/{orders}/e/{exchange}/q/log", {"routing_key": "a.#"}, "POST")
    yield rabbitmq
    clear(rabbitmq)


def clear(rabbitmq: RunningBroker) -> None:
    for path in (*(f"vhosts/{name}" for name in HOSTS), *(f"users/{name}" for name in USERS)):
        rabbitmq.management(path, "DELETE")


def hutch(server: HutchServer, *arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--data", str(server.data_dir)],
        input=stdin,
        stdout=subprocess.PIPE,
        timeout=60,
        env=server_environment(),
        check=True,
    ).stdout


def comparable(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """What is of the test's own, without order and without what says the same twice."""
    result: dict[str, Any] = {
        kind: {
            json.dumps(entry, sort_keys=True)
            for entry in definitions[kind]
            if entry["vhost"] in HOSTS and entry.get("user") != "guest"
        }
        for kind in KINDS
    }
    result["exchanges"] = {
        json.dumps({k: v for k, v in json.loads(text).items() if k != "internal"})
        for text in result["exchanges"]
    }
    result["operator policies"] = {
        json.dumps(entry, sort_keys=True)
        for entry in definitions["parameters"]
        if entry["vhost"] in HOSTS and entry["component"] == "operator_policy"
    }
    assert len(result["operator policies"]) == 1
    users = [user for user in definitions["users"] if user["name"] in USERS]
    result["users"] = {user["name"]: user for user in users}
    hosts = [host for host in definitions["vhosts"] if host["name"] in HOSTS]
    result["vhosts"] = {host["name"]: (host["metadata"], host["limits"]) for host in hosts}
    return result


@pytest.mark.slow
def test_an_export_comes_back_from_hutch_as_it_was(filled: RunningBroker, tmp_path: Path) -> None:
    before = comparable(filled.management("definitions"))
    with HutchServer(tmp_path / "data") as server:
        taken = json.dumps(filled.management("definitions")).encode()
        report = json.loads(hutch(server, "import", "-", "--json", stdin=taken))
        exported = json.loads(hutch(server, "export"))
    clear(filled)

    ours = {entry["name"] for entry in exported["vhosts"]} - set(HOSTS) - {"/"}
    assert not ours or filled.way == "environment"
    filled.management("definitions", "POST", only_own(exported))

    assert comparable(exported) == before
    assert comparable(filled.management("definitions")) == before
    own = [row for row in report["objects"] if row["virtual_host"] in HOSTS]
    assert {(row["kind"], row["name"]) for row in own if row["outcome"] == "skipped"} <= {
        ("parameter", "limits")
    }


def only_own(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what other tests have made in the same broker."""
    kept = dict(definitions)
    for kind in (*KINDS, "parameters"):
        kept[kind] = [entry for entry in definitions[kind] if entry["vhost"] in HOSTS]
    kept["users"] = [user for user in definitions["users"] if user["name"] in USERS]
    kept["vhosts"] = [host for host in definitions["vhosts"] if host["name"] in HOSTS]
    kept["permissions"] = [one for one in kept["permissions"] if one["user"] in USERS]
    return kept


@pytest.mark.slow
def test_one_virtual_host_comes_back_from_hutch_as_it_was(
    filled: RunningBroker, tmp_path: Path
) -> None:
    path = f"definitions/{HOSTS[0]}"
    before = filled.management(path)
    with HutchServer(tmp_path / "data") as server:
        hutch(server, "import", "-", stdin=json.dumps(before).encode())
        exported = json.loads(hutch(server, "export", "--vhost", HOSTS[0]))
    filled.management(f"vhosts/{HOSTS[0]}", "DELETE")
    filled.management(f"vhosts/{HOSTS[0]}", "PUT", {})

    filled.management(path, "POST", exported)

    after = filled.management(path)
    for kind in set(KINDS) - {"permissions"}:
        assert {json.dumps(entry, sort_keys=True) for entry in after[kind]} == {
            json.dumps(entry, sort_keys=True) for entry in before[kind]
        }
