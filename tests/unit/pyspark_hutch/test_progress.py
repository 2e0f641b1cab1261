from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import pyspark_hutch
from pyspark_hutch.offsets.position import StreamPlace
from pyspark_hutch.progress import QueryBacklog, lag, left_out
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import NAME, settings_of

END = '{"a": {"o": 10}, "b": {"i": "7f3a", "o": 5}}'
LATEST = '{"a": {"o": 25}, "b": {"o": 5}, "c": {"o": 3}}'
EXPECTED = {"a": 15, "b": 0, "c": 3}


@pytest.mark.parametrize(
    "progress",
    [
        {"sources": [{"endOffset": END, "latestOffset": LATEST}]},
        {"sources": [{"endOffset": json.loads(END), "latestOffset": json.loads(LATEST)}]},
        SimpleNamespace(sources=[SimpleNamespace(endOffset=END, latestOffset=LATEST)]),
        json.dumps(
            {"sources": [{"endOffset": json.loads(END), "latestOffset": json.loads(LATEST)}]}
        ),
    ],
    ids=["texts", "documents", "objects", "json"],
)
def test_lag_is_what_each_stream_holds_beyond_the_end_of_the_batch(progress: object) -> None:
    assert lag(progress) == EXPECTED


@pytest.mark.parametrize(
    "progress",
    [
        None,
        {},
        {"sources": []},
        {"sources": [{"endOffset": "7", "latestOffset": None}]},
        {"sources": [{"endOffset": "x", "latestOffset": "not JSON"}]},
        {"sources": [{"endOffset": '{"topic": {"0": 7}}', "latestOffset": '{"topic": {"0": 9}}'}]},
    ],
)
def test_before_the_first_batch_and_for_other_sources_there_is_no_lag(progress: object) -> None:
    assert lag(progress) == {}


def test_lag_is_never_less_than_nothing() -> None:
    source = {"endOffset": '{"a": {"o": 10}}', "latestOffset": '{"a": {"o": 4}}'}
    assert lag({"sources": [source]}) == {"a": 0}


@pytest.mark.parametrize("latest", [None, "null", {}, '{"other": {"o": 7}}'])
def test_the_lag_of_a_stream_whose_end_is_not_told_is_not_known(latest: object) -> None:
    source = {"endOffset": END, "latestOffset": latest}
    found = lag({"sources": [source]})
    assert {name: found[name] for name in ("a", "b")} == {"a": None, "b": None}


def test_what_one_of_two_sources_does_not_know_is_not_known_of_both() -> None:
    known = {"endOffset": END, "latestOffset": LATEST}
    unknown = {"endOffset": END, "latestOffset": None}
    for sources in ([known, unknown], [unknown, known]):
        assert lag({"sources": sources}) == {"a": None, "b": None, "c": 3}


def test_an_end_that_a_server_has_told_counts_where_the_progress_has_none() -> None:
    told = {"a": StreamPlace(30), "b": StreamPlace(9), "c": StreamPlace(9)}
    assert lag({"sources": [{"endOffset": END, "latestOffset": None}]}, told) == {"a": 20, "b": 4}
    assert lag({"sources": [{"endOffset": END, "latestOffset": LATEST}]}, told) == EXPECTED


def test_all_rows_of_a_stream_that_was_made_again_are_before_the_query() -> None:
    source = {
        "endOffset": '{"a": {"i": "1", "o": 10}}',
        "latestOffset": '{"a": {"i": "2", "o": 4}}',
    }
    assert lag({"sources": [source]}) == {"a": 4}


def batch(start: object, end: object, rows: int) -> dict[str, object]:
    return {"startOffset": start, "endOffset": end, "numInputRows": rows}


START = '{"a": {"o": 4}, "b": {"i": "7f3a", "o": 5}}'


@pytest.mark.parametrize(
    "progress",
    [
        {"sources": [batch(START, END, 4)]},
        {"sources": [batch(json.loads(START), json.loads(END), 4)]},
        SimpleNamespace(sources=[SimpleNamespace(**batch(START, END, 4))]),
        json.dumps({"sources": [batch(json.loads(START), json.loads(END), 4)]}),
        {"sources": [batch(START, END, 6), batch(START, END, 4)]},
        {"sources": [batch('{"a": {"o": 9}}', '{"a": {"o": 10}, "new": {"o": 3}}', 2)]},
    ],
    ids=["texts", "documents", "objects", "json", "two sources", "a new partition"],
)
def test_offsets_without_a_row_are_those_passed_less_the_rows(progress: object) -> None:
    assert left_out(progress) == 2


@pytest.mark.parametrize(
    "progress",
    [
        None,
        {},
        {"sources": []},
        {"sources": [batch(None, END, 0)]},
        {"sources": [batch(START, END, 6)]},
        {"sources": [batch(START, END, 12)]},
        {"sources": [batch(END, START, 0)]},
        {"sources": [batch("3", "7", 1)]},
        {"sources": [batch('{"topic": {"0": 7}}', '{"topic": {"0": 9}}', 1)]},
    ],
)
def test_nothing_is_left_out_before_the_first_batch_nor_where_all_are_read(
    progress: object,
) -> None:
    assert left_out(progress) == 0


def test_the_package_gives_its_names_when_they_are_asked_for() -> None:
    assert pyspark_hutch.lag is lag
    assert pyspark_hutch.left_out is left_out
    with pytest.raises(AttributeError, match="'pyspark_hutch' has no attribute 'lagg'"):
        _ = pyspark_hutch.lagg


ENDS = {"a": {"o": 10}, "b": {"o": 20}}


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {"a": chunks(*[10] * 10), "b": chunks(*[10] * 2)}
        yield fake


def progress(latest: object) -> dict[str, object]:
    """Return a progress as Spark gives it, its positions as texts."""
    told = None if latest is None else json.dumps(latest)
    return {"sources": [{"endOffset": json.dumps(ENDS), "latestOffset": told}]}


def test_a_server_tells_what_the_progress_of_a_batch_that_is_run_again_does_not(
    server: FakeServer,
) -> None:
    backlog = QueryBacklog(settings_of(server), NAME)
    assert backlog.behind(progress(None)) == {"a": 90, "b": 0}


def test_a_stream_that_is_gone_is_not_known(server: FakeServer) -> None:
    del server.streams["b"]
    assert QueryBacklog(settings_of(server), NAME).behind(progress(None)) == {"a": 90, "b": None}


def test_no_server_is_asked_what_the_progress_tells(server: FakeServer) -> None:
    backlog = QueryBacklog(settings_of(server), NAME)
    server.handlers["stream_stats"] = lambda *_: pytest.fail("the server was asked")
    assert backlog.behind(progress({"a": {"o": 15}, "b": {"o": 20}})) == {"a": 5, "b": 0}
    assert backlog.behind(None) == {}


def test_without_an_answer_nothing_is_said_to_wait_nor_not_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with FakeServer() as stopped:
        settings = settings_of(stopped)
    assert QueryBacklog(settings, NAME).behind(progress(None)) == {"a": None, "b": None}
    assert "the rows that wait are not known" in caplog.text
