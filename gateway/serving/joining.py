"""A member that cannot begin with the log: it copies the active member's directory first.

    joining/base.json      what the copy has, and its id: a start goes on with it
    joining/files/…        what was fetched so far
    joining/fetched        all was fetched, and is synced
    joining/emptied        what the directory had before is gone

Files move into place behind the last one, and the file `member` says that the directory is whole.
Until then no server takes it for a store.
"""

import http.client
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.management.http.copying import COPY, MEMBER, PLACE
from gateway.serving.base_copies import key_of
from store.errors import StoreError
from store.files import DirectoryFiles
from store.replica.beats import Beat
from store.replica.following import Following
from store.replica.local_copy import JOINING, LocalCopy, Place, is_own
from store.replica.local_copy import MEMBER as MEMBER_FILE
from store.replica.log import LogAway
from store.replica.members import Members

log = logging.getLogger(__name__)

_BEAT_S: Final = 1.0
_SAY_AGAIN_S: Final = 60.0
_TIMEOUT_S: Final = 30.0
_SAY_S: Final = 5.0
_READ_BYTES: Final = 1024 * 1024
_BASE: Final = "base.json"
_FILES: Final = "files"
_FETCHED: Final = "fetched"
_EMPTIED: Final = "emptied"
_HTTP_FAILED: Final = (OSError, http.client.HTTPException)


class CopyRefused(StoreError):
    """The other member gives no copy; the message says why."""


class Joining:
    """The way from another member's directory into this one. One thread calls it."""

    def __init__(self, directory: Path, member: str) -> None:
        self._directory = directory
        self._member = member
        self._folder = directory / JOINING

    def finish(self) -> None:
        """Go on where an earlier process has ended, if all was fetched. Raises OSError."""
        if (self._folder / _FETCHED).exists():
            self._put_in_place()
        elif self._folder.is_dir() and not (self._folder / _BASE).exists():  # all was in place
            shutil.rmtree(self._folder)

    def copy_active(self, following: Following, address: str, pause: Callable[[], object]) -> None:
        """Copy the active member's directory in the place of this one; blocks, until it is done.

        Args:
            following: The beats of this member, whose directory is closed.
            address: Where its clients would find it, for the others.
            pause: Waits a little, and may raise to end this.
        """
        token = secrets.token_hex(16)
        beating = _Beating(following, Beat(address=address, key=key_of(token)), pause)
        said_at = -_SAY_AGAIN_S
        while True:
            try:
                if not (self._folder / _FETCHED).exists():
                    beating.beat()
                    self._fetch(_copies_url(following.members), token, beating)
                self._put_in_place()
            except (CopyRefused, LogAway, *_HTTP_FAILED) as error:
                if time.monotonic() - said_at >= _SAY_AGAIN_S:
                    said_at = time.monotonic()
                    log.warning(
                        "no copy yet, waiting reason=%s", str(error) or type(error).__name__
                    )
                pause()
            else:
                return

    def _fetch(self, url: str, token: str, beating: "_Beating") -> None:
        """Copy the directory of another member into a folder; blocks.

        Args:
            url: Of the member's management port.
            token: As the last beat has promised it.
            beating: Beats meanwhile.

        Raises:
            CopyRefused: The other one gives none now.
            OSError, HTTPException: The connection or the disk has failed: a later call goes on.
        """
        source = _Source(url, {MEMBER: self._member, "authorization": f"Bearer {token}"})
        base = self._base(source)
        sizes = [size for _, size in base["files"]]
        log.info("copying a member url=%s files=%d bytes=%d", url, len(sizes), sum(sizes))
        for path in base["directories"]:
            (self._folder / _FILES / path).mkdir(parents=True, exist_ok=True)
        progress = _Progress(len(sizes), sum(sizes), beating)
        for index, (path, size) in enumerate(base["files"]):
            self._fetch_file(source, index, self._folder / _FILES / path, size, progress)
        _sync_tree(self._folder / _FILES)
        _mark(self._folder / _FETCHED)
        with suppress(*_HTTP_FAILED):  # it sees from the next beat that this is over
            source.ask("DELETE", PLACE)

    def _base(self, source: "_Source") -> dict[str, Any]:
        """Return what there is to fetch: of the copy that was begun, if it is still there."""
        place = self._folder / _BASE
        known = json.loads(place.read_bytes()) if place.exists() else {"id": ""}
        status, answer = source.ask("POST", PLACE, {COPY: known["id"]})
        if status != HTTPStatus.OK:
            words = answer[:500].decode(errors="replace")
            raise CopyRefused(f"the active member gives no copy: {status} {words}")
        base: dict[str, Any] = json.loads(answer)
        for path in (*base["directories"], *(path for path, _ in base["files"])):
            if is_own(path) or Path(path).is_absolute() or ".." in Path(path).parts:
                raise CopyRefused(
                    f"the active member gives {path[:100]!r}, which is no shared file"
                )
        if base["id"] != known["id"]:
            shutil.rmtree(self._folder, ignore_errors=True)
            (self._folder / _FILES).mkdir(parents=True)
            place.write_bytes(answer)
            return base
        fetched = [self._folder / _FILES / path for path, _ in base["files"]]
        for path in [each for each in fetched if each.exists()][-1:]:
            path.unlink()  # whether all of it is on the disk is not known
        return base

    def _fetch_file(
        self, source: "_Source", index: int, path: Path, size: int, progress: "_Progress"
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            while (at := file.tell()) < size:
                part = source.part(f"{PLACE}/{index}", at, min(size, at + _READ_BYTES))
                if not part:  # it was cut meanwhile, as a later message says
                    break
                file.write(part)
                progress.note(len(part))
            os.fsync(file.fileno())
        progress.end_file()

    def _put_in_place(self) -> None:
        """Put what was fetched in the place of what is here; a later call goes on with it."""
        files, base = self._folder / _FILES, json.loads((self._folder / _BASE).read_bytes())
        directory = DirectoryFiles(self._directory)
        if not (self._folder / _EMPTIED).exists():
            for path in self._directory.iterdir():
                if not is_own(path.name):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            directory.remove(MEMBER_FILE)
            directory.sync_directory("")
            _mark(self._folder / _EMPTIED)
        for path in list(files.iterdir()):
            path.rename(self._directory / path.name)
        directory.sync_directory("")
        place = Place.unpack(base["place"].encode())
        LocalCopy(directory, place, is_begun=False).begin()
        for name in (_FETCHED, _BASE):  # first what would make a start go on with it
            (self._folder / name).unlink()
            _sync_directory(self._folder)
        shutil.rmtree(self._folder)
        log.info("copied number=%d", place.link.number)


def _copies_url(members: Members) -> str:
    """Return where the active member gives copies. Raises CopyRefused."""
    active = next((each for each in members.states() if each.is_active), None)
    if active is None:
        raise CopyRefused("no member is active now")
    if not active.beat.copies:
        raise CopyRefused(
            f"the active member {active.name} gives none: it takes the management API"
            " (management.enabled, and management.host for other machines)"
        )
    return active.beat.copies


class _Beating:
    """Signs of life of a member that copies, with the promise of its token."""

    def __init__(self, following: Following, beat: Beat, pause: Callable[[], object]) -> None:
        self._following, self._beat, self._rest = following, beat, pause
        self._sent_at = 0.0

    def beat(self) -> None:
        """Send one. Raises LogAway."""
        self._sent_at = time.monotonic()
        self._following.send(self._beat)

    def beat_if_due(self) -> None:
        """Send one now and then, if the log answers; may raise to end the copy."""
        if time.monotonic() - self._sent_at >= _BEAT_S:
            self._rest()
            with suppress(LogAway):
                self.beat()


class _Source:
    """The other member's management port."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_S
        )
        self._headers = headers

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        try:
            self._connection.request(method, path, headers={**self._headers, **(headers or {})})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except _HTTP_FAILED:
            self._connection.close()
            raise

    def part(self, path: str, begin: int, end: int) -> bytes:
        """Return bytes of a file; none if it ends before. Raises CopyRefused."""
        status, data = self.ask("GET", path, {"range": f"bytes={begin}-{end - 1}"})
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return b""
        if status != HTTPStatus.PARTIAL_CONTENT:
            raise CopyRefused(f"the active member has ended this copy: {status}")
        return data


class _Progress:
    """Lines on how far a copy is, and beats meanwhile."""

    def __init__(self, files: int, size: int, beating: "_Beating") -> None:
        self._files, self._size, self._beating = files, size, beating
        self._done_files = self._done = 0
        self._said_at = time.monotonic()

    def note(self, size: int) -> None:
        """Count bytes."""
        self._done += size
        self._beating.beat_if_due()
        now = time.monotonic()
        if now - self._said_at >= _SAY_S:
            self._said_at = now
            log.info(
                "copying a member files=%d of_files=%d bytes=%d of_bytes=%d",
                *(self._done_files, self._files, self._done, self._size),
            )

    def end_file(self) -> None:
        """Count a file."""
        self._done_files += 1


def _mark(path: Path) -> None:
    """Make an empty file, durably."""
    with path.open("wb") as file:
        os.fsync(file.fileno())
    _sync_directory(path.parent)


def _sync_tree(folder: Path) -> None:
    for path in (folder, *(each for each in folder.rglob("*") if each.is_dir())):
        _sync_directory(path)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
