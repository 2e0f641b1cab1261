"""The implementations of the seam that must keep its promises. Add one: a line in the list."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from store.api import Durability, SegmentStore
from store.files import DirectoryFiles, Files
from store.local.state.data_file import DATA_DIRECTORY
from store.local.store import LocalStore
from store.replica.local_copy import is_own
from store.replica.log import DurableLog
from store.replica.member import Member
from tests.conformance.harness import Loop
from tests.conformance.memory_log import MemoryLog
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.simulation.disk import Disk

KIB: Final = 1024
MIB: Final = 1024 * KIB
_SMALL: Final = {
    "data_file_bytes": 64 * KIB,
    "inline_bytes_max": 4 * KIB,
    "journal_file_bytes": 256 * KIB,
    "checkpoint_bytes": 512 * KIB,
    "checkpoint_data_bytes": 2_048 * KIB,
    "open_files_max": 8,
}
"""Sizes with which little data fills files and leads to checkpoints."""


@dataclass(frozen=True)
class Implementation:
    """How to open a store in a directory; the second time it finds what the first kept there."""

    name: str
    open: Callable[[Loop, Path], SegmentStore]
    has_files: bool
    """Hands out regions of files."""
    check: Callable[[Path], object] = lambda _: None
    """Looks at a directory whose store is closed."""


def open_local(
    files: Files,
    loop: Loop,
    durability: Durability,
    **sizes: Any,  # noqa: ANN401 - numbers; Any, because `open` has other keywords too
) -> LocalStore:
    """Open a local store; each of thousands has two journal files, which it fills with zeros."""
    return LocalStore.open(
        files,
        call_soon_threadsafe=loop.call_soon_threadsafe,
        call_soon=loop.call_soon,
        durability=durability,
        **{"interval_ms": 5, "journal_file_bytes": MIB, **sizes},
    )


def _local(durability: Durability) -> Implementation:
    def open_store(loop: Loop, directory: Path) -> SegmentStore:
        return open_local(
            DirectoryFiles(directory),
            loop,
            durability,
            watch=loop.watch,
            **_SMALL,
        )

    return Implementation(f"local-{durability.value}", open_store, has_files=True)


def member_of(own: Files, shared_log: DurableLog, name: str = "one") -> Member:
    """Open a member of a cluster."""
    return Member(
        own,
        shared_log,
        name=name,
        ordered=(DATA_DIRECTORY,),
        now_ms=lambda: 0,
        pause=lambda: None,
    )


def active_on(own: Files, shared_log: DurableLog) -> Files:
    """Begin a term on a directory, as the only member."""
    files = member_of(own, shared_log).take_over()
    assert files is not None
    return files


def local_on(name: str, open_log: Callable[[], DurableLog]) -> Implementation:
    """Return a local store on replicated logs, one for each directory."""
    logs: dict[Path, DurableLog] = {}

    def open_store(loop: Loop, directory: Path) -> SegmentStore:
        if directory not in logs:
            logs[directory] = open_log()
        return open_local(
            active_on(DirectoryFiles(directory), logs[directory]),
            loop,
            Durability.DISK,
            **_SMALL,
        )

    def check(directory: Path) -> None:
        if directory in logs:
            is_followed(directory, logs[directory])

    return Implementation(name, open_store, has_files=True, check=check)


def is_followed(directory: Path, shared_log: DurableLog) -> None:
    """Demand that a member which begins with nothing comes to have the files of a directory."""
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder)
        member = member_of(DirectoryFiles(other), shared_log, "two")
        member.follower.catch_up()
        member.close()
        assert shared_files(other) == shared_files(directory)


def shared_files(directory: Path) -> dict[str, bytes]:
    """Return what a directory has of the files that all members have."""
    files = {str(path.relative_to(directory)): path for path in directory.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if path.is_file() and not is_own(name)
    }


def _model() -> Implementation:
    models: dict[Path, Model] = {}

    def open_store(loop: Loop, directory: Path) -> SegmentStore:
        return ModelStore(loop, models.setdefault(directory, Model()))

    return Implementation("model", open_store, has_files=False)


def _forgetful() -> Implementation:
    disks: dict[Path, Disk] = {}

    def open_store(loop: Loop, directory: Path) -> SegmentStore:
        disk = disks.setdefault(directory, Disk(is_cold=True))
        return open_local(disk, loop, Durability.OS, watch=loop.watch, data_file_bytes=64 * KIB)

    return Implementation("local-forgetful", open_store, has_files=False)


IMPLEMENTATIONS: Final = (
    *(_local(durability) for durability in Durability),
    local_on("local-on-memory-log", MemoryLog),
    _model(),
)


def _no_servers() -> DurableLog:
    raise AssertionError("the fixture has the servers")


ON_JETSTREAM: Final = local_on("local-on-jetstream", _no_servers)
"""Stands for a store on a log of a real server, until that runs: a tenth of the tests has it."""

on_any_memory: Final = pytest.mark.parametrize(
    "implementation",
    [*IMPLEMENTATIONS, _forgetful()],
    indirect=True,
    ids=lambda each: each.name,
)
"""Marks a test that holds as well where the system keeps nothing of a file in memory."""

needs_files: Final = pytest.mark.parametrize(
    "implementation",
    [*(each for each in IMPLEMENTATIONS if each.has_files), ON_JETSTREAM],
    indirect=True,
    ids=lambda each: each.name,
)
"""Marks a test of regions and directories: only for implementations that have files."""
