"""Index entries and snapshots on their way to the store."""

import pytest

from gateway.log import index as index_module
from gateway.log import log as log_module
from gateway.log.index import ENTRY_BYTES
from gateway.log.names import writer_of
from gateway.log.snapshot import Snapshot
from store.api import TableEntry
from tests.unit.gateway.log.log_rig import NAMES, LogRig, put


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 100)
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNKS", 2)


def stored_positions(rig: LogRig) -> list[int]:
    info = rig.do(rig.store.info, NAMES.index_segment)
    data = rig.do(rig.store.read, NAMES.index_segment, 0, max(info.length, 1)).data
    return [int.from_bytes(data[at + 16 : at + 24]) for at in range(0, len(data), ENTRY_BYTES)]


def stored_snapshot(rig: LogRig) -> Snapshot:
    snapshot = rig.run(rig.tracking.load_snapshot(1))
    assert snapshot is not None
    return snapshot


def test_a_snapshot_is_stored_after_the_index_entries_before_it(rig: LogRig) -> None:
    log = rig.create()
    for _ in range(7):
        rig.commit(log, bytes(100))

    snapshot = stored_snapshot(rig)

    assert snapshot == rig.saved[-1]
    assert snapshot.next_offset == 6
    assert stored_positions(rig) == [
        each for each in log.index.positions if each < snapshot.position
    ]


def test_saves_that_overlap_are_stored_one_after_the_other(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    for _ in range(12):
        put(log, [bytes(900_000)])  # each is a chunk, all are in flight together
        log.flush()
    rig.settle(log)
    assert len(rig.saved) >= 5

    rig.commit(log, b"x")
    rig.save(log)

    assert caplog.records == []
    assert stored_snapshot(rig) == rig.saved[-1]
    assert stored_positions(rig) == list(log.index.positions)


def test_a_snapshot_never_goes_back(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    positions: list[int] = []
    update_table = rig.store.update_table

    def watch(name: str, entries: list[TableEntry], **options: object) -> None:
        positions.append(int.from_bytes(entries[0].value[:8]))
        update_table(name, entries, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(rig.store, "update_table", watch)
    log = rig.create()
    for _ in range(12):
        put(log, [bytes(900_000)])
        log.flush()
    rig.settle(log)

    assert positions == sorted(positions)
    assert positions[-1] == rig.saved[-1].position


def test_index_entries_that_could_not_be_stored_are_stored_with_the_next_snapshot(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    for _ in range(2):
        rig.commit(log, bytes(100))
    other = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    rig.do(other.append, b"", other.event_number + 1)

    for _ in range(2):
        rig.commit(log, bytes(100))
    assert "snapshot not stored stream=orders" in caplog.text
    assert stored_snapshot(rig).next_offset == 2
    for _ in range(2):
        rig.commit(log, bytes(100))

    assert stored_snapshot(rig).next_offset == 6
    assert stored_positions(rig) == list(log.index.positions)


def test_a_log_that_cannot_store_its_snapshot_goes_on(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    rig.do(rig.store.create_table, NAMES.index_segment)  # where the index should be

    for _ in range(4):
        rig.commit(log, bytes(100))

    assert "snapshot not stored stream=orders" in caplog.text
    assert log.failure is None
    assert log.committed_next_offset == 4


def test_an_index_that_exists_is_continued(rig: LogRig) -> None:
    log = rig.create()
    for _ in range(4):
        rig.commit(log, bytes(100))
    log = rig.open()
    for _ in range(4):
        rig.commit(log, bytes(100))

    assert stored_positions(rig) == list(log.index.positions)
