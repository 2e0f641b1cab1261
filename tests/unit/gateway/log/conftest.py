"""A log in a directory of the test's own."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.log import units
from tests.unit.gateway.log.log_rig import LogRig, OpenStore

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


def reopened_on(make_rig: MakeRig, open_store: OpenStore, bodies: Sequence[bytes]) -> LogRig:
    """Commit and save each body as a chunk of its own; return a new rig on that store."""
    rig = make_rig(open_store=open_store, frame_bytes_max=4 << 20)
    log = rig.create()
    for body in bodies:
        rig.commit(log, body)
    rig.save(log)
    rig.close()
    return make_rig(rig.directory, open_store=open_store, frame_bytes_max=4 << 20)


@pytest.fixture(params=["small", "large"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way of a test's units into the log."""
    if request.param == "large":
        monkeypatch.setattr(units, "ONE_APPEND_BYTES_MAX", 0)
    return str(request.param)
