"""Reads the frames of the ring of journal files, at the opening."""

from collections.abc import Iterator
from functools import cached_property

from store.files import Files
from store.local.commit.journal import JournalPlace, Tail
from store.local.commit.journal_files import JOURNAL_DIRECTORY, content_of, numbers_in, path_of
from store.local.commit.records import (
    FILE_HEAD_BYTES,
    FRAME_HEAD_BYTES,
    Frame,
    Link,
    file_head,
    frame_at,
    sequence_at,
)
from store.local.damage import Damage

_LOST = "what does not check out is lost"


class JournalReader:
    """Reads the frames from a place on, to the first that is not the next one.

    Attributes:
        salt: Seed of the frames' checksums.
        numbers: The numbers of the ring's files.
        visited: Those in which frames were looked for, in their order.
        end: Behind the last frame that was found.
        damage: Files that must be there and are not, or not as they were made.
    """

    def __init__(
        self,
        files: Files,
        salt: int,
        place: JournalPlace,
        *,
        store_id: int,
        size: int,
    ) -> None:
        """Begin at a checkpoint's place.

        Args:
            files: The data directory.
            salt: Seed of the frames' checksums.
            place: Of the first frame.
            store_id: Seed of the files' heads.
            size: Bytes of the file of `place`.
        """
        self._files = files
        self.salt = salt
        self._store_id = store_id
        self._size = size
        self.numbers = numbers_in(files)
        self.visited: list[int] = []
        self.end = place
        self.damage: list[Damage] = []

    def frames(self) -> Iterator[Frame]:
        """Yield the frames."""
        self._check_beginning()
        number = self._file_of(self.end)
        while number is not None:
            self.visited.append(number)
            data = self.contents(number)
            sequence, _, position = self.end
            link = None
            while link is None and (frame := self._frame_at(data, position, sequence)) is not None:
                yield frame
                sequence += 1
                position += frame.size
                link = next((each for each in frame.records if isinstance(each, Link)), None)
            self.end = JournalPlace(sequence, number, position)
            # The next one may be the first of another file.
            number = self._beginning_with(self.end) if link is None else self._linked(link)

    @cached_property
    def frames_max(self) -> int:
        """Number of frames that fit into the ring; files that were cut short count as whole."""
        sizes = [self._size]
        for number in self.numbers:
            file = self._files.open(path_of(number))
            try:
                sizes.append(file.size())
            finally:
                file.close()
        return len(sizes) * max(sizes) // FRAME_HEAD_BYTES

    def tail(self) -> Tail:
        """Return the tail for a journal that continues behind the last frame."""
        return Tail(tuple(self.visited or [self.end.file]), self.end, self.salt)

    def needed(self) -> frozenset[int]:
        """Return the numbers of the files that the next opening needs too if this one dies."""
        return frozenset((*self.visited, self.end.file))

    def sync(self) -> None:
        """Make the frames that were found durable: a process that died may not have."""
        for number in self.visited:
            file = self._files.open(path_of(number))
            try:
                file.sync()
            finally:
                file.close()
        self._files.sync_directory(JOURNAL_DIRECTORY)

    def _check_beginning(self) -> None:
        """Check the file of the checkpoint's place up to there: that was synced before it."""
        place, at = self.end, FILE_HEAD_BYTES
        if not self._check_file(place.file, self._size) or place.position == at:
            return
        data = self.contents(place.file)
        sequence = self.sequence_at(data, at)
        while sequence is not None and at < place.position:
            frame = self._frame_at(data, at, sequence)
            if frame is None:
                break
            at += frame.size
            sequence += 1
        if (sequence, at) != (place.sequence, place.position):
            what = f"the journal is damaged before the checkpoint's place, {_LOST}"
            self.damage.append(Damage(what, path_of(place.file), position=at))

    def _check_file(self, number: int, size: int) -> bool:
        """Check that a file is there and as it was made; else note it as damage."""
        if number not in self.numbers:
            what = "journal file is missing, what was in it is lost"
        else:
            file = self._files.open(path_of(number))
            try:
                found = file.size()
                head = file_head(number, size, self._store_id)
                is_right = file.read_at(len(head), 0) == head
            finally:
                file.close()
            if found == size and is_right:
                return True
            what = (
                f"journal file has {found} bytes and not {size}, {_LOST}"
                if found != size
                else f"journal file does not begin with its head, {_LOST}"
            )
        self.damage.append(Damage(what, path_of(number)))
        return False

    def _file_of(self, place: JournalPlace) -> int | None:
        """Return the file with the frame of `place.sequence`: at `place`, or first in another."""
        if place.file in self.numbers:
            data = self.contents(place.file)
            if self.sequence_at(data, place.position) == place.sequence:
                return place.file
            # The checkpoint's file has to stay, whatever follows it.
            self.visited.append(place.file)
        return self._beginning_with(place)

    def _linked(self, link: Link) -> int | None:
        """Return the file that a link leads to, as far as it is there."""
        self._check_file(link.file, link.size)
        if link.file not in self.numbers:
            return None
        self.end = JournalPlace(self.end.sequence, link.file, FILE_HEAD_BYTES)
        return link.file

    def _frame_at(self, data: bytes, position: int, sequence: int) -> Frame | None:
        return frame_at(data, position, sequence, self.salt)

    def sequence_at(self, data: bytes, position: int) -> int | None:
        """Return the sequence of the frame at `position`, or None where no frame checks out."""
        return sequence_at(data, position, self.salt)

    def _beginning_with(self, place: JournalPlace) -> int | None:
        """Find the file that follows one of which the frames end at `place`."""
        # The first frame of a file follows a link. That one says nothing else, so nothing is lost
        # with one that had not reached the disk.
        sequence = place.sequence + 1
        for number in self.numbers:
            if number != place.file and self._begins_with(number, sequence):
                self.end = JournalPlace(sequence, number, FILE_HEAD_BYTES)
                return number
        return None

    def _begins_with(self, number: int, sequence: int) -> bool:
        file = self._files.open(path_of(number))
        try:
            # The cheap look first: most files of the ring hold other frames.
            if file.read_at(8, FILE_HEAD_BYTES + 8) != sequence.to_bytes(8, "little"):
                return False
        finally:
            file.close()
        return self.sequence_at(self.contents(number), FILE_HEAD_BYTES) == sequence

    def contents(self, number: int) -> bytes:
        """Return a file's bytes."""
        return content_of(self._files, number)
