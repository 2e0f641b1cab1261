"""A copy of another member's directory: it is whole, whatever moment the process ends at."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gateway.serving import joining
from gateway.serving.base_copies import BaseCopies, key_of
from gateway.serving.joining import CopyRefused, Joining
from store.files import DirectoryFiles
from store.replica.beats import Beat
from store.replica.local_copy import COPIES, JOINING, MEMBER, LocalCopy, Place, is_own, place_in
from store.replica.log import LogAway
from store.replica.members import Members
from store.replica.message import Link

CLUSTER = bytes(range(16))
PLACE = Place(CLUSTER, Link(7, 3, bytes(32)), 12)
SOURCE = {"checkpoint": b"c" * 10, "journal/1": b"j" * 3_000, "data/7": b"", "data/8": b"d" * 5}
OLD = {"checkpoint": b"old", "data/3": b"old"}
TOKEN = "token"


class Crash(BaseException):
    """The process ends here."""


class AtRest:
    """A shipping that is at rest at a place."""

    def at_rest(self, call: Callable[[Place], Any]) -> Any:  # noqa: ANN401  # as the call says
        return call(PLACE)


class Following:
    """Beats of the member that joins, as the log shows them to all."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.beats = 0
        self.away = 0

    def send(self, beat: Beat) -> bool:
        self.beats += 1
        if self.away:
            self.away -= 1
            raise LogAway("no answer")
        active = Beat(is_active=True, term=3, number=7, copies="http://active:15672")
        self.members.note({"a": (1, active.pack()), "b": (self.beats, beat.pack())})
        return True


class Source:
    """The other member, without HTTP; `faults` end that many requests."""

    copies: BaseCopies
    faults = 0
    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        assert url == "http://active:15672"
        self.member = headers["hutch-member"]
        self.token = headers["authorization"].removeprefix("Bearer ")

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None) -> Any:  # noqa: ANN401
        self._count(method, path)
        if not self.copies.lets_in(self.member, self.token):
            return 401, b"no"
        if method == "POST":
            known = (headers or {}).get("hutch-copy", "")
            return 200, json.dumps(self.copies.begin(self.member, known).described()).encode()
        self.copies.end(self.member)
        return 204, b""

    def part(self, path: str, begin: int, end: int) -> bytes:
        self._count("GET", path)
        found = self.copies.path(self.member, int(path.rpartition("/")[2]))
        if found is None:
            raise CopyRefused("the active member has ended this copy: 404")
        return found.read_bytes()[begin : min(end, begin + 1_000)]

    def _count(self, method: str, path: str) -> None:
        type(self).asked.append((method, path))
        if type(self).faults and method == "GET":
            type(self).faults -= 1
            raise ConnectionResetError("cut off")


@pytest.fixture
def members() -> Members:
    return Members(lambda: 0.0)


@pytest.fixture
def source(tmp_path: Path, members: Members, monkeypatch: pytest.MonkeyPatch) -> type[Source]:
    filled(tmp_path / "a", SOURCE)
    (tmp_path / "a" / "lock").touch()

    class Here(Source):
        asked: ClassVar[list[tuple[str, str]]] = []
        copies = BaseCopies(tmp_path / "a", AtRest(), members)  # type: ignore[arg-type]

    monkeypatch.setattr(joining, "_Source", Here)
    return Here


def filled(directory: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    return directory


def shared(directory: Path) -> dict[str, bytes]:
    """Return the files of a directory that are in the log."""
    found = {str(path.relative_to(directory)): path for path in directory.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not is_own(name)
    }


def copied(directory: Path, members: Members, following: Following | None = None) -> None:
    following = following or Following(members)
    Joining(directory, "b").copy_active(
        following,  # type: ignore[arg-type]  # only beats are sent
        "b:5552",
        lambda: None,
    )


def is_whole(directory: Path) -> bool:
    return place_in(DirectoryFiles(directory)) == PLACE and shared(directory) == SOURCE


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("before", [{}, OLD])
def test_a_copy_takes_the_place_of_what_was_there(
    tmp_path: Path, members: Members, before: dict[str, bytes]
) -> None:
    directory = filled(tmp_path / "b", before)
    directory.mkdir(exist_ok=True)
    (directory / "lock").write_bytes(b"own")

    copied(directory, members)

    assert is_whole(directory)
    assert (directory / "lock").read_bytes() == b"own"
    assert not (directory / JOINING).exists()
    assert list((tmp_path / "a" / COPIES).iterdir()) == []


def test_a_connection_that_ends_is_no_end_of_the_copy(
    tmp_path: Path, members: Members, source: type[Source]
) -> None:
    (tmp_path / "b").mkdir()
    source.faults = 3

    copied(tmp_path / "b", members)

    assert is_whole(tmp_path / "b")
    assert len(list((tmp_path / "a" / COPIES).iterdir())) == 0
    begun = {path for method, path in source.asked if method == "POST"}
    assert begun == {"/cluster/copy"}


@pytest.mark.usefixtures("source")
def test_a_copy_waits_for_the_log(tmp_path: Path, members: Members) -> None:
    (tmp_path / "b").mkdir()
    following = Following(members)
    following.away = 3

    copied(tmp_path / "b", members, following)

    assert is_whole(tmp_path / "b")
    assert following.beats >= 4


@pytest.mark.parametrize("before", [{}, OLD])
def test_a_process_that_ends_at_any_moment_leaves_a_copy_that_goes_on(
    tmp_path: Path,
    members: Members,
    source: type[Source],
    monkeypatch: pytest.MonkeyPatch,
    before: dict[str, bytes],
) -> None:
    for steps in range(10_000):
        directory = filled(tmp_path / f"b{steps}", before)
        directory.mkdir(exist_ok=True)
        if before:
            LocalCopy(DirectoryFiles(directory), Place(CLUSTER), is_begun=False).begin()
        with monkeypatch.context() as patch:
            crash_after(patch, steps)
            try:
                copied(directory, members)
            except Crash:
                is_over = False
            else:
                is_over = True
        if is_over:
            assert is_whole(directory)
            break
        is_the_old_one = shared(directory) == before
        assert is_the_old_one or (directory / JOINING).exists(), steps
        again = Joining(directory, "b")
        again.finish()
        if not is_whole(directory):
            assert shared(directory) == before, steps
            copied(directory, members)
        assert is_whole(directory), steps
    assert steps > 20
    assert source.asked


def crash_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Have the process end at a change of the file system, after so many."""
    left = steps

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # as the system's
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash
            return call(*arguments, **named)

        return change

    for name in ("rename", "unlink", "rmdir", "mkdir", "fsync", "replace"):
        patch.setattr(os, name, counted(getattr(os, name)))


def test_a_member_is_let_in_by_the_token_of_its_last_beat(tmp_path: Path, members: Members) -> None:
    copies = BaseCopies(filled(tmp_path / "a", SOURCE), AtRest(), members)  # type: ignore[arg-type]
    members.note({"b": (1, Beat(key=key_of(TOKEN)).pack()), "c": (1, Beat().pack())})

    assert copies.lets_in("b", TOKEN)
    for member, token in (("b", ""), ("b", "other"), ("c", ""), ("c", TOKEN), ("", "")):
        assert not copies.lets_in(member, token)


@pytest.mark.parametrize("path", ["../outside", "/tmp/outside", "data/../../outside", "member"])
def test_a_path_that_is_no_shared_file_s_is_refused(
    tmp_path: Path,
    members: Members,
    source: type[Source],
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def end() -> None:
        raise Crash

    base = {"id": "x", "place": "", "directories": [], "files": [[path, 1]]}
    monkeypatch.setattr(source, "ask", lambda *_: (200, json.dumps(base).encode()))
    directory = tmp_path / "b"
    directory.mkdir()

    with pytest.raises(Crash):
        Joining(directory, "b").copy_active(
            Following(members),  # type: ignore[arg-type]  # only beats are sent
            "b:5552",
            end,
        )

    assert list(directory.iterdir()) == []
    assert "which is no shared file" in caplog.text


def test_copies_of_members_that_need_none_go(tmp_path: Path, members: Members) -> None:
    copies = BaseCopies(filled(tmp_path / "a", SOURCE), AtRest(), members)  # type: ignore[arg-type]
    members.note({name: (1, Beat(key=key_of(TOKEN)).pack()) for name in "bc"})
    first = copies.begin("b")
    assert copies.begin("b", first.id) is first
    second = copies.begin("c")

    members.note({"b": (2, Beat(key=key_of(TOKEN)).pack()), "c": (2, Beat().pack())})
    copies.tidy(members.states())

    assert copies.path("b", 0) is not None
    assert copies.path("c", 0) is None
    assert (first.folder.exists(), second.folder.exists()) == (True, False)
    assert copies.path("b", len(SOURCE)) is None
    copies.close()
    assert not first.folder.exists()


def test_the_member_s_own_files_are_in_no_copy(tmp_path: Path, members: Members) -> None:
    directory = filled(tmp_path / "a", SOURCE | {MEMBER: b"own", "set-aside/x": b"own"})
    copies = BaseCopies(directory, AtRest(), members)  # type: ignore[arg-type]

    copy = copies.begin("b")

    assert dict(copy.files) == {name: len(data) for name, data in SOURCE.items()}
    assert copy.place == PLACE
    assert set(copy.directories) == {"data", "journal"}
