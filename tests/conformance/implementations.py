"""The implementations of the seam that must keep its promises. Add one: a line in the list."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from store.api import Durability, SegmentStore
from store.local.files import DirectoryFiles, Files
from store.local.store import LocalStore
from tests.conformance.harness import Loop
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.simulation.disk import Disk

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True)
class Implementation:
    """How to open a store in a directory; the second time it finds what the first kept there."""

    name: str
    open: Callable[[Loop, Path], SegmentStore]
    has_files: bool
    """Hands out regions of files."""


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
            data_file_bytes=64 * KIB,
            inline_bytes_max=4 * KIB,
            journal_file_bytes=256 * KIB,
            checkpoint_bytes=512 * KIB,
            checkpoint_data_bytes=2_048 * KIB,
            open_files_max=8,
        )

    return Implementation(f"local-{durability.value}", open_store, has_files=True)


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


IMPLEMENTATIONS: Final = (*(_local(durability) for durability in Durability), _model())

on_any_memory: Final = pytest.mark.parametrize(
    "implementation",
    [*IMPLEMENTATIONS, _forgetful()],
    indirect=True,
    ids=lambda each: each.name,
)
"""Marks a test that holds as well where the system keeps nothing of a file in memory."""

needs_files: Final = pytest.mark.parametrize(
    "implementation",
    [each for each in IMPLEMENTATIONS if each.has_files],
    indirect=True,
    ids=lambda each: each.name,
)
"""Marks a test of regions and directories: only for implementations that have files."""
