"""Following: all that a member does until it takes over, a step at a time, and the rule for that.

What becomes of a step is decided by the log and by the clock that it is given; it never waits for
time to pass.
"""

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from store.replica.beats import Beat, Silence
from store.replica.local_copy import LocalCopy
from store.replica.log import DurableLog, LogError
from store.replica.member import Member
from store.replica.members import Members

log = logging.getLogger(__name__)

SYNC_S: Final = 2.0
"""Time between two syncs of what was applied: a start applies anew what came since the last one."""
_TWIN_BEATS: Final = 2


class NameTaken(LogError):
    """Another process is a member by this name."""


class Following:
    """A member from its start on. One thread at a time calls it.

    Attributes:
        member: The member, which holds its directory's lock.
        members: All members, as the log knew them after the last beat.
        copies_url: Where this member gives copies of its directory; "" if it does not.
        is_due: Whether it is to take over, by the last step.
    """

    def __init__(
        self,
        member: Member,
        shared_log: DurableLog,
        *,
        beat_s: float,
        takeover_beats: int,
        clock: Callable[[], float],
        address: str = "",
    ) -> None:
        """Begin.

        Args:
            member: The member.
            shared_log: The log.
            beat_s: Time between two of its beats.
            takeover_beats: Its beats without a sign of the active member that make it due.
            clock: Seconds that only grow.
            address: Where its clients would find it, for the other members.
        """
        self.member = member
        self.members = Members(clock)
        self.copies_url = ""
        self._process = secrets.token_hex(8)
        self._twin_beats: set[int] = set()
        self.is_due = False
        self._address = address
        self._log = shared_log
        self._beat_s = beat_s
        self._clock = clock
        self._silence = Silence(takeover_beats)
        self._beat_at = self._sync_at = clock()

    @property
    def copy(self) -> LocalCopy:
        """The member's copy."""
        return self.member.follower.copy

    def step(self) -> int:
        """Apply messages that are there, sync and beat where that is due; return how many.

        Raises:
            LogAway: The log does not answer: another step may be made.
            StoreError: As `Follower.step`.
        """
        applied = self.member.follower.step()
        is_left = self.member.follower.active == ""
        self.is_due = not applied and (is_left or self._is_first())
        if self.is_due:
            return applied  # no beat before the first message: behind it nothing is missing
        now = self._clock()
        if now >= self._sync_at:
            self.copy.sync()
            self._sync_at = now + SYNC_S
        if now >= self._beat_at:
            self._beat_at = now + self._beat_s
            if self._is_silent():
                active = self.member.follower.active
                log.warning("the active member is silent member=%s", active)
                self.is_due = True
        return applied

    def others(self) -> dict[str, tuple[int, Beat]]:
        """Return the last beat of each other member, with a number that grows with each."""
        beats = self.members.beats
        return {name: beats[name] for name in beats if name != self.member.name}

    def beat(self, *, is_active: bool) -> bool:
        """Send a beat, and look at those of all; return whether the log has it. Waits.

        Raises LogAway, or NameTaken.
        """
        link, synced = self.copy.place.link, self.copy.synced.position
        where = self._address, self.copies_url
        return self.send(Beat(is_active, link.term, link.number, synced, *where))

    def send(self, beat: Beat) -> bool:
        """Send a beat as it is, with this process; as `beat`."""
        said = replace(beat, process=self._process)
        is_stored = self._log.beat(self.member.name, said.pack()).wait()
        self.members.note(self._log.beats())
        self._look_for_twin(is_active=beat.is_active)
        return is_stored

    def _look_for_twin(self, *, is_active: bool) -> None:
        """Look whether another process beats by this name. Raises NameTaken: this one follows."""
        count, beat = self.members.beats.get(self.member.name, (0, Beat(process=self._process)))
        if beat.process == self._process or count in self._twin_beats:
            return
        self._twin_beats.add(count)
        if len(self._twin_beats) != _TWIN_BEATS:  # the first may be that of an earlier process
            return
        words = (
            f"another process is member {self.member.name} of this cluster as well: each needs a"
            " name of its own (cluster.member)"
        )
        if not is_active:
            raise NameTaken(words)
        log.error("%s", words)

    def _is_first(self) -> bool:
        """Return whether there is no message yet."""
        return not self.copy.place.link.number and self._log.last() is None

    def _is_silent(self) -> bool:
        """Send a beat, and return whether the active member has gone by it."""
        if not self.beat(is_active=False):
            return False
        signs = {name: count for name, (count, beat) in self.others().items() if beat.is_active}
        return self._silence.beat_stored((self.copy.place.link.number, signs))
