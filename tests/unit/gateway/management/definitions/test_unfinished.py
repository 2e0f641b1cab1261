"""An import that is cut off: written down before it begins, finished by the next start."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.errors import InternalError
from gateway.management.definitions import applying, importing
from gateway.management.definitions.applying import Before
from gateway.management.definitions.importing import current_definitions, finish_import
from gateway.management.definitions.unfinished import ImportSource, UnfinishedImport
from gateway.management.errors import AdministrationError, Failed
from tests.unit.gateway.management.requests.administration_rig import Rig, at_once

STREAMS = ("a", "b", "c")
CONTENT = json.dumps(
    {
        "vhosts": [{"name": "/"}],
        "queues": [
            {"name": name, "vhost": "/", "type": "stream", "durable": True, "arguments": {}}
            for name in STREAMS
        ],
    }
).encode()


def next_start(rig: Rig) -> UnfinishedImport:
    """What a server that starts anew makes of what is stored."""
    unfinished = UnfinishedImport(rig.broker.store_rig.store, at_once)
    rig.broker.store_rig.run(finish_import(rig.administration, unfinished))
    return unfinished


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_what_is_written_down_is_found_as_it_was(rig: Rig, size: int) -> None:
    run = rig.broker.store_rig.run
    source = ImportSource(random.Random(size).randbytes(size), "orders", bytes(size // 2))
    run(rig.unfinished.begin(ImportSource(bytes(5), None, bytes(9))))
    run(rig.unfinished.begin(source))

    again = UnfinishedImport(rig.broker.store_rig.store, at_once)
    assert run(again.load()) == source
    run(again.end())

    assert run(UnfinishedImport(rig.broker.store_rig.store, at_once).load()) is None


def test_a_beginning_that_was_cut_off_itself_is_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rig.broker.store_rig.run
    source = ImportSource(random.Random(1).randbytes(2_000_000), None)
    write, count = rig.unfinished._kept.write, 0

    async def write_three(changes: dict[bytes, bytes | None]) -> None:
        nonlocal count
        count += 1
        if count > 3:
            raise InternalError("cut off")
        await write(changes)

    monkeypatch.setattr(rig.unfinished._kept, "write", write_three)
    with pytest.raises(InternalError):
        run(rig.unfinished.begin(source))

    assert run(UnfinishedImport(rig.broker.store_rig.store, at_once).load()) is None


def test_an_import_that_ends_leaves_nothing_to_be_finished(rig: Rig) -> None:
    rig.ask("import_definitions", body=CONTENT)
    rig.ask("delete_stream", {"name": "b"})

    next_start(rig)

    assert rig.broker.streams.names() == ["a", "c"]


def test_what_a_dead_server_had_begun_is_finished_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    run = rig.broker.store_rig.run
    run(rig.unfinished.begin(ImportSource(CONTENT, None)))
    run(rig.broker.streams.create("b", {}))

    next_start(rig)
    assert rig.broker.streams.names() == list(STREAMS)
    rig.ask("delete_stream", {"name": "b"})
    next_start(rig)

    assert rig.broker.streams.names() == ["a", "c"]
    assert caplog.text.count("an import that was cut off is finished") == 1


def test_what_was_undone_is_not_done_by_the_next_start(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(rig.broker.streams, "create", refuse)
        with pytest.raises(Failed, match="nothing was imported"):
            rig.ask("import_definitions", body=CONTENT)

    next_start(rig)

    assert rig.broker.streams.names() == []


def test_what_a_stop_cuts_off_is_left_to_the_next_start(rig: Rig) -> None:
    rig.administration.importing.is_over = True
    with pytest.raises(Failed, match="its next start goes on"):
        rig.ask("import_definitions", body=CONTENT)
    rig.administration.importing.is_over = False

    next_start(rig)

    assert rig.broker.streams.names() == list(STREAMS)


def test_what_cannot_be_finished_is_told_and_given_up(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.broker.store_rig.run(rig.unfinished.begin(ImportSource(b"{", None)))

    next_start(rig)
    next_start(rig)

    assert caplog.text.count("cannot be finished") == 1


async def refuse(*_: object) -> None:
    raise InternalError("the disk is full")


LIMITING = {"pattern": "b", "definition": {"max-length-bytes": 10_000_000}}
MUCH = {
    "vhosts": [
        {"name": "/", "description": "other", "limits": {"max-queues": 100}},
        {"name": "new", "limits": {"max-queues": 20}},
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
        {"name": name, "vhost": host, "pattern": "b", "definition": {"max-age": "2h"}}
        for name, host in (("kept", "/"), ("made", "/"), ("made", "new"))
    ],
    "parameters": [
        {"component": "operator_policy", "name": name, "vhost": host, "value": LIMITING}
        for name, host in (("kept", "/"), ("made", "/"), ("made", "new"))
    ],
    "queues": [
        {"name": name, "vhost": host, "type": "stream", "durable": True, "arguments": {}}
        for host in ("/", "new")
        for name in STREAMS
    ],
    "exchanges": [
        {"name": "e", "vhost": host, "type": "fanout"} for host in ("/", "new")
    ],
    "bindings": [
        {"source": source, "vhost": "/", "destination": name}
        for source in ("e", "amq.fanout")
        for name in STREAMS
    ],
}  # fmt: skip
"""An import of 14 steps in what is there already, and more in a new virtual host."""


@pytest.mark.parametrize("steps", range(14))
def test_what_a_dead_server_had_begun_and_the_next_cannot_finish_is_taken_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, steps: int
) -> None:
    administration, host = rig.administration, rig.administration.host("/")
    rig.ask("add_stream", {"name": "own"})
    rig.ask("set_policy", {"name": "kept", "pattern": "a", "definition": {"max-age": "1h"}})
    limit = {"name": "kept", "pattern": "a", "definition": {"max-length-bytes": 1}}
    rig.ask("set_operator_policy", limit)
    before, guest = (
        rig.broker.store_rig.run(current_definitions(administration)),
        rig.broker.access.user("guest"),
    )
    done = 0

    def until_death(real: Callable[..., Any]) -> Callable[..., Any]:
        async def step(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # as the real one
            nonlocal done
            done += 1
            if done > steps:
                raise InternalError("the server is dead")
            return await real(*arguments, **named)

        return step

    with monkeypatch.context() as dying:
        for owner, method in (
            (administration.virtual_hosts, "create"),
            (rig.broker.access, "put_many"),
            (rig.broker.access, "set_virtual_host_limits"),
            (host.policies, "put"),
            (host.policies.operators, "put"),
            (host.streams, "create"),
            (host.exchanges, "declare"),
            (host.exchanges, "bind"),
        ):
            dying.setattr(owner, method, until_death(getattr(owner, method)))
        dying.setattr(applying, "take_back", refuse)
        dying.setattr(importing, "_forget", refuse)
        with pytest.raises(AdministrationError):
            rig.ask("import_definitions", body=json.dumps(MUCH).encode())
    assert steps < 2 or rig.broker.store_rig.run(current_definitions(administration)) != before

    with monkeypatch.context() as patched:
        patched.setattr(host.exchanges, "bind", refuse)
        next_start(rig)
    next_start(rig)

    assert rig.broker.store_rig.run(current_definitions(administration)) == before
    assert rig.broker.access.user("guest") == guest
    assert caplog.text.count("the import that was cut off is taken back") == 1


def test_what_the_store_refuses_is_taken_back_or_tried_again_by_the_start_after_that(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, streams = rig.broker.store_rig.run, rig.broker.streams
    before = Before()
    before.new["streams"] = [("/", name) for name in STREAMS]
    run(rig.unfinished.begin(ImportSource(CONTENT, None, before.pack())))
    run(streams.create("a", {}))
    with monkeypatch.context() as patched:
        patched.setattr(streams, "create", refuse)
        patched.setattr(streams, "delete", refuse)
        next_start(rig)
    assert streams.names() == ["a"]

    with monkeypatch.context() as patched:
        patched.setattr(streams, "create", refuse)
        next_start(rig)
    assert streams.names() == []

    next_start(rig)
    assert streams.names() == []
