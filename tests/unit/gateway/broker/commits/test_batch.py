import pytest

from gateway.broker.commits import batch as batch_module
from gateway.broker.commits.batch import CommitBatch
from gateway.broker.commits.draft import ChunkPart
from gateway.broker.errors import PreconditionFailed
from gateway.log.records.writing import RECORD_BYTES_MAX
from store.api import ENTRY_BYTES_MAX
from tests.unit.gateway.broker.commits.staging_rig import StagingRig


def test_the_size_is_that_of_the_rows_of_the_commit(rig: StagingRig) -> None:
    batch = CommitBatch()
    for name, record in (("a", b"1"), ("b", b"22"), ("a", b"333"), ("a", b"")):
        expected = batch.bytes_with(rig.broker.stream(name), record)
        batch.add(rig.broker.stream(name), record)
        assert batch.size_bytes == expected
    assert batch.records == 4
    entries = [ChunkPart(rig.commits.ports, some).entry(1) for some in batch]
    assert batch.size_bytes == sum(len(entry.key) + len(entry.value) for entry in entries)


def test_the_largest_record_has_room(rig: StagingRig) -> None:
    batch = CommitBatch()
    batch.add(rig.broker.stream("a"), bytes(RECORD_BYTES_MAX))
    assert RECORD_BYTES_MAX < batch.size_bytes <= ENTRY_BYTES_MAX


def test_the_records_of_a_stream_fit_one_row(rig: StagingRig) -> None:
    batch = CommitBatch()
    batch.add(rig.broker.stream("a"), bytes(ENTRY_BYTES_MAX - 2_000))
    with pytest.raises(PreconditionFailed, match="stream 'a' have"):
        batch.add(rig.broker.stream("a"), bytes(2_000))
    batch.add(rig.broker.stream("b"), bytes(2_000))
    assert batch.records == 2


def test_the_records_of_a_stream_fit_one_chunk(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_module, "ENTRIES_MAX", 3)
    batch = CommitBatch()
    for _ in range(3):
        batch.add(rig.broker.stream("a"), b"")
    with pytest.raises(PreconditionFailed, match="stream 'a' are 3"):
        batch.add(rig.broker.stream("a"), b"")


def test_all_records_fit_one_update_of_a_table(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_module, "_ALL_BYTES_MAX", 400)
    batch = CommitBatch()
    batch.add(rig.broker.stream("a"), bytes(100))
    with pytest.raises(PreconditionFailed, match="one commit may have 400"):
        batch.add(rig.broker.stream("b"), bytes(200))
    assert batch.records == 1
