"""Content of a data directory: recognition of a store among other files, and its removal."""

import enum
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from store.local.commit.journal_files import JOURNAL_DIRECTORY
from store.local.recovery.checkpoint import CHECKPOINT
from store.local.recovery.checkpoint_file import BEGINNING_BYTES, check_number
from store.local.recovery.journal_damage import SET_ASIDE
from store.local.reserve import RESERVE
from store.local.state.data_file import DATA_DIRECTORY
from store.regular_file import open_regular

_OF_A_STORE: Final = frozenset(
    (
        CHECKPOINT,
        "checkpoint.new",
        "lock",
        "member",
        "member.new",
        "admin.sock",
        "token.key",
        "token.new",
        RESERVE,
        JOURNAL_DIRECTORY,
        DATA_DIRECTORY,
        SET_ASIDE,
    )
)
_OF_A_FILE_SYSTEM: Final = frozenset(("lost+found",))
"""Names in the root directory of a new file system."""


class Found(enum.Enum):
    """Kind of content of a directory."""

    STORE = "a store"
    NOTHING = "nothing, or what a first start left that was cut off"
    OTHER = "files that are no store"


def look_into(directory: Path) -> Found:
    """Return the contents of a directory, which may be missing. A damaged store is a store.

    Raises:
        OtherFormat: It is a store, with another number of the stored form.
        OSError: It cannot be looked into.
    """
    try:
        names = {each.name for each in directory.iterdir()} - _OF_A_FILE_SYSTEM
    except FileNotFoundError:
        return Found.NOTHING
    checkpoint = directory / CHECKPOINT
    if checkpoint.is_file() or checkpoint.is_symlink():
        with os.fdopen(open_regular(str(checkpoint)), "rb") as file:
            check_number(file.read(BEGINNING_BYTES))
        return Found.STORE
    folders = [directory / JOURNAL_DIRECTORY, directory / DATA_DIRECTORY]
    files = [file for folder in folders for file in _within(folder)]
    is_numbered = all(file.name.isdecimal() and file.is_file() for file in files)
    has_both = all(folder.is_dir() for folder in folders)
    if not is_numbered or CHECKPOINT in names or not (names <= _OF_A_STORE or (files and has_both)):
        return Found.OTHER
    return Found.STORE if files else Found.NOTHING


def has_data(directory: Path) -> bool:
    """Return whether a store has stored anything. Raises OSError."""
    return any(_within(directory / DATA_DIRECTORY))


def was_damaged(directory: Path) -> bool:
    """Return whether a store holds files that an opening has set aside as damaged. OSError."""
    return any(_within(directory / SET_ASIDE))


def remove_store(directory: Path) -> None:
    """Remove a store, and nothing else that lies in its directory. Raises OSError."""
    for name in _OF_A_STORE:
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _within(folder: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):
        yield from folder.iterdir()
