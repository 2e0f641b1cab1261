"""A ninth kind of object, made of one class: all that goes through the list of kinds has it."""

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import pytest
from starlette.responses import Response

from gateway.broker.errors import InternalError
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.management.administration import OWNER, Administration
from gateway.management.ctl.grammar import commands_on
from gateway.management.definitions.applying import Before
from gateway.management.errors import Failed, NotFound
from gateway.management.fields import Arguments
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import endpoints_of
from gateway.management.kinds import table
from gateway.management.kinds.entry import Context, DefinitionEntry
from gateway.management.kinds.kind import Key
from gateway.management.kinds.virtual_hosts import HostedKind
from gateway.management.requests.request import AdminRequest, requests_on
from gateway.pending import Pending
from tests.unit.gateway.management.requests.administration_rig import Rig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Note:
    """A text under a name."""

    name: str
    text: str
    is_read: bool = False

    def pack(self) -> bytes:
        return json.dumps([self.name, self.text, self.is_read]).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> "Note":
        return cls(*json.loads(packed))


class NoteKind(HostedKind[Note]):
    """The ninth kind: notes in virtual hosts, kept in memory."""

    name, word = "notes", "sticky note"
    thing = Note
    outer_names = {"is_read": "is-read"}  # noqa: RUF012  # as of the others
    section = path = "notes"
    is_replaced = True
    demanded = ("text",)

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, dict[str, Note]] = {}

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Note]:
        note = self.taken(entry, is_outer=True, name=entry.name())
        return (context.host_of(entry), note.name), note

    def all_in(self, host: VirtualHost) -> Iterable[Note]:
        return list(self.kept.get(host.name, {}).values())

    def find(self, _administration: Administration, key: Key) -> Note | None:
        return self.kept.get(key[0], {}).get(key[1])

    async def put_in(self, host: VirtualHost, thing: Note) -> bool:
        if thing.text == "refused":
            raise InternalError("the disk is full")
        kept = self.kept.setdefault(host.name, {})
        is_new = thing.name not in kept
        kept[thing.name] = thing
        return is_new

    async def remove_from(self, host: VirtualHost, key: Key) -> None:
        del self.kept[host.name][key[1]]


OLD, NEW = Note("a", "old"), Note("b", "new", is_read=True)
WRITTEN = [
    {"name": "a", "text": "changed", "is-read": False, "vhost": "/"},
    {"name": "b", "text": "new", "is-read": True, "vhost": "/"},
]


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> NoteKind:
    kind = NoteKind()
    kind.kept["/"] = {"a": OLD}
    monkeypatch.setattr(table, "KINDS", (*table.KINDS, kind))
    return kind


def imported(rig: Rig, written: object = WRITTEN, **arguments: object) -> list[list[str]]:
    body = json.dumps({"vhosts": [], "notes": written}).encode()
    rows: list[list[str]] = rig.ask("import_definitions", arguments, body)["rows"]
    return rows


def test_it_is_exported_behind_the_others(rig: Rig, notes: NoteKind) -> None:
    tree = rig.ask("export_definitions")["definitions"]
    alone = rig.ask("export_definitions", {"virtual_host": "/"})["definitions"]

    assert list(tree)[-1] == list(alone)[-1] == "notes"
    entry = {"name": "a", "text": "old", "is-read": False}
    assert (tree["notes"], alone["notes"]) == ([{**entry, "vhost": "/"}], [entry])
    notes.kept["/"]["b"] = Note("b", "\udcff")
    left_out = rig.ask("export_definitions")
    assert left_out["definitions"]["notes"] == tree["notes"]
    assert left_out["warnings"] == [
        "sticky note 'b' in virtual host '/' is left out: it has bytes that are not UTF-8"
    ]


def test_it_is_imported_and_what_is_so_already_is_left_alone(rig: Rig, notes: NoteKind) -> None:
    said = [["sticky note", "/", name, "imported", ""] for name in "ab"]

    assert imported(rig) == said
    assert notes.kept["/"] == {"a": Note("a", "changed"), "b": NEW}
    assert imported(rig) == [[*row[:-1], "is so already"] for row in said]


def test_a_dry_run_says_so_and_changes_nothing(rig: Rig, notes: NoteKind) -> None:
    assert [row[2:4] for row in imported(rig, dry_run=True)] == [
        ["a", "imported"],
        ["b", "imported"],
    ]
    assert notes.kept["/"] == {"a": OLD}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"text": 5}, r"notes\[0\] 'a' in virtual host '/': text is 5, not text"),
        ({"vhost": "x"}, "sticky note 'a' in virtual host 'x': there is no virtual host 'x'"),
    ],
)
def test_what_is_wrong_with_it_is_told(
    rig: Rig, notes: NoteKind, wrong: dict[str, object], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        imported(rig, [WRITTEN[0] | wrong])
    assert notes.kept["/"] == {"a": OLD}


def test_it_is_rolled_back_with_an_import_that_fails(rig: Rig, notes: NoteKind) -> None:
    with pytest.raises(Failed, match="nothing was imported: sticky note 'c' in virtual host '/'"):
        imported(rig, [*WRITTEN, WRITTEN[0] | {"name": "c", "text": "refused"}])

    assert notes.kept["/"] == {"a": OLD}


def test_what_was_there_is_written_down_for_a_rollback_after_a_crash(
    notes: NoteKind,
) -> None:
    before = Before()
    before.new["notes"].append(("/", "b"))
    before.old.of(notes)["/", "a"] = OLD

    assert Before.unpack(before.pack()) == before


def asked(rig: Rig, row: AdminRequest, **arguments: Any) -> Any:  # noqa: ANN401
    return rig.broker.store_rig.run(row.do(rig.administration, Arguments(arguments)))


def test_it_has_requests_of_administrators(rig: Rig, notes: NoteKind) -> None:
    listed, put, remove = requests_on(notes)

    assert [row.name for row in (listed, put, remove)] == [
        *("list_notes", "set_sticky_note", "clear_sticky_note")
    ]
    assert asked(rig, put, name="b", text="new", is_read=True) == {"is_new": True}
    assert asked(rig, put, name="b", text="new", is_read=True) == {"is_new": False}
    assert asked(rig, listed)[1] == {
        "virtual_host": "/", "name": "b", "text": "new", "is_read": True
    }  # fmt: skip
    asked(rig, remove, name="b")
    assert notes.kept["/"] == {"a": OLD}


def test_it_has_paths_of_the_http_api(rig: Rig, notes: NoteKind) -> None:
    endpoints = endpoints_of(notes, requests_on(notes))

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    def status(asks: str, body: dict[str, Any] | None = None) -> int:
        facts = ServerFacts("rabbit@localhost", list)
        path = {"virtual_host": "/", "policy": "b"}
        call = ApiCall(rig.administration, OWNER, facts, awaits, path, body=body or {})
        answer: Response = asyncio.run(endpoints[asks](call))
        return answer.status_code

    one = "/notes/{virtual_host}/{policy}"
    assert status("GET /notes(|/{virtual_host})") == HTTPStatus.OK
    with pytest.raises(NotFound, match="there is no such sticky note"):
        status(f"GET {one}")
    body = {"text": "new", "is-read": True}
    assert status(f"PUT {one}", body) == HTTPStatus.CREATED
    assert status(f"PUT {one}", body) == HTTPStatus.NO_CONTENT
    assert notes.kept["/"]["b"] == NEW
    assert status(f"GET {one}") == HTTPStatus.OK
    assert status(f"DELETE {one}") == HTTPStatus.NO_CONTENT
    assert notes.kept["/"] == {"a": OLD}


def test_it_has_commands(notes: NoteKind) -> None:
    listed, put, remove = commands_on(notes)

    assert [each.name for each in (listed, put, remove)] == [row.name for row in requests_on(notes)]
    assert [each.dest for each in put.arguments] == ["virtual_host", "name", "text", "is_read"]
    assert [each.dest for each in remove.arguments] == ["virtual_host", "name"]
    assert listed.shown([{"virtual_host": "/", **notes.shown(NEW)}]).split() == [
        *("virtual", "host", "name", "text", "is", "read"),
        *("/", "b", "new", "yes"),
    ]
    assert put.help == "Set a sticky note."
