"""A log in a directory of the test's own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.log.log_rig import LogRig

MakeRig = Callable[..., LogRig]


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[MakeRig]:
    """Make rigs, each in a directory of its own if none is given; they are closed with the test."""
    rigs: list[LogRig] = []

    def make(directory: Path | None = None, **options: Any) -> LogRig:  # noqa: ANN401 - those of LogRig
        rigs.append(LogRig(directory or tmp_path / f"log-{len(rigs)}", **options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make_rig: MakeRig) -> LogRig:
    return make_rig()
