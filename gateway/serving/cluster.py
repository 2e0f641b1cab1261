"""This process in a cluster: it opens the log, follows it, takes over, and hands over."""

from collections.abc import Callable
from pathlib import Path

from gateway.serving.active_member import ActiveMember
from gateway.serving.following_member import FollowingMember, once_it_answers
from gateway.settings.cluster import ClusterSettings
from gateway.settings.errors import ConfigError, Problem
from store.errors import StoreError
from store.replica.files import ReplicatedFiles
from store.replica.log import DurableLog


class Cluster:
    """This process in its cluster. `follow` comes first, then `serve`, then `close`."""

    def __init__(self, settings: ClusterSettings, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        self._log: DurableLog | None = None
        self._following: FollowingMember | None = None
        self._active: ActiveMember | None = None

    @property
    def is_fenced(self) -> bool:
        """True if another member has taken over from this one."""
        return self._active is not None and self._active.is_fenced

    def follow(self) -> ReplicatedFiles:
        """Follow the log until no member is active; take over, and return the files. Blocks.

        Raises:
            ConfigError: The log cannot be used as the settings say.
            StoreError: The directory or the log cannot be used.
        """
        settings = self._settings
        self._log = shared_log = self._opened()
        self._following = following = FollowingMember(settings, self._directory, shared_log)
        files = following.take_over()
        self._active = ActiveMember(settings, following, files)
        return files

    def serve(self, failed: Callable[[StoreError], object]) -> None:
        """Do beside the serving what an active member has to do.

        `failed` is called, on another thread, when another member has taken over.
        """
        assert self._active is not None
        self._active.begin(failed)

    def close(self) -> None:
        """Hand over, and close; the store is closed. Blocks, as long as the log is away.

        Raises:
            StoreError: The log or the directory has failed.
        """
        try:
            if self._active is not None:
                self._active.end()
        finally:
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
        return once_it_answers(lambda: JetStreamLog.open(address))
