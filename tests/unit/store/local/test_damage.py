"""Whatever happens to a file of a store: it is told, nothing goes, and what is whole is served."""

import random
from collections.abc import Callable, Iterator

import pytest

from store.errors import StoreError
from tests.simulation.disk import Disk, Image
from tests.unit.store.local.opened import opened

Files = dict[str, bytes]
"""Content of each file of a data directory, by its path."""

Harm = Callable[[Files, str], object]
"""Does something to one of the files."""

PIECES = [b"<%02d>" % number for number in range(12)]
EARLIER = b"in the checkpoint"


def half(files: Files, path: str) -> None:
    files[path] = files[path][: len(files[path]) // 2]


def emptied(files: Files, path: str) -> None:
    files[path] = b""


def zeroed(files: Files, path: str) -> None:
    files[path] = bytes(len(files[path]))


def overwritten(files: Files, path: str) -> None:
    files[path] = random.Random(7).randbytes(len(files[path]))


def removed(files: Files, path: str) -> None:
    del files[path]


def swapped(files: Files, path: str) -> None:
    folder = path.partition("/")[0]
    other = next(each for each in sorted(files) if each.startswith(folder) and each != path)
    files[path], files[other] = files[other], files[path]


@pytest.fixture(scope="module")
def killed() -> Files:
    """Return what a process left that was killed: two journal files, three segments."""
    disk = Disk()
    rig = opened(disk)
    rig.create("old", EARLIER)
    rig.close()
    rig = opened(disk)
    rig.create("a")
    rig.create("b", b"beside it")
    for piece in PIECES:
        rig.fill("a", piece)
        rig.loop.run_for(0.002)
    rig.crash()
    image = disk.image()
    return {path: image.contents[inode] for path, inode in image.names.items()}


def disk_of(files: Files) -> Disk:
    names = {path: number for number, path in enumerate(files, 1)}
    contents = {names[path]: content for path, content in files.items()}
    return Disk(Image(frozenset({"", "journal", "data"}), names, contents))


def kept(disk: Disk) -> Iterator[bytes]:
    """Give the content of each file that is there or was set aside."""
    for content in disk.image().contents.values():
        yield content.rstrip(b"\0")


@pytest.mark.parametrize("harm", [half, emptied, zeroed, overwritten, removed, swapped])
def test_a_journal_file_is_harmed(
    killed: Files, caplog: pytest.LogCaptureFixture, harm: Harm
) -> None:
    files = dict(killed)
    # The one with the frames of the last opening.
    path = max((each for each in files if each.startswith("journal/")), key=lambda each: each)
    assert PIECES[3] in files[path]
    harm(files, path)

    rig = opened(disk := disk_of(files))

    assert "journal" in caplog.text
    assert [each.levelname for each in caplog.records].count("ERROR") >= 1
    names = rig.store.catalogue.names
    assert rig.content("old") == EARLIER
    if "a" in names:
        content = rig.content("a")
        assert b"".join(PIECES).startswith(content)
    # Half a file holds all frames of this one.
    assert ("b" in names) == (harm is half)
    there = list(kept(disk))
    assert all(content.rstrip(b"\0") in there for content in files.values())
    rig.create("c", b"goes on")
    rig.reopen()
    assert rig.content("old") == EARLIER
    assert rig.content("c") == b"goes on"
    rig.close()


@pytest.mark.parametrize("harm", [half, emptied, zeroed, overwritten, removed])
def test_a_data_file_behind_the_checkpoint_is_harmed(
    killed: Files, caplog: pytest.LogCaptureFixture, harm: Harm
) -> None:
    """The journal holds what is small, and all that it holds is there again."""
    files = dict(killed)
    harm(files, "data/2")
    rig = opened(disk_of(files))
    assert not caplog.records
    assert [rig.content(name) for name in ("old", "a", "b")] == [
        EARLIER, b"".join(PIECES), b"beside it"
    ]  # fmt: skip
    rig.close()


@pytest.mark.parametrize("harm", [half, emptied, removed])
def test_a_data_file_of_the_checkpoint_is_harmed(
    killed: Files, caplog: pytest.LogCaptureFixture, harm: Harm
) -> None:
    files = dict(killed)
    harm(files, "data/1")
    rig = opened(disk_of(files))
    told, consequence = [each.getMessage() for each in caplog.records]
    assert "segment=old file=data/1" in told
    assert "segment is damaged and can only be read segment=old" in consequence
    if harm is half:
        assert f"position={len(EARLIER) // 2}" in told
    assert rig.content("a") == b"".join(PIECES)
    assert rig.content("b") == b"beside it"
    rig.close()


def test_a_file_of_another_store_is_put_in(killed: Files, caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    rig = opened(disk)
    rig.create("x", b"of another store")
    rig.create("y", b"of another store")
    rig.close()
    image = disk.image()
    files = dict(killed)
    path = max(each for each in files if each.startswith("journal/"))
    files[path] = image.contents[image.names["journal/1"]]
    rig = opened(left := disk_of(files))
    assert "journal file does not begin with its head" in caplog.text
    assert rig.content("old") == EARLIER
    assert files[path].rstrip(b"\0") in list(kept(left))
    rig.close()


def test_a_journal_without_a_checkpoint_is_refused_and_stays(killed: Files) -> None:
    left = disk_of({path: data for path, data in killed.items() if path.startswith("journal/")})
    with pytest.raises(StoreError, match="a journal but no checkpoint"):
        opened(left)
    assert all(data in left.image().contents.values() for path, data in killed.items()
               if path.startswith("journal/"))  # fmt: skip


def test_a_first_start_that_was_cut_off_is_begun_again() -> None:
    disk = Disk()
    opened(disk).crash()
    image = disk.image()
    journal = {
        path: image.contents[inode]
        for path, inode in image.names.items()
        if path.startswith("journal/")
    }
    rig = opened(disk_of(journal))
    rig.create("a", b"begun")
    rig.reopen()
    assert rig.content("a") == b"begun"
    rig.close()
