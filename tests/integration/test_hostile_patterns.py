"""Patterns that take as long as a pattern may, a great many of them, on a running server.

No client waits for them longer than for a turn of the loop, and what others set counts beside them.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import pytest

from hutch.client.connection import Connection
from hutch.client.login import Endpoint, Login
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api, segment
from tests.integration.administrator import ctl
from tests.integration.conftest import external_endpoint
from tests.integration.costs import Costs, amount
from tests.integration.server import HutchServer
from tests.integration.test_commits import pipeline_client
from tests.waiting import HANG_S

HOSTILE: Final = "(?:(?=[^z]*)|x){0,600}[zy]"
"""Looks at what is left of the name in each of its steps: 5 to 10 ms, and no match."""
POLICIES: Final = amount(2_000, 60)
"""At 10 ms each a name keeps a server busy for 20 s, by day for 0.6 s."""
STREAMS: Final = 40
LONG: Final = "a" * 200
BENIGN: Final = {"max-length-bytes": 5_000_000}


def hostile_policies(count: int, **more: object) -> list[dict[str, Any]]:
    """Return definitions of policies that come before all others, and match nothing."""
    return [
        {
            "vhost": "/",
            "name": f"hostile-{number}",
            "pattern": HOSTILE,
            "apply-to": "all",
            "definition": {"max-length-bytes": 1_000 + number},
            "priority": 9,
            **more,
        }
        for number in range(count)
    ]


def benign_policy(pattern: str = "a$", **more: object) -> dict[str, Any]:
    """Return the definition of one that comes last, and matches."""
    (policy,) = hostile_policies(1, priority=-1)
    return policy | {"name": "benign", "pattern": pattern, "definition": BENIGN} | more


def operator_policies(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the same as operators set them."""
    said = ("pattern", "apply-to", "definition", "priority")
    return [
        {
            "vhost": "/",
            "component": "operator_policy",
            "name": policy["name"],
            "value": {key: policy[key] for key in said},
        }
        for policy in policies
    ]


def names_of(count: int) -> list[str]:
    return [f"{number:03d}{LONG}" for number in range(count)]


def load(api: Api, **sections: object) -> None:
    answer = api.ask("POST", "definitions", sections)
    assert answer.status == 204, answer


@pytest.fixture
def server(request: pytest.FixtureRequest) -> HutchServer:
    if external_endpoint() is not None:
        pytest.skip("needs a server whose turns can be watched")
    found: HutchServer = request.getfixturevalue("start_server")("--durability", "os")
    Client.opened(*found.endpoint).disconnect()  # its password is compared once
    Api(*found.management).get("whoami")
    return found


@pytest.fixture
def api(server: HutchServer) -> Api:
    return Api(*server.management)


def test_a_stream_gets_the_policy_that_counts_behind_many_hostile_ones(
    server: HutchServer, api: Api
) -> None:
    policies = [*hostile_policies(POLICIES), benign_policy()]
    load(api, policies=policies)
    with Costs(server), Client.opened(*server.endpoint) as client:
        client.create(LONG)
        client.declare(1, LONG)
        shown = api.get(f"queues/%2F/{LONG}")
    assert (shown["policy"], shown["effective_policy_definition"]) == ("benign", BENIGN)


def test_operators_policies_are_no_different(server: HutchServer, api: Api) -> None:
    load(api, parameters=operator_policies([*hostile_policies(POLICIES), benign_policy()]))
    with Costs(server), Client.opened(*server.endpoint) as client:
        client.create(LONG)
        client.declare(1, LONG)
        shown = api.get(f"queues/%2F/{LONG}")
    assert (shown["operator_policy"], shown["effective_policy_definition"]) == ("benign", BENIGN)


def test_clients_that_open_streams_at_the_same_time_share_a_turn(
    server: HutchServer, api: Api
) -> None:
    load(api, policies=[*hostile_policies(POLICIES // 8), benign_policy()])
    names = names_of(8)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client.opened(*server.endpoint)) for _ in names]
        for client, name in zip(clients, names, strict=True):
            client.create(name)
        with Costs(server):
            for client, name in zip(clients, names, strict=True):
                client.send_request("declare_publisher", m.DeclarePublisher(1, "", name))
            for client in clients:
                answer = client.receive(HANG_S).message
                assert answer == m.Status(ResponseCode.OK)
    assert {each["policy"] for each in api.get("queues")} == {"benign"}


def test_a_list_of_streams_shows_what_counts_for_each(server: HutchServer, api: Api) -> None:
    few = POLICIES // 20
    load(api, policies=[*hostile_policies(few), benign_policy("^00[0-9]a")])
    with Client.opened(*server.endpoint) as client:
        for name in names_of(STREAMS):
            client.create(name)
    with Costs(server):
        shown = {each["name"]: each["policy"] for each in api.get("queues")}
        ctl(server, "list_streams")
    assert [shown[name] for name in names_of(STREAMS)] == ["benign"] * 10 + [None] * 30


def test_a_policy_that_comes_or_goes_is_looked_for_in_all_streams_in_many_turns(
    server: HutchServer, api: Api
) -> None:
    with Client.opened(*server.endpoint) as client:
        for number, name in enumerate(names_of(STREAMS)):
            client.create(name)
            client.declare(number, name)
    first, benign = hostile_policies(1)[0], benign_policy()
    load(api, policies=[benign])
    with Costs(server):
        for policy in (*hostile_policies(3), first):
            path = f"policies/%2F/{policy['name']}"
            assert api.status("PUT", path, policy) in {201, 204}
        assert api.status("DELETE", "policies/%2F/hostile-0") == 204
        assert {each["policy"] for each in api.get("queues")} == {"benign"}


def test_an_exchange_finds_its_alternate_one_behind_many_hostile_policies(
    server: HutchServer, api: Api
) -> None:
    definition = {"alternate-exchange": "other"}
    benign = benign_policy(definition=definition)
    load(
        api,
        policies=[*hostile_policies(POLICIES), benign],
        exchanges=[
            {"vhost": "/", "name": name, "type": "fanout", "durable": True}
            for name in (LONG, "other")
        ],
        queues=[{"vhost": "/", "name": "s", "durable": True, "type": "stream"}],
        bindings=[
            {
                "vhost": "/",
                "source": "other",
                "destination": "s",
                "destination_type": "queue",
                "routing_key": "",
            }
        ],
    )
    with Costs(server), Client.opened(*server.endpoint) as client:
        routed = client.ask(m.StreamsReply, "route", m.Route("k", LONG))
        body = {"properties": {}, "routing_key": "k", "payload": "x", "payload_encoding": "string"}
        answer = api.ask("POST", f"exchanges/%2F/{LONG}/publish", body)
    assert routed.streams == ("s",)
    assert answer.json == {"routed": True}


# One pattern, many names


@pytest.fixture
def crowded(server: HutchServer) -> HutchServer:
    with Client.opened(*server.endpoint) as client:
        for name in names_of(STREAMS):
            client.create(name)
    return server


def test_a_hostile_pattern_that_a_list_is_asked_with_takes_many_turns(
    crowded: HutchServer, api: Api
) -> None:
    with Costs(crowded), pipeline_client(crowded) as client:
        asked = p.DescribeStreams((), HOSTILE)
        assert client.ask(p.StreamsDescribed, "describe_streams", asked).streams == ()
        page = f"queues?page=1&use_regex=true&name={segment(HOSTILE)}"
        assert api.get(page)["filtered_count"] == 0


def test_rights_with_hostile_patterns_take_many_turns(crowded: HutchServer) -> None:
    ctl(crowded, "add_user", "clerk", stdin=b"secret\n")
    ctl(crowded, "set_permissions", "clerk", HOSTILE, HOSTILE, HOSTILE)
    names = tuple(names_of(STREAMS // 2))
    login = Login("clerk", password="secret", asks_for_pipeline=True)
    client = Connection.to(Endpoint(*crowded.endpoint), login, timeout_s=HANG_S)
    try:
        with Costs(crowded):
            asked = p.DescribeStreams(names, None)
            described = client.ask(p.StreamsDescribed, "describe_streams", asked)
            found = client.ask(m.MetadataReply, "metadata", m.Metadata(names))
    finally:
        client.disconnect()
    refused = ResponseCode.ACCESS_REFUSED
    assert {each.code for each in described.streams} == {refused}
    assert {each.code for each in found.streams} == {refused}
