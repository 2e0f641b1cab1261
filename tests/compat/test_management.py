"""The management API beside RabbitMQ's own: the same statuses, words, fields, messages."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compat.broker import RunningBroker
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.http_client import Api, eventually, segment
from tests.integration.server import HutchServer

STREAM: Final = {
    "durable": True,
    "auto_delete": False,
    "arguments": {
        "x-queue-type": "stream",
        "x-max-age": "1h",
        "x-max-length-bytes": 1_000_000,
        "x-stream-max-segment-size-bytes": 500_000,
        "x-initial-cluster-size": 1,
        "x-queue-leader-locator": "balanced",
    },
}
PLAIN: Final = {"durable": True, "arguments": {"x-queue-type": "stream"}}
DIRECT: Final = {"type": "direct", "durable": True, "arguments": {"x-super-stream-enabled": True}}
ORDER: Final = {"routing_key": "0", "arguments": {"x-stream-partition-order": "0"}}
ALL: Final = {"configure": ".*", "write": ".*", "read": ".*"}
HASH: Final = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"

WATCHED: Final = (
    *("nodes/rabbit@localhost/memory", "healthchecks/node", "healthchecks/node/rabbit@localhost"),
    *("queues/detailed", "queues/detailed?page=1&sort=messages", "auth/hash_password/p%2Fw"),
    *("auth/hash_password/%FF", "extensions", "deprecated-features", "deprecated-features/used"),
)
"""Paths that monitoring tools ask."""

OF_UNIT_TESTS: Final = Path(__file__).parents[1] / "unit" / "gateway" / "management"
COMMANDS: Final = OF_UNIT_TESTS / "ctl" / "rabbitmq-4.3-commands.txt"
PATHS: Final = OF_UNIT_TESTS / "http" / "rabbitmq-4.3-paths.txt"

Request = tuple[str, str, object] | tuple[str, str, object, dict[str, str]]
NEW: Final = {"If-None-Match": "*"}
OTHER: Final = {"If-Match": '"x"'}

SCRIPT: Final[tuple[Request, ...]] = (
    ("GET", "nowhere", None),
    ("GET", "connections/none", None),
    ("DELETE", "connections/none", None),
    ("PUT", "vhosts/m-v", None),
    ("PUT", "vhosts/m-v", None),
    ("GET", "vhosts/m-v", None),
    ("PUT", "vhosts/m-v", {"tracing": "foo"}),
    ("PUT", "vhosts/m-v", {"default_queue_type": "nope"}),
    ("PUT", "vhosts/m-v", {"description": "a", "tags": "b", "default_queue_type": "stream"}),
    ("PUT", "queues/%2F/m-q", STREAM, OTHER),
    ("PUT", "queues/%2F/m-q", STREAM, NEW),
    ("PUT", "queues/%2F/m-q", STREAM, NEW),
    ("DELETE", "queues/%2F/m-q", None, OTHER),
    ("DELETE", "queues/%2F/m-q", None, NEW),
    ("PUT", "queues/%2F/m-q", STREAM, {"If-Match": "*"}),
    ("POST", "exchanges/%2F/amq.default/publish", {}, NEW),
    ("PUT", "queues/%2F/m-q", STREAM),
    ("PUT", "queues/%2F/m-q", STREAM),
    ("PUT", "queues/%2F/m-q", PLAIN),
    ("PUT", "queues/%2F/m-x", {"durable": False, "arguments": {"x-queue-type": "stream"}}),
    ("PUT", "queues/%2F/m-x", {"arguments": {"x-queue-type": "stream", "x-max-age": 5}}),
    ("PUT", "queues/%2F/m-x", b'{"arguments":'),
    ("PUT", "queues/%2F/m-x", b"[1]"),
    ("PUT", "queues/none/m-x", PLAIN),
    ("GET", "queues/%2F/none", None),
    ("GET", "queues/none", None),
    ("DELETE", "queues/%2F/none", None),
    ("PUT", "exchanges/%2F/m-e", DIRECT),
    ("PUT", "exchanges/%2F/m-e", DIRECT),
    ("PUT", "exchanges/%2F/m-e", {"type": "fanout"}),
    ("PUT", "exchanges/%2F/m-x", {"type": "nope"}),
    ("PUT", "exchanges/%2F/m-x", {"type": "direct", "arguments": {"a": [1, {"b": None}]}}),
    ("PUT", "exchanges/%2F/m-x", b'{"type": "direct", "arguments": {"a": "\\ud800"}}'),
    ("PUT", "exchanges/%2F/m-x", {"type": "direct", "arguments": {"alternate-exchange": 5}}),
    ("GET", "exchanges/%2F/m-e", None),
    ("GET", "exchanges/%2F/none", None),
    ("POST", "bindings/%2F/e/m-e/q/m-q", ORDER),
    ("POST", "bindings/%2F/e/m-e/q/m-q", ORDER),
    ("POST", "bindings/%2F/e/none/q/m-q", ORDER),
    ("GET", "bindings/%2F/e/m-e/q/m-q", None),
    ("GET", "exchanges/%2F/m-e/bindings/source", None),
    ("GET", "exchanges/%2F/m-e/bindings/destination", None),
    ("PATCH", "queues/%2F/m-q", None),
    ("POST", "queues", None),
    ("OPTIONS", "queues", None),
    ("GET", "whoami", None),
    ("GET", "version", None),
    ("GET", "users/none", None),
    ("GET", "permissions/%2F/guest", None),
    ("GET", "stream/connections/none", None),
    ("GET", "stream/connections/%2F/none", None),
    ("GET", "stream/publishers/%2F/none", None),
    ("GET", "stream/publishers/none", None),
    ("GET", "stream/consumers/%2F/", None),
    ("GET", "stream/%2F/none/tracking", None),
    ("GET", "stream/%2F/m-q/tracking", None),
    ("PUT", "stream/super-streams/%2F/m-s", {"partitions": 3}),
    ("PUT", "stream/super-streams/%2F/m-s", {"partitions": 3}),
    ("PUT", "stream/super-streams/%2F/m-x", {"partitions": -3}),
    ("PUT", "stream/super-streams/%2F/m-x", {"partitions": "x"}),
    ("PUT", "stream/super-streams/%2F/m-x", {"partitions": 1001}),
    ("PUT", "stream/super-streams/%2F/m-x", {}),
    ("PUT", "stream/super-streams/%2F/m-x", {"partitions": 2, "binding-keys": "a,b"}),
    ("PUT", "stream/super-streams/%2F/m-k", {"binding-keys": "a,b"}),
    ("PUT", "users/m-u", {"password": "x", "tags": "monitoring"}),
    ("PUT", "users/m-u", {"password": "x", "tags": "monitoring"}),
    ("PUT", "users/m-h", {"password_hash": HASH, "tags": ""}),
    ("PUT", "users/m-x", {"password": "x"}),
    ("PUT", "users/m-x", {"password": "x", "password_hash": HASH, "tags": ""}),
    ("PUT", "users/m-x", {"password_hash": None, "tags": ""}),
    ("PUT", "users/m-x", {"password": "x", "tags": ["t"] * 33}),
    ("PUT", "users/m-u", {"password": "x", "tags": "", "limits": {"max-connections": 0}}),
    ("POST", "users/bulk-delete", {}),
    ("POST", "users/bulk-delete", {"users": ["m-x"]}),
    ("PUT", "permissions/%2F/m-u", ALL),
    ("PUT", "permissions/%2F/m-u", ALL),
    ("PUT", "permissions/%2F/m-u", {"configure": ".*"}),
    ("PUT", "permissions/none/m-u", ALL),
    ("PUT", "permissions/%2F/none", ALL),
    ("GET", "users/m-u/permissions", None),
    ("DELETE", "permissions/%2F/m-u", None),
    ("DELETE", "permissions/%2F/m-u", None),
    ("POST", "definitions", {"users": [{"name": "m-d", "password_hash": HASH, "tags": ""}]}),
    ("POST", "definitions", {"users": [{}]}),
    ("GET", "definitions/none", None),
    ("PUT", "policies/%2F/m-p", {"pattern": "^m-z", "definition": {"max-age": "1h"}}),
    ("GET", "policies/%2F/m-p", None),
    ("PUT", "policies/%2F/m-x", {"pattern": "^a"}),
    ("DELETE", "policies/%2F/m-p", None),
    ("DELETE", "policies/%2F/m-p", None),
    ("PUT", "vhost-limits/m-v/max-connections", {"value": 5}),
    ("PUT", "vhost-limits/m-v/nope", {"value": 5}),
    ("GET", "vhost-limits/m-v", None),
    ("DELETE", "vhost-limits/m-v/max-connections", None),
    ("PUT", "user-limits/m-u/max-connections", {"value": 5}),
    ("GET", "user-limits/m-u", None),
    ("PUT", "vhost-limits/m-v/max-connections", {"value": 5}),
    ("PUT", "parameters/vhost-limits/m-v/limits", {"value": {"max-queues": 5}}),
    ("GET", "parameters/vhost-limits/m-v/limits", None),
    ("GET", "parameters/vhost-limits/m-v/other", None),
    ("DELETE", "parameters/vhost-limits/m-v/limits", None),
    ("DELETE", "parameters/vhost-limits/m-v/limits", None),
    ("GET", "auth/attempts/none", None),
    *(("GET", path, None) for path in WATCHED),
    ("POST", "auth/hash_password/x", None),
    ("GET", "auth/hash_password", None),
    ("GET", "nodes/none/memory", None),
    ("GET", "healthchecks/node/none", None),
    ("GET", "queues/detailed/%2F", None),
    ("GET", "health/checks/below-node-connection-limit", None),
    ("GET", "health/checks/metadata-store/initialized", None),
    ("GET", "health/checks/quorum-queues-without-elected-leaders/all-vhosts", None),
    ("GET", "aliveness-test/%2F", None),
    ("GET", "health/checks/alarms", None),
    ("GET", "health/checks/port-listener/1", None),
    ("GET", "health/checks/protocol-listener/stomp", None),
    ("GET", "health/checks/reached-target-cluster-size", None),
    ("POST", "queues/%2F/m-q/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    ("POST", "queues/%2F/none/get", {"count": 1, "ackmode": "reject_requeue_true"}),
    ("DELETE", "queues/%2F/m-q/contents", None),
    ("DELETE", "queues/%2F/none/contents", None),
    ("GET", "queues/%2F/m-q/get", None),
    ("GET", "shovels", None),
    ("GET", "queues?page=0&page_size=2", None),
    ("GET", "queues?page=1&page_size=501", None),
    ("DELETE", "users/m-u", None),
    ("DELETE", "users/m-u", None),
    ("DELETE", "exchanges/%2F/m-e", None),
    ("DELETE", "exchanges/%2F/m-e", None),
    ("DELETE", "queues/%2F/m-q", None),
    ("DELETE", "queues/%2F/m-q", None),
    ("DELETE", "vhosts/m-v", None),
    ("DELETE", "vhosts/m-v", None),
)
LEFT: Final = (
    *(f"exchanges/%2F/{name}" for name in ("m-s", "m-k")),
    *(f"queues/%2F/{name}" for name in ("m-s-0", "m-s-1", "m-s-2", "m-k-a", "m-k-b")),
    *(f"users/{name}" for name in ("m-h", "m-d")),
)


@pytest.fixture(scope="module")
def hutch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    folder: Path = tmp_path_factory.mktemp("management")
    with HutchServer(folder / "data", "--durability", "os") as server:
        yield server


@pytest.fixture
def theirs(rabbitmq: RunningBroker) -> Api:
    return Api(rabbitmq.host, rabbitmq.ports.http)


@pytest.fixture
def ours(hutch: HutchServer) -> Api:
    return Api(*hutch.management)


def said(api: Api, request: Request) -> tuple[int, object]:
    """Status, and what a refusal is called; of a short list, what it holds."""
    answer = api.ask(*request)
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    body = answer.json if is_json else None
    if answer.status >= 400:
        return answer.status, body.get("error", "").lower() if isinstance(body, dict) else None
    return answer.status, None


def test_the_same_requests_have_the_same_outcomes(theirs: Api, ours: Api) -> None:
    differences = []
    try:
        for request in SCRIPT:
            (status, word), (our_status, our_word) = said(theirs, request), said(ours, request)
            # RabbitMQ calls what is missing in two ways; here there is one.
            same_word = word in {None, our_word, "not_found"} or status == 503
            if status != our_status or not same_word:
                differences.append((request[:2], (status, word), (our_status, our_word)))
    finally:
        for path in LEFT:
            theirs.status("DELETE", path)
            ours.status("DELETE", path)
    assert not differences


def test_the_lists_of_commands_and_paths_are_the_brokers(rabbitmq: RunningBroker) -> None:
    if rabbitmq.way == "environment":
        pytest.skip("there is no rabbitmqctl beside a broker that was merely found")
    listed = rabbitmq.control("help")
    commands = set(re.findall(r"^   ([a-z_]+) ", listed, re.MULTILINE))
    assert len(commands) > 80
    assert commands <= set(COMMANDS.read_text("ascii").split())
    asked = rabbitmq.control("eval", "[P || {P, _, _} <- rabbit_mgmt_dispatcher:dispatcher()].")
    paths = {re.sub(":[a-z_]+", "x", path).rstrip("/") for path in re.findall('"(.*?)"', asked)}
    assert len(paths) > 90
    known = PATHS.read_text("ascii").replace("/e/x/e/", "/e/x/x/").split()
    assert paths <= set(known)


def fields_of(value: Any, prefix: str = "") -> set[str]:  # noqa: ANN401  # what JSON holds
    if not isinstance(value, dict):
        return set()
    found = set()
    for name, inner in value.items():
        found |= {prefix + name} | fields_of(inner, f"{prefix}{name}.")
    return found


# What Erlang says of its processes, and statistics that nobody gathers here.
NOT_OURS: Final = frozenset(
    ("recv_cnt", "send_cnt", "memory", "segments", "reductions",
     "internal_owner", "message_stats", "user_who_performed_action")
)  # fmt: skip


def missing(theirs: Any, ours: Any) -> set[str]:  # noqa: ANN401
    return {
        name
        for name in fields_of(theirs) - fields_of(ours)
        if name.split(".")[0] not in NOT_OURS and not name.startswith("reductions")
    }


def listed(api: Api, path: str) -> dict[str, Any]:
    """Return the stream of this test out of a list of queues."""
    return next(one for one in api.get(path) if one["name"] == "m-fields")


def test_objects_have_the_same_fields(
    theirs: Api, ours: Api, rabbitmq: RunningBroker, hutch: HutchServer
) -> None:
    shown: list[dict[str, Any]] = []
    for api, endpoint in ((theirs, rabbitmq.stream_address), (ours, (hutch.host, hutch.port))):
        assert api.status("PUT", "queues/%2F/m-fields", STREAM) == 201
        with Client.opened(*endpoint) as client:
            client.declare(0, "m-fields", "named")
            client.publish(0, {1: b"x"})
            client.confirmed_ids(1)
            client.subscribe(0, "m-fields", FIRST)
            client.delivery()
            client.send_request("store_offset", m.StoreOffset("reader", "m-fields", 0))
            client.request("query_offset", m.QueryOffset("reader", "m-fields"))
            host, port = client.socket.getsockname()
            name = segment(f"{host}:{port} -> {endpoint[0]}:{endpoint[1]}")
            assert eventually(lambda: api.status("GET", f"connections/{name}") == 200)  # noqa: B023
            assert eventually(lambda: "messages" in api.get("queues/%2F/m-fields"))  # noqa: B023
            path = "stream/publishers/%2F/m-fields"
            assert eventually(lambda: api.get(path)[0]["published"] == 1)  # noqa: B023
            shown.append(
                {
                    "connection": api.get(f"connections/{name}"),
                    "stream connection": api.get(f"stream/connections/%2F/{name}"),
                    "publisher": api.get("stream/publishers/%2F/m-fields")[0],
                    "consumer": next(
                        one
                        for one in api.get("stream/consumers/%2F/")
                        if one["queue"]["name"] == "m-fields"
                    ),
                    "queue consumer": next(
                        one for one in api.get("consumers") if one["queue"]["name"] == "m-fields"
                    ),
                    "queue": api.get("queues/%2F/m-fields"),
                    "listed queue": listed(api, "queues/%2F"),
                    "detailed queue": listed(api, "queues/detailed"),
                    "memory of node": api.get("nodes/rabbit@localhost/memory")["memory"],
                    "tracking": api.get("stream/%2F/m-fields/tracking"),
                    "exchange": api.get("exchanges/%2F/amq.direct"),
                    "vhost": {
                        key: value
                        for key, value in api.get("vhosts/%2F").items()
                        if not key.startswith(("message", "recv_oct", "send_oct"))
                    },
                    "user": api.get("users/guest"),
                    "permission": api.get("permissions/%2F/guest"),
                    "whoami": api.get("whoami"),
                }
            )
        api.status("DELETE", "queues/%2F/m-fields")
    for what, of_theirs in shown[0].items():
        assert not missing(of_theirs, shown[1][what]), what
    same = ("arguments", "type", "durable", "auto_delete", "exclusive", "state", "node", "members")
    for name in same:
        assert shown[0]["queue"][name] == shown[1]["queue"][name], name
    assert shown[0]["tracking"] == shown[1]["tracking"]
    for name in ("publisher_id", "reference", "published", "confirmed", "errored", "queue"):
        assert shown[0]["publisher"][name] == shown[1]["publisher"][name], name


def test_what_monitoring_asks_has_the_same_form(theirs: Api, ours: Api) -> None:
    for path in WATCHED:
        of_theirs, of_ours = theirs.get(path), ours.get(path)
        assert type(of_theirs) is type(of_ours), path
        if "healthchecks" in path:
            assert of_theirs == of_ours
        if "hash_password" in path:
            assert len(of_theirs["ok"]) == len(of_ours["ok"])


def test_a_hash_of_the_other_server_is_taken(theirs: Api, ours: Api) -> None:
    for made_by, taken_by in ((theirs, ours), (ours, theirs)):
        hashed = made_by.get("auth/hash_password/p%2Fw%C3%A9")["ok"]
        user = {"password_hash": hashed, "tags": "management"}
        assert taken_by.status("PUT", "users/m-hashed", user) == 201
        try:
            assert taken_by.by("m-hashed", "p/wé").get("whoami")["name"] == "m-hashed"
        finally:
            assert taken_by.status("DELETE", "users/m-hashed") == 204


UUID: Final = "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"

PROPERTIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"content_type": "text/plain", "message_id": "m1", "headers": {"k": "v", "n": 1, "b": True}},
    {"headers": {"big": 5_000_000_000, "f": 1.5, "z": 0, "neg": -5, "h": 200, "e": ""}},
    {"headers": {"l": [1, "a"], "t": {"x": 1}, "k": "v", "x-foo": "bar", "x-l": [1, "a", True]}},
    {"headers": {"k": "w" * 300, "x-t": {"a": 1}}},
    {"content_encoding": "gzip", "delivery_mode": 2, "priority": 7, "correlation_id": "c1"},
    {"reply_to": "amq.x/y z", "expiration": "60000", "timestamp": 1_700_000_000, "type": "ty"},
    {"user_id": "guest", "app_id": "ap", "cluster_id": "cl", "unknown": 1},
    {"message_id": "é" * 200, "priority": 0, "delivery_mode": 1},
    {"headers": {"x-stream-filter-value": "fv"}},
    {"headers": {"CC": ["nowhere", 5], "BCC": ["nowhere"], "x-a": 1}, "type": "ty"},
    {"headers": {"CC": [], "x-death": [], "x-l": [[], {}]}},
    {"message_id": UUID, "correlation_id": UUID.upper().replace("URN:UUID", "urn:uuid")},
    {"message_id": UUID.replace("-", ""), "correlation_id": UUID.upper()},
)


def stored(api: Api, endpoint: tuple[str, int]) -> list[bytes]:
    """What a server stores of the same messages, published over HTTP."""
    assert api.status("PUT", "queues/%2F/m-posted", PLAIN) == 201
    try:
        for number, properties in enumerate(PROPERTIES):
            body = {
                "properties": properties,
                "routing_key": "m-posted",
                "payload": "a" * (number * 100),
                "payload_encoding": "string",
            }
            answer = api.ask("POST", "exchanges/%2f/amq.default/publish", body)
            assert answer.json == {"routed": True}, (properties, answer)
        with Client.opened(*endpoint) as client:
            client.subscribe(1, "m-posted", FIRST, credit=100)
            records: list[bytes] = []
            while len(records) < len(PROPERTIES):
                records += client.delivery().chunk.records()
        return records
    finally:
        api.status("DELETE", "queues/%2F/m-posted")


def test_a_message_published_over_http_is_stored_byte_for_byte_alike(
    theirs: Api, ours: Api, rabbitmq: RunningBroker, hutch: HutchServer
) -> None:
    assert stored(ours, (hutch.host, hutch.port)) == stored(theirs, rabbitmq.stream_address)
