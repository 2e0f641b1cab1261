"""A consumer of the official Java client, all by its defaults, over retention and truncation.

It is not among the scenarios of all clients: each library has defaults of its own, and RabbitMQ
forgets a stored offset some segments after the records at it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat.clients.programs import PROGRAMS, Unavailable
from compat.clients.running import RunningProgram
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer

# The first test may wait for the build of the program.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def stream() -> str:
    return f"kept-{os.urandom(4).hex()}"


@pytest.fixture
def hutch(tmp_path: Path) -> Iterator[HutchServer]:
    environment = {"HUTCH_STREAMS__RETENTION_INTERVAL_S": "1"}
    with HutchServer(tmp_path / "data", environment=environment) as server:
        yield server


@contextmanager
def java(host: str, port: int, folder: Path) -> Iterator[RunningProgram]:
    """Run the Java client's program against a server."""
    (program,) = (each for each in PROGRAMS if each.client == "java")
    try:
        command = program.command()
    except Unavailable as error:
        pytest.skip(str(error))
    given = [*command, "--host", host, "--port", str(port)]
    with RunningProgram(given, folder / "java.log") as running:
        yield running


def test_what_retention_has_kept_is_read_by_a_consumer_that_comes_back(
    hutch: HutchServer, stream: str, tmp_path: Path
) -> None:
    with java(hutch.host, hutch.port, tmp_path) as client:
        outcome = client.run("kept", stream)

    assert not outcome.error
    assert outcome.result == {
        "before": [0, 1, 2, 3, 4, 5],
        "all kept": True,
        "none missing": True,
        "last": 23,
    }


def test_a_consumer_that_has_read_all_keeps_its_place_when_all_is_truncated(
    hutch: HutchServer, stream: str, tmp_path: Path
) -> None:
    def truncate(_: str) -> None:
        ctl(hutch, "truncate_stream", stream, "--before-offset", "6")

    with java(hutch.host, hutch.port, tmp_path) as client:
        outcome = client.run("truncated", stream, on_wait=truncate)

    assert not outcome.error
    assert outcome.result == {"before": [0, 1, 2, 3, 4, 5], "after": [6, 7, 8, 9]}
