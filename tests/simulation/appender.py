"""A process that appends until it is killed, and says on its output what was acknowledged.

python -m tests.simulation.appender DIRECTORY DURABILITY
"""

import os
import sys
from pathlib import Path
from typing import Final
from uuid import UUID

from store.api import Appended, Durability, SegmentStore
from store.errors import StoreError
from store.files import DirectoryFiles
from tests.conformance.harness import Loop, Rig
from tests.conformance.implementations import open_local

NAMES: Final = ("a", "b", "c")
WRITER: Final = UUID(int=1)
UNDER_WAY_MAX: Final = 30
SIZES: Final = {
    "data_file_bytes": 200_000,
    "inline_bytes_max": 2_000,
    "journal_file_bytes": 65_536,
    "checkpoint_bytes": 100_000,
    "open_files_max": 4,
}


def piece_of(name: str, number: int) -> bytes:
    """Give the bytes that are appended to a segment under a number."""
    return f"<{name}{number}>".encode() * (1 + number * 31 % 700)


def open_rig(directory: Path, durability: Durability) -> Rig:
    def open_store(loop: Loop) -> SegmentStore:
        return open_local(DirectoryFiles(directory), loop, durability, **SIZES)

    return Rig(open_store)


class Appender:
    """Appends to one segment, with several appends under way."""

    def __init__(self, rig: Rig, name: str) -> None:
        self.name = name
        self._session = rig.writer(name, WRITER)
        self._acknowledged = self._session.event_number

    def append(self) -> None:
        """Append once more, if not too many are under way."""
        number = max(self._session.event_number, 0) + 1
        if number - max(self._acknowledged, 0) <= UNDER_WAY_MAX:
            self._session.append(piece_of(self.name, number), number, done=self._on_answer)

    def _on_answer(self, result: Appended | StoreError) -> None:
        assert isinstance(result, Appended), result
        self._acknowledged = result.event_number
        os.write(1, f"{self.name} {result.event_number} {result.position}\n".encode())


def main(directory: str, durability: str) -> None:
    rig = open_rig(Path(directory), Durability(durability))
    for name in NAMES:
        rig.start(rig.store.create_segment, name)  # exists from the second time on
    appenders = [Appender(rig, name) for name in NAMES]
    while True:
        for appender in appenders:
            appender.append()
        rig.loop.run_for(0.0005)


if __name__ == "__main__":
    main(*sys.argv[1:])
