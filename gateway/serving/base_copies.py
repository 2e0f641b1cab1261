"""Copies of the active member's directory, for members that cannot begin with the log.

A copy is a folder of links to the files as they are named at one message of the log. What the
server writes into them afterwards is in later messages, which the new member applies again: they
say what is there afterwards. So the server goes on meanwhile.
"""

import hashlib
import hmac
import logging
import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from store.replica.local_copy import COPIES, Place, is_own
from store.replica.members import Members, MemberState
from store.replica.shipping import Shipping

log = logging.getLogger(__name__)

GONE_S: Final = 600.0
"""A member of which nothing was heard for so long begins with a new copy."""
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class BaseCopy:
    """A copy.

    Attributes:
        id: Of no other copy.
        folder: The links.
        place: The place in the log from which on messages have to be applied.
        directories: Paths of the directories, those above first.
        files: Paths of the files, with their sizes then, in bytes.
    """

    id: str
    folder: Path
    place: Place
    directories: tuple[str, ...]
    files: tuple[tuple[str, int], ...]

    def described(self) -> dict[str, object]:
        """Return what the new member has to know, as JSON can hold it."""
        return {
            "id": self.id,
            "place": self.place.pack().decode(),
            "directories": self.directories,
            "files": self.files,
        }


def key_of(token: str) -> str:
    """Return what a member says through the log, so that its token lets it in."""
    return hashlib.sha256(token.encode()).hexdigest()


class BaseCopies:
    """The copies that are under way, one for each member. Any thread may call it."""

    def __init__(self, directory: Path, shipping: Shipping, members: Members) -> None:
        """Begin, without those that an earlier process has left."""
        self._directory = directory
        self._shipping = shipping
        self._members = members
        self._copies: dict[str, BaseCopy] = {}
        shutil.rmtree(directory / COPIES, ignore_errors=True)

    def lets_in(self, member: str, token: str) -> bool:
        """Return whether the log has a beat of a member that promises this token."""
        _, beat = self._members.beats.get(member, (0, None))
        key = "" if beat is None else beat.key
        return bool(key) and hmac.compare_digest(key, key_of(token))

    def begin(self, member: str, known: str = "") -> BaseCopy:
        """Return the copy of the id `known` if a member has it, else begin one for it; blocks.

        Raises OSError: the file system cannot do it.
        """
        copy = self._copies.get(member)
        if copy is not None and copy.id == known:
            return copy
        self.end(member)
        made = secrets.token_hex(_ID_BYTES)
        folder = self._directory / COPIES / made
        try:
            copy = self._shipping.at_rest(lambda place: self._linked(made, folder, place))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._copies[member] = copy
        log.info("a member copies this one member=%s number=%d", member, copy.place.link.number)
        return copy

    def path(self, member: str, index: int) -> Path | None:
        """Return the path of a file of a member's copy; None if there is none."""
        copy = self._copies.get(member)
        if copy is None or not 0 <= index < len(copy.files):
            return None
        return copy.folder / copy.files[index][0]

    def end(self, member: str) -> None:
        """Forget a member's copy."""
        copy = self._copies.pop(member, None)
        if copy is not None:
            shutil.rmtree(copy.folder, ignore_errors=True)

    def tidy(self, states: Iterable[MemberState]) -> None:
        """Forget the copies of members that need them no more, or are gone."""
        needing = {each.name for each in states if each.beat.key and each.beat_age_s < GONE_S}
        for member in self._copies.keys() - needing:
            self.end(member)

    def close(self) -> None:
        """Forget all."""
        for member in list(self._copies):
            self.end(member)

    def _linked(self, made: str, folder: Path, place: Place) -> BaseCopy:
        """Link all files that are in the log; nothing is applied meanwhile."""
        directories, files = [], []
        tops = [each for each in self._directory.iterdir() if not is_own(each.name)]
        for path in sorted(path for top in tops for path in (top, *top.rglob("*"))):
            name = str(path.relative_to(self._directory))
            target = folder / name
            if path.is_dir():
                target.mkdir(parents=True)
                directories.append(name)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, target)
                files.append((name, path.stat().st_size))
        return BaseCopy(made, folder, place, tuple(directories), tuple(files))
