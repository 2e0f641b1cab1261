"""What counts as a fault, and what the tables say, without any server."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.clients.comparison import (
    WRITTEN,
    Comparison,
    Crossing,
    Restart,
    Run,
    codecs_of,
    mark_of,
    tried,
)
from compat.clients.expected import EXPECTED, OTHERWISE, expected
from compat.clients.messages import bodies, summary
from compat.clients.not_offered import NOT_OFFERED, VERSIONS
from compat.clients.report import BEGIN, END, keep, page
from compat.clients.running import NoAnswer, Outcome
from compat.clients.servers import SERVERS, ServerName

FIRST = Outcome(EXPECTED["offset-first"])


def one_scenario(hutch: Outcome, rabbitmq: Outcome, scenario: str = "offset-first") -> Comparison:
    found = Comparison(versions={"node": VERSIONS["node"]}, offered={"node": [scenario]})
    found.runs[Run("node", scenario, "Hutch")] = hutch
    found.runs[Run("node", scenario, "RabbitMQ")] = rabbitmq
    return found


def test_the_results_asked_for_on_both_servers_are_no_fault() -> None:
    assert one_scenario(FIRST, FIRST).faults("node") == []


@pytest.mark.parametrize(
    ("hutch", "rabbitmq", "faults"),
    [
        (Outcome({"read": [1]}), FIRST, 1),
        (FIRST, Outcome(error="gone"), 1),
        # The same on both, but not what it should be.
        (Outcome({"read": [1]}), Outcome({"read": [1]}), 2),
    ],
)
def test_any_other_result_is_a_fault(hutch: Outcome, rabbitmq: Outcome, faults: int) -> None:
    assert len(one_scenario(hutch, rabbitmq).faults("node")) == faults


def test_codes_of_errors_must_be_those_of_rabbitmq() -> None:
    assert one_scenario(Outcome({"x": 2}), Outcome({"x": 2}), "errors").faults("node") == []
    assert len(one_scenario(Outcome({"x": 1}), Outcome({"x": 2}), "errors").faults("node")) == 1


def test_what_is_neither_offered_nor_listed_is_a_fault() -> None:
    found = one_scenario(FIRST, FIRST)
    assert any("publish" in fault for fault in found.offer_faults("node"))
    found.offered["rbfly"], found.versions["rbfly"] = list(EXPECTED), VERSIONS["rbfly"]
    assert any("listed as missing" in fault for fault in found.offer_faults("rbfly"))


def test_every_exception_names_a_known_client_and_scenario() -> None:
    for client, scenario in [
        *OTHERWISE,
        *((client, scenario) for client, missing in NOT_OFFERED.items() for scenario in missing),
    ]:
        assert client in VERSIONS
        assert scenario in EXPECTED
    for (client, scenario), (fields, _) in OTHERWISE.items():
        assert set(fields) <= set(EXPECTED[scenario])
        assert expected(client, scenario) != EXPECTED[scenario]


def test_what_was_read_must_be_what_was_written() -> None:
    found = Comparison()
    right = summary(bodies(0, WRITTEN - 1, mark_of("go")))
    found.crossings[Crossing("go", "gzip", "java", "Hutch")] = Outcome({"read": right})
    assert found.crossing_faults() == []
    wrong = {**right, "count": 49}
    found.crossings[Crossing("go", "gzip", "java", "RabbitMQ")] = Outcome({"read": wrong})
    assert len(found.crossing_faults()) == 1


def test_codecs_are_known_from_the_scenarios_offered() -> None:
    assert codecs_of(["publish", "sub-gzip", "sub-none"]) == ["plain", "none", "gzip"]


class Restarted:
    name: ServerName = "Hutch"
    options: list[str] = []  # noqa: RUF012 - none are asked for

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.restarts = 0

    def restart(self) -> None:
        self.restarts += 1
        if self.fails:
            raise OSError("no way")


def test_a_server_is_restarted_once_when_all_wait_for_it() -> None:
    server = Restarted()
    restart = Restart(server, ["a", "b"])
    restart.leave("a")
    assert server.restarts == 0
    restart.arrive("b")
    restart.leave("b")
    assert server.restarts == 1


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        ([FIRST], FIRST),
        ([Outcome(error="lost"), FIRST], FIRST),
        ([Outcome(error="lost"), Outcome(error="lost again")], Outcome(error="lost again")),
        ([Outcome({"read": [1]})], Outcome({"read": [1]})),
    ],
)
def test_no_result_is_tried_again_and_a_wrong_one_is_not(
    outcomes: list[Outcome], last: Outcome
) -> None:
    coming = iter(outcomes)
    assert tried(lambda: next(coming)) == last
    assert list(coming) == []


def test_a_restart_that_fails_is_told_to_all() -> None:
    restart = Restart(Restarted(fails=True), ["a"])
    with pytest.raises(NoAnswer, match="no way"):
        restart.arrive("a")


def test_the_tables_say_what_was_found_and_are_kept_once(tmp_path: Path) -> None:
    found = one_scenario(Outcome({"read": [1]}), FIRST)
    for server in SERVERS:
        right = {"read": summary(bodies(0, WRITTEN - 1, mark_of("node")))}
        found.crossings[Crossing("node", "plain", "node", server)] = Outcome(right)
    text = page(found)
    assert "| `offset-first` | ✗ ✓ |" in text
    assert "| node | plain ✓ ✓ |" in text
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert keep(text, readme)
    assert not keep(text, readme)
    kept = readme.read_text()
    assert kept.startswith("before\n")
    assert kept.endswith("after\n")
    assert "old" not in kept
