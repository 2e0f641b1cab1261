"""Random changes through ReplicatedFiles: as on a plain disk, for the active one and the others."""

import random
from typing import Final

import pytest

from store.files import File, Files
from store.replica.files import ReplicatedFiles
from store.replica.member import Member
from store.replica.message import HEAD_BYTES
from store.replica.shipping import Fenced
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Failure, Image, Write
from tests.unit.store.replica.scripted import RandomLog, contents, follower_of

NAMES: Final = ("a", "b", "checkpoint", "checkpoint.new", "data/1", "data/2", "data/x/3")
DIRECTORIES: Final = ("data", "data/x")
SIZE: Final = 3_000


def member_on(disk: Disk, shared_log: RandomLog, name: str) -> Member:
    return Member(
        disk,
        shared_log,
        name=name,
        ordered=("data",),
        now_ms=lambda: 0,
        pause=lambda: None,
    )


class Pair:
    """The same changes on a replicated directory and on a plain one."""

    def __init__(self, chance: random.Random, replicated: Files, plain: Files) -> None:
        self.chance = chance
        self.both = (replicated, plain)
        # Files that stay open; one may have lost its name.
        self.open: list[tuple[File, File]] = []
        for each in self.both:
            for directory in DIRECTORIES:
                each.make_directory(directory)

    def step(self) -> None:
        """Change something, or look at something."""
        chance = self.chance
        chance.choice(
            [self._write, self._write, self._change, self._read, self._name, self._open]
        )()

    def _path(self) -> str:
        return self.chance.choice(NAMES)

    def _has(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        found = {name in each.names(directory) for each in self.both}
        assert len(found) == 1, path
        return found.pop()

    def _open(self) -> None:
        path = self._path()
        if self._has(path) or self.chance.random() < 0.6:
            first, second = (each.open(path, create=True) for each in self.both)
            self.open.append((first, second))
        if len(self.open) > 6 or (self.open and self.chance.random() < 0.3):
            for each in self.open.pop(self.chance.randrange(len(self.open))):
                each.close()

    def _named(self) -> tuple[File, File] | None:
        """Open a file that has a name: what a file without one is told is in no message."""
        path = self._path()
        if not self._has(path):
            return None
        first, second = (each.open(path) for each in self.both)
        return first, second

    def _write(self) -> None:
        files = self._named()
        if files is None:
            self._open()
            return
        chance = self.chance
        size = chance.randint(0, 900)
        data = chance.choice([chance.randbytes(size), bytes(size)])
        position = chance.randint(0, SIZE)
        for each in files:
            each.write_at(data, position)
            each.close()

    def _change(self) -> None:
        files = self._named()
        if files is None:
            return
        chance = self.chance
        position, size = chance.randint(0, SIZE), chance.randint(0, 900)
        is_cut = chance.random() < 0.5
        for each in files:
            if is_cut:
                each.cut(position)
            else:
                each.punch(position, size)
            each.close()

    def _read(self) -> None:
        for files in [*self.open[:2], *filter(None, [self._named()])]:
            same(*files, self.chance.randint(0, SIZE), self.chance.randint(1, SIZE))

    def _name(self) -> None:
        source, target = self._path(), self._path()
        if not self._has(source) or source == target:
            return
        is_removed = self.chance.random() < 0.3
        for each in self.both:
            if is_removed:
                each.remove(source)
            else:
                each.rename(source, target)


def same(first: File, second: File, position: int, size: int) -> None:
    """Demand that two files are equal, in one place and in all."""
    assert first.size() == second.size()
    assert first.read_at(size, position) == second.read_at(size, position)
    assert first.read_at(10**6, 0) == second.read_at(10**6, 0)


@pytest.mark.parametrize("seed", range(20))
def test_any_changes_are_as_on_a_plain_disk(seed: int) -> None:
    chance = random.Random(seed)
    shared_log = RandomLog(chance, chance.choice([HEAD_BYTES + 300, HEAD_BYTES + 3_000, 10**6]))
    disk, plain = Disk(), Disk()
    member = member_on(disk, shared_log, "one")
    files = member.take_over()
    assert files is not None
    shared_log.rate = chance.choice([0, 0.1, 0.4])
    pair = Pair(chance, files, plain)
    for number in range(chance.randint(20, 250)):
        pair.step()
        if number % 25 == 0:
            disk.failures[:] = [
                Failure(lambda step: isinstance(step, Write), after=3, times=2, is_full=True)
            ]
        if chance.random() < 0.1:
            files.sync_directory("")
            assert contents(disk.image()) == contents(plain.image())
        if chance.random() < 0.05:
            files.shipping.sync_copy()
    files.sync_directory("")

    assert contents(disk.image()) == contents(plain.image())
    shared_log.rate = 0
    follower = Disk()
    follower_of(shared_log, follower)
    assert contents(follower.image()) == contents(plain.image())
    assert follower.image().directories == plain.image().directories


@pytest.mark.parametrize("seed", range(20))
def test_members_take_turns_and_each_has_what_was_acknowledged(seed: int) -> None:
    chance = random.Random(seed)
    shared_log = RandomLog(chance, HEAD_BYTES + chance.choice([300, 3_000]))
    plain = Disk()
    images = {name: Image() for name in ("one", "two", "three")}
    fenced: list[ReplicatedFiles] = []
    for _ in range(chance.randint(2, 6)):
        name = chance.choice([*images])
        disk = Disk(images[name])
        files = member_on(disk, shared_log, name).take_over()
        assert files is not None
        assert contents(disk.image()) == contents(plain.image())
        for each in fenced:
            demand_fenced(each)
        shared_log.rate = chance.choice([0, 0.2])
        pair = Pair(chance, files, plain)
        for _ in range(chance.randint(0, 60)):
            pair.step()
        files.sync_directory("")
        assert contents(disk.image()) == contents(plain.image())
        shared_log.rate = 0
        if chance.random() < 0.5 and len(fenced) < 2:
            fenced.append(files)
            del images[name]
        else:
            images[name] = crashed(images[name], disk, chance)
    follower = Disk()
    follower_of(shared_log, follower)
    assert contents(follower.image()) == contents(plain.image())


def demand_fenced(files: ReplicatedFiles) -> None:
    """Demand that a member that was fenced stores nothing more."""
    file = files.open("a", create=True)
    file.write_at(b"never", 0)
    with pytest.raises(Fenced):
        files.sync_directory("")


def crashed(begin: Image, disk: Disk, chance: random.Random) -> Image:
    """Return what a crash leaves of a disk, on which no old inode is given again."""
    aftermath = Aftermath(begin)
    for step in disk.record:
        aftermath.advance(step, chance)
    image, _ = aftermath.after(chance.choice([*Crash]), chance, None)
    spare = max(image.contents, default=0) + 1_000
    return Image(image.directories, image.names, {**image.contents, spare: b""})
