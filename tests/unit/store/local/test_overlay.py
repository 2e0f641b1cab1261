"""The overlay: a store works on it as on files, and the files stay as they are."""

import hashlib
from pathlib import Path

import pytest

from store.errors import SegmentFailed, StoreLocked
from store.files import DirectoryFiles
from store.local.overlay import PAGE_BYTES, OverlayFiles, OverlayNode
from tests.unit.store.local.opened import Opened, opened

BULK = bytes(range(256)) * 400


def state_of(directory: Path) -> dict[str, tuple[str, int, int]]:
    """Every file with the hash of its bytes, its mode and the time of its last change."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in [directory, *directory.rglob("*")]
    }


def overlay_of(directory: Path) -> OverlayFiles:
    return OverlayFiles(DirectoryFiles(directory, is_read_only=True))


def written(directory: Path) -> Opened:
    rig = opened(DirectoryFiles(directory))
    rig.create("a", BULK)
    rig.fill("a", b"small")
    return rig


def test_a_store_that_was_killed_opens_and_works_and_no_file_changes(tmp_path: Path) -> None:
    written(tmp_path).crash()
    before = state_of(tmp_path)

    rig = opened(overlay_of(tmp_path))
    assert rig.content("a") == BULK + b"small"
    rig.create("b", BULK)
    rig.close()

    assert state_of(tmp_path) == before


def test_what_a_store_has_written_is_there_at_its_next_opening(tmp_path: Path) -> None:
    written(tmp_path).close()
    files = overlay_of(tmp_path)
    rig = opened(files)
    rig.create("b", BULK * 3)
    rig.close()

    rig = opened(files)

    assert (rig.content("a"), rig.content("b")) == (BULK + b"small", BULK * 3)
    rig.close()


def test_the_real_lock_is_taken(tmp_path: Path) -> None:
    rig = written(tmp_path)
    with pytest.raises(StoreLocked):
        opened(overlay_of(tmp_path))
    rig.close()

    looking = opened(overlay_of(tmp_path))
    with pytest.raises(StoreLocked):
        opened(DirectoryFiles(tmp_path))
    looking.close()


def test_bytes_are_written_over_the_real_ones_and_cut_as_in_a_file(tmp_path: Path) -> None:
    content = bytearray(bytes(range(256)) * 256)
    (tmp_path / "file").write_bytes(content)
    file = overlay_of(tmp_path).open("file")

    for position, data in ((5, b"abc"), (PAGE_BYTES - 2, b"across"), (65_534, b"beyond")):
        file.write_at(data, position)
        content[position : position + len(data)] = data
    assert file.read_at(1 << 20, 0) == content
    assert file.read_at(10, PAGE_BYTES - 5) == content[PAGE_BYTES - 5 : PAGE_BYTES + 5]

    buffer = bytearray(20)
    assert file.read_into(memoryview(buffer), PAGE_BYTES - 5) == 20
    assert buffer == content[PAGE_BYTES - 5 : PAGE_BYTES + 15]
    assert file.read_into(memoryview(buffer), file.size() - 3) == 3
    file.will_read(20, 0)

    file.cut(PAGE_BYTES + 1)
    file.cut(3 * PAGE_BYTES)
    expected = bytes(content[: PAGE_BYTES + 1]).ljust(3 * PAGE_BYTES, b"\0")
    assert file.read_at(1 << 20, 0) == expected
    assert file.read_at(1, 3 * PAGE_BYTES) == b""
    file.close()
    with pytest.raises(SegmentFailed):
        file.read_at(1, 0)


def test_names_follow_what_is_made_renamed_and_removed(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "gone").write_bytes(b"gone")
    files = overlay_of(tmp_path)

    files.open("new", create=True).write_at(b"new", 0)
    files.rename("old", "renamed")
    held = files.open("gone")
    files.remove("gone")
    files.make_directory("deep")
    files.open("deep/file", create=True)

    assert sorted(files.names("")) == ["new", "renamed"]
    assert files.names("deep") == ["file"]
    assert files.open("renamed").read_at(9, 0) == b"old"
    assert held.read_at(9, 0) == b"gone"
    with pytest.raises(SegmentFailed):
        files.open("old")
    with pytest.raises(SegmentFailed):
        files.names("nowhere")


def test_what_is_set_aside_and_what_is_zero_takes_no_memory(tmp_path: Path) -> None:
    files = overlay_of(tmp_path)
    files.make_directory("set-aside")
    aside = files.open("set-aside/copy", create=True)
    aside.write_at(BULK, 0)
    node = files._nodes["set-aside/copy"]
    assert isinstance(node, OverlayNode)
    assert (aside.size(), node._pages) == (len(BULK), {})

    files.open("zeros", create=True).write_at(bytes(100 * PAGE_BYTES), 0)
    node = files._nodes["zeros"]
    assert isinstance(node, OverlayNode)
    assert len({id(page) for page in node._pages.values()}) == 1
