"""A real Pravega 0.13.0 answers the cases as they say."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Unavailable
from compat.pravega.cases import CASES
from compat.pravega.runner import play_all, surprises
from compat.pravega.servers import Address, pravega


@pytest.fixture
def real_pravega(tmp_path: Path) -> Iterator[Address]:
    """Give the address of a real Pravega; skip with the reason where there is no way to one."""
    try:
        with pravega(tmp_path) as address:
            yield address
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_pravega_answers_as_the_cases_say(real_pravega: Address) -> None:
    assert surprises(CASES, play_all(CASES, real_pravega)) == []
