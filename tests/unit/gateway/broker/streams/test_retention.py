"""When streams lose their oldest records, and what their users see of it."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.broker import yielding as slices
from gateway.broker.rules.arguments import StreamArguments
from gateway.broker.rules.policies import Policy
from gateway.broker.streams import retention as retention_module
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.retention import StreamRetention, limits_of
from gateway.log import names
from gateway.log.derived.index import ENTRY_BYTES
from gateway.log.reading.retention import RetentionLimits
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import OffsetSpec, OffsetType
from store.errors import DiskFull, StoreError
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.retention_rig import (
    CHUNK,
    HOUR_MS,
    SMALL,
    create,
    first_chunk,
    query,
    statistics,
    tick,
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


# Limits


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ({}, RetentionLimits(None, None, 500_000_000)),
        ({"max-length-bytes": "0"}, RetentionLimits(0, None, 1 << 20)),
        ({"max-length-bytes": "80000000"}, RetentionLimits(80_000_000, None, 10_000_000)),
        ({"max-length-bytes": str(10**20)}, RetentionLimits(10**20, None, 500_000_000)),
        ({"max-age": "1h"}, RetentionLimits(None, HOUR_MS, 16 << 20)),
        ({"max-age": "soon"}, RetentionLimits(None, None, 500_000_000)),
        ({"max-length-bytes": "5000"} | SMALL, RetentionLimits(5_000, None, 3_000)),
        ({"max-age": "1h"} | SMALL, RetentionLimits(None, HOUR_MS, 3_000)),
    ],
)
def test_limits_follow_from_the_arguments(
    arguments: dict[str, str], limits: RetentionLimits
) -> None:
    assert limits_of(StreamArguments.parse(arguments)) == limits


# When


def test_a_stream_that_grows_above_its_size_loses_its_oldest_units(client: LinkRig) -> None:
    create(client, max_length_bytes=str(7 * CHUNK))

    write(client, 9)
    assert first_chunk(client) == 0
    write(client, 1)  # begins a unit
    assert first_chunk(client) == 3
    write(client, 8)
    assert first_chunk(client) == 9


def test_the_timer_keeps_the_limit_also_between_two_units(client: LinkRig) -> None:
    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 9)

    tick(client.broker)

    log = client.broker.log("s")
    assert first_chunk(client) == 3
    assert log.committed_length - log.start <= 7 * CHUNK


def test_what_is_too_old_goes_by_the_timer_alone(client: LinkRig) -> None:
    create(client, max_age="1h")
    write(client, 9, every_ms=60_000)
    assert first_chunk(client) == 0

    client.broker.now_ms += HOUR_MS - 5 * 60_000
    tick(client.broker)
    assert first_chunk(client) == 3
    client.broker.now_ms += HOUR_MS
    tick(client.broker)

    assert first_chunk(client) == 6  # the newest unit stays


def test_a_stream_that_nobody_has_opened_is_looked_at_too(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    client = broker.link()
    create(client, max_age="1h")
    write(client, 9)
    broker.stop()
    again = Broker(tmp_path)
    again.now_ms += 2 * HOUR_MS
    assert again.stream("s").log is None

    tick(again)

    assert again.log("s").first_chunk_id == 6
    again.close()


def test_a_stream_of_one_unit_is_not_opened_for_that(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    create(broker.link(), max_age="1h")
    write(broker.link(), 2)
    broker.stop()
    again = Broker(tmp_path)
    again.now_ms += 2 * HOUR_MS

    tick(again)

    assert again.stream("s").log is None
    again.close()


def test_a_policy_acts_at_once_and_its_end_too(client: LinkRig) -> None:
    broker = client.broker
    create(client)
    write(client, 9)
    run = broker.store_rig.run

    run(
        broker.streams.logs.policies.put(
            Policy("p", pattern="^s$", definition={"max-length-bytes": 7 * CHUNK})
        )
    )
    broker.loop.run_for(0.05)
    assert first_chunk(client) == 3
    write(client, 4)
    assert first_chunk(client) == 6

    run(broker.streams.logs.policies.delete("p"))
    write(client, 12)
    assert first_chunk(client) == 6


def test_an_operators_policy_acts_at_once_and_its_end_too(client: LinkRig) -> None:
    broker = client.broker
    create(client)
    write(client, 9)
    run, operators = broker.store_rig.run, broker.streams.logs.policies.operators

    run(operators.put(Policy("o", pattern="^s$", definition={"max-length-bytes": 7 * CHUNK})))
    broker.loop.run_for(0.05)
    assert first_chunk(client) == 3

    run(operators.delete("o"))
    write(client, 12)
    assert first_chunk(client) == 3


def test_a_policy_with_a_setting_that_streams_do_not_have_deletes_nothing(client: LinkRig) -> None:
    broker = client.broker
    create(client)
    write(client, 9)
    definition = {"max-length-bytes": 7 * CHUNK, "message-ttl": 1000}

    broker.store_rig.run(
        broker.streams.logs.policies.put(Policy("p", pattern="^s$", definition=definition))
    )
    broker.loop.run_for(0.05)
    write(client, 4)

    assert first_chunk(client) == 0


def test_a_full_disk_lets_go_at_once_what_may_go(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    create(client, max_age="1h")
    write(client, 9)
    client.create("other")
    client.broker.now_ms += 2 * HOUR_MS

    client.broker.log("other").fail(DiskFull("for the test"))
    for _ in range(100):
        client.broker.loop.run_for(0.05)
        if first_chunk(client) > 0:
            break

    assert first_chunk(client) == 6
    assert "retention check failed" not in caplog.text


def test_however_often_it_is_asked_for_all_streams_are_looked_at_once_and_once_more(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("a", "b", "c")
    streams = client.broker.streams
    monkeypatch.setattr(slices, "THINGS_A_TURN", 2)
    looked: list[str] = []

    async def look(_retention: object, stream: Stream) -> None:
        looked.append(stream.name)
        if len(looked) == 1:
            for _ in range(5):
                streams.logs.retention.look_soon(streams)

    monkeypatch.setattr(StreamRetention, "evaluate", look)
    for _ in range(5):
        streams.logs.retention.look_soon(streams)
    client.broker.loop.run_for(0.05)
    assert looked == ["a", "b", "c"] * 2

    streams.logs.retention.look_soon(streams)
    client.broker.loop.run_for(0.05)
    assert looked == ["a", "b", "c"] * 3


def test_streams_that_grow_at_once_are_looked_at_in_parts(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "THINGS_A_TURN", 2)
    names = [f"s{number}" for number in range(5)]
    looked: list[str] = []

    async def look(_retention: object, stream: Stream) -> None:
        looked.append(stream.name)

    monkeypatch.setattr(StreamRetention, "evaluate", look)
    for name in names:
        client.code("create_stream", m.CreateStream(name, {"max-age": "1h"}))
        client.broker.streams.logs.retention.grown(client.broker.stream(name))
    client.broker.loop.run_for(0.05)

    assert looked == names


def test_a_mistake_of_ours_is_in_the_log(
    client: LinkRig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, max_age="1h")

    async def wrong(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(retention_module, "find_cut", wrong)
    write(client, 4)

    assert "retention check failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_policy_stands_above_the_arguments(client: LinkRig) -> None:
    create(client, max_length_bytes="0")
    policy = Policy("p", pattern="^s$", definition={"max-length-bytes": 10**9})
    client.broker.store_rig.run(client.broker.streams.logs.policies.put(policy))

    write(client, 9)

    assert first_chunk(client) == 0


def test_a_policy_changes_how_much_goes_at_once(client: LinkRig) -> None:
    create(client, max_length_bytes="0")
    definition = {"stream-max-segment-size-bytes": 1_500}
    policy = Policy("p", pattern="^s$", definition=definition)
    client.broker.store_rig.run(client.broker.streams.logs.policies.put(policy))

    write(client, 9)

    assert first_chunk(client) == 8


def test_many_streams_are_looked_at_in_parts(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "THINGS_A_TURN", 2)
    looked: list[str] = []

    async def look(_retention: object, stream: Stream) -> None:
        looked.append(stream.name)

    monkeypatch.setattr(StreamRetention, "evaluate", look)
    client.create("a", "b", "c", "d", "e")
    parts = []
    for part in client.broker.streams.logs.retention.rounds(client.broker.streams):
        client.broker.store_rig.run(part)
        parts.append(len(looked))

    assert looked == ["a", "b", "c", "d", "e"]
    assert len(parts) >= 3


def test_one_stream_that_cannot_be_read_does_not_keep_the_others(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    broker = client.broker
    client.create("lost")
    broker.lose_segment("lost")
    create(client, max_age="1h")
    policy = Policy("p", pattern=".*", definition={"max-age": "1h"})
    broker.store_rig.run(broker.streams.logs.policies.put(policy))
    write(client, 9)
    broker.now_ms += 2 * HOUR_MS

    tick(broker)

    assert first_chunk(client) == 6
    assert "retention failed stream=lost virtual_host=/ " in caplog.text


def test_a_clock_that_was_ahead_is_named_and_what_it_wrote_is_kept(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    create(client, max_age="1h")
    client.broker.now_ms += 24 * HOUR_MS
    write(client, 5)
    client.broker.now_ms -= 24 * HOUR_MS
    write(client, 5)
    client.broker.now_ms += 23 * HOUR_MS

    tick(client.broker)
    tick(client.broker)
    assert first_chunk(client) == 0
    client.broker.now_ms += 3 * HOUR_MS
    tick(client.broker)

    assert first_chunk(client) == 9
    words = "timestamps lie in the future, max-age acts late stream=s virtual_host=/ ahead_s=86400"
    assert caplog.messages.count(words) == 1


# What is left


def test_stored_offsets_stay_when_their_records_go(client: LinkRig, tmp_path: Path) -> None:
    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 3)
    offsets = {"zero": 0, "all that was there": 2, "next": 3, "far": 2**64 - 1}
    for reference, offset in offsets.items():
        client.tell("store_offset", m.StoreOffset(reference, "s", offset))

    write(client, 14)

    assert first_chunk(client) > 3
    again = Broker(client.broker.store_rig.crash_copy(tmp_path.with_name(f"{tmp_path.name}-copy")))
    for link in (client, again.link()):
        assert {each: query(link, each)[1] for each in offsets} == offsets
    again.close()


def test_a_consumer_that_had_read_all_gets_what_came_and_was_kept(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 3)
    client.tell("store_offset", m.StoreOffset("away", "s", 2))
    write(client, 14)
    caplog.set_level(logging.INFO)
    code, offset = query(client, "away")
    first = first_chunk(client)

    assert (code, offset) == (ResponseCode.OK, 2)
    place = OffsetSpec(OffsetType.OFFSET, offset + 1)
    assert client.code("resolve_offset_spec", m.ResolveOffsetSpec("s", place, {})) == (
        ResponseCode.OK
    )
    assert "behind what was removed" not in caplog.text, "nobody reads yet"
    assert client.code("subscribe", m.Subscribe(1, "s", place, 9, {})) == ResponseCode.OK
    assert client.deliver(1)[0].chunk.chunk_id == first
    line = f"behind what was removed stream=s virtual_host=/ offset=3 first_offset={first}"
    assert caplog.text.count(line) == 1


def test_publishers_whose_records_went_are_known_also_after_a_crash(
    client: LinkRig, tmp_path: Path
) -> None:
    create(client, max_length_bytes="0")
    write(client, 2, reference="early")
    write(client, 9)
    assert first_chunk(client) == 9

    again = Broker(client.broker.store_rig.crash_copy(tmp_path.with_name(f"{tmp_path.name}-copy")))
    sequence = again.link().ask(
        m.PublisherSequence, "query_publisher_sequence", m.QueryPublisherSequence("early", "s")
    )
    stats = statistics(again.link())

    assert sequence.sequence == 1
    assert (stats["first_chunk_id"], stats["committed_offset"]) == (9, 10)
    write(again.link(), 1)
    assert again.log("s").last_chunk_id == 11
    again.close()


def test_where_no_snapshot_can_be_stored_only_what_the_last_one_covers_goes(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = client.broker
    create(client, max_age="1h")
    write(client, 5)
    final = broker.log("s").final_snapshot()
    assert final is not None
    broker.store_rig.run(save(broker, final))
    write(client, 7)
    broker.now_ms += 2 * HOUR_MS

    def fail(*_: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(DiskFull("for the test"))

    with monkeypatch.context() as patch:
        wrap_operation(patch, broker.store_rig.store, "update_table", fail)
        tick(broker)
        assert first_chunk(client) == 3
        assert "snapshot not stored stream=s" in caplog.text
        assert "nothing removed" not in caplog.text
        tick(broker)
        assert first_chunk(client) == 3
        assert "nothing removed from stream 's'" in caplog.text
    tick(broker)

    assert first_chunk(client) == 9


async def save(broker: Broker, snapshot: object) -> None:
    stream = broker.stream("s")
    assert stream.log is not None
    await broker.streams.storage.save(stream.entry, stream.log, snapshot)  # type: ignore[arg-type]


def test_the_stored_index_does_not_grow_without_end(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_module, "_INDEX_GARBAGE_MAX", 2)
    broker = client.broker
    create(client, max_length_bytes=str(7 * CHUNK))

    write(client, 40)

    segment = names.index_segment("/", "s", broker.stream("s").entry.generation)
    info = broker.store_rig.do(broker.store_rig.store.info, segment)
    assert info.start > 0
    assert info.start % ENTRY_BYTES == 0
    assert info.length - info.start <= 24 * 8


def test_an_opening_after_the_stored_index_was_cut_needs_no_scan(
    client: LinkRig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(retention_module, "_INDEX_GARBAGE_MAX", 2)
    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 40)
    log = client.broker.log("s")

    again = Broker(client.broker.store_rig.crash_copy(tmp_path.with_name(f"{tmp_path.name}-copy")))

    assert again.log("s").start == log.start
    assert list(again.log("s").index.positions) == list(log.index.positions)
    assert "do not fit" not in caplog.text
    again.close()


def test_a_consumer_that_waits_at_the_head_goes_on_with_the_oldest_chunk(client: LinkRig) -> None:
    create(client, max_length_bytes=str(7 * CHUNK))
    subscribe = m.Subscribe(1, "s", OffsetSpec(OffsetType.FIRST), 0, {})
    assert client.code("subscribe", subscribe) == ResponseCode.OK
    write(client, 20)

    client.tell("credit", m.Credit(1, 1))

    first = first_chunk(client)
    assert first >= 12
    assert client.deliver(1)[0].chunk.chunk_id == first
