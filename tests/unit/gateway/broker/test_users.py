import json
import logging
from pathlib import Path

import pytest

from gateway.broker.passwords import Algorithm, PasswordHash
from gateway.broker.users import Login, User, Users
from gateway.config import ConfigError, UsersSettings

HASH = str(PasswordHash.of("secret"))


def users_of(path: Path, content: str) -> Users:
    path.write_text(content, encoding="utf-8")
    return Users.load(UsersSettings(file=path))


def faults_of(path: Path, content: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        users_of(path, content)
    return [
        (setting.replace(str(path), "FILE"), reason) for setting, reason in caught.value.problems
    ]


def test_without_a_file_there_is_guest_from_this_machine_only() -> None:
    users = Users.load(UsersSettings())

    assert users.authenticate("guest", b"guest", peer_is_loopback=True) is Login.OK
    assert users.authenticate("guest", b"guest", peer_is_loopback=False) is Login.LOOPBACK_ONLY


def test_a_setting_opens_guest_to_the_world() -> None:
    users = Users.load(UsersSettings(guest_loopback_only=False))

    assert users.authenticate("guest", b"guest", peer_is_loopback=False) is Login.OK


def test_a_wrong_password_from_afar_does_not_tell_that_guest_is_for_this_machine() -> None:
    users = Users.load(UsersSettings())

    assert users.authenticate("guest", b"wrong", peer_is_loopback=False) is Login.REFUSED


@pytest.mark.parametrize(
    ("name", "password"),
    [("app", b"wrong"), ("app", b""), ("nobody", b"secret"), ("", b""), ("APP", b"secret")],
)
def test_wrong_passwords_and_unknown_names_are_refused_alike(name: str, password: bytes) -> None:
    users = Users([User("app", PasswordHash.of("secret"))])

    assert users.authenticate(name, password, peer_is_loopback=True) is Login.REFUSED


def test_a_user_without_a_password_cannot_log_in_with_any() -> None:
    users = Users([User("app", None)])

    assert users.authenticate("app", b"", peer_is_loopback=True) is Login.REFUSED


def test_an_empty_password_is_refused_even_if_its_hash_matches() -> None:
    users = Users([User("app", PasswordHash.of(""))])

    assert users.authenticate("app", b"", peer_is_loopback=True) is Login.REFUSED


def test_other_users_than_guest_come_from_anywhere() -> None:
    users = Users([User("app", PasswordHash.of("secret"))])

    assert users.authenticate("app", b"secret", peer_is_loopback=False) is Login.OK


def test_the_one_virtual_host_is_open_to_known_users() -> None:
    users = Users([User("app", PasswordHash.of("secret"))])

    assert users.may_open("app", "/")
    assert not users.may_open("app", "other")
    assert not users.may_open("app", "")
    assert not users.may_open("nobody", "/")


@pytest.mark.parametrize("algorithm", Algorithm)
def test_users_come_from_a_toml_file(tmp_path: Path, algorithm: Algorithm) -> None:
    users = users_of(
        tmp_path / "users.toml",
        f"""
        [[users]]
        name = "app"
        password_hash = "{PasswordHash.of("secret", algorithm)}"
        hashing_algorithm = "{algorithm.value}"
        tags = ["administrator"]
        """,
    )

    assert users.authenticate("app", b"secret", peer_is_loopback=False) is Login.OK
    assert users.authenticate("guest", b"guest", peer_is_loopback=True) is Login.REFUSED


def test_users_come_from_rabbitmqs_definitions(tmp_path: Path) -> None:
    definitions = {
        "rabbitmq_version": "4.3.5",
        "vhosts": [{"name": "/"}],
        "users": [
            {
                "name": "app",
                "password_hash": HASH,
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"],
                "limits": {},
            },
            {
                "name": "old",
                "password_hash": str(PasswordHash.of("o", Algorithm.MD5)),
                "tags": "a,b",
            },
            {"name": "by certificate", "password_hash": "", "tags": []},
        ],
        "queues": [],
    }

    users = users_of(tmp_path / "definitions.json", json.dumps(definitions))

    assert users.authenticate("app", b"secret", peer_is_loopback=False) is Login.OK
    assert users.authenticate("old", b"o", peer_is_loopback=False) is Login.OK
    assert users.authenticate("by certificate", b"", peer_is_loopback=False) is Login.REFUSED


def test_permissions_that_are_not_used_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = {"users": [{"name": "app", "password_hash": HASH}], "permissions": []}

    with caplog.at_level(logging.WARNING):
        users_of(tmp_path / "definitions.json", json.dumps(content))

    assert "permissions of the users file are not used yet" in caplog.text


def test_every_wrong_entry_is_named_with_its_field(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path / "users.toml",
        f"""
        [[users]]
        password_hash = "{HASH}"
        [[users]]
        name = "a"
        [[users]]
        name = "b"
        password_hash = "not base64"
        [[users]]
        name = "c"
        password_hash = "{HASH}"
        hashing_algorithm = "rot13"
        [[users]]
        name = "d"
        password_hash = "{HASH}"
        hashing_algorithm = "rabbit_password_hashing_md5"
        [[users]]
        name = "e"
        password_hash = "{HASH}"
        tag = ["typo"]
        [[users]]
        name = "f"
        password = "in clear"
        [[users]]
        name = 1
        password_hash = "{HASH}"
        [[users]]
        name = "g"
        password_hash = "{HASH}"
        tags = [1]
        [[users]]
        name = "ok"
        password_hash = "{HASH}"
        [[users]]
        name = "ok"
        password_hash = "{HASH}"
        """,
    )

    assert [setting for setting, _ in faults] == [
        "FILE: users[0].name",
        "FILE: users[1].password_hash",
        "FILE: users[2].password_hash",
        "FILE: users[3].hashing_algorithm",
        "FILE: users[4].password_hash",
        "FILE: users[5].tag",
        "FILE: users[6].password",
        "FILE: users[7].name",
        "FILE: users[8].tags",
        "FILE: users[10].name",
    ]
    assert all("in clear" not in reason.replace("never in clear", "") for _, reason in faults)


@pytest.mark.parametrize(
    ("name", "content", "setting", "reason"),
    [
        ("u.toml", "users = [", "FILE", "not TOML"),
        ("u.json", "{", "FILE", "not JSON"),
        ("u.json", "[]", "FILE", "holds no list called users"),
        ("u.json", "{}", "FILE: users", "missing"),
        ("u.json", '{"users": []}', "FILE: users", "at least one"),
        ("u.json", '{"users": {"name": "app"}}', "FILE: users", "a list"),
        ("u.json", '{"users": ["app"]}', "FILE: users[0]", "is not a user"),
    ],
)
def test_a_file_without_usable_users_is_told(
    tmp_path: Path, name: str, content: str, setting: str, reason: str
) -> None:
    [(actual_setting, actual_reason)] = faults_of(tmp_path / name, content)

    assert actual_setting == setting
    assert reason in actual_reason


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nobody\.toml: cannot read it: No such file"):
        Users.load(UsersSettings(file=tmp_path / "nobody.toml"))
