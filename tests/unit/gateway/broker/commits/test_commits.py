import logging
from collections.abc import Callable
from typing import Any

import pytest

from gateway.broker.commits import appending, stage_filling, stages
from gateway.broker.commits import commits as commits_module
from gateway.broker.errors import (
    AccessRefused,
    BrokerError,
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
    StreamNotAvailable,
)
from gateway.log import names
from gateway.log.log import StreamLog
from gateway.log.units import append_unit
from gateway.pending import Pending
from store.api import TableEntry
from store.errors import DiskFull, NoSuchSegment, SegmentFailed, StoreError
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.commits.staging_rig import SINK, USER, StagingRig, anything
from tests.unit.gateway.log.log_rig import Sink, put


def _refused(
    rig: StagingRig,
    kind: type[BrokerError],
    *numbers: int,
    batch: int = 0,
    check: Callable[[str], object] = anything,
) -> str:
    """Return the line with which a commit is refused; nothing may have been written."""
    before = rig.rows()
    line = rig.refused(kind, rig.commits.commit(USER, SINK, batch, numbers, check))
    assert rig.rows() == before
    assert rig.content("b") == []
    assert rig.commits.state_of(USER, SINK) == (-1, 0)
    return line


# A commit


def test_nothing_is_visible_before_the_commit_and_all_of_it_after(rig: StagingRig) -> None:
    first, second = rig.staged("a", b"1", b"2"), rig.staged("b", b"3")
    third = rig.staged("a", b"4")
    assert rig.content("a") == rig.content("b") == []

    committed = rig.commit(first, second, third)

    assert (committed.number, committed.is_repeat) == (1, False)
    assert (committed.dropped, committed.waiting) == ((), ())
    assert (rig.content("a"), rig.content("b")) == ([b"1", b"2", b"4"], [b"3"])
    assert rig.broker.log("a").committed_next_offset == 3
    assert rig.commits.state_of(USER, SINK) == (0, 1)
    rig.settle()
    assert rig.rows() == {b"n": 1, b"s": 1}
    assert rig.commits.stages.usage.of(USER) == rig.commits.stages.usage.memory_bytes == 0


def test_a_batch_at_or_below_the_last_is_answered_as_done(rig: StagingRig) -> None:
    rig.commit(rig.staged("a", b"x", batch=5), batch=5)
    again, before = rig.staged("a", b"x", batch=5), rig.staged("a", b"x", batch=4)

    for number, batch in ((again, 5), (before, 4)):
        committed = rig.commit(number, batch=batch)
        assert (committed.number, committed.is_repeat) == (1, True)
    assert rig.commit(again, batch=5).is_repeat  # its stages are gone by now

    assert rig.content("a") == [b"x"]
    assert len(rig.commits.stages) == 0
    assert rig.commits.state_of(USER, SINK) == (5, 1)


def test_stages_of_attempts_that_were_not_committed_go_with_the_commit(rig: StagingRig) -> None:
    tried, used, later = rig.staged("a", b"x"), rig.staged("a", b"x"), rig.open(batch=1)
    other = rig.open(sink="another")

    rig.commit(used)
    rig.settle()

    assert rig.commits.stages.find(tried) is None
    assert [stage.number for stage in rig.commits.stages] == [later, other]


def test_a_batch_without_records_moves_the_sink(rig: StagingRig) -> None:
    assert rig.commit(rig.staged("a", batch=4), batch=4).number == 1
    assert rig.commit(batch=5).number == 2

    assert rig.commits.state_of(USER, SINK) == (5, 2)
    assert rig.content("a") == []


def test_a_commit_that_comes_again_meanwhile_is_answered_like_the_first(rig: StagingRig) -> None:
    number = rig.staged("a", b"x")

    first = rig.start(rig.commits.commit(USER, SINK, 0, [number], anything))
    again = rig.start(rig.commits.commit(USER, SINK, 0, [number], anything))
    rig.broker.loop.run_until(lambda: first.is_settled and again.is_settled)

    assert (first.result().is_repeat, again.result().is_repeat) == (False, True)
    assert rig.content("a") == [b"x"]


def test_numbers_go_on_behind_the_streams_when_the_last_one_is_lost(rig: StagingRig) -> None:
    for batch in range(3):
        rig.commit(rig.staged("a", b"%d" % batch, batch=batch), batch=batch)
    rig.settle()
    store = rig.broker.store_rig
    table = names.commits_table("/")
    store.do(store.store.remove_keys, table, [TableEntry(b"n", b""), TableEntry(b"squery", b"")])
    rig.restart()

    assert rig.commit(rig.staged("b", b"x")).number == 1
    assert rig.commit(rig.staged("a", b"3", batch=3), batch=3).number == 4

    assert rig.content("a") == [b"0", b"1", b"2", b"3"]


def test_a_save_without_a_sink_leaves_no_row(rig: StagingRig) -> None:
    for number in (1, 2):
        committed = rig.commit(rig.staged("a", b"x", sink=""), sink="")
        assert (committed.number, committed.is_repeat) == (number, False)

    rig.settle()
    assert rig.rows() == {b"n": 1}
    assert rig.content("a") == [b"x", b"x"]
    assert rig.commits.state_of(USER, "") == (-1, 0)


def test_live_publishers_and_commits_share_a_stream(rig: StagingRig) -> None:
    sink, number = Sink(), rig.staged("a", b"1", b"2")
    log = rig.broker.log("a")

    put(log, [b"before"], sink=sink)
    committing = rig.start(rig.commits.commit(USER, SINK, 0, [number], anything))
    put(log, [b"after"], sink=sink, first_id=2)
    rig.broker.loop.run_until(lambda: committing.is_settled and log.is_idle)

    assert sorted(rig.content("a")) == [b"1", b"2", b"after", b"before"]
    assert sink.confirmed == [1, 2]


def test_a_line_tells_of_each_commit(rig: StagingRig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    number = rig.staged("a", b"1", b"2", batch=7)
    size = rig.commits.stages.bytes_of(USER)

    rig.commit(number, batch=7)

    assert (
        "commit done virtual_host=/ sink='query' batch=7 number=1 streams=1 dropped=0 "
        f"records=2 bytes={size}" in caplog.text
    )


def test_numbers_go_on_after_a_restart(rig: StagingRig) -> None:
    rig.commit(rig.staged("a", b"1"))

    rig.restart()

    assert rig.commits.state_of(USER, SINK) == (0, 1)
    assert rig.commit(rig.staged("a", b"1")).is_repeat
    assert rig.commit(rig.staged("a", b"2", batch=1), batch=1).number == 2
    assert rig.content("a") == [b"1", b"2"]


# What is refused


def test_a_stage_of_another_user_is_refused(rig: StagingRig) -> None:
    number = rig.staged("a", b"x", user="other")

    assert _refused(rig, AccessRefused, number) == f"stage {number} is of another user"


def test_a_stage_that_is_named_twice_is_refused(rig: StagingRig) -> None:
    number = rig.staged("a", b"x")

    assert _refused(rig, PreconditionFailed, number, number) == f"stage {number} is named twice"


@pytest.mark.parametrize("more", [{"sink": "another"}, {"batch": 1}])
def test_a_stage_of_another_sink_or_batch_is_refused(rig: StagingRig, more: dict[str, Any]) -> None:
    number = rig.staged("a", b"x", **more)

    assert _refused(rig, PreconditionFailed, number).startswith(f"stage {number} is for batch ")


def test_a_stage_that_is_not_closed_is_refused(rig: StagingRig) -> None:
    assert _refused(rig, PreconditionFailed, number := rig.open()).startswith(f"stage {number} is")


def test_an_unknown_stage_is_refused(rig: StagingRig) -> None:
    assert _refused(rig, PreconditionFailed, 7).startswith("stage 7 is unknown")


def test_more_stages_than_a_commit_may_have_are_refused(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "COMMIT_STAGES_MAX", 2)
    numbers = [rig.staged("a", b"x") for _ in range(3)]

    assert _refused(rig, PreconditionFailed, *numbers) == "3 stages, and a commit may have 2"
    rig.commit(*numbers[:2])


def test_a_commit_whose_rows_are_too_large_is_refused(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits_module, "TABLE_BATCH_BYTES_MAX", 100)

    line = _refused(rig, PreconditionFailed, rig.staged("a", b"x"))

    assert line.startswith("batch 0 of sink 'query' names too many streams")


def test_a_stream_that_was_deleted_meanwhile_is_named(rig: StagingRig) -> None:
    number = rig.staged("a", b"x")
    rig.run(rig.broker.streams.delete("a", lambda _: None))
    assert _refused(rig, StreamDoesNotExist, number) == "a"
    rig.run(rig.broker.streams.create("a", {}))

    assert _refused(rig, StreamDoesNotExist, number) == "a"


def test_a_right_that_was_lost_while_the_commit_waited_is_named(rig: StagingRig) -> None:
    asked: list[str] = []

    def check(stream: str) -> None:
        asked.append(stream)
        if len(asked) == 2:
            raise AccessRefused(f"no write on {stream!r}")

    line = _refused(rig, AccessRefused, rig.staged("a", b"x"), check=check)

    assert (line, asked) == ("no write on 'a'", ["a", "a"])


def test_a_stream_that_can_only_be_read_is_named(rig: StagingRig) -> None:
    rig.broker.log("a").read_only = SegmentFailed("it is damaged")

    assert _refused(rig, StreamNotAvailable, rig.staged("a", b"x")) == "a"


def test_a_sink_of_another_user_is_refused(rig: StagingRig) -> None:
    rig.commit(rig.staged("a", b"x"))

    for coroutine in (
        rig.commits.commit("other", SINK, 1, [], anything),
        rig.commits.commit("other", SINK, 0, [], anything),
    ):
        assert rig.refused(AccessRefused, coroutine) == (
            "sink 'query' is of user 'guest': take another name, or have an administrator free "
            "this one by `hutch ctl forget_sink`"
        )
    with pytest.raises(AccessRefused):
        rig.commits.state_of("other", SINK)


# Faults of the store


def _failing(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, table: str, error: StoreError
) -> list[bool]:
    """Let updates of a table fail while the list that is returned says so."""
    fails = [True]

    def update(real: Callable[..., None], name: str, *rest: object, **more: object) -> None:
        if fails[0] and name == table:
            rig.broker.loop.call_soon(more["done"], error)  # type: ignore[arg-type]
        else:
            real(name, *rest, **more)

    wrap_operation(monkeypatch, rig.broker.store_rig.store, "update_table", update)
    return fails


def test_a_full_disk_refuses_the_commit_which_can_be_tried_again(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = rig.staged("a", b"x")
    fails = _failing(rig, monkeypatch, names.commits_table("/"), DiskFull("no space"))

    line = _refused(rig, InternalError, number)
    fails[0] = False

    assert line == "batch 0 of sink 'query' for streams 'a' is not committed: no space"
    assert rig.commit(number).number == 1
    assert rig.content("a") == [b"x"]


def test_stages_stay_when_it_is_not_known_whether_the_commit_is_stored(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = rig.staged("a", b"x")
    _failing(rig, monkeypatch, names.commits_table("/"), SegmentFailed("sync failed"))

    _refused(rig, InternalError, number)
    rig.run(rig.commits.stages.discard(rig.commits.stages.own(USER, [number])))

    assert rig.rows() == {b"t": 1}


class Entrance:
    """The appending of units, which fails for one stream while it is said to."""

    def __init__(self, rig: StagingRig, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self.error: Exception | None = error
        self.tries = 0
        self.fails = 1_000_000
        self.pauses: list[Pending[None]] = []
        monkeypatch.setattr(appending, "append_unit", self._append)
        monkeypatch.setattr(rig.commits._finishing._order, "_wait", self._wait)

    async def _append(self, store: Any, log: StreamLog, *rest: Any, mark: int) -> object:  # noqa: ANN401 - those of `append_unit`
        if log.stream == "a":
            self.tries += 1
            if self.error is not None and self.tries <= self.fails:
                raise self.error
        return await append_unit(store, log, *rest, mark=mark)

    def _wait(self, delay_ms: int) -> Pending[None]:
        assert delay_ms == 100 << len(self.pauses)
        self.pauses.append(Pending())
        return self.pauses[-1]


def test_a_part_that_cannot_be_written_waits_and_later_ones_wait_behind_it(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    entrance = Entrance(rig, monkeypatch, DiskFull("no space"))
    first, second = rig.staged("a", b"1"), rig.staged("a", b"2", batch=1)

    committed = rig.commit(first, rig.staged("b", b"3"))
    behind = rig.commit(second, batch=1)

    assert (committed.number, committed.waiting) == (1, ("a",))
    assert (behind.number, behind.waiting) == (2, ("a",))
    assert rig.content("b") == [b"3"]
    assert rig.commit(batch=1).waiting == ("a",)  # the answer to a repeat says it too
    rig.run(rig.commits.look())
    assert rig.commits.under_way == [1, 2]
    entrance.pauses[0].settle(None)
    entrance.error = None
    entrance.pauses[1].settle(None)
    rig.settle()
    assert rig.content("a") == [b"1", b"2"]
    assert rig.rows() == {b"n": 1, b"s": 1}


def test_what_waited_enters_at_the_next_start(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    Entrance(rig, monkeypatch, DiskFull("no space"))
    stages_ = rig.staged("a", b"1"), rig.staged("b", b"2")
    rig.commit(*stages_)
    rig.run(rig.commits.stages.discard(rig.commits.stages.own(USER, stages_)))
    rig.broker.now_ms += 10**12
    rig.run(rig.commits.look())  # a stage of a commit never expires
    monkeypatch.undo()

    rig.restart()
    rig.settle()

    assert (rig.content("a"), rig.content("b")) == ([b"1"], [b"2"])
    assert rig.rows() == {b"n": 1, b"s": 1}


def test_a_log_that_fails_once_is_tried_again_at_once(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    entrance = Entrance(rig, monkeypatch, SegmentFailed("once"))
    entrance.fails = 1

    assert rig.commit(rig.staged("a", b"1")).waiting == ()

    assert rig.content("a") == [b"1"]
    assert not entrance.pauses


def test_the_part_of_a_stream_that_was_deleted_is_dropped_and_named(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entrance = Entrance(rig, monkeypatch, DiskFull("no space"))
    assert rig.commit(rig.staged("a", b"1"), rig.staged("b", b"2")).waiting == ("a",)

    rig.run(rig.broker.streams.delete("a", lambda _: None))
    rig.run(rig.broker.streams.create("a", {}))
    again = rig.start(rig.commits.commit(USER, SINK, 0, [], anything))
    entrance.pauses[0].settle(None)
    rig.settle()

    assert again.result().waiting == ("a",)  # as it was then
    assert "part of a commit is dropped, its stream was deleted stream=a" in caplog.text
    assert (rig.content("a"), rig.content("b")) == ([], [b"2"])
    assert rig.rows() == {b"n": 1, b"s": 1}


def test_a_stream_that_is_deleted_while_its_part_enters_is_named_in_the_answer(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def append(_store: Any, log: StreamLog, *_: Any, mark: int) -> object:  # noqa: ANN401 - those of `append_unit`
        del mark
        await rig.broker.streams.delete(str.__str__(log.stream).split()[0], lambda _: None)
        raise SegmentFailed("its segment is gone")

    monkeypatch.setattr(appending, "append_unit", append)

    committed = rig.commit(rig.staged("a", b"1"))

    assert (committed.dropped, committed.waiting) == (("a",), ())


def test_a_part_whose_stage_has_lost_bytes_is_dropped_with_an_error(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    number = rig.staged("a", b"x" * 50)
    rig.broker.store_rig.do(
        rig.broker.store_rig.store.delete_segment, names.stage_segment("/", number)
    )

    committed = rig.commit(number, rig.staged("b", b"2"))

    assert committed.dropped == ("a",)
    assert "part of a commit is lost stream=a" in caplog.text
    assert rig.content("b") == [b"2"]
    rig.settle()


# Ends


def test_a_virtual_host_that_is_deleted_leaves_nothing(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    number = rig.staged("a", b"x" * 50)
    rig.commit(rig.staged("b", b"x", batch=1), batch=1)

    rig.run(rig.broker.virtual_hosts.delete("/"))

    assert not rig.has_segment(number)
    with pytest.raises(NoSuchSegment):
        rig.broker.store_rig.do(rig.broker.store_rig.store.table_info, names.commits_table("/"))


def test_no_commit_is_taken_after_the_end(rig: StagingRig) -> None:
    number = rig.staged("a")
    rig.run(rig.commits.close())

    coroutine = rig.commits.commit(USER, SINK, 0, [number], anything)
    assert "takes no more commits" in rig.refused(InternalError, coroutine)
