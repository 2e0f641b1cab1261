"""The data directory: checked, made, and tried, before the store takes it."""

import errno
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.settings.errors import ConfigError, Problem
from store.errors import StoreError

log = logging.getLogger(__name__)

_SETTING: Final = "store.data_directory"
_UNUSABLE: Final = frozenset(
    (
        errno.EACCES,
        errno.EEXIST,
        errno.EINVAL,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    )
)
"""Errors that say that this cannot be the directory; all others are about its state."""


class DataDirectory:
    """The data directory of one start.

    Attributes:
        path: Absolute, without links.
        is_new: There was no store in it, and nothing has been served from it.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # of a loop of links too
        self.is_new = False
        self._is_made = False

    def make(
        self, make: Callable[[str], object], *, has_store: bool, is_free: bool, must_exist: bool
    ) -> None:
        """Make the directory unless it is there.

        Args:
            make: The store's way to make a directory below that one, "" being itself.
            has_store: Whether there is a store in it.
            is_free: Whether a new store may begin there.
            must_exist: Whether there has to be a store.

        Raises:
            ConfigError: There can be none, it is no store's, or nothing can be written to it.
            StoreError: It cannot be made now.
        """
        if not has_store and not is_free:
            raise self._refusal("holds other files and is no store; an empty directory will do")
        if not has_store and must_exist:
            raise self._refusal("there is no store, and store.must_exist asks for one")
        self.is_new, self._is_made = not has_store, not self.path.exists()
        try:
            make("")
        except StoreError as error:
            if isinstance(error.__cause__, OSError):
                self.blame(error.__cause__)
            raise
        try:
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            self.blame(error)  # else the store says it, if it comes to that
        self._warn_of_others()

    def _warn_of_others(self) -> None:
        """Warn of a directory in which other users may put their files in the place of ours."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & stat.S_IWOTH:
            log.warning(
                "other users may write to the data directory, chmod 700 shuts it"
                " directory=%s mode=%o",
                self.path,
                mode,
            )

    def keep(self) -> None:
        """Leave all that is there if the start fails: it may belong to another program."""
        self.is_new = False

    def unmake(self, remove: Callable[[Path], object]) -> None:
        """Take away the store that a failed start has left, and the directory if it made it."""
        if not self.is_new:
            return
        try:
            remove(self.path)
            if self._is_made:
                self.path.rmdir()
        except OSError as error:  # why the start failed is what counts
            log.warning("what this start made is not all removed error=%s", error)

    def blame(self, error: OSError) -> None:
        """Raise ConfigError if an error says that this cannot be the directory."""
        if error.errno in _UNUSABLE:
            reason = f"cannot keep data in {self.path}: {error.strerror}"
            raise ConfigError(Problem(_SETTING, reason)) from error

    def _refusal(self, reason: str) -> ConfigError:
        return ConfigError(Problem(_SETTING, f"{self.path}: {reason}"))
