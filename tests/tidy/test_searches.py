"""Searches of ordinary test runs draw the same each time, and end soon with what they find."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine

IS_NIGHT = os.environ.get("HYPOTHESIS_PROFILE", "dev") != "dev"


def test_a_search_draws_the_same_unless_it_is_that_of_the_night() -> None:
    assert settings().derandomize is not IS_NIGHT
    assert (settings().database is not None) is IS_NIGHT


def test_what_is_found_is_made_shorter_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    if not IS_NIGHT:
        assert engine.MAX_SHRINKING_SECONDS == 20
    monkeypatch.setattr(engine, "MAX_SHRINKING_SECONDS", 0.2)
    tries = 0

    @given(st.lists(st.integers(0, 1_000_000), min_size=5, max_size=50))
    def search(numbers: list[int]) -> None:
        nonlocal tries
        if sum(numbers) % 7 != 3:
            return
        tries += 1
        time.sleep(0.02)
        raise ValueError(numbers)

    with pytest.raises(ValueError, match=r"\["):
        search()
    assert tries < 20
