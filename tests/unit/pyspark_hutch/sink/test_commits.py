import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hutch.client.errors import ClientError, Refused, ServerGone
from hutch.stream import pipeline as p
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.pipeline import StagesCommitted
from pyspark_hutch.sink.commits import Staged, commit, discard, purpose_of, tell
from pyspark_hutch.sink.stage import StagedRows
from pyspark_hutch.sink.stages import Purpose
from tests.fake_server import OK, Talk
from tests.reading_rig import cluster_of
from tests.sink_rig import batch_of, bodies_of, settings_for
from tests.stage_rig import PURPOSE, FakeStages, stage

TIMEOUT_MS = 5_000
DONE = StagesCommitted(OK, None, 7, is_repeat=False, dropped=(), waiting=())


@pytest.fixture
def server() -> Iterator[FakeStages]:
    with FakeStages("a", "b") as fake:
        yield fake


def staged_by(server: FakeStages, partition: int, purpose: Purpose = PURPOSE) -> Staged:
    """Stage ten rows for each of two streams."""
    names = ["b" if number % 2 else "a" for number in range(20)]
    rows = batch_of(bodies_of(20, first=20 * partition), stream=names)
    return stage(settings_for(server), [rows], purpose=purpose, partition=partition)


def test_a_commit_shows_all_rows_in_the_order_of_their_tasks(server: FakeStages) -> None:
    late, early = staged_by(server, 1), staged_by(server, 0)
    assert server.shown == {"a": [], "b": []}

    found = commit(cluster_of(server), PURPOSE, [late, early], TIMEOUT_MS)

    assert (found.number, found.is_repeat) == (1, False)
    assert server.shown == {"a": bodies_of(40)[::2], "b": bodies_of(40)[1::2]}
    order = tuple(part.stage for one in (early, late) for part in one.stages)
    assert server.commits == [p.CommitStages(*PURPOSE, order)]


def test_a_repeated_batch_publishes_nothing(server: FakeStages) -> None:
    for is_repeat in (False, True):
        found = commit(cluster_of(server), PURPOSE, [staged_by(server, 0)], TIMEOUT_MS)
        assert (found.number, found.is_repeat) == (1, is_repeat)

    assert server.shown == {"a": bodies_of(20)[::2], "b": bodies_of(20)[1::2]}


def lose_first_answer(server: FakeStages) -> None:
    """Let the server commit, and go before it says so."""

    def committing(talk: Talk, asked: Decoded) -> None:
        server.handlers["commit_stages"] = server.commit
        talk.reply = lambda *_: server.cut()  # type: ignore[method-assign]
        server.commit(talk, asked)

    server.handlers["commit_stages"] = committing


def test_a_commit_whose_answer_is_lost_is_asked_for_again(server: FakeStages) -> None:
    lose_first_answer(server)

    found = commit(cluster_of(server), PURPOSE, [staged_by(server, 0)], TIMEOUT_MS)

    assert found.is_repeat
    assert len(server.commits) == 1
    assert server.shown["a"] == bodies_of(20)[::2]


def test_a_save_without_a_number_whose_answer_is_lost_may_have_been_done(
    server: FakeStages,
) -> None:
    alone = Purpose("", 0)
    lose_first_answer(server)

    with pytest.raises(ClientError, match="the answer to an earlier try was lost, and the rows"):
        commit(cluster_of(server), alone, [staged_by(server, 0, alone)], TIMEOUT_MS)


def test_a_save_without_a_number_may_have_been_done_where_no_answer_ever_comes(
    server: FakeStages,
) -> None:
    alone = Purpose("", 0)
    rows = staged_by(server, 0, alone)
    server.handlers["commit_stages"] = lambda _talk, _asked: server.cut()

    with pytest.raises(ClientError, match="the answer to an earlier try was lost, and the rows"):
        commit(cluster_of(server, planner_retries=1), alone, [rows], TIMEOUT_MS)


def test_a_save_without_a_number_was_not_done_where_it_was_never_asked_for(
    server: FakeStages,
) -> None:
    alone = Purpose("", 0)
    rows = staged_by(server, 0, alone)
    server.go()

    with pytest.raises(ServerGone):
        commit(cluster_of(server, planner_retries=1), alone, [rows], TIMEOUT_MS)


def test_a_save_without_a_number_waits_longer_for_its_commit(server: FakeStages) -> None:
    def late(talk: Talk, asked: Decoded) -> None:
        threading.Timer(0.3, server.commit, (talk, asked)).start()

    server.handlers["commit_stages"] = late
    alone = Purpose("", 0)

    assert not commit(cluster_of(server), alone, [staged_by(server, 0, alone)], 50).is_repeat


def test_a_refused_commit_gives_the_servers_reason_and_is_not_tried_again(
    server: FakeStages,
) -> None:
    server.refusals["commit_stages"] = (
        ResponseCode.ACCESS_REFUSED,
        "user 'u' may not write to stream 'a'",
    )

    with pytest.raises(Refused) as failure:
        commit(cluster_of(server), PURPOSE, [staged_by(server, 0)], TIMEOUT_MS)

    assert str(failure.value) == (
        "batch 3 of 'query' may not be used by this user (access refused): "
        "user 'u' may not write to stream 'a'"
    )
    assert server.count("commit_stages") == 1
    assert server.shown == {"a": [], "b": []}


def test_a_server_that_stays_away_ends_the_commit(server: FakeStages) -> None:
    rows = staged_by(server, 0)
    server.go()

    with pytest.raises(ServerGone):
        commit(cluster_of(server, planner_retries=1), PURPOSE, [rows], TIMEOUT_MS)


def test_tasks_of_a_batch_stage_for_one_commit() -> None:
    other = PURPOSE._replace(sink="other")

    assert purpose_of([Staged(PURPOSE, 0, ()), Staged(PURPOSE, 1, ())]) == PURPOSE
    assert purpose_of([]) is None
    with pytest.raises(ClientError, match="batch 3 of 'other' and batch 3 of 'query'; nothing is"):
        purpose_of([Staged(PURPOSE, 0, ()), Staged(other, 1, ())])


@pytest.mark.parametrize(
    ("committed", "said"),
    [
        (
            DONE,
            {"hutch: batch 3 of 'query': 5 rows, committed as number 7": logging.INFO},
        ),
        (
            replace(DONE, is_repeat=True),
            {
                "hutch: batch 3 of 'query' was committed before, as number 7; 5 rows that were "
                "staged again are left out": logging.WARNING
            },
        ),
        (
            replace(DONE, dropped=("a",), waiting=("b", "c")),
            {
                "hutch: batch 3 of 'query': 5 rows, committed as number 7": logging.INFO,
                "hutch: batch 3 of 'query': rows are dropped, since their streams were deleted "
                "meanwhile: a": logging.WARNING,
                "hutch: batch 3 of 'query': rows are committed and not visible yet, since their "
                "streams cannot be written now: b, c; the server's log says why": logging.WARNING,
            },
        ),
    ],
    ids=["done", "repeat", "in part"],
)
def test_a_commit_is_told_aloud_where_not_all_rows_are_published(
    caplog: pytest.LogCaptureFixture, committed: StagesCommitted, said: dict[str, int]
) -> None:
    staged = [Staged(PURPOSE, 0, (StagedRows("a", 1, 2, 9), StagedRows("b", 2, 3, 9)))]

    with caplog.at_level(logging.INFO):
        tell(PURPOSE, staged, committed)

    assert {record.message: record.levelno for record in caplog.records} == said


def test_a_save_whose_first_answer_was_lost_is_told_as_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        tell(Purpose("", 0), [], replace(DONE, is_repeat=True))

    assert caplog.messages == ["hutch: the save: 0 rows, committed as number 7"]


def test_discarded_stages_are_gone(server: FakeStages) -> None:
    rows = staged_by(server, 0)

    discard(cluster_of(server), [rows, Staged(PURPOSE, 1, ())], TIMEOUT_MS)

    assert server.stages == {}


def test_nothing_is_discarded_where_nothing_was_staged_or_the_server_is_away(
    server: FakeStages,
) -> None:
    discard(cluster_of(server), [Staged(PURPOSE, 1, ())], TIMEOUT_MS)
    assert not server.talks

    rows = staged_by(server, 0)
    server.go()
    discard(cluster_of(server), [rows], TIMEOUT_MS)
