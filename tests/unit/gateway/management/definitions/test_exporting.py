import json

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.definitions.exporting import export_definitions
from gateway.management.definitions.reading import read_definitions
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.people import USERS
from gateway.management.kinds.policies import POLICIES
from gateway.management.kinds.streams import STREAMS, DeclaredStream
from gateway.management.kinds.topology import BINDINGS, EXCHANGES
from tests.unit.gateway.management.definitions.definitions_rig import (
    FULL,
    ONE_HOST,
    with_default_host,
)

SECTIONS = ("users", "permissions", "queues", "exchanges", "policies", "parameters", "bindings")


def own(definitions: Definitions, virtual_host: str | None = None) -> bytes:
    return json.dumps(export_definitions(definitions, virtual_host=virtual_host)[0]).encode()


def test_what_is_exported_is_read_back_the_same() -> None:
    definitions = read_definitions(FULL).definitions

    result = read_definitions(own(definitions))

    assert result.definitions == definitions
    assert not result.skipped
    assert {kind for kind, _ in result.notes} == {"policies"}


def test_one_virtual_host_is_exported_alone() -> None:
    definitions = read_definitions(FULL).definitions

    alone = read_definitions(own(definitions, "orders")).definitions

    assert alone == read_definitions(ONE_HOST).definitions
    assert "vhost" not in json.loads(own(definitions, "orders"))["queues"][0]


def test_entries_have_the_fields_that_rabbitmq_gives_them() -> None:
    theirs = json.loads(FULL)

    ours = export_definitions(read_definitions(FULL).definitions)[0]

    assert ours.keys() >= theirs.keys() - {"original_cluster_name"}
    for section in SECTIONS:
        entries = ours[section]
        assert isinstance(entries, list)
        assert entries[0].keys() >= theirs[section][0].keys(), section
    log = {"name": "log", "vhost": "orders"}
    assert [entry for entry in ours["queues"] if entry.items() >= log.items()] == [  # type: ignore[attr-defined]
        entry for entry in theirs["queues"] if entry.items() >= log.items()
    ]


def test_a_hash_that_rabbitmq_does_not_have_is_left_out_with_a_warning() -> None:
    definitions = Definitions()
    hashed = PasswordHash(Algorithm.ARGON2ID, "$argon2id$…")
    definitions.of(USERS)["", "new"] = User("new", hashed)

    tree, warnings = export_definitions(definitions)

    assert tree["users"] == [
        {
            "name": "new",
            "password_hash": "",
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": [],
            "limits": {},
        }
    ]
    assert len(warnings) == 1
    assert "'new'" in warnings[0]


def test_what_json_cannot_say_is_left_out_with_a_warning_and_so_is_what_is_bound_to_it() -> None:
    definitions = with_default_host()
    for name, arguments in (("good", {}), ("b\udcff", {}), ("age", {"max-age": "\udcfe"})):
        definitions.of(STREAMS)["/", name] = DeclaredStream(name, arguments)
    for name in ("events", "e\udcff"):
        definitions.of(EXCHANGES)["/", name] = Exchange(name)
    for source, destination, key in (
        ("events", "good", "k"),
        ("events", "good", "\udcfe"),
        ("events", "age", "k"),
        ("e\udcff", "good", "k"),
    ):
        binding = Binding(source=source, destination=destination, routing_key=key)
        definitions.of(BINDINGS)[BINDINGS.key("/", binding)] = binding
    definitions.of(POLICIES)["/", "p"] = Policy(
        "p", pattern="x", definition={"delivery-limit": float("inf")}
    )

    tree, warnings = export_definitions(definitions)

    json.dumps(tree, ensure_ascii=False, allow_nan=False).encode()
    result = read_definitions(own(definitions)).definitions
    assert [stream.name for stream in result.of(STREAMS).values()] == ["good"]
    assert [exchange.name for exchange in result.of(EXCHANGES).values()] == ["events"]
    assert [binding.routing_key for binding in result.of(BINDINGS).values()] == ["k"]
    assert warnings == [
        "policy 'p' in virtual host '/' is left out: it has a number that JSON has not",
        "stream 'b\\udcff' in virtual host '/' is left out: it has bytes that are not UTF-8",
        "stream 'age' in virtual host '/' is left out: it has bytes that are not UTF-8",
        "exchange 'e\\udcff' in virtual host '/' is left out: it has bytes that are not UTF-8",
        (
            "binding from 'events' to 'good' in virtual host '/' is left out:"
            " it has bytes that are not UTF-8"
        ),
        "binding from 'events' to 'age' in virtual host '/' is left out: so is what it binds",
        "binding from 'e\\udcff' to 'good' in virtual host '/' is left out: so is what it binds",
    ]


def test_a_whole_number_of_any_size_comes_back_the_same() -> None:
    definitions = with_default_host()
    for number in (10**20, -(10**900), 2**63, 0):
        name = f"s{number % 97}"
        definitions.of(STREAMS)["/", name] = DeclaredStream(name, {"max-length-bytes": str(number)})
    policy = Policy(
        "p", pattern="x", apply_to="all", definition={"max-length-bytes": 10**60}, priority=10**30
    )
    definitions.of(POLICIES)["/", "p"] = policy
    limits = {"max-connections": 10**22, "max-channels": -(10**22)}
    definitions.of(USERS)["", "app"] = User("app", None, limits=limits)

    result = read_definitions(own(definitions)).definitions

    assert result.of(STREAMS) == definitions.of(STREAMS)
    assert result.of(POLICIES) == definitions.of(POLICIES)
    assert result.of(USERS)["", "app"].limits == limits
