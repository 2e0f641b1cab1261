"""An import that is cut off: written down before it begins, finished by the next start."""

import json
import random

import pytest

from gateway.broker.administration.definitions import finish_import
from gateway.broker.administration.errors import Failed
from gateway.broker.administration.unfinished import Source, Unfinished
from gateway.broker.errors import InternalError
from tests.unit.gateway.broker.administration.administration_rig import Rig, at_once

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


def next_start(rig: Rig) -> Unfinished:
    """What a server that starts anew makes of what is stored."""
    unfinished = Unfinished(rig.broker.store_rig.store, at_once)
    rig.broker.store_rig.run(finish_import(rig.administration, unfinished))
    return unfinished


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_what_is_written_down_is_found_as_it_was(rig: Rig, size: int) -> None:
    run = rig.broker.store_rig.run
    source = Source(random.Random(size).randbytes(size), "orders")
    run(rig.unfinished.begin(Source(bytes(5), None)))
    run(rig.unfinished.begin(source))

    again = Unfinished(rig.broker.store_rig.store, at_once)
    assert run(again.load()) == source
    run(again.end())

    assert run(Unfinished(rig.broker.store_rig.store, at_once).load()) is None


def test_a_beginning_that_was_cut_off_itself_is_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rig.broker.store_rig.run
    source = Source(random.Random(1).randbytes(2_000_000), None)
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

    assert run(Unfinished(rig.broker.store_rig.store, at_once).load()) is None


def test_an_import_that_ends_leaves_nothing_to_be_finished(rig: Rig) -> None:
    rig.ask("import_definitions", body=CONTENT)
    rig.ask("delete_stream", {"name": "b"})

    next_start(rig)

    assert rig.broker.streams.names() == ["a", "c"]


def test_what_a_dead_server_had_begun_is_finished_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    run = rig.broker.store_rig.run
    run(rig.unfinished.begin(Source(CONTENT, None)))
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
    async def refuse(*_: object) -> None:
        raise InternalError("the disk is full")

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
    rig.broker.store_rig.run(rig.unfinished.begin(Source(b"{", None)))

    next_start(rig)
    next_start(rig)

    assert caplog.text.count("cannot be finished") == 1


def test_what_the_store_refuses_is_tried_again_by_the_start_after_that(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise InternalError("the disk is full")

    rig.broker.store_rig.run(rig.unfinished.begin(Source(CONTENT, None)))
    with monkeypatch.context() as patched:
        patched.setattr(rig.broker.streams, "create", refuse)
        next_start(rig)
    assert rig.broker.streams.names() == []

    next_start(rig)

    assert rig.broker.streams.names() == list(STREAMS)
