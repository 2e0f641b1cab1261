import json
import shlex
import sys
from pathlib import Path

import pytest

from compat.bench.__main__ import main
from compat.bench.machine import commit, describe_machine, fsync_ms_of
from compat.bench.scale import FULL, QUICK
from compat.bench.settings import PAGE, parse
from tests.unit.compat.bench.stand_in import StandIn

STAND_IN = shlex.join([sys.executable, "-m", "tests.unit.compat.bench.stand_in"])


@pytest.mark.slow
def test_a_quick_run_measures_all_servers_and_writes_page_and_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandIn() as rabbitmq:
        port = rabbitmq.address.port
        arguments = ["--quick", "--rabbitmq", f"127.0.0.1:{port}", "--hutch-command", STAND_IN]
        arguments += ["--data", str(tmp_path), "--json", str(tmp_path / "samples.json")]
        arguments += ["--only", "ingest_100x100", "--only", "confirm_latency"]
        assert main([*arguments, "--page", str(tmp_path / "page.md")]) == 0
        assert rabbitmq.streams == {}
    printed = capsys.readouterr().out
    assert "ingest 100 B, 100 per frame" in printed
    assert "| Hutch `disk`" in printed
    page = (tmp_path / "page.md").read_text()
    assert "Stand-in, 1.0.0" in page
    samples = json.loads((tmp_path / "samples.json").read_text())
    for row in ("ingest_100x100", "confirm_latency"):
        assert sorted(samples["samples"][row]) == ["hutch_disk", "hutch_os", "rabbitmq"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md", "samples.json"]


@pytest.mark.slow
def test_a_server_that_errs_makes_the_run_fail_and_leaves_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandIn("loses a message") as rabbitmq:
        port = rabbitmq.address.port
        arguments = ["--quick", "--no-hutch", "--rabbitmq", f"127.0.0.1:{port}"]
        arguments += ["--only", "ingest_100x1000", "--data", str(tmp_path)]
        assert main([*arguments, "--page", str(tmp_path / "page.md")]) == 1
    assert "FAILED rabbitmq, ingest_100x1000" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists()


def test_a_hutch_that_does_not_start_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--no-rabbitmq", "--hutch-command", "false", "--data", str(tmp_path)]
    assert main(arguments) == 1
    *before, last = capsys.readouterr().out.splitlines()
    assert last.startswith("bench: hutch_os did not get ready")
    beginnings = ("skipped perf_test", "warning: The machine was not quiet")
    assert all(line.startswith(beginnings) for line in before)
    assert list(tmp_path.iterdir()) == []


def test_only_a_whole_run_writes_the_page_by_itself() -> None:
    assert parse([]).page == PAGE
    for partial in ("--quick", "--no-rabbitmq", "--no-hutch", "--mode=os", "--only=drain_large"):
        assert parse([partial]).page is None
    assert parse(["--quick", "--page", "x.md"]).page == Path("x.md")


def test_the_command_line_chooses_counts_rounds_and_servers() -> None:
    assert parse([]).scale == FULL
    assert parse(["--quick"]).scale == QUICK
    assert parse(["--rounds", "7"]).scale.rounds == 7
    assert parse(["--mode", "disk"]).modes == ("disk",)
    assert parse(["--no-hutch"]).modes == ()
    assert parse(["--rabbitmq", "h:12"]).rabbitmq == ("h", 12)


@pytest.mark.parametrize(
    "wrong", [["--rounds", "0"], ["--rabbitmq", "5552"], ["--only", "speed"], ["--mode", "ram"]]
)
def test_a_wrong_option_ends_with_a_message(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        parse(wrong)
    assert ending.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_the_machine_is_described(tmp_path: Path) -> None:
    facts = describe_machine(tmp_path, 0.07)
    assert "0.07 ms" in facts["disk"]
    assert facts["commit"] == commit() != ""
    assert fsync_ms_of(tmp_path) > 0
