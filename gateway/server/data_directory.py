"""Where the data is to be: made, and tried, before the store takes it."""

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.config import ConfigError, Problem
from store.errors import StoreError

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
"""What says that this cannot be the directory; all else is about its state."""


def make_data_directory(make: Callable[[str], object], path: Path) -> None:
    """Make the data directory unless it is there.

    Args:
        make: The store's way to make a directory below that one, "" being itself.
        path: The same as it was set.

    Raises:
        ConfigError: There can be none, or nothing can be written to it.
        StoreError: It cannot be made now.
    """
    try:
        make("")
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            _blame(path, error.__cause__)
        raise
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        _blame(path, error)  # else the store says it, if it comes to that


def _blame(path: Path, error: OSError) -> None:
    if error.errno in _UNUSABLE:
        reason = f"cannot keep data in {path}: {error.strerror}"
        raise ConfigError(Problem("store.data_directory", reason)) from error
