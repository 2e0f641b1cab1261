"""Member: one process with a data directory of its own, which follows the log or writes it."""

import secrets
from collections.abc import Callable, Collection

from store.files import File, Files
from store.replica.files import HasRoom, ReplicatedFiles
from store.replica.follower import Follower
from store.replica.local_copy import LOCK, LocalCopy, Place, is_own, place_in
from store.replica.log import DurableLog, LogError
from store.replica.message import CLUSTER_BYTES, Message
from store.replica.operations import Operation
from store.replica.shipping import Shipping


def shared_names(own: Files) -> list[str]:
    """Return the names in a directory that are in the log: it is empty where there are none."""
    return [name for name in own.names("") if not is_own(name)]


class Member:
    """A member, from the opening of its directory on. It holds the directory's lock.

    Attributes:
        name: Its name, which no other member has.
        follower: Applies the log.
    """

    def __init__(  # what it needs from outside
        self,
        own: Files,
        shared_log: DurableLog,
        *,
        name: str,
        ordered: Collection[str],
        now_ms: Callable[[], int],
        pause: Callable[[], object],
        has_room: HasRoom = lambda _: True,
    ) -> None:
        """Open a directory; a new one begins with nothing.

        Args:
            own: The directory.
            shared_log: The log.
            name: The member's name.
            ordered: See `ReplicatedFiles`.
            now_ms: The time.
            pause: Waits a little, between two questions to a log that does not answer.
            has_room: Whether the disk has room for some bytes.

        Raises:
            StoreLocked: Another process has the directory.
            StoreError: It cannot be read.
        """
        self.name = name
        self._own = own
        self._log = shared_log
        self._ordered = ordered
        self._now_ms = now_ms
        self._pause = pause
        self._has_room = has_room
        own.make_directory("")
        self._lock: File = own.lock(LOCK)
        try:
            place = place_in(own)
            is_new = place is None or not place.link.number
            has_base = is_new and bool(shared_names(own))
            first = place or _first_place(shared_log, has_base=has_base)
            copy = LocalCopy(own, first, is_begun=place is not None)
        except BaseException:
            self._lock.close()
            raise
        self._copy = copy
        self.follower = Follower(shared_log, copy, has_base=has_base)

    def take_over(self) -> ReplicatedFiles | None:
        """Begin a term, and return the files for a store, which closes them and the lock.

        Returns:
            None: another member was quicker.

        Raises:
            StoreError: As `Follower.step`.
        """
        position = self.follower.take_over(self.name, self._now_ms())
        if position is None:
            return None
        began_ms = self.follower.began_ms

        def ship(applied: Callable[[Operation], object]) -> Shipping:
            return Shipping(
                self._log,
                self._copy,
                position,
                now_ms=lambda: max(began_ms, self._now_ms()),
                pause=self._pause,
                applied=applied,
            )

        return ReplicatedFiles(
            self._own,
            ship,
            lock=self._lock,
            ordered=self._ordered,
            has_room=self._has_room,
        )

    def close(self) -> None:
        """Have the copy on the disk and close it, with the lock. Raises StoreError."""
        try:
            self._copy.sync()
        finally:
            self._copy.close()
            self._lock.close()


def _first_place(shared_log: DurableLog, *, has_base: bool) -> Place:
    """Return the place of a directory that is no member's yet. Raises LogError."""
    last = shared_log.last()
    if last is None:
        return Place(secrets.token_bytes(CLUSTER_BYTES))
    if has_base:
        raise LogError(
            "the data directory has a store that is no member of this log's cluster: begin with"
            " an empty directory, or with another log"
        )
    return Place(Message.unpack(last.data).cluster)
