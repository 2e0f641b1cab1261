"""Records that a commit has in its own rows, for streams that get all of them or none."""

import logging

import pytest

from gateway.broker.commits import appending
from gateway.broker.commits.batch import CommitBatch
from gateway.broker.commits.draft import ChunkPart
from gateway.broker.commits.finishing import Committed
from gateway.broker.commits.rows import HeadRow, head_key
from gateway.broker.errors import (
    AccessRefused,
    BrokerError,
    InternalError,
    StreamDoesNotExist,
    StreamNotAvailable,
)
from gateway.log import names
from gateway.log.units import append_unit
from store.api import Done, TableEntry
from store.errors import DiskFull, SegmentFailed
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.commits.staging_rig import USER, StagingRig, anything


def batch_of(rig: StagingRig, **records: list[bytes]) -> CommitBatch:
    batch = CommitBatch()
    for name, some in records.items():
        for record in some:
            batch.add(rig.broker.stream(name), record)
    return batch


def publish(rig: StagingRig, **records: list[bytes]) -> Committed:
    return rig.run(rig.commits.publish(USER, batch_of(rig, **records), anything))


def refused(rig: StagingRig, kind: type[BrokerError], batch: CommitBatch) -> str:
    """Return the line with which it is refused; nothing may have been written."""
    before = rig.rows()
    line = rig.refused(kind, rig.commits.publish(USER, batch, anything))
    assert rig.rows() == before
    return line


def test_each_stream_gets_its_records_in_order_as_one_chunk(rig: StagingRig) -> None:
    committed = publish(rig, a=[b"1", b"2"], b=[b"3"])

    assert committed == Committed(1)
    assert (rig.content("a"), rig.content("b")) == ([b"1", b"2"], [b"3"])
    assert rig.broker.log("a").mark == rig.broker.log("b").mark == 1
    rig.settle()
    assert rig.rows() == {b"n": 1}
    assert publish(rig, b=[b"4"]).number == 2
    assert rig.content("b") == [b"3", b"4"]


def test_no_records_need_no_commit(rig: StagingRig) -> None:
    assert publish(rig) == Committed(0)
    assert rig.rows() == {}


def test_it_goes_on_after_a_restart(rig: StagingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the commit are all that there is of it."""
    for number, stream in ((1, "a"), (2, "b")):
        publish(rig, a=[b"%d" % number])
        rig.settle()
        rows: list[TableEntry] = []

        def keep(
            _real: object, name: str, entries: list[TableEntry], *, done: Done[object]
        ) -> None:
            rows.extend(entries)  # noqa: B023  # called in this round alone
            done(SegmentFailed(name))

        batch = batch_of(rig, **{stream: [b"x%d" % number]})
        store = rig.broker.store_rig
        with monkeypatch.context() as patch:
            wrap_operation(patch, store.store, "update_table", keep)
            rig.refused(InternalError, rig.commits.publish(USER, batch, anything))
        entries = [TableEntry(entry.key, entry.value) for entry in rows]
        store.do(store.store.update_table, names.commits_table("/"), entries)
        rig.restart(is_clean=False)
        assert rig.content(stream)[-1] == b"x%d" % number
        rig.settle()
        assert rig.rows() == {b"n": 1}


def test_a_part_whose_row_is_damaged_is_lost_alone(
    rig: StagingRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    store = rig.broker.store_rig
    batch = batch_of(rig, a=[b"1"], b=[b"2"])
    parts = [ChunkPart(rig.commits.ports, some).entry(1) for some in batch]
    value = parts[0].value
    damaged = TableEntry(parts[0].key, value[:-1] + bytes((value[-1] ^ 1,)))
    head = HeadRow(user=USER, sink="", batch=0, records=2, size_bytes=0)
    entries = [TableEntry(head_key(1), head.pack()), damaged, parts[1]]
    store.do(store.store.update_table, names.commits_table("/"), entries)

    rig.restart(is_clean=False)

    assert (rig.content("a"), rig.content("b")) == ([], [b"2"])
    assert "part of a commit is lost stream=a" in caplog.text


def test_a_deleted_target_refuses_all_of_it(rig: StagingRig) -> None:
    batch = batch_of(rig, a=[b"1"], b=[b"2"])
    rig.run(rig.broker.streams.delete("b", lambda _: None))
    refused(rig, StreamDoesNotExist, batch)
    rig.run(rig.broker.streams.create("b", {}))  # another one of the name
    refused(rig, StreamDoesNotExist, batch)
    assert rig.content("a") == []


def test_a_target_that_can_only_be_read_refuses_all_of_it(rig: StagingRig) -> None:
    rig.broker.log("b").read_only = SegmentFailed("it is damaged")
    refused(rig, StreamNotAvailable, batch_of(rig, a=[b"1"], b=[b"2"]))
    assert rig.content("a") == []


def test_a_missing_right_refuses_all_of_it(rig: StagingRig) -> None:
    def check(stream: str) -> None:
        if stream == "b":
            raise AccessRefused(stream)

    batch = batch_of(rig, a=[b"1"], b=[b"2"])
    rig.refused(AccessRefused, rig.commits.publish(USER, batch, check))
    assert rig.content("a") == []


def test_a_store_that_refuses_is_named_with_the_streams(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_real: object, name: str, _entries: object, *, done: Done[object]) -> None:
        done(DiskFull(name))

    batch = batch_of(rig, a=[b"1"], b=[b"2"])
    with monkeypatch.context() as patch:
        wrap_operation(patch, rig.broker.store_rig.store, "update_table", full)
        line = refused(rig, InternalError, batch)
    assert "a transaction of user 'guest' for streams 'a', 'b' is not committed" in line
    assert publish(rig, a=[b"1"]).number == 1


def test_nothing_is_taken_any_more_when_the_server_stops(rig: StagingRig) -> None:
    batch = batch_of(rig, a=[b"1"])
    rig.run(rig.commits.close())
    assert "takes no more commits" in refused(rig, InternalError, batch)


def test_a_part_that_has_to_wait_is_read_from_its_row(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*args: object, **more: object) -> object:
        await args[3].read(0)  # type: ignore[attr-defined]
        if not tries:
            tries.append(1)
            raise SegmentFailed("a")
        return await append_unit(*args, **more)  # type: ignore[arg-type]

    tries: list[int] = []
    monkeypatch.setattr(appending, "append_unit", failing)

    assert publish(rig, a=[b"1"]) == Committed(1)
    assert rig.content("a") == [b"1"]
