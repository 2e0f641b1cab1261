"""The harness with a small program in place of a client's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compat.clients.running import NoAnswer, Outcome, RunningProgram

PROGRAM = """
import json, os, sys
def say(**what):
    print(json.dumps(what), flush=True)
say(ready={"client": "toy", "version": "1", "scenarios": ["echo"]})
for line in sys.stdin:
    scenario, stream, *values = line.split()
    if scenario == "die":
        os._exit(3)
    if scenario == "babble":
        print("no JSON", flush=True)
    elif scenario == "wait":
        say(wait="tea")
        say(ok=sys.stdin.readline().strip())
    elif scenario == "fail":
        say(error="broken")
    else:
        say(ok=[stream, *values])
"""


@pytest.fixture
def program(tmp_path: Path) -> RunningProgram:
    return RunningProgram([sys.executable, "-c", PROGRAM], tmp_path / "log")


def test_a_program_says_what_it_is(program: RunningProgram) -> None:
    with program:
        assert program.about.client == "toy"
        assert program.about.scenarios == ["echo"]


def test_scenarios_get_their_stream_and_values(program: RunningProgram) -> None:
    with program:
        assert program.run("echo", "s", {"count": 3}) == Outcome(["s", "count=3"])


def test_a_program_that_waits_is_told_to_go_on(program: RunningProgram) -> None:
    waited: list[str] = []
    with program:
        assert program.run("wait", "s", on_wait=waited.append).result == "go"
    assert waited == ["tea"]


def test_an_error_is_an_outcome_and_the_program_goes_on(program: RunningProgram) -> None:
    with program:
        assert program.run("fail", "s").error == "broken"
        assert program.run("echo", "s").is_ok


@pytest.mark.parametrize("scenario", ["die", "babble"])
def test_a_lost_program_is_started_again(program: RunningProgram, scenario: str) -> None:
    with program:
        assert not program.run(scenario, "s").is_ok
        assert program.run("echo", "s").is_ok


def test_a_program_that_does_not_present_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer):
        RunningProgram([sys.executable, "-c", "print('hello')"], tmp_path / "log")
