"""The file of the users of a store: its rights, and a line for each fault."""

from pathlib import Path

import pytest

from gateway.broker.access.model import Right
from gateway.broker.access.passwords import PasswordHash
from gateway.serving.store_users import StoreUsers, read_users
from gateway.settings.errors import ConfigError

HASH = str(PasswordHash.of("password"))


def users_of(folder: Path, text: str) -> StoreUsers:
    path = folder / "users"
    path.write_text(text, encoding="utf-8")
    return read_users(path)


def test_a_line_is_a_user_with_a_password_and_rights(tmp_path: Path) -> None:
    users = users_of(tmp_path, f"\n# users\napp:{HASH}:prn::/scope:s,READ_UPDATE;\n")
    user = users.user("app")
    assert user is not None
    assert user.password_hash is not None
    assert user.password_hash.matches(b"password")
    assert users.user("other") is None


@pytest.mark.parametrize(
    ("rights", "resource", "allowed"),
    [
        ("prn::/scope:s,READ_UPDATE", ("s", "t"), {Right.CONFIGURE, Right.WRITE, Right.READ}),
        ("prn::/scope:s/*,READ_UPDATE", ("s", ""), {Right.CONFIGURE, Right.WRITE, Right.READ}),
        ("prn::/scope:s,READ", ("s", "t"), {Right.READ}),
        ("prn::/scope:s/stream:t,READ", ("s", "t"), {Right.READ}),
        ("prn::/scope:s/stream:t,READ", ("s", "u"), set()),
        ("prn::/scope:s/stream:t,READ", ("s", ""), set()),
        ("prn::/scope:s,READ;prn::/scope:s/stream:t,READ_UPDATE", ("s", "t"), set(Right)),
        ("prn::/scope:s,READ", ("ss", "t"), set()),
        ("*,READ", ("any", "stream"), {Right.READ}),
        ("prn::/scope:s/stream:*,READ", ("s", "t"), {Right.READ}),
        ("prn::/scope:s/stream:*,READ", ("ss", "t"), set()),
        ("prn::/scope:*,READ", ("any", "stream"), {Right.READ}),
        ("prn::/*,READ_UPDATE", ("any", ""), set(Right)),
    ],
)
def test_a_right_covers_what_lies_beneath_its_resource(
    tmp_path: Path, rights: str, resource: tuple[str, str], allowed: set[Right]
) -> None:
    caller = users_of(tmp_path, f"app:{HASH}:{rights}\n").caller("app")
    assert {right for right in Right if caller.may(right, *resource)} == allowed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("app", "is not NAME:"),
        ("app:HASH:", "is not NAME:"),
        ("app:secret:*,READ", "`hutch hash-password` prints one"),
        ("app:HASH:s/t,READ", "'s/t' is no resource"),
        ("app:HASH:*,WRITE", "'WRITE' is no right; it is READ or READ_UPDATE"),
        ("app:HASH:*", "is no right"),
    ],
)
def test_each_faulty_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(ConfigError) as raised:
        users_of(tmp_path, f"good:HASH:*,READ\n{line}\n{line}\n".replace("HASH", HASH))
    lines = str(raised.value).splitlines()
    assert [text.partition(": line ")[2][:1] for text in lines] == ["2", "3"]
    assert all(reason in text for text in lines), lines


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2: 'app' is there twice"):
        users_of(tmp_path, f"app:{HASH}:*,READ\napp:{HASH}:*,READ\n")


def test_a_file_without_users_or_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no users"):
        users_of(tmp_path, "# nothing\n")
    with pytest.raises(ConfigError, match="cannot read it"):
        read_users(tmp_path / "missing")
