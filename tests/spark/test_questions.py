"""Mistakes in a job that a server can tell: each is one line, and Spark is not started for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gateway import cli
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.pool import POOL
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark.conftest import Place
from tests.spark.publishing import create_super_stream, publish

Job = Callable[..., int]

SUPER = (
    "stream '{}' does not exist, but a super stream of that name does: take superStream (in hutch "
    "pipeline --super-stream, or --to-super-stream)"
)
PLAIN = (
    "super stream '{}' does not exist, but a stream of that name does: take stream (in hutch "
    "pipeline leave out --super-stream, or --to-super-stream)"
)


@pytest.fixture
def job(place: Place, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Run `hutch pipeline …` where Spark must not be started; connections end with the test."""
    from pyspark_hutch.jobs import session

    def start(*_: object, **__: object) -> AbstractContextManager[object]:
        pytest.fail("Spark was started")

    monkeypatch.setattr(session, "session", start)

    def run(job: str, *arguments: object) -> int:
        endpoints = place.options["endpoints"]
        given = [job, *map(str, arguments)]
        for name in [
            *(("",) if job != "from-files" else ()),
            *(("to-",) if job != "to-lake" else ()),
        ]:
            if f"--{name}endpoints" not in given:
                given += [f"--{name}endpoints", endpoints]
            given += [f"--{name}option", "advertised=ignore"]
        try:
            return cli.main(["pipeline", *given])
        finally:
            POOL.close()

    return run


@pytest.fixture
def there(place: Place, stream: str) -> str:
    with place.client() as client:
        publish(client, stream, [b"row"])
    return stream


@pytest.fixture
def parted(place: Place, stream: str) -> str:
    with place.client() as client:
        create_super_stream(client, f"{stream}-super", 2)
    return f"{stream}-super"


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line of a job, without the name of the program."""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hutch: ")
    return line.removeprefix("hutch: ")


def test_a_source_that_is_not_there_is_told_at_once(
    job: Job, there: str, parted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, line in (
        (["nowhere"], "stream 'nowhere' does not exist"),
        (["nowhere", "--super-stream"], "super stream 'nowhere' does not exist"),
        ([parted], SUPER.format(parted)),
        ([there, "--super-stream"], PLAIN.format(there)),
    ):
        stream, *flags = arguments
        assert job("to-lake", stream, tmp_path / "lake", *flags) == 1
        assert told(capsys) == line
    assert not (tmp_path / "lake").exists()


def test_a_target_that_is_not_there_is_told_at_once(
    job: Job, there: str, parted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.json").write_text("{}")
    notes = ["--checkpoint", tmp_path / "notes"]
    for arguments, line in (
        (["copy", there, "nowhere", *notes], "stream 'nowhere' does not exist"),
        (["copy", there, parted, *notes], SUPER.format(parted)),
        (["from-files", tmp_path / "rows.json", "nowhere"], "stream 'nowhere' does not exist"),
        (
            ["from-files", tmp_path / "rows.json", there, "--to-super-stream"],
            PLAIN.format(there),
        ),
        (
            ["copy", there, parted, "--to-super-stream", "--bad-rows", "nowhere", *notes],
            "stream 'nowhere' does not exist",
        ),
    ):
        assert job(*arguments) == 1
        assert told(capsys) == line


def test_a_server_that_is_not_there_and_a_wrong_password_are_told_at_once(
    job: Job, place: Place, there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job("to-lake", there, tmp_path, "--endpoints", "127.0.0.1:1") == 1
    assert told(capsys) == "cannot connect to 127.0.0.1:1: Connection refused"
    wrong = [option for name in ("username=nobody", "password=no") for option in ("--option", name)]
    assert job("to-lake", there, tmp_path, *wrong) == 1
    assert told(capsys) == (
        f"{place.options['endpoints']} refused user 'nobody': user name or password is wrong"
    )


def test_a_stream_that_the_user_may_not_read_is_told_at_once(
    job: Job, hutch: HutchServer, there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = f"clerk-{os.urandom(4).hex()}"
    ctl(hutch, "add_user", user, stdin=b"secret\n")
    ctl(hutch, "set_permissions", user, "", "", "")
    login = ["--option", f"username={user}", "--option", "password=secret"]

    assert job("to-lake", there, tmp_path, *login) == 1
    assert told(capsys) == f"stream {there!r} may not be used by this user (access refused)"


def test_a_folder_with_another_kind_of_lake_is_told_at_once(
    job: Job, there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "_delta_log").mkdir()

    for kind in ("parquet", "iceberg"):
        assert job("to-lake", there, tmp_path, "--format", kind) == 2
        said = f"{tmp_path} has rows in the format delta; {kind} needs another folder"
        assert told(capsys) == said


def test_a_copy_to_itself_is_told_at_once(
    job: Job, there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job("copy", there, there, "--checkpoint", tmp_path) == 2
    assert told(capsys) == f"{there} cannot be copied to itself"


def test_a_target_that_a_job_makes_is_not_made_before_it_begins(
    job: Job, place: Place, there: str, tmp_path: Path
) -> None:
    made = ["--to-option", "createStream=true", "--checkpoint", tmp_path]

    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        job("copy", there, f"{there}-new", *made)
    with place.client() as client:
        gone = client.ask(m.Status, "delete_stream", m.DeleteStream(f"{there}-new"))
    assert gone.code == ResponseCode.STREAM_DOES_NOT_EXIST


def test_a_job_that_goes_on_without_lost_rows_does_without_a_stream(
    job: Job, there: str, tmp_path: Path
) -> None:
    lenient = ["--option", "failOnDataLoss=false"]

    with pytest.raises(pytest.fail.Exception, match="Spark was started"):
        job("to-lake", f"{there},nowhere", tmp_path, *lenient)
