"""Standings of users: the same while nothing of a user changes, and told when something does."""

from collections.abc import Callable

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.access.standings import NO_USERS, Standings
from tests.unit.gateway.broker.access.access_rig import AccessRig

HASH = PasswordHash.of("secret", Algorithm.SHA256)
OTHER_HASH = PasswordHash.of("other", Algorithm.SHA256)


def permission(virtual_host: str = "/", write: str = ".*") -> UserPermission:
    return UserPermission(user="app", virtual_host=virtual_host, configure="", write=write, read="")


@pytest.fixture
def begun(rig: AccessRig) -> AccessRig:
    """Users app, with permissions, and other."""
    rig.run(rig.access.seed([User("app", HASH), User("other", HASH)], [permission()]))
    rig.access.has_virtual_host = {"/", "v"}.__contains__
    return rig


def delete_and_make_again(rig: AccessRig) -> None:
    rig.run(rig.access.delete_user("app"))
    rig.run(rig.access.put_many([User("app", HASH)], [permission()]))


CHANGES: dict[str, Callable[[AccessRig], object]] = {
    "password": lambda rig: rig.run(rig.access.put_user(User("app", OTHER_HASH))),
    "no password": lambda rig: rig.run(rig.access.put_user(User("app", None))),
    "narrowed": lambda rig: rig.run(rig.access.put_permission(permission(write="^a"))),
    "widened": lambda rig: rig.run(rig.access.put_permission(permission("v"))),
    "import": lambda rig: rig.run(rig.access.put_many([User("app", OTHER_HASH)], [])),
    "rights taken": lambda rig: rig.run(rig.access.delete_permission("app", "/")),
    "virtual host": lambda rig: rig.run(rig.access.forget_virtual_host("/")),
    "deleted": lambda rig: rig.run(rig.access.delete_user("app")),
    "made again": delete_and_make_again,
}
SAME: dict[str, Callable[[AccessRig], object]] = {
    "same user": lambda rig: rig.run(rig.access.put_user(User("app", HASH, ("management",)))),
    "same right": lambda rig: rig.run(rig.access.put_permission(permission())),
    "limits": lambda rig: rig.run(rig.access.change_user_limits("app", lambda _: {})),
    "another's password": lambda rig: rig.run(rig.access.put_user(User("other", OTHER_HASH))),
    "another deleted": lambda rig: rig.run(rig.access.delete_user("other")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_user_that_is_changed_has_another_standing_and_who_watches_is_told(
    begun: AccessRig, change: str
) -> None:
    standings = begun.access.standings
    told: list[str] = []
    before, others = standings.of("app"), standings.of("other")
    standings.watch(told.extend)

    CHANGES[change](begun)

    assert set(told) == {"app"}
    assert before is not None
    assert standings.of("app") != before
    assert standings.of("other") == others
    assert begun.open().standings.of("app") == standings.of("app")


@pytest.mark.parametrize("change", SAME)
def test_what_has_nothing_to_do_with_rights_leaves_a_standing_as_it_was(
    begun: AccessRig, change: str
) -> None:
    standings = begun.access.standings
    told: list[str] = []
    before = standings.of("app")
    standings.of("other")
    standings.watch(told.extend)

    SAME[change](begun)

    assert "app" not in told
    assert standings.of("app") == before
    assert begun.open().standings.of("app") == before


def test_who_does_not_watch_any_more_is_not_told() -> None:
    passwords = {"app": b"one"}
    standings = Standings(passwords.get)
    told: list[str] = []

    def once(users: object) -> None:
        told.append(str(users))
        unwatch()

    unwatch = standings.watch(once)
    for password in (b"two", b"three"):
        standings.of("app")
        passwords["app"] = password
        standings.look_again(["app"])

    assert told == ["{'app'}"]


def test_a_server_without_users_knows_none() -> None:
    assert NO_USERS.of("app") is None
