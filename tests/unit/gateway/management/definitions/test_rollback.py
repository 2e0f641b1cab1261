"""What there was before an import: written down, and made so again."""

import json

import pytest

from gateway.broker.errors import InternalError
from gateway.broker.rules.policies import Policy
from gateway.management.definitions.applying import Before, remember, take_back
from gateway.management.definitions.importing import current_definitions
from gateway.management.definitions.planning import plan_import
from gateway.management.definitions.reading import read_definitions
from gateway.management.errors import Failed
from gateway.management.kinds.virtual_hosts import HOSTS
from tests.unit.gateway.management.requests.administration_rig import Rig

AGE = {"pattern": "b", "definition": {"max-age": "2h"}}
SIZE = {"pattern": "b", "definition": {"max-length-bytes": 7}}
CONTENT = {
    "vhosts": [{"name": "/", "description": "other"}, {"name": "new"}],
    "users": [{"name": name, "password_hash": ""} for name in ("guest", "app")],
    "permissions": [
        {"user": user, "vhost": host, "configure": "x", "write": "x", "read": "x"}
        for user, host in (("guest", "/"), ("app", "/"), ("app", "new"))
    ],
    "policies": [AGE | {"name": name, "vhost": "/"} for name in ("kept", "made")],
    "parameters": [{"component": "operator_policy", "name": "limit", "vhost": "/", "value": SIZE}],
    "queues": [{"name": "a", "vhost": host, "type": "stream"} for host in ("/", "new")],
    "exchanges": [{"name": "e", "vhost": "/", "type": "fanout"}],
    "bindings": [
        {"source": source, "vhost": "/", "destination": "a", "arguments": {"b": 1, "a": [2]}}
        for source in ("e", "amq.fanout")
    ],
}
WRITTEN = {
    "new": {
        "hosts": ["new"],
        "bindings": [["/", "amq.fanout", "a", "", {"a": [2], "b": 1}]],
        "exchanges": [["/", "e"]],
        "streams": [["/", "a"]],
        "policies": [["/", "made"]],
        "operator_policies": [["/", "limit"]],
        "permissions": [["/", "app"]],
        "users": ["app"],
    },
    "old": {
        "hosts": [["/", "Default virtual host", [], None, {}]],
        "users": [
            (
                '{"name": "guest", "password_hash": "", "hashing_algorithm": null,'
                ' "tags": ["administrator"], "limits": {}, "loopback_only": false, "mark": ""}'
            )
        ],
        "permissions": [
            (
                '{"user": "guest", "virtual_host": "/", "configure": ".*", "write": ".*",'
                ' "read": ".*"}'
            )
        ],
        "policies": [
            [
                "/",
                (
                    '{"name": "kept", "pattern": "a", "apply_to": "streams",'
                    ' "definition": {"max-age": "1h"}, "priority": 0}'
                ),
            ]
        ],
        "operator_policies": [],
    },
}
"""The table has outlived versions of the server: what one wrote, the next one reads."""


def remembered(rig: Rig) -> Before:
    rig.ask("set_policy", {"name": "kept", "pattern": "a", "definition": {"max-age": "1h"}})
    read = read_definitions(json.dumps(CONTENT).encode())
    current = rig.broker.store_rig.run(current_definitions(rig.administration))
    plan = plan_import(read, current)
    return rig.broker.store_rig.run(remember(rig.administration, plan.changes))


def test_what_is_written_down_keeps_its_form(rig: Rig) -> None:
    written = json.loads(remembered(rig).pack())

    (user,) = written["old"]["users"]
    salted = json.loads(user) | {"password_hash": "", "hashing_algorithm": None, "mark": ""}
    written["old"]["users"] = [json.dumps(salted)]
    assert written == WRITTEN
    assert [list(part) for part in written.values()] == [list(part) for part in WRITTEN.values()]


def test_what_is_written_down_is_read_as_it_was(rig: Rig) -> None:
    before = remembered(rig)

    assert Before.unpack(before.pack()) == before
    assert Before.unpack(b"") == Before()


def test_an_import_is_taken_back_by_what_is_written_down(rig: Rig) -> None:
    before = remembered(rig)
    state = rig.broker.store_rig.run(current_definitions(rig.administration))
    assert rig.ask("import_definitions", body=json.dumps(CONTENT).encode())["changes"] == 15

    packed = Before.unpack(before.pack())
    assert rig.broker.store_rig.run(take_back(rig.administration, packed))

    assert rig.broker.store_rig.run(current_definitions(rig.administration)) == state


def test_what_others_made_meanwhile_is_not_taken_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, policies = rig.broker.streams, rig.administration.host("/").policies
    queues = [{"name": name, "vhost": "/", "type": "stream"} for name in ("a", "b")]
    content = {"vhosts": [], "queues": queues, "policies": CONTENT["policies"]}
    real = policies.put

    async def put(policy: Policy) -> None:
        await real(policy)
        if policy.name == "made":
            await streams.create("a", {})

    async def refuse(*_: object) -> None:
        raise InternalError("the disk is full")

    monkeypatch.setattr(policies, "put", put)
    monkeypatch.setattr(rig.administration.host("/").exchanges, "declare", refuse)
    with pytest.raises(Failed, match="exchange 'e' in virtual host '/': the disk is full"):
        rig.ask(
            "import_definitions",
            body=json.dumps(content | {"exchanges": CONTENT["exchanges"]}).encode(),
        )

    assert streams.names() == ["a"]
    assert policies.all() == []


def test_a_virtual_host_that_was_deleted_meanwhile_stays_deleted(rig: Rig) -> None:
    run = rig.broker.store_rig.run
    rig.ask("add_vhost", {"name": "new"})
    before = Before()
    current = run(current_definitions(rig.administration))
    before.old.of(HOSTS)["", "new"] = current.of(HOSTS)["", "new"]
    run(rig.administration.virtual_hosts.delete("new"))

    assert run(take_back(rig.administration, before))

    assert rig.administration.virtual_hosts.names() == ["/"]
