"""Hutch and Pravega 0.13.0 answer the same frames alike, but for a written list."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Unavailable
from compat.comparison import compare
from compat.pravega.cases import CASES
from compat.pravega.expected import expected_of
from compat.pravega.runner import play_all, surprises
from compat.pravega.servers import Address, hutch, pravega


@pytest.fixture
def real_pravega(tmp_path: Path) -> Iterator[Address]:
    """Give the address of a real Pravega; skip with the reason where there is no way to one."""
    try:
        with pravega(tmp_path) as served:
            yield served.address
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_difference_is_a_meant_one(
    real_pravega: Address, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hutch(tmp_path) as ours:
        found = compare(
            CASES,
            partial(play_all, address=real_pravega),
            partial(play_all, address=ours.address),
            expected_of(CASES),
            reference="Pravega",
        )
    assert "Traceback" not in (tmp_path / "hutch.log").read_text()
    with capsys.disabled():
        for difference in found.unsteady:
            sys.stderr.write(f"\ndiffered once, and not when played again:\n{difference}\n")
    assert surprises(CASES, found.theirs) == []
    assert "\n\n".join(map(str, found.verdict.unexpected)) == ""
    assert [f"{entry.script}: {entry.reason}" for entry in found.verdict.stale] == []
