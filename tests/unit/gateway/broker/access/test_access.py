import json
from functools import partial
from typing import Any, ClassVar

import pytest

from gateway.broker.access.model import Right, User, UserPermission
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.errors import (
    NoSuchPermission,
    NoSuchUser,
    NoSuchVirtualHost,
    UnusableValue,
)
from gateway.pending import Pending, start
from store.errors import StoreError
from tests.unit.gateway.broker.access.access_rig import AccessRig

APP = User("app", PasswordHash.of("secret"), ("management",), {"max-connections": 2})
OTHER = User("other", None)
ALL = UserPermission(user="app", virtual_host="/", configure=".*", write=".*", read=".*")


@pytest.fixture
def begun(rig: AccessRig) -> AccessRig:
    rig.run(rig.access.seed([APP, OTHER], [ALL]))
    return rig


def test_the_first_users_are_kept_and_make_the_store_a_known_one(rig: AccessRig) -> None:
    freshness = [rig.access.is_fresh]
    rig.run(rig.access.seed([APP], [ALL]))
    freshness.append(rig.access.is_fresh)

    reopened = rig.open()

    assert [*freshness, reopened.is_fresh] == [True, False, False]
    assert reopened.users() == [APP]
    assert reopened.permissions() == [ALL]


def test_a_store_whose_users_were_all_deleted_is_not_fresh_again(begun: AccessRig) -> None:
    begun.run(begun.access.delete_user("app"))
    begun.run(begun.access.delete_user("other"))

    reopened = begun.open()

    assert not reopened.is_fresh
    assert reopened.users() == []
    assert reopened.permissions() == []


def test_a_kept_permission_whose_pattern_is_refused_now_allows_nothing_and_is_logged(
    begun: AccessRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"user": "other", "virtual_host": "/", "configure": r"\C", "write": "", "read": ""}
    with monkeypatch.context() as patched:
        patched.setattr(UserPermission, "pack", lambda _: json.dumps(row).encode())
        begun.run(
            begun.access.put_permission(
                UserPermission(user="other", virtual_host="/", configure="", write="", read="")
            )
        )

    reopened = begun.open()

    assert reopened.permissions() == [ALL]
    assert "permission cannot be used, and allows nothing" in caplog.text
    assert "Traceback" not in caplog.text


def test_everything_that_is_changed_is_there_after_a_restart(begun: AccessRig) -> None:
    access = begun.access
    slow = User("slow", PasswordHash.of("x", Algorithm.ARGON2ID), loopback_only=True)
    begun.run(access.put_user(slow))
    begun.run(
        access.put_permission(
            UserPermission(user="slow", virtual_host="/", configure="", write="^a", read="b$")
        )
    )
    begun.run(access.change_user_limits("app", lambda _: {"max-channels": 7}))
    begun.run(access.set_virtual_host_limits("/", {"max-queues": 3}))

    reopened = begun.open()

    assert reopened.users() == access.users()
    assert reopened.permissions() == access.permissions()
    assert reopened.user("slow") == slow
    app = reopened.user("app")
    assert app is not None
    assert (app.limits, app.tags, app.password_hash) == (
        {"max-channels": 7},
        APP.tags,
        APP.password_hash,
    )
    assert reopened.virtual_host_limits("/") == {"max-queues": 3}


def test_a_user_may_what_the_patterns_say_in_that_virtual_host_only(begun: AccessRig) -> None:
    access = begun.access
    begun.run(
        access.put_permission(
            UserPermission(user="other", virtual_host="/", configure="^c", write="w", read="")
        )
    )

    for host, right, name, may in (
        ("/", Right.CONFIGURE, "c1", True),
        ("/", Right.CONFIGURE, "1c", False),
        ("/", Right.WRITE, "a-w-z", True),
        ("/", Right.READ, "anything", False),
        ("/", Right.READ, "", True),
        ("v", Right.WRITE, "w", False),
    ):
        assert access.may("other", host, right, name) is may
    assert access.may_enter("other", "/")
    assert not access.may_enter("other", "v")
    assert not access.may_enter("nobody", "/")


def test_a_deleted_user_loses_everything_and_its_connections_end(begun: AccessRig) -> None:
    mine, theirs = begun.connect("app", "v"), begun.connect("other")

    begun.run(begun.access.delete_user("app"))

    assert mine.events == ["access lost", "ended: its user was deleted"]
    assert theirs.events == []
    assert not begun.access.may("app", "/", Right.READ, "s")
    assert begun.access.permissions() == []


def test_permissions_taken_away_are_felt_there_and_the_connection_stays(begun: AccessRig) -> None:
    here, elsewhere, theirs = (
        begun.connect("app"),
        begun.connect("app", "v"),
        begun.connect("other"),
    )

    begun.run(begun.access.delete_permission("app", "/"))

    assert here.events == ["access lost"]
    assert elsewhere.events == theirs.events == []
    assert not begun.access.may_enter("app", "/")


def test_connections_are_told_of_a_changed_pattern(begun: AccessRig) -> None:
    client, *others = (begun.connect(*place) for place in (("app",), ("app", "v"), ("other",)))
    narrowed = UserPermission(user="app", virtual_host="/", configure="", write="", read="")

    begun.run(begun.access.put_permission(narrowed))
    begun.run(begun.access.put_many([], [ALL]))

    assert client.events == ["may write a: False", "may write a: True"]
    assert not any(each.events for each in others)


def test_a_changed_user_touches_no_connection(begun: AccessRig) -> None:
    client = begun.connect("app")

    begun.run(begun.access.put_user(User("app", None)))
    begun.run(begun.access.change_user_limits("app", lambda _: {"max-connections": 0}))

    assert client.events == []


def test_a_virtual_host_that_goes_takes_its_permissions_and_limits_along(
    begun: AccessRig,
) -> None:
    begun.run(
        begun.access.put_permission(
            UserPermission(user="app", virtual_host="v", configure="a", write="b", read="c")
        )
    )
    begun.run(begun.access.set_virtual_host_limits("v", {"max-queues": 1}))

    begun.run(begun.access.forget_virtual_host("v"))

    for access in (begun.access, begun.open()):
        assert access.permissions() == [ALL]
        assert access.virtual_host_limits("v") == {}


def test_limits_count_the_connections_of_a_user_and_of_a_virtual_host(begun: AccessRig) -> None:
    access = begun.access
    begun.connect("app", "v")
    assert access.has_room("app", "/")
    last = begun.connect("app", "/")
    assert not access.has_room("app", "/")
    begun.connections.remove(last)
    assert access.has_room("app", "/")
    begun.run(access.set_virtual_host_limits("v", {"max-connections": 1}))
    assert not access.has_room("other", "v")
    begun.run(access.set_virtual_host_limits("v", {"max-connections": -1}))
    assert access.has_room("other", "v")
    begun.run(access.change_user_limits("other", lambda _: {"max-connections": 0}))
    assert not access.has_room("other", "v")


def test_what_is_not_there_cannot_be_changed(begun: AccessRig) -> None:
    access = begun.access
    access.has_virtual_host = lambda name: name == "/"
    for change, error in (
        (access.delete_user("nobody"), NoSuchUser),
        (
            access.put_permission(
                UserPermission(user="nobody", virtual_host="/", configure="", write="", read="")
            ),
            NoSuchUser,
        ),
        (
            access.put_permission(
                UserPermission(user="app", virtual_host="v", configure="", write="", read="")
            ),
            NoSuchVirtualHost,
        ),
        (access.delete_permission("app", "v"), NoSuchPermission),
        (access.change_user_limits("nobody", lambda _: {}), NoSuchUser),
        (access.set_virtual_host_limits("v", {}), NoSuchVirtualHost),
    ):
        with pytest.raises(error):
            begun.run(change)


def replaced(limits: Any, _: object) -> Any:  # noqa: ANN401  # wrong ones too
    return limits


def test_limits_that_nobody_knows_are_refused(begun: AccessRig) -> None:
    for limits in ({"max-cats": 1}, {"max-connections": "1"}, {"max-connections": True}):
        with pytest.raises(UnusableValue):
            begun.run(begun.access.change_user_limits("app", partial(replaced, limits)))
        with pytest.raises(UnusableValue):
            begun.run(begun.access.set_virtual_host_limits("/", limits))  # type: ignore[arg-type]
    assert begun.access.user("app") == APP


def test_a_store_that_refuses_leaves_everything_as_it_was(
    begun: AccessRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = begun.connect("app")

    def refuse(*_: object, done: object, **__: object) -> None:
        begun.loop.call_soon(done, StoreError("no"))  # type: ignore[arg-type]  # a callback

    with monkeypatch.context() as patched:
        patched.setattr(begun.store, "update_table", refuse)
        for change in (
            begun.access.delete_user("app"),
            begun.access.put_user(User("app", None)),
            begun.access.delete_permission("app", "/"),
        ):
            with pytest.raises(StoreError):
                begun.run(change)

    assert begun.access.users() == [APP, OTHER]
    assert begun.access.permissions() == [ALL]
    assert client.events == []
    begun.run(begun.access.delete_user("app"))


def test_changes_go_one_after_the_other(begun: AccessRig) -> None:
    """A permission for a user who is being deleted would outlive it."""
    deletion = start(begun.access.delete_user("app"))
    too_late = start(
        begun.access.put_permission(
            UserPermission(user="app", virtual_host="/", configure="a", write="a", read="a")
        )
    )
    begun.loop.run_until(lambda: deletion.is_settled and too_late.is_settled)

    deletion.result()
    with pytest.raises(NoSuchUser):
        too_late.result()
    assert begun.open().permissions() == []


def test_what_a_deleted_user_has_goes_before_another_is_made(begun: AccessRig) -> None:
    client, seen, going = begun.connect("app"), [], Pending[None]()

    async def drop(_name: str) -> None:
        seen.append((begun.access.has_user("app"), list(client.events)))
        await going

    begun.access.user_left = drop
    deletion = start(begun.access.delete_user("app"))
    again = start(begun.access.put_user(APP))
    begun.loop.run_until(lambda: bool(seen))
    assert begun.open().users() == [OTHER]
    assert not deletion.is_settled
    assert not again.is_settled

    going.settle(None)
    begun.loop.run_until(lambda: deletion.is_settled and again.is_settled)

    assert seen == [(False, ["access lost", "ended: its user was deleted"])]
    assert begun.access.has_user("app")


class Name(str):
    """A name that counts how often it is compared with another one."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("others", [50, 500])
def test_who_else_there_is_adds_nothing_to_the_work_of_deleting_a_user(
    rig: AccessRig, others: int
) -> None:
    left: list[str] = []

    async def user_left(name: str) -> None:
        left.append(name)

    rig.access.user_left = user_left
    names = [Name(f"user{number}") for number in range(others)]
    rig.run(
        rig.access.seed(
            map(User, names, [None] * others),
            [
                UserPermission(user=name, virtual_host="/", configure="", write="", read="")
                for name in names
            ],
        )
    )
    for name in names:
        rig.connect(name)
        rig.access.standings.of(name)
    some = names[::10][:5]

    Name.compared = 0
    for name in some:
        rig.run(rig.access.delete_user(name))
        assert rig.access.standings.of(name) is None
        assert rig.access.virtual_hosts_of(name) == frozenset()
    rig.access.standings.of(names[1])

    assert Name.compared < 20 * len(some)
    assert left == some
    assert len(rig.access.permissions()) == others - len(some)
