from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.broker.commits import commits, stage_filling, stage_segment
from gateway.broker.errors import (
    AccessRefused,
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
)
from gateway.broker.streams.staging_limits import StagingLimits, Usage
from gateway.pending import Pending
from store.api import Done
from store.errors import DiskFull, StoreError
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.commits.staging_rig import SINK, USER, StagingRig, anything
from tests.unit.gateway.log.log_rig import encode

DATA = encode(b"x")


def _adding(
    rig: StagingRig,
    number: int,
    *,
    sequence: int = 0,
    entries: int = 1,
    records: int = 1,
    data: bytes = DATA,
) -> Coroutine[Pending[Any], None, int]:
    return rig.commits.filling.add(USER, number, sequence, entries, records, data)


# What is refused


def test_a_stage_needs_a_stream(rig: StagingRig) -> None:
    with pytest.raises(StreamDoesNotExist, match="nowhere"):
        rig.open("nowhere")


@pytest.mark.parametrize(("sink", "batch"), [("s" * 1_025, 0), ("s", 2**63)])
def test_sinks_and_batches_have_bounds(rig: StagingRig, sink: str, batch: int) -> None:
    with pytest.raises(PreconditionFailed, match="above"):
        rig.open("a", sink=sink, batch=batch)
    rig.open("a", sink="s" * 1_024, batch=2**63 - 1)


def test_a_stage_of_another_user_is_refused(rig: StagingRig) -> None:
    number = rig.open("a", user="other")

    for coroutine in (_adding(rig, number), rig.commits.filling.close(USER, number)):
        assert rig.refused(AccessRefused, coroutine) == f"stage {number} is of another user"
    with pytest.raises(AccessRefused):
        rig.commits.stages.own(USER, [number])


@pytest.mark.parametrize("wrong", [1, 7])
def test_entries_behind_a_gap_are_refused(rig: StagingRig, wrong: int) -> None:
    number = rig.open()

    line = rig.refused(PreconditionFailed, _adding(rig, number, sequence=wrong))

    assert line == f"stage {number}: sequence {wrong} came instead of 0"


def test_entries_that_come_again_are_dropped(rig: StagingRig) -> None:
    number = rig.open()
    rig.add(number, [b"x"])
    rig.add(number, [b"y"], 1)

    assert rig.run(_adding(rig, number)) == 0
    assert rig.run(_adding(rig, number, sequence=1, entries=0, records=0, data=b"")) == 0
    rig.close(number)
    assert rig.run(_adding(rig, number, sequence=1)) == 2

    rig.commit(number)
    assert rig.content("a") == [b"x", b"y"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"entries": 2},
        {"records": 2},
        {"entries": 0, "records": 0, "data": b""},
        {"data": DATA[:-1]},
        {"data": DATA + b"\0"},
    ],
)
def test_entries_that_do_not_agree_with_their_counts_are_refused(
    rig: StagingRig, wrong: dict[str, Any]
) -> None:
    number = rig.open()

    line = rig.refused(PreconditionFailed, _adding(rig, number, **wrong))

    assert line.startswith(f"stage {number}: sequence 0 is not ")
    rig.add(number, [b"x"])  # nothing was taken


def test_a_closed_stage_takes_nothing_and_can_be_closed_again(rig: StagingRig) -> None:
    number = rig.staged("a", b"x")

    coroutine = _adding(rig, number, sequence=1)
    assert rig.refused(PreconditionFailed, coroutine) == f"stage {number} is closed"
    rig.close(number)


def test_a_stage_of_a_deleted_stream_takes_nothing(rig: StagingRig) -> None:
    number = rig.open()
    rig.run(rig.broker.streams.delete("a", lambda _: None))
    rig.run(rig.broker.streams.create("a", {}))

    assert rig.refused(StreamDoesNotExist, _adding(rig, number)) == "a"


def test_an_unknown_stage_is_refused(rig: StagingRig) -> None:
    assert rig.refused(PreconditionFailed, _adding(rig, 5)).startswith("stage 5 is unknown")


def test_a_user_that_has_staged_too_much_is_refused(rig: StagingRig) -> None:
    number = rig.open()
    rig.add(number, [b"x" * 100])
    used = rig.commits.stages.bytes_of(USER)
    usage: Usage = rig.commits.stages.usage
    usage.limits = StagingLimits(staged_bytes_max=2 * used)
    rig.add(number, [b"x" * 100], 1)

    coroutine = _adding(rig, number, sequence=2)
    assert "pipeline.staged_bytes_max" in rig.refused(PreconditionFailed, coroutine)
    with pytest.raises(PreconditionFailed):
        rig.open()
    rig.run(rig.commits.stages.discard(rig.commits.stages))
    rig.open()


def test_a_user_may_have_so_many_stages(rig: StagingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_filling, "STAGES_MAX", 2)
    rig.open()
    number = rig.open()
    rig.open(user="other")

    with pytest.raises(PreconditionFailed, match="has 2 stages"):
        rig.open()
    rig.run(rig.commits.stages.discard([rig.commits.stages.find(number)]))  # type: ignore[list-item]
    rig.open()


def test_the_chunks_of_a_stage_and_of_a_commit_for_one_stream_have_a_bound(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "CHUNKS_MAX", 2)
    monkeypatch.setattr(commits, "CHUNKS_MAX", 3)
    number = rig.open()
    rig.add(number, [b"1"])
    rig.add(number, [b"2"], 1)

    line = rig.refused(PreconditionFailed, _adding(rig, number, sequence=2))
    assert line == f"stage {number} has 2 frames: send larger ones"
    rig.close(number)
    rig.restart()

    others = [rig.staged("a", b"3"), rig.staged("a", b"4")]
    coroutine = rig.commits.commit(USER, SINK, 0, [number, *others], anything)
    line = rig.refused(PreconditionFailed, coroutine)
    assert line.startswith("stream 'a' gets 4 frames, and one commit may have 3 for a stream")
    rig.commit(number, others[0], rig.staged("b", b"5"))
    assert rig.content("a") == [b"1", b"2", b"3"]


# Where the bytes lie


def test_a_small_stage_is_a_row_and_a_larger_one_has_a_segment(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = rig.staged("a", b"x")
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 100)
    large = rig.staged("a", b"x" * 50)

    assert (rig.has_segment(small), rig.has_segment(large)) == (False, True)
    assert rig.rows() == {b"t": 2}
    rig.commit(small, large)
    assert rig.content("a") == [b"x", b"x" * 50]
    rig.settle()
    assert not rig.has_segment(large)
    assert rig.rows() == {b"n": 1, b"s": 1}


def test_stages_are_in_segments_when_memory_is_used_up(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "MEMORY_BYTES_MAX", 150)
    first = rig.staged("a", b"x" * 60)
    kept = rig.commits.stages.usage.memory_bytes
    second = rig.open()
    rig.add(second, [b"y" * 60])
    rig.add(second, [b"z" * 60], 1)
    rig.close(second)

    assert kept == 0  # it was closed above half of the bound, and is in its row
    assert rig.has_segment(second)
    assert rig.commits.stages.usage.memory_bytes == 0
    rig.commit(first, second)
    assert rig.content("a") == [b"x" * 60, b"y" * 60, b"z" * 60]


def test_a_client_that_stages_fast_waits_for_the_store(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    monkeypatch.setattr(stage_segment, "WAY_BYTES_MAX", 300)
    number = rig.open()

    first = rig.start(_adding(rig, number, data=encode(b"x" * 100)))
    data = encode(b"x" * 200)
    second = rig.start(_adding(rig, number, sequence=1, data=data))

    assert (first.is_settled, second.is_settled) == (True, False)
    rig.broker.loop.run_until(lambda: second.is_settled)
    rig.close(number)
    rig.commit(number)
    assert rig.content("a") == [b"x" * 100, b"x" * 200]


def test_a_full_disk_is_named_and_the_stage_can_be_closed_later(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = rig.open()
    rig.add(number, [b"x"])
    full = [True]

    def update(real: Callable[..., None], *rest: object, done: Done[Any], **more: object) -> None:
        if full[0]:
            rig.broker.loop.call_soon(done, DiskFull("no space"))
        else:
            real(*rest, done=done, **more)

    wrap_operation(monkeypatch, rig.broker.store_rig.store, "update_table", update)
    line = rig.refused(InternalError, rig.commits.filling.close(USER, number))
    full[0] = False

    assert line == f"stage {number} of stream 'a' is not stored: no space"
    assert [str(error) for error in rig.broker.refused] == ["no space"]
    rig.close(number)
    rig.commit(number)
    assert rig.content("a") == [b"x"]


def test_a_stage_whose_segment_fails_cannot_be_closed(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)

    def create(_real: object, *_: object, done: Done[Any], **__: object) -> None:
        rig.broker.loop.call_soon(done, StoreError("no"))

    wrap_operation(monkeypatch, rig.broker.store_rig.store, "create_segment", create)
    number = rig.open()
    rig.add(number, [b"x" * 20])

    for coroutine in (
        rig.commits.filling.close(USER, number),
        _adding(rig, number, sequence=1),
    ):
        assert "is not stored: no" in rig.refused(InternalError, coroutine)
    assert rig.commits.stages.usage._way_bytes == 0


# Ends


def test_discarding_removes_all_that_is_stored(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = rig.staged("a", b"x")
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    large, still_open = rig.staged("a", b"x" * 50), rig.open()
    rig.add(still_open, [b"x" * 50])

    own = rig.commits.stages.own(USER, [small, large, large, still_open, 5])
    rig.run(rig.commits.stages.discard(own))

    assert rig.rows() == {}
    assert not any(map(rig.has_segment, (small, large, still_open)))
    assert rig.commits.stages.bytes_of(USER) == rig.commits.stages.usage.of(USER) == 0
    assert len(rig.commits.stages) == 0


def test_what_cannot_be_deleted_is_tried_again(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    number = rig.staged("a", b"x")
    fails = [True]

    def remove(real: Callable[..., None], *rest: object, done: Done[Any], **more: object) -> None:
        if fails[0]:
            rig.broker.loop.call_soon(done, StoreError("no"))
        else:
            real(*rest, done=done, **more)

    wrap_operation(monkeypatch, rig.broker.store_rig.store, "remove_keys", remove)
    rig.run(rig.commits.stages.discard(rig.commits.stages.own(USER, [number])))
    assert rig.rows() == {b"t": 1}
    assert "stages not deleted" in caplog.text
    fails[0] = False

    rig.run(rig.commits.look())

    assert rig.rows() == {}


def test_a_stage_expires_after_its_last_use(rig: StagingRig) -> None:
    number = rig.open()
    day_ms = 86_400_000
    rig.broker.now_ms += day_ms
    rig.add(number, [b"x"])
    rig.close(number)
    rig.broker.now_ms += day_ms
    rig.run(rig.commits.look())
    assert rig.commits.stages.find(number) is not None

    rig.broker.now_ms += 1
    rig.run(rig.commits.look())

    assert rig.commits.stages.find(number) is None
    assert rig.rows() == {}


def test_numbers_are_never_given_again(rig: StagingRig) -> None:
    first = rig.staged("a", b"x")
    rig.broker.now_ms -= 500_000

    rig.restart()

    assert rig.open() > first
