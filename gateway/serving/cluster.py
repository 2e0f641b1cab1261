"""This process in a cluster: it opens the log, follows it, takes over, and hands over."""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from gateway.log.clock import wall_ms
from gateway.serving.active_member import ActiveMember
from gateway.serving.base_copies import BaseCopies
from gateway.serving.joining import Joining
from gateway.settings.cluster import ClusterSettings
from gateway.settings.errors import ConfigError, Problem
from store.errors import SegmentFailed, StoreError
from store.files import PASSING, DirectoryFiles
from store.local.state.data_file import DATA_DIRECTORY
from store.replica.files import ReplicatedFiles
from store.replica.follower import NeedsBase
from store.replica.following import Following
from store.replica.local_copy import LOCK
from store.replica.log import DurableLog, LogAway, LogGap
from store.replica.member import Member
from store.replica.members import MemberState
from store.replica.shipping import Pauses

log = logging.getLogger(__name__)

T = TypeVar("T")

_PAUSE_S: Final = 0.1
_TOLD_MESSAGES: Final = 10_000
"""Messages after which a member that has much to apply says how far it is."""


class Cluster:
    """This process in its cluster. `join` comes first, then `follow`, `serve` and `close`."""

    def __init__(self, settings: ClusterSettings, directory: Path, address: str) -> None:
        """Begin; `address` is where clients find this member, for the others."""
        self._settings = settings
        self._directory = directory
        self._address = address
        self._log: DurableLog | None = None
        self._following: Following | None = None
        self._active: ActiveMember | None = None
        self._joining = Joining(directory, settings.member_name)
        self._is_over = threading.Event()
        self._is_asked = threading.Event()
        self._working = threading.Lock()

    @property
    def name(self) -> str:
        """The name of this member."""
        return self._settings.member_name

    @property
    def active(self) -> str:
        """The active member and its address, in words."""
        active = next((each for each in self._states() if each.is_active), None)
        if active is None:
            return "no member is active now"
        return f"the active one is {active.name}, at {active.beat.address or 'no address'}"

    @property
    def alarms(self) -> list[str]:
        """The alarms that are on."""
        return [] if self._active is None else self._active.alarms

    @property
    def is_paused(self) -> bool:
        """True while this member is active and the log does not answer."""
        return self._active is not None and self._active.is_paused

    @property
    def is_fenced(self) -> bool:
        """True if another member has taken over from this one."""
        return self._active is not None and self._active.is_fenced

    def members(self) -> list[dict[str, object]]:
        """Return all members, by name, as JSON can hold them."""
        return [self._row(each) for each in self._states()]

    def forget(self, name: str) -> None:
        """Forget a member that will not come back; blocks.

        Raises KeyError: there is none of that name. LogAway: the log does not answer.
        """
        assert self._log is not None
        if name not in [each.name for each in self._states()]:
            raise KeyError(name)
        self._log.forget(name)
        log.warning("a member is forgotten member=%s", name)

    def take_over(self) -> None:
        """Have `follow` take over, though another member is active."""
        log.warning("asked to take over member=%s", self.name)
        self._is_asked.set()

    def _states(self) -> list[MemberState]:
        return [] if self._following is None else self._following.members.states()

    def _row(self, state: MemberState) -> dict[str, object]:
        silent_s = self._settings.takeover_beats * self._settings.beat_ms / 1_000
        is_silent = state.beat_age_s > silent_s
        role = "active" if state.is_active else "silent" if is_silent else "following"
        return {
            "name": state.name,
            "role": role,
            "term": state.beat.term,
            "number": state.beat.number,
            "lag_messages": state.lag_messages,
            "lag_seconds": round(state.lag_s, 1),
            "last_beat_seconds": round(state.beat_age_s, 1),
            "address": state.beat.address,
        }

    def join(self) -> None:
        """Open the log, and the directory with its lock. Blocks, as long as the log is away.

        Raises:
            ConfigError: The log cannot be used as the settings say.
            StoreError: The directory or the log cannot be used.
        """
        self._log = shared_log = self._opened()
        lock = DirectoryFiles(self._directory).lock(LOCK)
        try:
            self._joining.finish()
        except OSError as error:
            raise SegmentFailed(f"the copy of another member is not whole: {error}") from error
        finally:
            lock.close()
        self._following = self._begun(shared_log)

    def follow(self) -> ReplicatedFiles | None:
        """Follow the log until no member is active, and take over; blocks.

        Returns:
            The files to serve from; None if `leave` ended it.

        Raises:
            StoreError: The directory or the log cannot be used.
        """
        assert self._log is not None
        assert self._following is not None
        self._say_begun()
        try:
            files = None
            with self._working:
                while files is None:
                    try:
                        self._once_it_answers(self._until_due)
                        files = self._once_it_answers(self._following.member.take_over)
                    except (LogGap, NeedsBase) as error:
                        self._copy_anew(error)
        except _Left:
            return None
        following = self._following
        log.info("taking over term=%d member=%s", following.copy.place.link.term, self.name)
        settings, directory = self._settings, self._directory
        self._active = ActiveMember(settings, self._log, following, files, directory)
        return files

    def offer_copies(self, url: str) -> BaseCopies:
        """Have this member, which is active, give copies of its directory, at a URL."""
        assert self._active is not None
        return self._active.offer_copies(url)

    def leave(self) -> None:
        """Have `follow` end soon, on whatever thread it is."""
        self._is_over.set()

    def serve(self, failed: Callable[[StoreError], object]) -> None:
        """Do beside the serving what an active member has to do.

        `failed` is called, on another thread, when another member has taken over.
        """
        assert self._active is not None
        self._active.begin(failed)

    def close(self) -> None:
        """Hand over, and close; the store is closed. Blocks, as long as the log is away.

        `leave` comes before, where this member still follows.

        Raises:
            StoreError: The log or the directory has failed.
        """
        try:
            if self._active is not None:
                self._active.end()
        finally:
            with self._working:
                if self._following is not None:
                    self._following.member.close()
                if self._log is not None:
                    self._log.close()

    def _opened(self) -> DurableLog:
        try:
            from store.replica.jetstream import JetStreamLog, LogAddress  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                Problem("cluster.log", f'needs `pip install ".[cluster]"` in the sources: {error}')
            ) from error
        settings = self._settings
        options: dict[str, object] = {}
        if settings.credentials_file is not None:
            options["user_credentials"] = str(settings.credentials_file)
        address = LogAddress(settings.log, settings.replicas, settings.name, settings.ca, options)
        return self._once_it_answers(lambda: JetStreamLog.open(address))

    def _begun(self, shared_log: DurableLog) -> Following:
        """Return the following of the directory as it is. Raises StoreError."""
        settings = self._settings

        def joined() -> Member:
            return Member(
                DirectoryFiles(self._directory),
                shared_log,
                name=settings.member_name,
                ordered=(DATA_DIRECTORY,),
                now_ms=wall_ms,
                pause=lambda: time.sleep(_PAUSE_S),
                has_room=lambda size: shutil.disk_usage(self._directory).free >= size,
            )

        return Following(
            self._once_it_answers(joined),
            shared_log,
            beat_s=settings.beat_ms / 1_000,
            takeover_beats=settings.takeover_beats,
            clock=time.monotonic,
            address=self._address,
        )

    def _say_begun(self) -> None:
        assert self._following is not None
        number = self._following.copy.place.link.number
        log.info("following the log member=%s number=%d", self.name, number)

    def _copy_anew(self, reason: StoreError) -> None:
        """Copy the active member's directory, and follow from there; blocks. Raises StoreError."""
        assert self._log is not None
        assert self._following is not None
        log.warning("this member cannot go on with the log, it copies the active one: %s", reason)
        following = self._following
        with suppress(StoreError):  # nothing of it is needed any more
            following.member.close()
        self._joining.copy_active(following, self._address, self._pause)
        self._following = self._begun(self._log)
        self._say_begun()

    def _until_due(self) -> None:
        """Apply messages until this member is to take over. Raises StoreError, or _Left."""
        assert self._following is not None
        following = self._following
        told = following.copy.place.link.number
        while True:
            applied = following.step()
            if following.is_due or self._is_asked.is_set():
                self._is_asked.clear()
                return
            number = following.copy.place.link.number
            if number - told >= _TOLD_MESSAGES:
                told = number
                log.info("applying the log number=%d", number)
            if not applied:
                self._pause()

    def _once_it_answers(self, call: Callable[[], T]) -> T:
        """Return the result of a call to the log; while that or the disk does not do it wait."""
        pauses = Pauses()
        is_held_up = False
        while True:
            try:
                found = call()
            except LogAway as error:
                pauses.goes_on(str(error))
                self._pause()
            except PASSING as error:
                if not is_held_up:
                    log.warning("the data directory takes nothing, waiting error=%s", error)
                is_held_up = True
                self._pause()
            else:
                pauses.ends()
                return found

    def _pause(self) -> None:
        if self._is_over.wait(_PAUSE_S):
            raise _Left


class _Left(Exception):
    """The process ends."""
