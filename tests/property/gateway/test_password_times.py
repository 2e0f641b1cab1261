"""Refused logins cost the same whatever is wrong; the large figure is `make password-times`."""

import json
from pathlib import Path

import pytest

from tests.property.gateway.password_times import DIFFERENCE_MAX, HASHES, difference, main, measure


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_unknown_user_costs_what_a_wrong_password_costs() -> None:
    times: dict[str, list[int]] = {}
    for tries in (20, 60):
        times = {kind: [] for kind in HASHES}
        for _ in measure(times, tries):
            pass
        if difference(times) < DIFFERENCE_MAX:
            return
    pytest.fail(f"{difference(times):.1%} apart")


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    state = tmp_path / "times.json"
    for tries in (1, 2):
        main(["--tries", str(tries), "--state", str(state)])
        assert {len(taken) for taken in json.loads(state.read_text()).values()} == {tries}
