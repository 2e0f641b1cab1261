"""`hutch pipeline …` in the session of all tests, against its server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway import cli
from pyspark_hutch.jobs import commands
from tests.spark.conftest import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
Run = Callable[..., int]


def json_bodies(count: int) -> list[bytes]:
    """Bodies of JSON: a number and one of three users."""
    return [b'{"n":%d,"user":"u%d"}' % (number, number % 3) for number in range(count)]


@pytest.fixture
def run(spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `hutch pipeline …` in the session of all tests, against its server."""

    @contextmanager
    def session(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(commands, "_session", session)

    def command(job: str, *arguments: object) -> int:
        reads, writes = job != "from-files", job in ("copy", "from-files")
        given = [job, *map(str, arguments)]
        endpoints = place.options["endpoints"]
        if reads:
            given += ["--endpoints", endpoints, "--option", "advertised=ignore"]
        if writes:
            given += ["--to-endpoints", endpoints, "--to-option", "advertised=ignore"]
        return cli.main(["pipeline", *given])

    return command
