"""The active member of a cluster: its signs of life, its copy's syncs, and the end of the log."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.serving.base_copies import BaseCopies
from gateway.settings.cluster import ClusterSettings
from store.errors import StoreError
from store.replica.files import ReplicatedFiles
from store.replica.following import SYNC_S, Following
from store.replica.log import DurableLog, LogAway
from store.replica.trimming import Trimming

log = logging.getLogger(__name__)

_TRIM_S: Final = 10.0


class ActiveMember:
    """A member that serves. A thread does what is due beside that."""

    def __init__(
        self,
        settings: ClusterSettings,
        shared_log: DurableLog,
        following: Following,
        files: ReplicatedFiles,
        directory: Path,
    ) -> None:
        """Begin with a member that has taken over, and the files of its directory."""
        self._log = shared_log
        self._following = following
        self._shipping = files.shipping
        self._beat_s = settings.beat_ms / 1_000
        self._trimming = Trimming(settings.log_bytes_max, time.monotonic)
        self._trimmed = 0
        self._copies = BaseCopies(directory, files.shipping, following.members)
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_fenced(self) -> bool:
        """True if another member has taken over from this one."""
        return self._shipping.is_fenced

    @property
    def alarms(self) -> list[str]:
        """The alarms that are on: the log does not answer, or members are away."""
        states = {"log_away": self.is_paused, "log_full": self._trimming.is_full}
        return [name for name, is_on in states.items() if is_on]

    @property
    def is_paused(self) -> bool:
        """True while the log does not answer."""
        return self._shipping.pauses.is_on

    def begin(self, failed: Callable[[StoreError], object]) -> None:
        """Begin; `failed` is called, on the thread, when nothing is stored any more."""
        self._thread = threading.Thread(
            target=self._run, args=(failed,), name="cluster", daemon=True
        )
        self._thread.start()

    def offer_copies(self, url: str) -> BaseCopies:
        """Offer copies of the directory, at a URL."""
        self._following.copies_url = url
        return self._copies

    def end(self) -> None:
        """Hand over; the store is closed. Waits, as long as the log is away. Raises StoreError."""
        self._copies.close()
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        self._shipping.hand_over()

    def _run(self, failed: Callable[[StoreError], object]) -> None:
        sync_at = trim_at = time.monotonic()
        while not self._is_over.wait(self._beat_s):
            now = time.monotonic()
            try:
                self._following.beat(is_active=True)
                self._shipping.look()
                if now >= sync_at:
                    self._shipping.sync_copy()
                    sync_at = now + SYNC_S
                if now >= trim_at:
                    self._trim()
                    trim_at = now + _TRIM_S
            except LogAway:
                continue  # what is stored waits for it, and says so
            except StoreError as error:
                failed(error)
                return

    def _trim(self) -> None:
        """Remove from the log what the members have on their disks."""
        trimming, copy, was_full = self._trimming, self._following.copy, self._trimming.is_full
        self._copies.tidy(self._following.members.states())
        trimming.note(copy.place.position, self._shipping.sent_bytes)
        others = [beat.synced for _, beat in self._following.others().values()]
        position = trimming.position(copy.synced.position, others, self._log.size())
        if trimming.is_full and not was_full:
            log.error(
                "the log is full because members are away: this one alone holds what is older"
                " position=%d setting=cluster.log_bytes_max",
                position,
            )
        if position - 1 > self._trimmed:
            self._trimmed = position - 1  # the message before stays: behind it nothing is missing
            self._log.trim(self._trimmed)
