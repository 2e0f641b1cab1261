"""Definitions imported into a broker: whole, or not at all."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.errors import InternalError
from gateway.management.administration import Turn
from gateway.management.definitions.applying import in_parallel
from gateway.management.definitions.importing import current_definitions
from gateway.management.errors import AdministrationError, Failed
from gateway.management.kinds.kind import AT_ONCE
from gateway.pending import Pending, start
from tests.unit.gateway.management.definitions.definitions_rig import FULL, ONE_HOST, queue
from tests.unit.gateway.management.requests.administration_rig import Rig


def test_an_export_is_imported_once_and_given_back(rig: Rig) -> None:
    dry = rig.ask("import_definitions", {"dry_run": True}, FULL)
    assert rig.ask("list_streams") == []
    first = rig.ask("import_definitions", body=FULL)
    before = rig.broker.store_rig.run(current_definitions(rig.administration))
    again = rig.ask("import_definitions", body=FULL)

    assert first["rows"] == dry["rows"]
    assert first["changes"] == dry["changes"] == 33
    assert again["changes"] == 0
    exported = rig.ask("export_definitions")
    back = rig.ask("import_definitions", body=json.dumps(exported["definitions"]).encode())
    assert back["changes"] == 0
    assert rig.broker.store_rig.run(current_definitions(rig.administration)) == before
    assert exported["warnings"] == []


def test_one_virtual_host_is_imported_where_it_is_sent(rig: Rig) -> None:
    rig.ask("import_definitions", {"virtual_host": "copy"}, ONE_HOST)

    assert rig.administration.virtual_hosts.names() == ["/", "copy"]
    alone = rig.ask("export_definitions", {"virtual_host": "copy"})["definitions"]
    assert len(alone["queues"]) == 7


def test_a_file_with_a_fault_is_refused_with_a_code_of_its_own(rig: Rig) -> None:
    with pytest.raises(AdministrationError, match="is not JSON") as error:
        rig.ask("import_definitions", body=b"{")

    assert error.value.code == "unusable_definitions"


def test_everything_that_is_there_is_overwritten_or_kept_as_said(rig: Rig) -> None:
    rig.ask("import_definitions", body=FULL)
    content = json.loads(FULL)
    content["users"][0]["tags"] = ["changed"]
    content["vhosts"][0]["metadata"]["description"] = "changed"
    content["vhosts"][0]["limits"] = {"max-connections": 7}
    content["permissions"][0]["read"] = "^changed"

    assert rig.ask("import_definitions", body=json.dumps(content).encode())["changes"] == 3

    access, hosts = rig.broker.access, rig.administration.virtual_hosts
    assert access.user("app").tags == ("changed",)  # type: ignore[union-attr]
    assert hosts.entry("orders").description == "changed"
    assert access.virtual_host_limits("orders") == {"max-connections": 7}
    assert access.permission("app", "/").read == "^changed"  # type: ignore[union-attr]


def failing_at(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    calls = 0

    async def create(*arguments: Any) -> Any:  # noqa: ANN401  # as the real one
        nonlocal calls
        calls += 1
        if calls == number:
            raise InternalError("the disk is full")
        return await real(*arguments)

    return create


LIMITING = {"pattern": "b", "definition": {"max-length-bytes": 10_000_000}}


@pytest.mark.parametrize(
    ("method", "number"), [("create", 1), ("create", 5), ("declare", 1), ("bind", 1)]
)
def test_when_something_fails_all_that_was_done_is_undone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, method: str, number: int
) -> None:
    queues = [queue(f"stream-{each}") for each in range(5)]
    content = {
        "vhosts": [
            {"name": "/", "description": "other", "limits": {"max-queues": 100}},
            {"name": "new", "description": "", "limits": {"max-connections": 3}},
        ],
        "users": [
            {"name": "guest", "password_hash": "", "tags": []},
            {"name": "app", "password_hash": "", "tags": ["a"]},
        ],
        "permissions": [
            {"user": user, "vhost": host, "configure": "x", "write": "x", "read": "x"}
            for user in ("app", "guest")
            for host in ("/", "new")
        ],
        "policies": [
            {"name": "kept", "vhost": "/", "pattern": "b", "definition": {"max-age": "2h"}},
            {"name": "made", "vhost": "/", "pattern": "b", "definition": {"max-age": "2h"}},
        ],
        "parameters": [
            {"component": "operator_policy", "name": name, "vhost": "/", "value": LIMITING}
            for name in ("kept", "made")
        ],
        "queues": queues,
        "exchanges": [{"name": "e", "vhost": "/", "type": "fanout"}],
        "bindings": [
            {"source": "e", "vhost": "/", "destination": f"stream-{each}"} for each in range(5)
        ],
    }
    rig.ask("set_policy", {"name": "kept", "pattern": "a", "definition": {"max-age": "1h"}})
    limit = {"name": "kept", "pattern": "a", "definition": {"max-length-bytes": 1}}
    rig.ask("set_operator_policy", limit)
    before = rig.broker.store_rig.run(current_definitions(rig.administration))
    host = rig.administration.host("/")
    owner = host.streams if method == "create" else host.exchanges
    monkeypatch.setattr(owner, method, failing_at(number, getattr(owner, method)))

    with pytest.raises(Failed, match=r"nothing was imported: .*: the disk is full"):
        rig.ask("import_definitions", body=json.dumps(content).encode())

    assert rig.broker.store_rig.run(current_definitions(rig.administration)) == before
    monkeypatch.undo()
    assert rig.ask("import_definitions", body=json.dumps(content).encode())["changes"] == 23


def test_what_cannot_be_undone_is_said_and_finished_by_the_next_import(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = json.dumps(
        {"vhosts": [{"name": "/"}], "queues": [queue("a"), queue("b"), queue("c")]}
    ).encode()
    streams = rig.broker.streams

    async def refuse(*_: object) -> None:
        raise InternalError("the disk is still full")

    with monkeypatch.context() as patched:
        patched.setattr(streams, "create", failing_at(3, streams.create))
        patched.setattr(streams, "delete", refuse)
        with pytest.raises(Failed, match="the same import again finishes it"):
            rig.ask("import_definitions", body=content)

    assert "could not be taken back" in caplog.text
    assert rig.ask("import_definitions", body=content)["changes"] == 2  # the host's words, c
    assert rig.broker.streams.names() == ["a", "b", "c"]


def test_imports_go_one_after_the_other() -> None:
    turn = Turn()
    turns = [start(turn.take()) for _ in range(3)]
    taken = []
    for _ in turns:
        taken.append([each.is_settled for each in turns])
        turn.end()

    assert taken == [[True, False, False], [True, True, False], [True, True, True]]


def test_a_server_that_stops_begins_no_more_steps_and_undoes_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, streams = rig.administration.importing, rig.broker.streams
    content = json.dumps({"vhosts": [{"name": "/"}], "queues": [queue("a"), queue("b")]}).encode()
    real = streams.create

    async def create(*arguments: Any) -> Any:  # noqa: ANN401  # as the real one
        turn.is_over = True
        return await real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(streams, "create", create)
        with pytest.raises(Failed, match="the server is stopping; its next start goes on"):
            rig.ask("import_definitions", body=content)

    assert streams.names() == ["a"]
    turn.is_over = False
    assert rig.ask("import_definitions", body=content)["changes"] == 1
    rig.broker.store_rig.run(turn.close())
    assert turn.is_over


def test_many_steps_are_under_way_at_once_but_not_all() -> None:
    waiting: list[Pending[None]] = []

    async def step() -> None:
        pending: Pending[None] = Pending()
        waiting.append(pending)
        await pending

    done = start(in_parallel(step() for _ in range(AT_ONCE * 2)))

    assert len(waiting) == AT_ONCE
    for number in range(AT_ONCE * 2):
        waiting[number].settle(None)
    assert done.is_settled


def test_the_first_failure_is_told_when_all_that_were_begun_have_ended() -> None:
    waiting: list[Pending[None]] = []

    async def step() -> None:
        pending: Pending[None] = Pending()
        waiting.append(pending)
        await pending

    done = start(in_parallel(step() for _ in range(AT_ONCE * 2)))
    waiting[0].settle(InternalError("first"))

    assert len(waiting) == AT_ONCE
    assert not done.is_settled
    for pending in waiting[1:]:
        pending.settle(InternalError("later"))
    with pytest.raises(InternalError, match="first"):
        done.result()


def test_others_may_have_their_turn_before_each_step() -> None:
    turns: list[Pending[None]] = []
    done: list[int] = []

    async def step(number: int) -> None:
        done.append(number)

    async def give() -> None:
        turns.append(Pending())
        await turns[-1]

    whole = start(in_parallel(map(step, range(3)), give=give))

    for number in range(3):
        assert (len(turns), len(done)) == (number + 1, number)
        turns[number].settle(None)
    assert whole.is_settled
    assert done == [0, 1, 2]
