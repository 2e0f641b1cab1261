"""Reads the frames of the ring of journal files, at the opening."""

from collections.abc import Iterator

from store.local.files import Files
from store.local.journal import JOURNAL_DIRECTORY, JournalPlace, Tail, path_of
from store.local.records import FRAME_HEAD_BYTES, Frame, frame_at, sequence_at


class JournalReader:
    """Reads the frames from a place on, to the first that is not the next one.

    Attributes:
        salt: Seed of the frames' checksums.
        numbers: The numbers of the ring's files.
        visited: Those in which frames were found, in their order.
        end: Behind the last frame that was found.
    """

    def __init__(self, files: Files, salt: int, place: JournalPlace) -> None:
        self._files = files
        self.salt = salt
        self.numbers = sorted(int(name) for name in files.names(JOURNAL_DIRECTORY))
        self.visited: list[int] = []
        self.end = place

    def frames(self) -> Iterator[Frame]:
        """Give the frames."""
        number = self._file_of(self.end)
        while number is not None:
            self.visited.append(number)
            data = self.contents(number)
            sequence, _, position = self.end
            while (frame := frame_at(data, position, sequence, self.salt)) is not None:
                yield frame
                sequence += 1
                position += frame.size
            self.end = JournalPlace(sequence, number, position)
            # The next one may be the first of another file.
            number = self._beginning_with(self.end)

    def tail(self) -> Tail:
        """Tell what a journal must keep that goes on behind the last frame."""
        if self.visited:
            return Tail(tuple(self.visited), self.end, self.salt)
        files = (self.end.file,) if self.end.file in self.numbers else ()
        return Tail(files, self.end, self.salt)

    def sync(self) -> None:
        """Make the frames that were found durable: a process that died may not have."""
        for number in self.visited:
            file = self._files.open(path_of(number))
            try:
                file.sync()
            finally:
                file.close()
        self._files.sync_directory(JOURNAL_DIRECTORY)

    def _file_of(self, place: JournalPlace) -> int | None:
        """Give the file with the frame of `place.sequence`: at `place`, or first in another one."""
        if place.file in self.numbers:
            data = self.contents(place.file)
            if sequence_at(data, place.position, self.salt) == place.sequence:
                return place.file
        return self._beginning_with(place)

    def _beginning_with(self, place: JournalPlace) -> int | None:
        for number in self.numbers:
            if number != place.file and self._begins_with(number, place.sequence):
                self.end = JournalPlace(place.sequence, number, 0)
                return number
        return None

    def _begins_with(self, number: int, sequence: int) -> bool:
        file = self._files.open(path_of(number))
        try:
            # The cheap look first: most files of the ring hold other frames.
            if file.read_at(FRAME_HEAD_BYTES, 0)[8:16] != sequence.to_bytes(8, "little"):
                return False
            return sequence_at(file.read_at(file.size(), 0), 0, self.salt) == sequence
        finally:
            file.close()

    def contents(self, number: int) -> bytes:
        """Give a file's bytes."""
        file = self._files.open(path_of(number))
        try:
            return file.read_at(file.size(), 0)
        finally:
            file.close()
