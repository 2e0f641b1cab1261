"""Streams that have lost chunks, and then what was stored beside these: who published, and where.

Of publishers whose chunks were removed only the stored snapshot knows.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.errors import InternalError
from gateway.broker.streams.streams import Streams
from gateway.log import names
from gateway.log.derived.saved import KeptSnapshots
from gateway.log.names import writer_of
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from store.errors import DiskFull
from tests.unit.gateway.broker.retention_rig import create, statistics, write
from tests.unit.gateway.log.recovery.test_log_opening_damage import index_entry
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

BEYOND = (2**63, 0, 2**63)
"""An entry of the stored index that lies behind all chunks: offset, time, position."""
BACKWARDS = (0, 0, 100)
"""One that does not grow."""
CHUNKS = 9


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "data")
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    """A client of the stream `s`, whose publisher `ref` is at 8."""
    client = broker.link()
    create(client)
    write(client, CHUNKS, reference="ref")
    return client


def truncate(broker: Broker, offset: int) -> None:
    broker.store_rig.run(broker.streams.logs.truncate(broker.streams.find("s"), offset=offset))


def damage_index(broker: Broker, entry: tuple[int, int, int]) -> None:
    segment = names.index_segment("/", "s", broker.stream("s").entry.generation)
    rig = broker.store_rig
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, index_entry(*entry, segment=segment), writer.event_number + 1)


def forget_snapshot(broker: Broker) -> None:
    generation = broker.stream("s").entry.generation
    broker.store_rig.run(broker.streams.logs.tracking.snapshots.replace(generation, None))


def sequence(broker: Broker) -> int:
    query = m.QueryPublisherSequence("ref", "s")
    reply = broker.link().ask(m.PublisherSequence, "query_publisher_sequence", query)
    return reply.sequence


@pytest.mark.parametrize("entry", [BEYOND, BACKWARDS], ids=["beyond", "backwards"])
@pytest.mark.parametrize("offset", [CHUNKS, 4], ids=["all removed", "some removed"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_publishers_of_removed_chunks_are_known_however_often_a_damaged_index_is_dropped(
    client: LinkRig, tmp_path: Path, entry: tuple[int, int, int], offset: int, *, is_clean: bool
) -> None:
    broker = client.broker
    truncate(broker, offset)
    damage_index(broker, entry)

    for copy in ("first", "second", "third"):
        if is_clean:
            broker.stop()
        directory = broker.store_rig.crash_copy(tmp_path / copy)
        broker = Broker(directory)
        assert sequence(broker) == CHUNKS - 1
        if not is_clean:
            broker.log("s")  # opened, and then killed before anything else

    again = broker.link()
    again.declare(1, "s", "ref")
    again.publish(1, (5, b"again"))
    broker.settle("s")
    assert statistics(again)["committed_offset"] in (CHUNKS - 1, -1)
    broker.close()


@pytest.mark.parametrize("offset", [0, 4, CHUNKS])
def test_an_index_that_was_dropped_is_stored_anew_at_once(
    client: LinkRig, tmp_path: Path, caplog: pytest.LogCaptureFixture, offset: int
) -> None:
    broker = client.broker
    truncate(broker, offset)
    broker.stop()
    broker = Broker(broker.store_rig.crash_copy(tmp_path / "first"))
    damage_index(broker, BACKWARDS)

    log = broker.log("s")
    broker.loop.run_until(lambda: log.saved.saving is not None and log.saved.saving.is_settled)
    assert "stored index or snapshot does not fit" in caplog.text
    caplog.clear()
    again = Broker(broker.store_rig.crash_copy(tmp_path / "second"))

    assert list(again.log("s").index.positions) == list(log.index.positions)
    assert sequence(again) == CHUNKS - 1
    assert caplog.records == []
    broker.close()
    again.close()


def test_what_is_removed_next_is_covered_by_a_snapshot_though_the_index_was_dropped(
    client: LinkRig, tmp_path: Path
) -> None:
    broker = client.broker
    truncate(broker, 4)
    damage_index(broker, BEYOND)
    broker.stop()

    broker = Broker(broker.store_rig.crash_copy(tmp_path / "first"))
    truncate(broker, CHUNKS)
    again = Broker(broker.store_rig.crash_copy(tmp_path / "second"))

    assert sequence(again) == CHUNKS - 1
    broker.close()
    again.close()


def test_an_emptied_stream_that_lost_snapshot_and_index_is_opened_goes_on_and_is_deleted(
    client: LinkRig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = client.broker
    truncate(broker, CHUNKS)
    forget_snapshot(broker)
    damage_index(broker, BACKWARDS)
    broker.stop()

    broker = Broker(broker.store_rig.crash_copy(tmp_path / "first"))
    again = broker.link()
    log = broker.log("s")
    broker.loop.run_until(lambda: log.saved.saving is not None and log.saved.saving.is_settled)
    assert log.saved.snapshot_position == log.start == log.committed_length
    declare = m.DeclarePublisher(1, "ref", "s")
    assert again.code("declare_publisher", declare) == ResponseCode.INTERNAL_ERROR
    write(again, 1)
    broker.stop()

    broker = Broker(broker.store_rig.crash_copy(tmp_path / "second"))
    assert broker.log("s").first_offset == CHUNKS
    code = broker.link().code("declare_publisher", declare)
    assert code == ResponseCode.INTERNAL_ERROR, "nothing knows the publishers of what was removed"
    assert broker.link().code("delete_stream", m.DeleteStream("s")) == ResponseCode.OK
    assert not broker.streams.storage.leftovers
    errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert set(errors) == {"publishing ids are damaged stream=s virtual_host=/"}
    broker.close()


def test_a_snapshot_of_an_emptied_stream_that_could_not_be_stored_is_stored_by_the_stop(
    client: LinkRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = client.broker
    truncate(broker, CHUNKS)
    forget_snapshot(broker)
    broker.stop()
    broker = Broker(broker.store_rig.crash_copy(tmp_path / "first"))

    def fail(_self: KeptSnapshots, _generation: int, _snapshot: object, done: object) -> None:
        done(DiskFull("for the test"))  # type: ignore[operator]  # of the store's kind

    with monkeypatch.context() as patch:
        patch.setattr(KeptSnapshots, "save", fail)
        log = broker.log("s")
    assert log.saved.snapshot_position == 0
    broker.stop()

    broker = Broker(broker.store_rig.crash_copy(tmp_path / "second"))
    generation = broker.stream("s").entry.generation
    assert broker.store_rig.run(broker.streams.logs.tracking.snapshots.load(generation)) is not None
    broker.close()


def test_a_save_that_fails_for_whatever_reason_is_no_reason_to_keep_a_deleted_stream(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = client.broker

    def fail(*_: object) -> None:
        raise RuntimeError("for the test")

    monkeypatch.setattr(KeptSnapshots, "save", fail)
    with pytest.raises(InternalError, match="nothing removed from stream 's'"):
        truncate(broker, CHUNKS)

    assert client.code("delete_stream", m.DeleteStream("s")) == ResponseCode.OK
    assert not broker.streams.storage.leftovers
    assert "snapshot not stored stream=s" in caplog.text


def test_of_what_is_left_of_deletions_one_that_fails_does_not_keep_the_others(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    streams: Streams = broker.streams
    client = broker.link()
    client.create("bad", "good")
    for name in ("bad", "good"):
        streams.storage.leftovers[name] = streams.find(name)
    discard = streams.storage.discard

    def fail(*left: object, **_: object) -> object:
        if left == (streams.find("bad"),):
            raise RuntimeError("for the test")
        return discard(*left)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(streams.storage, "discard", fail)

    broker.store_rig.run(streams.retry_deletions())

    assert list(streams.storage.leftovers) == ["bad"]
    assert "stream not deleted stream=bad" in caplog.text
    assert len(streams.locks) == 0
