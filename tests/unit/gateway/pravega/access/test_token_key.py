"""The key of the wire protocol's tokens."""

import os
import stat
from pathlib import Path

import pytest

from gateway.pravega.access.token_key import made_key, put_key, read_key
from gateway.settings.errors import ConfigError


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = made_key(tmp_path)
    assert made_key(tmp_path) == key
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(key) >= 64


def test_a_key_is_the_content_of_its_file_without_white_space(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"  secret secret secret secret secret\r\n")
    assert read_key(file) == b"secret secret secret secret secret"


def test_a_file_without_a_key_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(ConfigError, match="cannot read"):
        read_key(file)
    file.write_bytes(b" \n")
    with pytest.raises(ConfigError, match="holds no key"):
        read_key(file)


def test_a_key_that_is_given_takes_the_place_of_the_file_s(tmp_path: Path) -> None:
    made_key(tmp_path)
    key = bytes(range(33, 97)) + b"\xff"

    put_key(tmp_path, key)

    assert made_key(tmp_path) == key
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.stat().st_ino
    put_key(tmp_path, key)
    assert file.stat().st_ino == before


@pytest.mark.timeout(10)
def test_the_key_of_a_data_directory_is_a_file_of_its_own(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"k" * 64)
    link = tmp_path / "linked" / "token.key"
    link.parent.mkdir()
    link.symlink_to(given)
    with pytest.raises(ConfigError, match=r"token\.key is a link"):
        made_key(link.parent)
    assert read_key(link) == b"k" * 64, "a file that an administrator names may be a link"
    link.unlink()
    os.mkfifo(link)
    with pytest.raises(ConfigError, match="no regular file"):
        made_key(link.parent)
