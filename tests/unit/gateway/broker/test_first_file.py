import os
from pathlib import Path

import pytest

from gateway.broker.first_file import FirstFile
from tests.unit.gateway.broker.access.access_rig import AccessRig


@pytest.fixture
def rig() -> AccessRig:
    return AccessRig()


def is_unchanged(rig: AccessRig, path: Path, setting: str = "users.file") -> bool:
    return rig.run(FirstFile(rig.store, setting, path).is_unchanged())


def test_a_file_is_known_by_its_content_under_whatever_name(rig: AccessRig, tmp_path: Path) -> None:
    path, other = tmp_path / "users.toml", tmp_path / "other.toml"
    path.write_bytes(b"users")
    assert not is_unchanged(rig, path), "nothing was taken"
    file = FirstFile(rig.store, "users.file", path)
    assert file.read() == b"users"
    rig.run(file.note())

    assert is_unchanged(rig, path)
    path.rename(other)
    assert is_unchanged(rig, other)
    assert not is_unchanged(rig, other, "definitions.file"), "that is another setting"
    other.write_bytes(b"others")
    assert not is_unchanged(rig, other)


@pytest.mark.timeout(10)
def test_what_cannot_be_read_is_not_the_same_and_is_not_waited_for(
    rig: AccessRig, tmp_path: Path
) -> None:
    path = tmp_path / "users.toml"
    path.write_bytes(b"")
    file = FirstFile(rig.store, "users.file", path)
    assert file.read(5) == b""
    rig.run(file.note())
    assert is_unchanged(rig, path)
    path.unlink()
    assert not is_unchanged(rig, path)
    os.mkfifo(path)
    assert not is_unchanged(rig, path)
