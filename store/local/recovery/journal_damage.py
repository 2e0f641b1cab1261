"""Damage behind the end of the journal: synced frames that are cut off.

The journal ends at the first frame that does not check out. After a crash that is the normal end: a
frame was torn, or the system wrote later ones before earlier ones. But each frame says which frames
were durable when it was written. If one behind the end says so of the missing frame, that frame was
on the disk once, and its loss is damage.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from store.files import Files
from store.local.commit.journal_files import path_of
from store.local.commit.journal_reader import JournalReader
from store.local.commit.records import (
    FILE_HEAD_BYTES,
    FRAME_HEAD,
    FRAME_HEAD_BYTES,
    Frame,
    frame_at,
)
from store.local.damage import Damage, Findings

SET_ASIDE: Final = "set-aside"
WHAT_TO_DO: Final = (
    "stop the server and restore a backup, or go on without;"
    f" journal, checkpoint and data files without an owner are kept in {SET_ASIDE}/"
)

_COPY_BYTES: Final = 1024 * 1024

# The work of looking is bounded: places that are looked at in a file, and frames that are counted.
_LOOKS_MAX: Final = 1 << 20
_HASHED_BYTES_MAX: Final = 64 * 1024 * 1024
_HIGH_AT: Final = 12


class Lost(NamedTuple):
    """Frames behind the end of the journal.

    Attributes:
        frames: How many were found that check out.
        size: Their bytes.
        files: The numbers of the files in which they are.
        was_synced: The end is damage: what is there was on the disk once.
    """

    frames: int
    size: int
    files: frozenset[int]
    was_synced: bool


def judge(reader: JournalReader, findings: Findings, *, is_in_use: bool) -> bool:
    """Note the damage of the journal; return whether frames may be lost with it.

    Args:
        reader: Has read all frames.
        findings: Takes what is found.
        is_in_use: The store was not closed, so frames have probably followed the checkpoint.
    """
    for damage in reader.damage:
        findings.add(damage._replace(what=f"{damage.what}: {WHAT_TO_DO}"))
    lost = find_lost(reader, does_search_all=is_in_use)
    if not lost.frames:
        return bool(reader.damage)
    file, position = path_of(reader.end.file), reader.end.position
    if lost.was_synced or reader.damage:
        what = (
            f"journal is damaged, {lost.frames} frames of {lost.size} bytes"
            f" behind that are given up: {WHAT_TO_DO}"
        )
        findings.add(Damage(what, file, position=position))
        return True
    # Normal after a power cut, and nothing else can be told apart from it.
    findings.note(
        f"journal ends before frames that were not synced file={file} position={position}"
        f" frames={lost.frames} bytes={lost.size}"
    )
    return False


class Evidence:
    """Copies of damaged and dropped files, for a person to inspect.

    Made again with the same contents if the opening dies before its checkpoint is there.
    """

    def __init__(self, files: Files, salt: int) -> None:
        self._files = files
        self.directory = f"{SET_ASIDE}/{salt:016x}"
        files.make_directory(self.directory)

    def copy(self, path: str, bytes_max: int = sys.maxsize) -> None:
        """Keep a copy of a file, or of its beginning if that is all that is ever read of it."""
        source = self._files.open(path)
        try:
            target = self._files.open(self._place(path), create=True)
            try:
                size = min(source.size(), bytes_max)
                for at in range(0, size, _COPY_BYTES):
                    target.write_at(source.read_at(min(_COPY_BYTES, size - at), at), at)
                target.sync()
            finally:
                target.close()
        finally:
            source.close()
        self._files.sync_directory(self.directory)

    def move(self, paths: Iterable[str]) -> None:
        """Take files away."""
        moved = list(paths)
        for path in moved:
            self._files.rename(path, self._place(path))
        if moved:
            self._files.sync_directory(self.directory)
            for parent in {path.rpartition("/")[0] for path in moved}:
                self._files.sync_directory(parent)

    def _place(self, path: str) -> str:
        return f"{self.directory}/{path.replace('/', '-')}"


def find_lost(reader: JournalReader, *, does_search_all: bool) -> Lost:
    """Look behind the end that a reader has come to; in the other files too or only in that one."""
    others = _in_other_files(reader) if does_search_all else ()
    found = list(chain(_behind_in_file(reader), others))
    return Lost(
        frames=len(found),
        size=sum(frame.size for _, frame in found),
        files=frozenset(number for number, _ in found),
        was_synced=any(frame.synced > reader.end.sequence for _, frame in found),
    )


def _behind_in_file(reader: JournalReader) -> Iterator[tuple[int, Frame]]:
    """Yield later frames in the file of the end."""
    end = reader.end
    if end.file not in reader.numbers:
        return
    last = end.sequence
    data = reader.contents(end.file)
    place = _next_place(reader, data, end.position + 1, last)
    while place is not None:
        for frame in _run(reader, data, place):
            yield end.file, frame
            last = frame.sequence
            place += frame.size
        place = _next_place(reader, data, place, last)


def _in_other_files(reader: JournalReader) -> Iterator[tuple[int, Frame]]:
    """Yield later frames in files in which no frame was found."""
    found = []
    for number in reader.numbers:
        if number not in (reader.end.file, *reader.visited):
            data = reader.contents(number)
            sequence, place = _first_later(reader, data)
            if sequence > reader.end.sequence:
                found.append((sequence, number, place))
    for _, number, place in sorted(found):
        for frame in _run(reader, reader.contents(number), place):
            yield number, frame


def _first_later(reader: JournalReader, data: bytes) -> tuple[int, int]:
    """Return sequence and place of a file's first frame; zeros if it has none or an older one."""
    sequence = reader.sequence_at(data, FILE_HEAD_BYTES)
    if sequence is not None:
        return sequence, FILE_HEAD_BYTES
    # The lost frame may have been its first.
    place = _next_place(reader, data, FILE_HEAD_BYTES, reader.end.sequence)
    return (0, 0) if place is None else (reader.sequence_at(data, place) or 0, place)


def _run(reader: JournalReader, data: bytes, position: int) -> Iterator[Frame]:
    """Yield the frames from a position on that follow each other."""
    sequence = reader.sequence_at(data, position)
    while sequence is not None:
        frame = frame_at(data, position, sequence, reader.salt)
        if frame is None:
            return
        yield frame
        position += frame.size
        sequence += 1


def _next_place(reader: JournalReader, data: bytes, position: int, last: int) -> int | None:
    """Find a frame at `position` or behind it whose sequence is above `last`."""
    end = len(data.rstrip(b"\0"))
    # The sequences of one opening have the same upper half.
    high = (last >> 32).to_bytes(4, "little")
    # Those of a whole file may be lost in between.
    highest = last + reader.frames_max
    hashed = 0
    at = position + _HIGH_AT - 1
    for _ in range(_LOOKS_MAX):
        at = data.find(high, at + 1, end)
        start = at - _HIGH_AT
        if at < 0 or start + FRAME_HEAD_BYTES > len(data):
            return None
        _, sequence, *_, size, _ = FRAME_HEAD.unpack_from(data, start)
        if last < sequence <= highest and start + FRAME_HEAD_BYTES + size <= len(data):
            hashed += size
            if reader.sequence_at(data, start) == sequence:
                return start
            if hashed > _HASHED_BYTES_MAX:
                return None
    return None
