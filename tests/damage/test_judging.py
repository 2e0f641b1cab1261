"""The suite itself: what is right passes, and each kind of wrong answer is found."""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.damage.cases import build_all, listened, small_parts
from tests.damage.faults import Fault
from tests.damage.judging import Judge
from tests.damage.keeping import find_removed
from tests.damage.ledger import Built
from tests.damage.reading import Reading, read_all
from tests.damage.server import served

PLAIN = ("/", "plain")
CHUNKS = "rmq-.2f/_plain-"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Built]:
    return build_all(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def closed(built: Sequence[Built]) -> Built:
    return next(each for each in built if each.name == "closed")


@pytest.fixture(scope="module")
def reading(closed: Built, tmp_path_factory: pytest.TempPathFactory) -> Reading:
    return read(closed, tmp_path_factory.mktemp("read") / "data")


def read(built: Built, directory: Path) -> Reading:
    shutil.copytree(built.directory, directory)
    with small_parts(), served(directory) as running:
        return read_all(running.broker, random.Random(0))


def judged(
    built: Built, reading: Reading, touched: str = "", lines: Sequence[str] = ()
) -> list[str]:
    judge = Judge(built, [Fault("one", {touched})], built.directory)
    judge.judge(reading, lines)
    return judge.complaints


def file_of_plain(built: Built) -> str:
    (first, *_) = [
        name for name, segment in built.ledger.files.items() if segment.startswith(CHUNKS)
    ]
    return first


def without_a_record(reading: Reading) -> Reading:
    records = {**reading.records, PLAIN: reading.records[PLAIN][:-1]}
    return dataclasses.replace(reading, records=records, look_ups={})


def test_undamaged_directories_answer_everything_without_an_error(
    built: Sequence[Built], tmp_path: Path
) -> None:
    for each in built:
        directory = tmp_path / each.name
        shutil.copytree(each.directory, directory)
        judge = Judge(each, [], directory)
        with small_parts(), listened() as log, served(directory) as running:
            judge.judge(read_all(running.broker, random.Random(each.name)), log.lines)
            lines = [*log.lines]  # before it is left as it is
        assert judge.complaints == lines == []


def test_histories_hold_something_in_files_of_every_kind(built: Sequence[Built]) -> None:
    for each in built:
        journal = "spare journal" if each.name.endswith("closed") else "journal"
        tables = {f"table of {what}" for what in ("streams", "tracking", "users", "policies")}
        assert {"checkpoint", "chunks", "index", "filters", journal, *tables} <= set(each.kinds)
        assert sum(path.stat().st_size for path in each.directory.rglob("*")) < 4 << 20


WRONG: dict[str, Callable[[Reading], Reading]] = {
    "a body": lambda r: _with_chunk(r, lambda chunk: (chunk[0], chunk[1], [b"x", *chunk[2][1:]])),
    "an offset": lambda r: _with_chunk(r, lambda chunk: (chunk[0] + 64, *chunk[1:])),
    "a time": lambda r: _with_chunk(r, lambda chunk: (chunk[0], chunk[1] - 1, chunk[2])),
    "a stored offset": lambda r: _with_value(r, ("offset", *PLAIN, "reader"), 2089),
    "a publishing id": lambda r: _with_value(r, ("sequence", *PLAIN, "p"), 263_203),
    "a right": lambda r: _with_value(r, ("permission", "anna", "/"), b"{}"),
}


def _with_chunk(
    reading: Reading,
    change: Callable[[tuple[int, int, list[bytes]]], tuple[int, int, list[bytes]]],
) -> Reading:
    first, *rest = reading.records[PLAIN]
    records = {**reading.records, PLAIN: [change(first), *rest]}
    return dataclasses.replace(reading, records=records, look_ups={})


def _with_value(reading: Reading, key: tuple[str, ...], value: object) -> Reading:
    assert key in reading.values
    return dataclasses.replace(reading, values={**reading.values, key: value})


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_found_whatever_the_log_says(
    closed: Built, reading: Reading, what: str
) -> None:
    lines = [f"all is lost segment={each}" for each in closed.ledger.files.values()]

    assert judged(closed, WRONG[what](reading), "checkpoint", lines)


def test_what_is_missing_needs_a_fault_that_touched_it_and_a_line(
    closed: Built, reading: Reading
) -> None:
    lost, file = without_a_record(reading), file_of_plain(closed)
    line = f"damaged chunk is not delivered stream=plain virtual_host=/ file={file}"

    assert "no fault touched it" in judged(closed, lost, "data/0", [line])[0]
    assert "no line says so" in judged(closed, lost, file, ["something else"])[0]
    assert judged(closed, lost, file, [line]) == []


def test_bytes_that_are_nowhere_are_found(closed: Built, tmp_path: Path) -> None:
    damaged, directory = tmp_path / "damaged", tmp_path / "data"
    file = file_of_plain(closed)
    for copy in (damaged, directory):
        shutil.copytree(closed.directory, copy)
    (damaged / file).write_bytes(b"damaged" * 100)
    (directory / file).unlink()

    def removed(lost_from: int | None = None) -> list[str]:
        return list(
            find_removed(
                closed,
                damaged,
                directory,
                [Fault("", {file})],
                [],
                lost_from=lost_from,
                is_refused=False,
            )
        )

    begun = closed.ledger.file_steps[file]
    nowhere = [f"the bytes of {file} (chunks) are nowhere"]
    assert removed() == removed(begun + 1) == nowhere
    assert removed(begun) == []
    (directory / "set-aside").mkdir()
    shutil.copyfile(damaged / file, directory / "set-aside" / "kept")
    assert removed() == []
