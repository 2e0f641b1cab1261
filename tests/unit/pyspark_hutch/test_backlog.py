"""The rows that wait, asked of a server where a progress does not tell them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pyspark_hutch.backlog import Backlog
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import NAME, settings_of

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
    backlog = Backlog(settings_of(server), NAME)
    assert backlog.behind(progress(None)) == {"a": 90, "b": 0}


def test_a_stream_that_is_gone_is_not_known(server: FakeServer) -> None:
    del server.streams["b"]
    assert Backlog(settings_of(server), NAME).behind(progress(None)) == {"a": 90, "b": None}


def test_no_server_is_asked_what_the_progress_tells(server: FakeServer) -> None:
    backlog = Backlog(settings_of(server), NAME)
    server.handlers["stream_stats"] = lambda *_: pytest.fail("the server was asked")
    assert backlog.behind(progress({"a": {"o": 15}, "b": {"o": 20}})) == {"a": 5, "b": 0}
    assert backlog.behind(None) == {}


def test_without_an_answer_nothing_is_said_to_wait_nor_not_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with FakeServer() as stopped:
        settings = settings_of(stopped)
    assert Backlog(settings, NAME).behind(progress(None)) == {"a": None, "b": None}
    assert "the rows that wait are not known" in caplog.text
