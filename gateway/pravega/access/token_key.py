"""The key of the wire protocol's tokens: a file that is given, or one in the data directory."""

import logging
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.settings.errors import ConfigError, Problem
from store.regular_file import open_regular

log = logging.getLogger(__name__)

SETTING: Final = "wire.token_key_file"
NAME: Final = "token.key"
"""The file in the data directory."""

_KEY_BYTES: Final = 64
_KEY_BYTES_MIN: Final = 32
_FILE_BYTES_MAX: Final = 64 * 1024


def read_key(path: Path, opener: Callable[[str, int], int] | None = None) -> bytes:
    """Return the key in a file: its content without white space at the ends.

    Args:
        path: The file.
        opener: Opens it; as every file where it is left out, which may be a link.

    Raises:
        ConfigError: It cannot be read, or holds no key.
    """
    try:
        with open(str(path), "rb", opener=opener) as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(Problem(SETTING, f"cannot read {path}: {error.strerror}")) from error
    key = content.strip()
    if not key or len(content) > _FILE_BYTES_MAX:
        reason = f"{path} holds no key; a line of {_KEY_BYTES} random characters will do"
        raise ConfigError(Problem(SETTING, reason))
    if len(key) < _KEY_BYTES_MIN:
        log.warning("the key of tokens is short, and can be guessed path=%s", path)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("other users may read the key of tokens, chmod 600 shuts it path=%s", path)
    return key


def made_key(directory: Path) -> bytes:
    """Return the key of a data directory; make it at the first call.

    Raises:
        ConfigError: It cannot be read or written, or holds no key.
    """
    path = directory / NAME
    if not path.exists():
        _make(path, secrets.token_urlsafe(_KEY_BYTES).encode())
        log.info("a key of tokens is made path=%s", path)
    return read_key(path, open_regular)


def put_key(directory: Path, key: bytes) -> None:
    """Have a data directory's file hold a key. Raises as `made_key`."""
    path = directory / NAME
    if not path.exists() or read_key(path, open_regular) != key:
        _make(path, key)
        log.info("the key of tokens is that of the cluster path=%s", path)


def _make(path: Path, key: bytes) -> None:
    """Write a key for its owner alone. The file has its name only when it is whole."""
    new = path.with_suffix(".new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise ConfigError(Problem(SETTING, f"cannot make {path}: {error.strerror}")) from error


def _sync_directory(directory: Path) -> None:
    """Put the names in a directory on the disk; without it a power cut may take the key away."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
