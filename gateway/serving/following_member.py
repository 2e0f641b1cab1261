"""A member of a cluster that follows: it applies the log until no other member is active."""

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from gateway.log.clock import wall_ms
from gateway.settings.cluster import ClusterSettings
from store.files import PASSING, DirectoryFiles
from store.local.state.data_file import DATA_DIRECTORY
from store.replica.beats import Beat, Silence
from store.replica.files import ReplicatedFiles
from store.replica.local_copy import LocalCopy
from store.replica.log import DurableLog, LogAway
from store.replica.member import Member
from store.replica.shipping import Pauses

log = logging.getLogger(__name__)

T = TypeVar("T")

SYNC_S: Final = 2.0
"""Time between two syncs of what was applied: a start applies anew what came since the last one."""
PAUSE_S: Final = 0.1
_TOLD_MESSAGES: Final = 10_000
"""Messages after which a member that has much to apply says how far it is."""


def once_it_answers(call: Callable[[], T]) -> T:
    """Return the result of a call to the log; while that or the disk does not do it wait."""
    pauses = Pauses()
    is_held_up = False
    while True:
        try:
            found = call()
        except LogAway as error:
            pauses.goes_on(str(error))
            time.sleep(PAUSE_S)
        except PASSING as error:
            if not is_held_up:
                log.warning("the data directory takes nothing, waiting error=%s", error)
            is_held_up = True
            time.sleep(PAUSE_S)
        else:
            pauses.ends()
            return found


class FollowingMember:
    """A member from its start on, until it takes over.

    Attributes:
        log: The log, open.
        member: The member, which holds its directory's lock.
        name: Its name.
    """

    def __init__(self, settings: ClusterSettings, directory: Path, shared_log: DurableLog) -> None:
        """Open the directory; blocks, as long as the log is away. Raises StoreError."""
        self.log = shared_log
        self.name = settings.member_name
        self._settings = settings
        self._directory = directory
        self.member = once_it_answers(self._joined)

    @property
    def copy(self) -> LocalCopy:
        """The member's copy."""
        return self.member.follower.copy

    def take_over(self) -> ReplicatedFiles:
        """Follow until no member is active, and take over; blocks. Raises StoreError."""
        log.info("following the log member=%s number=%d", self.name, self.copy.place.link.number)
        files = None
        while files is None:
            once_it_answers(self._until_none_is_active)
            files = once_it_answers(self.member.take_over)
        log.info("taking over term=%d member=%s", self.copy.place.link.term, self.name)
        return files

    def others(self) -> dict[str, tuple[int, Beat]]:
        """Return the last beat of each other member, with a number that grows. Raises LogAway."""
        return {
            name: (count, Beat.unpack(data))
            for name, (count, data) in self.log.beats().items()
            if name != self.name
        }

    def beat(self, *, is_active: bool) -> bool:
        """Send a beat; return whether the log has it. Waits."""
        link, synced = self.copy.place.link, self.copy.synced.position
        data = Beat(is_active, link.term, link.number, synced).pack()
        return self.log.beat(self.name, data).wait()

    def _joined(self) -> Member:
        return Member(
            DirectoryFiles(self._directory),
            self.log,
            name=self.name,
            ordered=(DATA_DIRECTORY,),
            now_ms=wall_ms,
            pause=lambda: time.sleep(PAUSE_S),
            has_room=lambda size: shutil.disk_usage(self._directory).free >= size,
        )

    def _until_none_is_active(self) -> None:
        """Apply messages until no member is active. Raises StoreError."""
        follower, copy = self.member.follower, self.copy
        silence = Silence(self._settings.takeover_beats)
        beat_at = sync_at = time.monotonic()
        told = copy.place.link.number
        while True:
            applied = follower.step()
            if copy.place.link.number - told >= _TOLD_MESSAGES:
                told = copy.place.link.number
                log.info("applying the log number=%d", told)
            if not applied and (follower.active == "" or self._is_first()):
                return
            now = time.monotonic()
            if now >= sync_at:
                copy.sync()
                sync_at = now + SYNC_S
            if now >= beat_at:
                beat_at = now + self._settings.beat_ms / 1_000
                if self._is_silent(silence):
                    log.warning("the active member is silent member=%s", follower.active)
                    return
            if not applied:
                time.sleep(PAUSE_S)

    def _is_first(self) -> bool:
        """Return whether there is no message yet."""
        return not self.copy.place.link.number and self.log.last() is None

    def _is_silent(self, silence: Silence) -> bool:
        """Send a beat, and return whether the active member has gone by it."""
        if not self.beat(is_active=False):
            return False
        signs = {name: count for name, (count, beat) in self.others().items() if beat.is_active}
        return silence.beat_stored((self.copy.place.link.number, signs))
