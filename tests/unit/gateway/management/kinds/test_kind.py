"""Entries of definitions, read by their kinds."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.rules.arguments import StreamArguments
from gateway.management.kinds.entry import Context, DefinitionEntry, Fault, Skip
from gateway.management.kinds.people import PERMISSIONS, USERS
from gateway.management.kinds.policies import OPERATOR_POLICIES, POLICIES
from gateway.management.kinds.streams import STREAM_ARGUMENTS, STREAMS
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from gateway.management.kinds.virtual_hosts import HOSTS
from tests.unit.gateway.management.definitions.definitions_rig import queue

CONTEXT = Context(None, {"/": "classic", "streams": "stream"})
SHA256 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
MD5 = base64.b64encode(b"salt" + hashlib.md5(b"saltpw", usedforsecurity=False).digest()).decode()


def fault(
    read: Callable[[DefinitionEntry, Context], object],
    content: object,
    kind: type[Exception] = Fault,
) -> str:
    with pytest.raises(kind) as error:
        read(DefinitionEntry(content), CONTEXT)
    return str(error.value)


@pytest.mark.parametrize("tags", [["a", "b"], "a,b", " a , b,", ["a", "b", "a"]])
def test_tags_are_a_list_or_a_text_with_commas(tags: object) -> None:
    entry = DefinitionEntry({"name": "app", "password_hash": "", "tags": tags})

    assert USERS.read(entry, CONTEXT)[1].tags == ("a", "b")


@pytest.mark.parametrize(
    ("given", "password_hash", "algorithm", "note"),
    [
        ({"hashing_algorithm": "rabbit_password_hashing_sha256"}, SHA256, "sha256", ""),
        ({}, MD5, "md5", ""),
        ({"hashing_algorithm": ""}, MD5, "md5", ""),
        ({"hashing_algorithm": None}, MD5, "md5", ""),
        ({}, SHA256, "sha256", "no hashing_algorithm: taken for rabbit_password_hashing_sha256"),
        ({"hashing_algorithm": "my_own"}, SHA256, None, "'my_own' is not known"),
    ],
)
def test_hashes_are_taken_as_they_are_and_without_an_algorithm_by_their_size(
    given: dict[str, object], password_hash: str, algorithm: str | None, note: str
) -> None:
    entry = DefinitionEntry({"name": "app", "password_hash": password_hash, **given})

    hashed = USERS.read(entry, CONTEXT)[1].password_hash

    if algorithm is None:
        assert hashed is None
    else:
        algorithm = f"rabbit_password_hashing_{algorithm}"
        assert hashed == PasswordHash(Algorithm(algorithm), password_hash)
    assert [note in text for text in entry.notes] == ([True] if note else [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "must have 1 to 255 bytes"),
        ({"password_hash": "not base64!"}, "password_hash is not base64"),
        (
            {"password_hash": SHA256, "hashing_algorithm": "rabbit_password_hashing_md5"},
            "password_hash has 36 bytes",
        ),
        ({"password": "secret"}, "password: never in clear"),
        ({"tags": [1]}, "tags is a list"),
        ({"limits": {"max-connections": "5"}}, "limit max-connections is '5'"),
        ({"limits": {"max-connections": 1e30}}, "not a whole number"),
        ({"name": "a" * 256}, "must have 1 to 255 bytes"),
        ({"name": "a" * 70_000}, "longer than"),
    ],
)
def test_a_user_that_cannot_be_meant_is_a_fault(given: dict[str, object], words: str) -> None:
    message = fault(USERS.read, {"name": "app", "password_hash": ""} | given)

    assert words in message
    assert "secret" not in message


def test_what_describes_a_virtual_host_is_at_the_top_or_under_metadata() -> None:
    about = {"description": "d", "tags": "a,b", "default_queue_type": "stream"}

    _, newer = HOSTS.read(DefinitionEntry({"name": "h", "metadata": about}), CONTEXT)
    _, older = HOSTS.read(DefinitionEntry({"name": "h", "metadata": {}, **about}), CONTEXT)

    assert newer == older
    assert (newer.description, newer.tags, newer.default_queue_type) == ("d", ("a", "b"), "stream")
    undefined = DefinitionEntry({"name": "h", "default_queue_type": "undefined"})
    assert HOSTS.read(undefined, CONTEXT)[1].default_queue_type is None


def test_patterns_that_cannot_be_used_here_give_no_permission() -> None:
    given = {"user": "app", "vhost": "/", "configure": "", "write": "^(?!amq.*", "read": ""}

    assert "write '^(?!amq.*' cannot be used" in fault(PERMISSIONS.read, given, Skip)
    long = given | {"configure": "é" * 512 + "a"}
    assert "configure must not exceed 1024 bytes" in fault(PERMISSIONS.read, long, Skip)


def test_a_permission_that_looks_ahead_is_taken() -> None:
    given = {"user": "app", "vhost": "/", "configure": "", "write": "^(?!amq).*", "read": ""}

    assert PERMISSIONS.read(DefinitionEntry(given), CONTEXT)[1].write == "^(?!amq).*"


@pytest.mark.parametrize(
    ("given", "is_stream"),
    [
        ({}, True),
        ({"type": "quorum"}, False),
        ({"type": None}, True),
        ({"type": None, "arguments": {"x-queue-type": "classic"}}, False),
        ({"type": None, "arguments": {}}, False),
        ({"type": None, "arguments": {}, "vhost": "streams"}, True),
        ({"name": "amq.gen-x"}, False),
    ],
)
def test_a_queue_is_a_stream_by_its_type_its_argument_or_its_virtual_hosts_default(
    given: dict[str, object],
    is_stream: bool,  # noqa: FBT001
) -> None:
    content = queue() | given

    if is_stream:
        assert STREAMS.read(DefinitionEntry(content), CONTEXT)[1].name == "log"
    else:
        assert fault(STREAMS.read, content, Skip)


def test_arguments_that_streams_do_not_have_or_take_are_left_out_with_a_note() -> None:
    entry = DefinitionEntry(
        queue(
            "a\nb",
            arguments={
                "x-max-age": "7D",
                "x-max-length": 5,
                "x-stream-max-segment-size-bytes": 0,
                "x-initial-cluster-size": 3,
            },
        )
    )

    _, stream = STREAMS.read(entry, CONTEXT)

    assert stream.name == "ab"
    assert stream.arguments == {"max-age": "7D", "initial-cluster-size": "3"}
    assert entry.notes == [
        "line ends in the name left out",
        "argument x-max-length left out: streams have none such",
        "argument left out: stream-max-segment-size-bytes is 0, which is below 9",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arguments": {"x-max-age": 5}}, "argument x-max-age is 5, not text"),
        ({"arguments": {"x-max-length-bytes": "5"}}, "is '5', not a whole number"),
        ({"arguments": {"x-max-length-bytes": True}}, "is true, not a whole number"),
        ({"arguments": 5}, "arguments is 5, not an object"),
        ({"auto_delete": True}, "which streams never do"),
        ({"auto_delete": "no"}, "neither true nor false"),
        ({"name": "\n"}, "name is empty"),
        ({"type": ["stream"]}, "type is a list"),
        ({"vhost": None}, "vhost is missing"),
    ],
)
def test_a_stream_that_cannot_be_meant_is_a_fault(given: dict[str, Any], words: str) -> None:
    content = queue() | given
    if "arguments" in given and isinstance(given["arguments"], dict):
        content["arguments"] = {"x-queue-type": "stream"} | given["arguments"]

    assert words in fault(STREAMS.read, content)


def test_every_argument_of_a_stream_has_its_place_in_a_queue() -> None:
    samples = {
        "max-age": "7D",
        "queue-leader-locator": "balanced",
        "stream-max-segment-size-bytes": "1000",
        "stream-filter-size-bytes": "32",
    }
    given = {name: samples.get(name, "1") for name in STREAM_ARGUMENTS.values()}

    assert set(StreamArguments.parse(given).texts()) <= set(STREAM_ARGUMENTS.values())


POLICY = {"name": "p", "vhost": "/", "pattern": "^a", "definition": {"max-age": "7D"}}


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({}, ""),
        ({"apply-to": "classic_queues"}, "is for classic_queues"),
        ({"apply-to": "exchanges"}, "is for exchanges"),
        ({"apply-to": "exchanges", "definition": {"alternate-exchange": "f"}}, ""),
        ({"definition": {"max-age": "1h", "queue-version": 2}}, "for an export: queue-version"),
        (
            {"definition": {"max-length": 5, "max-age": "1h", "overflow": "drop-head"}},
            "does not apply to streams because of max-length, overflow",
        ),
        ({"definition": {"ha-mode": "all"}}, "does not apply to streams because of ha-mode"),
        ({"priority": 1.5}, ""),
    ],
)
def test_a_policy_is_kept_whole_with_a_note_on_what_means_nothing_here(
    given: dict[str, object], note: str
) -> None:
    entry = DefinitionEntry(POLICY | given)

    _, policy = POLICIES.read(entry, CONTEXT)

    assert policy.definition == (POLICY | given)["definition"]
    assert policy.apply_to == given.get("apply-to", "all")
    assert [note in text for text in entry.notes] == ([True] if note else [])


OPERATORS: dict[str, object] = {"pattern": "^a", "definition": {"max-length-bytes": 10}}


def operator_policy(value: object) -> dict[str, object]:
    return {"component": "operator_policy", "name": "p", "vhost": "/", "value": value}


def test_an_operators_policy_is_a_parameter() -> None:
    entry = DefinitionEntry(operator_policy(OPERATORS | {"apply-to": "streams", "priority": 2}))

    key, policy = OPERATOR_POLICIES.read(entry, CONTEXT)

    assert (*key, policy.pattern) == ("/", "p", "^a")
    assert (policy.apply_to, policy.priority) == ("streams", 2)
    assert policy.definition == {"max-length-bytes": 10}
    assert entry.notes == []


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (OPERATORS | {"definition": {"max-age": "1h"}}, Skip, "max-age are not recognised"),
        (OPERATORS | {"definition": {"overflow": "x"}}, Skip, "not a valid overflow value"),
        (OPERATORS | {"pattern": 5}, Fault, "pattern is 5, not text"),
        ("x", Fault, "value is 'x', not an object"),
        (None, Fault, "pattern is missing"),
    ],
)
def test_an_operators_policy_that_cannot_be_here_is_skipped_or_a_fault(
    value: object, kind: type[Exception], words: str
) -> None:
    assert words in fault(OPERATOR_POLICIES.read, operator_policy(value), kind)


def test_why_an_operators_policy_applies_to_no_stream_is_noted() -> None:
    entry = DefinitionEntry(operator_policy(OPERATORS | {"definition": {"message-ttl": 5}}))

    OPERATOR_POLICIES.read(entry, CONTEXT)

    assert entry.notes == ["does not apply to streams because of message-ttl"]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"pattern": "(?!a"}, Skip, "cannot be used"),
        ({"pattern": "a" * 1_025}, Skip, "pattern must not exceed 1024 bytes"),
        ({"definition": {"max-age": "soon"}}, Skip, "no age such as 7D"),
        ({"definition": {"max-length-bytes": -1}}, Skip, "below 0"),
        ({"definition": {"overflow": "x"}}, Skip, '"x" is not a valid overflow value'),
        ({"priority": "1"}, Fault, "priority is '1', not a number"),
        ({"apply-to": "x"}, Fault, "apply-to is 'x'"),
        ({"definition": {"max-age": 7}}, Fault, "definition.max-age is 7, not text"),
        ({"definition": 7}, Fault, "definition is 7"),
        ({"name": ""}, Fault, "1 to 255 bytes"),
        ({"priority": "1"}, Fault, "priority is '1'"),
    ],
)
def test_a_policy_that_cannot_be_here_is_skipped_or_a_fault(
    given: dict[str, object], kind: type[Exception], words: str
) -> None:
    assert words in fault(POLICIES.read, POLICY | given, kind)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "from the start"),
        ({"name": "amq.topic"}, "from the start"),
        ({"type": "headers"}, "'headers' is not known"),
    ],
)
def test_exchanges_that_are_not_here_are_skipped(given: dict[str, object], words: str) -> None:
    content = {"name": "e", "vhost": "/", "type": "topic"}

    assert words in fault(EXCHANGES.read, content | given, Skip)
    assert EXCHANGES.read(DefinitionEntry(content), CONTEXT)[1].durable


@pytest.mark.parametrize(("other", "notes"), [("f", 0), ("", 0), (5, 1), (["f"], 1), (None, 1)])
def test_an_alternate_exchange_is_taken_over_and_one_that_is_no_name_is_told(
    other: object, notes: int
) -> None:
    arguments = {"alternate-exchange": other}
    entry = DefinitionEntry({"name": "e", "vhost": "/", "type": "topic", "arguments": arguments})

    assert EXCHANGES.read(entry, CONTEXT)[1].arguments == arguments
    assert ["is not the name of an exchange" in note for note in entry.notes] == [True] * notes


@pytest.mark.parametrize(
    ("given", "words"),
    [({"source": ""}, "default exchange"), ({"destination_type": "exchange"}, "to an exchange")],
)
def test_bindings_that_cannot_be_here_are_skipped(given: dict[str, object], words: str) -> None:
    content = {"source": "e", "vhost": "/", "destination": "log"}

    assert words in fault(BINDINGS.read, content | given, Skip)
    assert BINDINGS.read(DefinitionEntry(content), CONTEXT)[1].routing_key == ""


def test_a_queue_that_is_not_durable_is_made_durable_with_a_note() -> None:
    entry = DefinitionEntry(queue(durable=False))

    assert STREAMS.read(entry, CONTEXT)[1].name == "log"
    assert entry.notes == ["is durable here, as streams are"]
