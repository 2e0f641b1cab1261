"""Checklist 29 in short; `make dedup-schedules` runs ten thousand."""

from pathlib import Path

import pytest

from tests.property.gateway.dedup_schedules import main, run_schedules


@pytest.mark.slow
def test_no_id_is_stored_twice_whatever_the_ids_and_the_restarts() -> None:
    run_schedules(number=1, count=25)


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    state = tmp_path / "schedules.json"

    assert main(["--schedules", "2", "--state", str(state)]) == 0
    assert main(["--schedules", "3", "--state", str(state)]) == 0

    assert state.read_text() == "3"
