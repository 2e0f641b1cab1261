import json

from gateway.broker.definitions.exporting import export_definitions
from gateway.broker.definitions.objects import Definitions, UserObject
from gateway.broker.definitions.reading import read_definitions
from tests.unit.gateway.broker.definitions.definitions_rig import FULL, ONE_HOST

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
    definitions.users["new"] = UserObject("new", "$argon2id$…", None, has_foreign_hash=True)

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
