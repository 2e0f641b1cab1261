import threading
import time
from collections.abc import Callable, Iterator

import pytest

from hutch.client.errors import BadAnswer, ClientError, Refused
from hutch.stream import pipeline as p
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from pyspark_hutch.encoding.errors import MessageTooLarge
from pyspark_hutch.sink import stages as stages_module
from tests.fake_server import OK, Talk
from tests.sink_rig import bodies_of
from tests.stage_rig import PURPOSE, FakeStages, Stager
from tests.waiting import HANG_S


@pytest.fixture
def server() -> Iterator[FakeStages]:
    with FakeStages("a", "b") as fake:
        yield fake


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let frames be small, and none be kept that the server has stored."""
    monkeypatch.setattr(stages_module, "FRAME_BYTES", 200)
    monkeypatch.setattr(stages_module, "KEPT_BYTES_MAX", 0)


def test_rows_lie_in_closed_stages_which_no_reader_sees(server: FakeStages) -> None:
    stager = Stager(server)
    stager.add("a", bodies_of(1_000))
    stager.add("b", bodies_of(10))

    found = stager.write("a", bodies_of(1_000, first=1_000))

    assert [(one.stream, one.rows) for one in found] == [("a", 2_000), ("b", 10)]
    assert server.staged("a") == bodies_of(2_000)
    assert server.staged("b") == bodies_of(10)
    assert server.shown == {"a": [], "b": []}
    assert {one.opened for one in server.stages.values()} == {
        p.OpenStage(*PURPOSE, "a"),
        p.OpenStage(*PURPOSE, "b"),
    }
    assert [one.stage for one in found] == sorted(server.stages)


def test_a_task_without_rows_opens_no_stage(server: FakeStages) -> None:
    assert Stager(server).staging.finish() == ()
    assert not server.talks


def test_sub_batches_count_as_entries_and_their_rows_as_records(server: FakeStages) -> None:
    found = Stager(server, compression="gzip", sub_batch_size=7).write("a", bodies_of(100))

    assert found[0].rows == 100
    assert server.staged("a") == bodies_of(100)


@pytest.mark.usefixtures("small")
def test_the_number_of_unanswered_frames_is_bounded(server: FakeStages) -> None:
    server.is_answering = False
    stager = Stager(server)
    work = threading.Thread(target=stager.write, args=("a", bodies_of(2_000)))
    work.start()
    deadline = time.monotonic() + HANG_S
    while len(server.withheld) < stages_module.UNANSWERED_MAX:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    time.sleep(0.1)
    assert len(server.withheld) == stages_module.UNANSWERED_MAX
    server.release()
    work.join(HANG_S)

    assert server.staged("a") == bodies_of(2_000)


def test_frames_are_as_large_as_the_server_takes(server: FakeStages) -> None:
    stager = Stager(server)
    largest = (1 << 20) - 30 - 4

    stager.add("a", [bytes(largest)])
    with pytest.raises(MessageTooLarge):
        stager.add("a", [bytes(largest + 1)])
    stager.staging.abort()


@pytest.mark.parametrize("sub_batch_size", [1, 7])
def test_frames_have_as_many_rows_as_the_setting_allows(
    server: FakeStages, sub_batch_size: int
) -> None:
    compression = "none" if sub_batch_size == 1 else "gzip"
    stager = Stager(
        server, compression=compression, sub_batch_size=sub_batch_size, frame_rows_max=14
    )

    stager.write("a", bodies_of(60))

    (stage,) = server.stages.values()
    assert [len(rows) for _, rows in sorted(stage.frames.items())] == [14, 14, 14, 14, 4]


@pytest.mark.parametrize("lose", [FakeStages.cut, FakeStages.forget_open])
def test_a_small_task_begins_its_stages_anew_after_a_lost_connection(
    server: FakeStages, lose: Callable[[FakeStages], None]
) -> None:
    stager = Stager(server)
    stager.add("a", bodies_of(500))
    stager.add("b", bodies_of(5))
    stager.staging._await_all()
    before = sorted(server.stages)

    lose(server)
    found = stager.write("a", bodies_of(500, first=500))

    assert server.staged("a") == bodies_of(1_000)
    assert server.staged("b") == bodies_of(5)
    assert server.discarded == before
    assert sorted(server.stages) == sorted(one.stage for one in found)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_large_task_goes_on_with_its_stage(server: FakeStages, *, is_taken: bool) -> None:
    take, calls = server.handlers["stage"], 0

    def staging(talk: Talk, asked: Decoded) -> None:
        nonlocal calls
        calls += 1
        if calls in {30, 50}:
            if is_taken:
                talk.reply = lambda *_: None  # type: ignore[method-assign]
                take(talk, asked)
            server.cut()
        else:
            take(talk, asked)

    server.handlers["stage"] = staging
    stager = Stager(server)
    for first in range(0, 1_000, 100):
        stager.add("a", bodies_of(100, first=first))

    found = stager.staging.finish()

    assert calls > 50
    assert server.staged("a") == bodies_of(1_000)
    assert server.count("open_stage") == 1
    assert found[0].rows == 1_000


@pytest.mark.usefixtures("small")
def test_a_large_task_whose_stage_is_lost_fails_and_says_which(server: FakeStages) -> None:
    stager = Stager(server)
    stager.add("a", bodies_of(500))
    stager.staging._await_all()
    server.forget_open()

    with pytest.raises(Refused, match=r"^stream 'a' cannot be published to: .*stage \d+ is not"):
        stager.write("a", bodies_of(500))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("lag", [0, 1, 5])
def test_a_large_task_outlives_a_server_that_loses_what_it_has_not_stored(
    server: FakeStages, lag: int
) -> None:
    server.stored = lambda count: max(0, count - lag)
    stager = Stager(server)
    for first in range(0, 1_000, 100):
        stager.add("a", bodies_of(100, first=first))
        if first in {300, 600}:
            server.restart()

    found = stager.staging.finish()

    assert server.staged("a") == bodies_of(1_000)
    assert found[0].rows == 1_000
    assert server.count("open_stage") == 1


def test_frames_that_were_stored_after_their_answer_are_asked_for_and_dropped(
    server: FakeStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "KEPT_BYTES_MAX", 4_000)
    is_stored = [False]
    server.stored = lambda count: count if is_stored[0] else 0
    stager = Stager(server, frame_rows_max=10)
    stager.add("b", [b"x" * 50] * 70)
    stager.staging._await_all()
    assert len(stager.staging._stages["b"].kept) == 7
    is_stored[0] = True

    stager.add("a", bodies_of(40))

    assert stager.staging._stages["b"].kept == []
    assert server.count("stage") > 7 + 4


def test_what_the_server_has_in_memory_is_kept_without_asking_each_time(
    server: FakeStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "KEPT_BYTES_MAX", 100)
    server.stored = lambda _: 0
    stager = Stager(server, frame_rows_max=1)
    stager.add("a", bodies_of(500))
    frames = len(stager.staging._stages["a"].kept)
    server.restart()

    stager.staging.finish()

    assert frames == 500
    assert server.staged("a") == bodies_of(500)
    assert server.count("stage") < 2 * 500 + 20


def test_a_connection_that_is_lost_while_stages_are_closed_is_made_again(
    server: FakeStages,
) -> None:
    close = server.handlers["close_stage"]
    calls = 0

    def closing(talk: Talk, asked: Decoded) -> None:
        nonlocal calls
        calls += 1
        if calls in {1, 3}:
            server.cut()
        else:
            close(talk, asked)

    server.handlers["close_stage"] = closing
    stager = Stager(server)
    stager.add("b", bodies_of(5))

    found = stager.write("a", bodies_of(50))

    assert [(one.stream, one.rows) for one in found] == [("b", 5), ("a", 50)]
    assert server.staged("a") == bodies_of(50)
    assert server.staged("b") == bodies_of(5)


@pytest.mark.parametrize("command", ["open_stage", "stage", "close_stage"])
def test_a_refusal_is_told_with_the_servers_reason(server: FakeStages, command: str) -> None:
    server.refusals[command] = (ResponseCode.ACCESS_REFUSED, "user 'u' may not")

    with pytest.raises(Refused) as failure:
        Stager(server).write("a", bodies_of(1))

    assert str(failure.value) == (
        "stream 'a' cannot be published to: it may not be used by this user (access refused): "
        "user 'u' may not"
    )


def test_a_failed_task_discards_its_stages(server: FakeStages) -> None:
    server.refusals["close_stage"] = (ResponseCode.PRECONDITION_FAILED, "no")
    stager = Stager(server)
    stager.add("b", bodies_of(1))

    with pytest.raises(Refused):
        stager.write("a", bodies_of(1))

    assert server.stages == {}
    assert len(server.discarded) == 2


def test_a_failed_task_without_a_server_just_ends(server: FakeStages) -> None:
    stager = Stager(server)
    stager.add("a", bodies_of(1))
    server.go()

    stager.staging.abort()

    assert server.discarded == []


def test_a_server_that_has_other_rows_than_were_staged_is_not_believed(
    server: FakeStages,
) -> None:
    server.handlers["close_stage"] = lambda talk, asked: talk.reply(
        asked, p.StageClosed(OK, None, 9, 9)
    )

    with pytest.raises(BadAnswer, match="10 rows were staged, and the server has 9 of them"):
        Stager(server).write("a", bodies_of(10))


def test_a_server_that_stays_away_is_told_in_one_line(server: FakeStages) -> None:
    stager = Stager(server, planner_retries=2)
    stager.add("a", bodies_of(7))
    server.go()

    with pytest.raises(ClientError, match=r"; the task's 14 rows were not staged$"):
        stager.write("a", bodies_of(7))


@pytest.mark.parametrize("command", ["stage", "close_stage"])
def test_a_server_that_never_gets_on_is_told_in_one_line(server: FakeStages, command: str) -> None:
    server.handlers[command] = lambda _talk, _asked: server.cut()

    with pytest.raises(ClientError, match=r"; the task's 7 rows were not staged$"):
        Stager(server, planner_retries=2).write("a", bodies_of(7))

    assert server.count("open_stage") == 3


def test_a_server_that_answers_nothing_is_told_in_one_line(server: FakeStages) -> None:
    server.handlers["close_stage"] = lambda _talk, _asked: None

    with pytest.raises(ClientError, match=r"answer.*; the task's 7 rows were not staged$"):
        Stager(server, timeout_ms=100, planner_retries=1).write("a", bodies_of(7))
