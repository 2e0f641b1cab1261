"""Room for deletions on a full disk: a file of zeros, removed when a deletion finds no space.

From then on growth is refused, so that the free space serves deletions, until there is room to make
the file anew. Its content has no use, so a crash can do it no harm.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from store.errors import DiskFull, StoreError
from store.files import Files

log = logging.getLogger(__name__)

RESERVE: Final = "reserve"

# Between two tries to have the room back.
AGAIN_S: Final = 1.0

_ZEROS: Final = bytes(64 * 1024)


def _tell_nobody(_: bool) -> None:  # noqa: FBT001 (a callback)
    pass


class Reserve:
    """The room that is kept. Any thread may call all of it but `ask`, which is the loop's.

    Attributes:
        is_short: The room is used up: only changes that give space may grow a file.
        told: Told of each change of that, on the thread that makes it.
    """

    def __init__(self, files: Files, size: int) -> None:
        """Look for the room that an earlier opening took; `size` in bytes."""
        self._files = files
        self._size = size
        self._lock = threading.Lock()
        self._again_at = 0.0
        self.told: Callable[[bool], object] = _tell_nobody
        self.is_short = not self._is_whole()

    def take(self) -> None:
        """Have the room, if there is some; may take a few milliseconds."""
        with self._lock:
            if self.is_short and self._is_made():
                self._set(is_short=False)

    def give_up(self) -> bool:
        """Return the room to a deletion; tells whether there was any."""
        with self._lock:
            if self.is_short:
                return False
            self._run_short()
            return self._remove()

    def lend(self, use: Callable[[], object]) -> None:
        """Do something in that room, and take the room back. Raises what that raises."""
        with self._lock:
            self._remove()
            try:
                use()
            finally:
                if not self.is_short and not self._is_made():
                    self._run_short()

    def _run_short(self) -> None:
        self._set(is_short=True)
        log.warning("disk is full, only what frees space is taken until there is room again")

    def ask(self, submit: Callable[[Callable[[], object]], object]) -> None:
        """Have another thread try to take the room, now and then."""
        now = time.monotonic()
        if now >= self._again_at:
            self._again_at = now + AGAIN_S
            submit(self.take)

    def _set(self, *, is_short: bool) -> None:
        self.is_short = is_short
        self.told(is_short)

    def _is_whole(self) -> bool:
        if RESERVE not in self._files.names(""):
            return False
        file = self._files.open(RESERVE)
        try:
            return file.size() >= self._size
        finally:
            file.close()

    def _is_made(self) -> bool:
        """Make the file; tells whether growth may go on."""
        try:
            self._make()
        except DiskFull:
            self._remove()
            return False
        except StoreError as error:
            # The reason is not a lack of space.
            log.warning("no room is kept for deletions error=%s", error)
            self._remove()
        return True

    def _make(self) -> None:
        file = self._files.open(RESERVE, create=True)
        try:
            # Written, and not only allocated: not every file system can do that.
            for position in range(0, self._size, len(_ZEROS)):
                file.write_at(_ZEROS[: self._size - position], position)
            file.sync()
        finally:
            file.close()

    def _remove(self) -> bool:
        with suppress(StoreError):
            self._files.remove(RESERVE)
            return True
        return False
