"""Truncating on demand, and streams whose offsets do not begin with 0."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.errors import InternalError, StreamDoesNotExist
from hutch.stream import messages as m
from hutch.stream.offsets import OffsetSpec, OffsetType
from store.errors import DiskFull, StoreError
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.retention_rig import (
    create,
    first_chunk,
    statistics,
    write,
)
from tests.unit.gateway.stream.link_rig import Broker, LinkRig


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    return broker.link()


# On demand


def test_a_stream_is_truncated_before_an_offset(client: LinkRig) -> None:
    create(client)
    write(client, 9)
    run, streams = client.broker.store_rig.run, client.broker.streams

    assert run(streams.logs.truncate(streams.find("s"), offset=4)) == 4
    assert first_chunk(client) == 4
    assert run(streams.logs.truncate(streams.find("s"), offset=2)) == 4
    assert run(streams.logs.truncate(streams.find("s"), offset=10**6)) == 9
    assert first_chunk(client) == -1

    write(client, 1)
    assert first_chunk(client) == 9


def test_a_stream_is_truncated_before_a_time(client: LinkRig) -> None:
    create(client)
    begin_ms = client.broker.now_ms
    write(client, 9, every_ms=1_000)

    first = client.broker.store_rig.run(
        client.broker.streams.logs.truncate(
            client.broker.streams.find("s"), timestamp_ms=begin_ms + 4_500
        )
    )

    assert first == first_chunk(client) == 4


def test_a_truncation_is_in_the_log(client: LinkRig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    create(client)
    write(client, 3)

    client.broker.store_rig.run(
        client.broker.streams.logs.truncate(client.broker.streams.find("s"), offset=2)
    )

    words = (
        "stream truncated on demand stream=s virtual_host=/ before_offset=2 before_ms=None"
        " first_offset=2"
    )
    assert words in caplog.text


def test_a_truncation_that_cannot_be_is_refused(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    write(client, 3)
    broker = client.broker
    run, streams = broker.store_rig.run, broker.streams

    with pytest.raises(ValueError, match="either"):
        run(streams.logs.truncate(streams.find("s")))
    with pytest.raises(StreamDoesNotExist):
        run(streams.logs.truncate(streams.find("none"), offset=1))

    def fail(*_: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(DiskFull("for the test"))

    monkeypatch.setattr(broker.store_rig.store, "truncate_segment", fail)
    with pytest.raises(InternalError):
        run(streams.logs.truncate(streams.find("s"), offset=2))
    assert broker.stream("s").evaluation is None
    assert first_chunk(client) == 0


def test_who_truncates_is_told_where_nothing_was_removed(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    write(client, 3)
    broker = client.broker

    def fail(*_: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(DiskFull("for the test"))

    with monkeypatch.context() as patch:
        wrap_operation(patch, broker.store_rig.store, "update_table", fail)
        with pytest.raises(InternalError, match="nothing removed"):
            broker.store_rig.run(broker.streams.logs.truncate(broker.streams.find("s"), offset=2))
    assert first_chunk(client) == 0
    assert (
        broker.store_rig.run(broker.streams.logs.truncate(broker.streams.find("s"), offset=2)) == 2
    )


def test_room_is_asked_for_what_gives_more_than_it_takes(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = client.broker
    create(client)
    for letter in "abcdef":
        write(client, 1, reference=letter * 250)
    asked: list[bool] = []
    store = broker.store_rig.store

    def note(update_table: Callable[..., None], *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        asked.append(update_table == on_removal)
        update_table(*arguments, **options)

    on_removal = store.for_removal.update_table
    wrap_operation(monkeypatch, store, "update_table", note)
    for offset in (1, 7):
        broker.store_rig.run(broker.streams.logs.truncate(broker.streams.find("s"), offset=offset))
        write(client, 1)

    assert asked == [False, True]


# First offsets


@pytest.mark.parametrize("initial", [0, 1, 1_000, 2**47 - 2])
def test_the_first_record_gets_the_initial_offset(client: LinkRig, initial: int) -> None:
    create(client, stream_initial_offset=str(initial))
    spec = m.ResolveOffsetSpec("s", OffsetSpec(OffsetType.NEXT), {})
    resolved = client.ask(m.ResolvedOffset, "resolve_offset_spec", spec)
    assert resolved.offset == initial
    assert first_chunk(client) == -1

    write(client, 2)

    stats = statistics(client)
    assert stats["first_chunk_id"] == initial
    assert stats["committed_offset"] == initial + 1


def test_offsets_begin_there_also_if_the_server_was_restarted_first(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    create(broker.link(), stream_initial_offset="77")
    broker.close()
    again = Broker(tmp_path)

    write(again.link(), 1)

    assert again.log("s").first_chunk_id == 77
    again.close()


def test_when_no_offsets_are_left_nothing_more_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path)
    client = broker.link()
    create(client, stream_initial_offset=str(2**47 - 1))
    client.declare(2, "s")
    write(client, 1)
    assert broker.log("s").last_chunk_id == 2**47 - 1
    assert client.code("declare_publisher", m.DeclarePublisher(1, "", "s")) == 6

    client.publish(2, (7, b"one too many"))
    broker.loop.run_for(0.01)

    assert [each.code for each in client.take("metadata_update")] == [6]
    assert "the stream has no offsets left" in caplog.text
    assert client.code("declare_publisher", m.DeclarePublisher(1, "", "s")) == 6
    assert broker.log("s").committed_next_offset == 2**47
    broker.close()
    again = Broker(tmp_path)
    assert again.link().code("declare_publisher", m.DeclarePublisher(1, "", "s")) == 6
    assert again.log("s").committed_next_offset == 2**47
    assert again.log("s").last_chunk_id == 2**47 - 1
    again.close()


def test_more_than_there_are_offsets_for_ends_the_stream_and_not_the_connection(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    create(client, stream_initial_offset=str(2**47 - 100))
    client.declare(1, "s")
    client.publish(1, *((number, b"x") for number in range(50)))
    client.broker.settle("s")

    client.publish(1, *((number, b"y") for number in range(70_000)))  # more than a chunk
    client.broker.loop.run_for(0.05)

    assert [each.code for each in client.take("metadata_update")] == [6]
    assert caplog.text.count("the stream has no offsets left") == 1
    assert statistics(client)["committed_offset"] == 2**47 - 51
    write(client, 50)
    assert statistics(client)["committed_offset"] == 2**47 - 1
