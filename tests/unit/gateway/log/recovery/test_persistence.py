"""Index entries and snapshots on their way to the store."""

from dataclasses import replace

import pytest

from gateway.log.derived import index as index_module
from gateway.log.derived.index import ENTRY_BYTES
from gateway.log.derived.snapshot import Snapshot
from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from gateway.log.recovery import persistence as persisting
from gateway.log.recovery.persistence import trim_index
from store.api import TableEntry
from tests.unit.gateway.log.log_rig import NAMES, LogRig, put, snapshot_after_chunks


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SPAN_BYTES", 100)
    snapshot_after_chunks(monkeypatch, 2)


def stored_positions(rig: LogRig) -> list[int]:
    info = rig.do(rig.store.info, NAMES.index_segment)
    size = max(info.length - info.start, 1)
    data = rig.do(rig.store.read, NAMES.index_segment, info.start, size).data
    return [int.from_bytes(data[at + 16 : at + 24]) for at in range(0, len(data), ENTRY_BYTES)]


def stored_snapshot(rig: LogRig) -> Snapshot:
    snapshot = rig.run(rig.tracking.snapshots.load(1))
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


# A snapshot before a removal


def with_snapshot(rig: LogRig) -> tuple[StreamLog, Snapshot]:
    """A log, and a snapshot of it that is not stored."""
    log = rig.create()
    rig.saves_snapshots = False
    for _ in range(4):
        rig.commit(log, bytes(100))
    rig.saves_snapshots = True
    return log, rig.saved[-1]


def has_session(log: StreamLog) -> bool:
    return log.saved.index_writer is not None


def test_a_save_before_a_removal_leaves_no_session_behind(rig: LogRig) -> None:
    log, snapshot = with_snapshot(rig)

    rig._save(log, replace(snapshot, gives_space=True))
    rig.settle(log)
    assert not has_session(log), "the room that is kept for removals is for these"
    assert stored_snapshot(rig) == snapshot

    for _ in range(4):
        rig.commit(log, bytes(100))
    assert has_session(log)
    assert stored_positions(rig) == list(log.index.positions)


def test_the_latest_of_those_that_wait_is_stored_and_gives_space_if_one_of_them_does(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, snapshot = with_snapshot(rig)
    stored: list[Snapshot] = []
    save_snapshot = rig.tracking.snapshots.save

    def watch(generation: int, snapshot: Snapshot, done: object) -> None:
        stored.append(snapshot)
        save_snapshot(generation, snapshot, done)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(rig.tracking.snapshots, "save", watch)
    for gives_space in (False, True, False):
        rig._save(log, replace(snapshot, gives_space=gives_space))
    rig.settle(log)

    assert [each.gives_space for each in stored] == [False, True]


def test_an_error_of_ours_ends_no_save_without_a_word(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log, snapshot = with_snapshot(rig)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(rig.tracking.snapshots, "save", broken)
        rig._save(log, snapshot)
        rig.settle(log)
    assert "snapshot not stored stream=orders" in caplog.text
    assert "ZeroDivisionError" in caplog.text

    rig._save(log, snapshot)
    rig.settle(log)
    assert stored_snapshot(rig) == snapshot


# Filter values


def test_filter_values_are_stored_with_the_snapshot(rig: LogRig) -> None:
    log = rig.create()
    for _ in range(2):
        rig.commit(log, bytes(100), values=[b"fig"])

    assert rig.do(rig.store.info, NAMES.filter_segment).length > 0


def test_filter_values_that_cannot_be_stored_cost_nothing_but_a_line(
    rig: LogRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()
    for _ in range(2):
        rig.commit(log, bytes(100), values=[b"fig"])
    other = rig.do(rig.store.open_writer, NAMES.filter_segment, writer_of(NAMES.filter_segment))
    rig.do(other.append, b"", other.event_number + 1)
    for _ in range(2):
        rig.commit(log, bytes(100), values=[b"fig"])

    assert "filter values not stored stream=orders" in caplog.text
    assert stored_snapshot(rig) == rig.saved[-1]
    assert log.failure is None


def test_an_error_of_ours_in_filter_values_is_logged_and_the_snapshot_stands(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = rig.create()

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    assert log.saved.filter_pages is not None
    monkeypatch.setattr(log.saved.filter_pages, "append", broken)
    for _ in range(2):
        rig.commit(log, bytes(100), values=[b"fig"])

    assert "filter values not stored stream=orders" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert stored_snapshot(rig) == rig.saved[-1]


# The stored index behind a removal


@pytest.mark.parametrize("read_bytes", [2 * ENTRY_BYTES + 1, 3 * ENTRY_BYTES, 1 << 20])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
@pytest.mark.parametrize("kept_from", [0, 1, 2, 3, 6, 7])
def test_entries_before_the_span_of_the_start_go(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch, read_bytes: int, beyond: int, kept_from: int
) -> None:
    monkeypatch.setattr(persisting, "READ_BYTES_MAX", read_bytes)
    log = rig.create()
    for _ in range(8):
        rig.commit(log, bytes(100))
    positions = stored_positions(rig)
    assert len(positions) == 8
    start = positions[kept_from] + beyond

    rig.run(trim_index(rig.store, NAMES.index_segment, start))

    kept = [
        each for each in positions if each >= max(p for p in [0, *positions] if p <= max(start, 0))
    ]
    assert stored_positions(rig) == kept


def test_an_index_that_was_trimmed_is_not_trimmed_back(rig: LogRig) -> None:
    log = rig.create()
    for _ in range(8):
        rig.commit(log, bytes(100))
    positions = stored_positions(rig)

    for start in (positions[5], positions[2], positions[5]):
        rig.run(trim_index(rig.store, NAMES.index_segment, start))
        assert stored_positions(rig) == positions[5:]


def test_an_entry_that_is_not_whole_is_not_looked_at(rig: LogRig) -> None:
    rig.do(rig.store.create_segment, NAMES.index_segment)
    writer = rig.do(rig.store.open_writer, NAMES.index_segment, writer_of(NAMES.index_segment))
    rig.do(writer.append, bytes(ENTRY_BYTES - 1), 1)

    rig.run(trim_index(rig.store, NAMES.index_segment, 1 << 40))

    assert rig.do(rig.store.info, NAMES.index_segment).start == 0
