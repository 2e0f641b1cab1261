"""What the management API refuses as RabbitMQ does, with a reason, and without a trace."""

from collections.abc import Iterator

import pytest

from gateway.command_line import own_version
from tests.http_client import Api
from tests.integration.conftest import managed_server


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with managed_server(tmp_path_factory.mktemp("refusals")) as server:
        yield Api(*server.management)


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        (
            "stream/super-streams/%2F/bad",
            {"partitions": 2, "arguments": {"max-length-bytes": "20gb"}},
            "max-length-bytes is '20gb', which is no integer",
        ),
        (
            "stream/super-streams/%2F/bad",
            {"partitions": 1, "arguments": {"queue-leader-locator": "x"}},
            "queue-leader-locator is 'x'",
        ),
        (
            "stream/super-streams/%2F/bad",
            {"binding-keys": "a", "arguments": {"initial-cluster-size": "0"}},
            "initial-cluster-size is 0",
        ),
        ("queues/%2F/bad", {"arguments": {"x-max-age": "foo"}}, "invalid_max_age"),
        ("queues/%2F/bad", {"arguments": {"x-max-age": "1x"}}, "invalid_max_age"),
        ("queues/%2F/bad", {"arguments": {"x-max-age": "0s"}}, "invalid_max_age"),
        ("queues/%2F/bad", {"arguments": {"x-max-length-bytes": -1}}, "'x-max-length-bytes'"),
        ("queues/%2F/" + 128 * "%C3%A4", {}, "less than 255 bytes, actually was 256"),
        ("exchanges/%2F/" + 256 * "a", {"type": "direct"}, "has 256 bytes, more than 255"),
        ("vhosts/bad", {"default_queue_type": "nope"}, "'nope' is not a valid queue type"),
        ("vhosts/bad", {"default_queue_type": 5}, "5 is not a valid queue type"),
        (
            "policies/%2F/bad",
            {"pattern": "x", "definition": {"nope": 1, "max-age": "1D"}},
            "nope are not recognised policy settings",
        ),
        (
            "policies/%2F/bad",
            {"pattern": "x", "definition": {"max-age": "1D", "message-ttl": "5"}},
            '"5" is not a valid message TTL',
        ),
        ("policies/%2F/bad", {"pattern": "[", "definition": {"max-age": "1D"}}, "cannot be used"),
        ("policies/%2F/bad", {"pattern": "x", "definition": {"max-age": "0s"}}, "no age"),
    ],
)
def test_a_wrong_value_is_refused_with_a_reason_and_makes_nothing(
    api: Api, path: str, body: dict[str, object], reason: str
) -> None:
    answer = api.ask("PUT", path, body)

    assert (answer.status, answer.json["error"]) == (400, "bad_request")
    assert reason in answer.json["reason"]
    assert api.get("queues") == api.get("policies") == []
    assert [host["name"] for host in api.get("vhosts")] == ["/"]


def test_a_queue_name_may_have_255_bytes_and_a_length_any_number_of_digits(api: Api) -> None:
    name = "n" * 255
    arguments = {"x-max-length-bytes": 10**30, "x-max-age": "01h"}

    assert api.status("PUT", f"queues/%2F/{name}", {"arguments": arguments}) == 201
    try:
        shown = api.get(f"queues/%2F/{name}")["arguments"]
        assert shown == {"x-queue-type": "stream", **arguments}
    finally:
        assert api.status("DELETE", f"queues/%2F/{name}") == 204


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "exchanges/%2F/amq.direct", {"type": "direct", "durable": True}, 204),
        ("PUT", "exchanges/%2F/amq.headers", {"type": "headers"}, 204),
        ("PUT", "exchanges/%2F/amq.direct", {"type": "topic"}, 400),
        ("PUT", "exchanges/%2F/amq.direct", {"type": "direct", "durable": False}, 400),
        ("PUT", "exchanges/%2F/amq.mine", {"type": "direct"}, 401),
        ("PUT", "exchanges/%2F/amq.default", {"type": "direct"}, 401),
        ("PUT", "queues/%2F/amq.mine", {}, 401),
        ("DELETE", "exchanges/%2F/amq.direct", None, 401),
        ("DELETE", "exchanges/%2F/amq.default", None, 401),
        ("DELETE", "exchanges/%2F/amq.mine", None, 404),
        ("DELETE", "queues/%2F/amq.mine", None, 404),
        ("POST", "bindings/%2F/e/amq.default/q/any", {}, 401),
        ("PUT", "exchanges/none/amq.mine", {"type": "direct"}, 404),
        ("PUT", "queues/none/amq.mine", {}, 404),
    ],
)
def test_reserved_names_are_kept_from_everybody(
    api: Api, method: str, path: str, body: object, status: int
) -> None:
    before = api.get("exchanges")

    answer = api.ask(method, path, body)

    assert answer.status == status
    if status == 401:
        assert answer.json["error"] == "not_authorised"
    assert api.get("exchanges") == before


def test_what_is_in_use_or_holds_something_stays_if_that_is_asked(api: Api) -> None:
    message = {"payload": "x", "payload_encoding": "string", "properties": {}}
    assert api.status("DELETE", "queues/%2F/held?if-empty=true") == 404
    assert api.status("PUT", "queues/%2F/held", {}) == 201
    assert api.status("DELETE", "queues/%2F/held?if-empty=true") == 204
    assert api.status("PUT", "queues/%2F/held", {}) == 201
    publish = "exchanges/%2F/amq.default/publish"
    assert api.ask("POST", publish, message | {"routing_key": "held"}).json == {"routed": True}
    answer = api.ask("DELETE", "queues/%2F/held?if-empty=true")
    assert answer.status == 400
    assert answer.json["reason"] == "queue 'held' in vhost '/' is not empty"

    assert api.status("PUT", "exchanges/%2F/used", {"type": "fanout"}) == 201
    assert api.status("POST", "bindings/%2F/e/used/q/held", {}) == 201
    answer = api.ask("DELETE", "exchanges/%2F/used?if-unused=true")
    assert (answer.status, answer.json["reason"]) == (400, "exchange 'used' in vhost '/' in use")
    assert api.status("DELETE", "queues/%2F/held?if-empty=false") == 204
    assert api.status("DELETE", "exchanges/%2F/used?if-unused=true") == 204


def test_nobody_publishes_to_an_internal_exchange(api: Api) -> None:
    place = "exchanges/%2F/inside"
    assert api.status("PUT", place, {"type": "fanout", "internal": True}) == 201
    assert api.status("PUT", "queues/%2F/behind", {}) == 201
    try:
        assert api.status("POST", "bindings/%2F/e/inside/q/behind", {}) == 201
        message = {"payload": "x", "payload_encoding": "string", "properties": {}}
        answer = api.ask("POST", f"{place}/publish", {**message, "routing_key": ""})
        assert answer.status == 400
        reason = "403 ACCESS_REFUSED - cannot publish to internal exchange 'inside' in vhost '/'"
        assert answer.json == {"error": "bad_request", "reason": reason}
        assert api.get("queues/%2F/behind")["messages"] == 0
    finally:
        assert api.status("DELETE", place) == api.status("DELETE", "queues/%2F/behind") == 204


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("shovels", "hutch bridge"),
        ("federation-links/%2F", "hutch pipeline copy"),
        ("queues/quorum/%2F/q/status", "no quorum queues"),
        ("nodes/rabbit@localhost/memory/ets", "/api/nodes/NODE/memory"),
        ("channels/none", "no channels"),
        ("nowhere", "Not Found"),
    ],
)
def test_a_path_that_only_rabbitmq_has_is_not_found_with_the_reason(
    api: Api, path: str, reason: str
) -> None:
    answer = api.ask("GET", path)
    assert (answer.status, answer.json["error"]) == (404, "Object Not Found")
    assert reason in answer.json["reason"]


def test_messages_are_neither_read_nor_purged_over_http(api: Api) -> None:
    assert api.status("PUT", "queues/%2F/s", {}) == 201
    asked = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    for method, path, what, instead in (
        ("POST", "queues/%2F/{}/get", "540 basic.get", "a stream client reads it"),
        ("DELETE", "queues/%2F/{}/contents", "queue.purge", "truncate_stream"),
    ):
        answer = api.ask(method, path.format("s"), asked if method == "POST" else None)
        assert (answer.status, answer.json["error"]) == (400, "bad_request")
        words = f"{what} not supported by stream queues queue 's' in vhost '/': "
        assert answer.json["reason"].startswith(words)
        assert instead in answer.json["reason"]
        assert api.status(method, path.format("none")) == 404
    assert api.status("DELETE", "queues/%2F/s") == 204


def test_the_version_of_hutch_is_told_beside_rabbitmqs(api: Api) -> None:
    overview = api.get("overview")
    product = overview["product_name"], overview["product_version"]
    assert product == ("Hutch", own_version())
    node = overview["node"]
    for shown in (overview, api.get(f"nodes/{node}"), *api.get("nodes")):
        assert shown["hutch_version"] == own_version()
        assert shown["rabbitmq_version"] == api.get("version") != own_version()
