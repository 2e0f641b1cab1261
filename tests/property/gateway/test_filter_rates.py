"""Filters: nothing that is there is missed, and little that is not is let through."""

from pathlib import Path

import pytest

from tests.property.gateway.filter_rates import Rates, count_on, main


def test_of_a_hundred_thousand_values_that_are_there_none_is_missed() -> None:
    rates = Rates()

    for _ in count_on(rates, 100_000):
        pass

    assert rates.checks >= 100_000
    assert rates.missed == 0
    assert rates.foreign_100 > 1_000
    assert rates.is_good, rates


def test_the_count_goes_on_where_it_was_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "rates.json"

    assert main(["--checks", "1000", "--state", str(state)]) == 0
    assert main(["--checks", "3000", "--state", str(state)]) == 0

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("1000 look-ups of values that are there, 0 missed;")
    assert second.startswith("3000 look-ups of values that are there, 0 missed;")
