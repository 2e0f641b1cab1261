import json
import logging
from pathlib import Path

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.access.users_file import first_users
from gateway.settings.errors import ConfigError
from gateway.settings.model import UsersSettings

HASH = str(PasswordHash.of("secret"))


Found = tuple[list[User], list[UserPermission]]


def users_of(path: Path, content: str) -> Found:
    path.write_text(content, encoding="utf-8")
    return first_users(UsersSettings(file=path))


def faults_of(path: Path, content: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        users_of(path, content)
    assert {problem.setting for problem in caught.value.problems} == {"users.file"}
    faults = []
    for problem in caught.value.problems:
        assert problem.reason.startswith(f"{path}: ")
        told = problem.reason.removeprefix(f"{path}: ")
        place, delimiter, reason = told.partition(": ")
        if delimiter and place.startswith(("users", "permissions")):
            faults.append((f"FILE: {place}", reason))
        else:
            faults.append(("FILE", told))
    return faults


def test_without_a_file_there_is_guest_who_may_do_everything() -> None:
    [user], [permission] = first_users(UsersSettings())

    assert (user.name, user.tags) == ("guest", ("administrator",))
    assert user.password_hash is not None
    assert user.password_hash.matches(b"guest")
    assert user.password_hash.algorithm is Algorithm.ARGON2ID  # as that of any user made here
    assert permission == UserPermission(
        user="guest", virtual_host="/", configure=".*", write=".*", read=".*"
    )


@pytest.mark.parametrize("algorithm", Algorithm)
def test_users_come_from_a_toml_file(tmp_path: Path, algorithm: Algorithm) -> None:
    [user], permissions = users_of(
        tmp_path / "users.toml",
        f"""
        [[users]]
        name = "app"
        password_hash = "{PasswordHash.of("secret", algorithm)}"
        hashing_algorithm = "{algorithm.value}"
        tags = ["administrator"]
        """,
    )

    assert (user.name, user.tags) == ("app", ("administrator",))
    assert user.password_hash is not None
    assert user.password_hash.matches(b"secret")
    assert permissions == [
        UserPermission(user="app", virtual_host="/", configure=".*", write=".*", read=".*")
    ]


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
                "limits": {"max-connections": 5},
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

    (app, old, without), _ = users_of(tmp_path / "definitions.json", json.dumps(definitions))

    assert app.password_hash is not None
    assert app.password_hash.matches(b"secret")
    assert app.limits == {"max-connections": 5}
    assert old.password_hash is not None
    assert old.password_hash.matches(b"o")
    assert old.tags == ("a", "b")
    assert without.password_hash is None


def test_permissions_of_the_file_count_where_it_has_any(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"user": "app", "vhost": "/", "configure": "^$", "write": "a", "read": ""}
    content = {
        "users": [{"name": "app", "password_hash": HASH}, {"name": "b", "password_hash": HASH}],
        "permissions": [row, row | {"vhost": "other"}, row | {"user": "nobody"}],
    }

    with caplog.at_level(logging.WARNING):
        _, permissions = users_of(tmp_path / "definitions.json", json.dumps(content))

    assert permissions == [
        UserPermission(user="app", virtual_host="/", configure="^$", write="a", read="")
    ]
    assert caplog.text.count("permission of the users file is not used") == 2


def test_every_wrong_permission_is_named(tmp_path: Path) -> None:
    content = {
        "users": [{"name": "app", "password_hash": HASH}],
        "permissions": [
            1,
            {"user": 1},
            {"colour": "red"},
            {"configure": "("},
            {"user": "app", "write": "a" * 1_025},
        ],
    }

    faults = faults_of(tmp_path / "u.json", json.dumps(content))

    assert [setting for setting, _ in faults] == [
        "FILE: permissions[0]",
        "FILE: permissions[1].user",
        "FILE: permissions[2].colour",
        "FILE: permissions[3]",
        "FILE: permissions[4].write",
    ]
    assert "pattern to configure" in faults[3][1]


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
        first_users(UsersSettings(file=tmp_path / "nobody.toml"))
