"""The command line of `hutch pipeline`: what it takes and refuses, without Spark."""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import cli
from gateway.commands import pipeline
from gateway.commands.pipeline import JOBS
from pyspark_hutch.jobs import commands
from pyspark_hutch.jobs.preparation import installed
from tests.waiting import HANG_S

ROOT = Path(__file__).resolve().parents[4]


def pipeline_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["pipeline", *arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def examples_of(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return re.findall(r"^ *hutch pipeline (\S.*)$", joined, re.MULTILINE)


EXAMPLES = [line for text, _ in JOBS.values() for line in examples_of(text.examples)]
PAGE = [
    line
    for line in examples_of((ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8"))
    if "--help" not in line
]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """What would be run, job by job."""
    found: list[argparse.Namespace] = []

    def run(options: argparse.Namespace) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(pipeline, "run", run)
    return found


def test_the_help_lists_every_job_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    text = pipeline_help(capsys)

    for name, (job, _) in JOBS.items():
        assert re.search(rf"^  {name} +{re.escape(job.summary)}$", text, re.MULTILINE)
    assert "130 ended by Ctrl-C" in text


@pytest.mark.parametrize("name", JOBS)
def test_the_help_of_a_job_teaches_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = pipeline_help(capsys, name)

    job, _ = JOBS[name]
    assert job.description in text
    assert job.examples.strip() in text
    assert f"hutch pipeline {name} " in job.examples


@pytest.mark.parametrize("line", [*EXAMPLES, *PAGE])
def test_every_example_is_taken_as_it_stands(line: str, chosen: list[argparse.Namespace]) -> None:
    assert cli.main(["pipeline", *shlex.split(line)]) == 0
    assert chosen[0].job == line.split(maxsplit=1)[0]


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_options_of_every_example_are_right(
    line: str, chosen: list[argparse.Namespace], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Started(Exception):
        pass

    def started(*_: object) -> None:
        raise Started

    cli.main(["pipeline", *shlex.split(line)])
    (tmp_path / "prices.py").write_text("def add_price(order):\n    return order\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "_session", started)
    job = commands.RUN[chosen[0].job]

    if chosen[0].job == "zip":
        assert job(chosen[0]) == 0
    else:
        with pytest.raises(Started):  # all that can be wrong is told before
            job(chosen[0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["to-lake", "orders", "x", "--option", "steam=y"], "option steam='y' is unknown"),
        (["to-lake", "orders", "x", "--endpoints", "host:0"], "option endpoints="),
        (
            ["to-lake", "orders", "s3://x", "--format", "delta"],
            "s3://x is not a folder of this machine",
        ),
        (
            ["to-lake", "orders", "x", "--format", "iceberg", "--table", "orders"],
            "'orders' is no name of a table: write namespace.name",
        ),
        (["to-lake", "orders", "x", "--table", "raw.orders"], "--table names a table of Iceberg"),
        (["from-files", "a.dat", "orders"], "a.dat: the name does not tell the format"),
        (["from-files", "a.csv", "orders", "--to-option", "compression=best"], "option compress"),
        (["copy", "a", "b", "--checkpoint", "x", "--batches"], "--batches needs a function"),
        (["copy", "a", "b", "--checkpoint", "x", "--with", "f"], "'f' is no function"),
        (["copy", "a", "b", "--checkpoint", "x", "--with", "no.py:f"], "cannot read no.py"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pipeline", *arguments]) == 2

    text = capsys.readouterr().err
    assert text.startswith(f"hutch: {said}")
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["to-mars"],
        ["to-lake", "orders"],
        ["to-lake", "orders", "x", "--format", "avro"],
        ["to-lake", "orders", "x", "--option", "stream"],
        ["to-lake", "orders", "x", "--bad-sub-batches", "drop"],
        ["from-files", "a.csv", "orders", "--bad-sub-batches", "skip"],
        ["copy", "a", "b"],
        ["zip"],
    ],
)
def test_arguments_that_are_missing_or_unknown_are_told_with_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["pipeline", *arguments])

    assert stop.value.code == 2
    assert "usage: hutch pipeline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        (["to-lake", "orders", "x"], "pyspark", "spark"),
        (["to-lake", "orders", "x", "--format", "delta"], "deltalake", "lakehouse"),
        (["to-lake", "orders", "x", "--format", "iceberg"], "pyiceberg", "lakehouse"),
        (["report", "orders", "x.html"], "matplotlib", "lakehouse"),
    ],
)
def test_without_an_extra_one_line_says_which(
    arguments: list[str],
    missing: str,
    extra: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == missing else name)

    assert cli.main(["pipeline", *arguments]) == 1
    assert capsys.readouterr().err == (
        f"hutch: {missing} is not installed; this job needs it: "
        f'pip install ".[{extra}]" in the folder of the sources\n'
    )


def test_the_archive_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hutch.zip"

    assert cli.main(["pipeline", "zip", str(file)]) == 0
    assert re.fullmatch(rf"{file}: \d+ modules\n", capsys.readouterr().out)
    assert file.read_bytes().startswith(b"PK")


def test_an_archive_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pipeline", "zip", str(tmp_path / "no" / "hutch.zip")]) == 1
    assert capsys.readouterr().err.startswith("hutch: cannot write ")


def test_nothing_of_a_job_is_loaded_before_it_is_chosen() -> None:
    code = (
        "import sys; from gateway.commands import pipeline;"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('pyspark', 'pyarrow', 'numpy', 'pyspark_hutch', 'deltalake', 'matplotlib')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True
    )

    assert done.stdout == "[]\n"
