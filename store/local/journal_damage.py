"""What lies behind the end of the journal: whether frames that were synced are cut off.

The journal ends at the first frame that does not check out, and after a crash that is the normal
end: a frame was torn, or the system wrote later ones before earlier ones. But a frame that is
acknowledged after a sync is only followed by one of another round when that sync has succeeded. So
where behind the end there is such a frame and then one of a later round, all before it was on the
disk once, and what does not check out now is damage.
"""

import logging
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from store.local.files import Files
from store.local.journal import JOURNAL_DIRECTORY, path_of
from store.local.journal_reader import JournalReader
from store.local.records import FRAME_HEAD_BYTES, Frame, frame_at, sequence_at

log = logging.getLogger(__name__)

SET_ASIDE: Final = "set-aside"
WHAT_TO_DO: Final = (
    "stop the server and restore a backup, or go on without;"
    f" journal, checkpoint and data files without an owner are kept in {SET_ASIDE}/"
)

_COPY_BYTES: Final = 1024 * 1024

# The work of looking is bounded: places that are looked at in a file, and frames that are counted.
_LOOKS_MAX: Final = 1 << 20
_HASHED_BYTES_MAX: Final = 64 * 1024 * 1024
_HEAD: Final = struct.Struct("<QQQI")
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


def judge(reader: JournalReader, *, is_in_use: bool) -> bool:
    """Log what is wrong with the end that a reader has come to; tells whether it is damage.

    Args:
        reader: Has read all frames.
        is_in_use: The store was not closed, so frames have probably followed the checkpoint.
    """
    end = reader.end
    missing = end.file not in reader.numbers if end.file else not reader.numbers
    # Where no file is named it is the one that begins with the frame, whichever that is.
    name = path_of(end.file) if end.file else f"{JOURNAL_DIRECTORY}/*"
    if is_in_use and missing and not reader.visited:
        log.error("journal file is missing, what was in it is lost: %s file=%s", WHAT_TO_DO, name)
        return True
    lost = find_lost(reader, does_search_all=is_in_use)
    if not lost.frames:
        return False
    what = (name, end.position, lost.frames, lost.size)
    if lost.was_synced:
        log.error(
            "journal is damaged, what is behind that is given up: %s"
            " file=%s position=%d frames=%d bytes=%d",
            WHAT_TO_DO,
            *what,
        )
        return True
    # Normal after a power cut, and nothing else can be told apart from it.
    log.warning(
        "journal ends before frames that may not have been synced"
        " file=%s position=%d frames=%d bytes=%d",
        *what,
    )
    return False


class Evidence:
    """Where what is damaged or given up is kept, for a person to look at.

    Made again with the same contents if the opening dies before its checkpoint is there.
    """

    def __init__(self, files: Files, salt: int) -> None:
        self._files = files
        self.directory = f"{SET_ASIDE}/{salt:016x}"
        files.make_directory(self.directory)

    def copy(self, path: str) -> None:
        """Keep a copy of a file."""
        source = self._files.open(path)
        try:
            target = self._files.open(self._place(path), create=True)
            try:
                size = source.size()
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
    frames = size = 0
    found: set[int] = set()
    synced_at: int | None = None
    was_synced = False
    others = _in_other_files(reader) if does_search_all else ()
    for number, frame in chain(_behind_in_file(reader), others):
        frames += 1
        size += frame.size
        found.add(number)
        # All frames of a round have its time, so another time is another round.
        was_synced = was_synced or (synced_at is not None and frame.at_ms != synced_at)
        if synced_at is None and any(record.durable for record in frame.records):
            synced_at = frame.at_ms
    return Lost(frames, size, frozenset(found), was_synced)


def _behind_in_file(reader: JournalReader) -> Iterator[tuple[int, Frame]]:
    """Give later frames in the file of the end."""
    end = reader.end
    if end.file not in reader.numbers:
        return
    last = end.sequence
    data = reader.contents(end.file)
    place = _next_place(data, end.position + 1, last, reader.salt)
    while place is not None:
        for frame in _run(data, place, reader.salt):
            yield end.file, frame
            last = frame.sequence
            place += frame.size
        place = _next_place(data, place, last, reader.salt)


def _in_other_files(reader: JournalReader) -> Iterator[tuple[int, Frame]]:
    """Give later frames in files in which no frame was found."""
    found = []
    for number in reader.numbers:
        if number not in (reader.end.file, *reader.visited):
            data = reader.contents(number)
            sequence, place = _first_later(data, reader.end.sequence, reader.salt)
            if sequence > reader.end.sequence:
                found.append((sequence, number, place))
    for _, number, place in sorted(found):
        for frame in _run(reader.contents(number), place, reader.salt):
            yield number, frame


def _first_later(data: bytes, last: int, salt: int) -> tuple[int, int]:
    """Give sequence and place of a file's first frame; zeros if it has none or an older one."""
    sequence = sequence_at(data, 0, salt)
    if sequence is not None:
        return sequence, 0
    # The lost frame may have been its first.
    place = _next_place(data, 0, last, salt)
    return (0, 0) if place is None else (sequence_at(data, place, salt) or 0, place)


def _run(data: bytes, position: int, salt: int) -> Iterator[Frame]:
    """Give the frames from a position on that follow each other."""
    sequence = sequence_at(data, position, salt)
    while sequence is not None:
        frame = frame_at(data, position, sequence, salt)
        if frame is None:
            return
        yield frame
        position += frame.size
        sequence += 1


def _next_place(data: bytes, position: int, last: int, salt: int) -> int | None:
    """Find a frame at `position` or behind it whose sequence is above `last`."""
    end = len(data.rstrip(b"\0"))
    # The sequences of one opening have the same upper half.
    high = (last >> 32).to_bytes(4, "little")
    highest = last + len(data) // FRAME_HEAD_BYTES
    hashed = 0
    at = position + _HIGH_AT - 1
    for _ in range(_LOOKS_MAX):
        at = data.find(high, at + 1, end)
        start = at - _HIGH_AT
        if at < 0 or start + FRAME_HEAD_BYTES > len(data):
            return None
        _, sequence, _, size = _HEAD.unpack_from(data, start)
        if last < sequence <= highest and start + FRAME_HEAD_BYTES + size <= len(data):
            hashed += size
            if sequence_at(data, start, salt) == sequence:
                return start
            if hashed > _HASHED_BYTES_MAX:
                return None
    return None
