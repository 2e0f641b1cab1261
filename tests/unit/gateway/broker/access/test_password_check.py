"""Comparing passwords without waiting for it; what is remembered, and when that is forgotten."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.broker.access import password_check as module
from gateway.broker.access.model import User
from gateway.broker.access.password_check import (
    AT_ONCE,
    REMEMBERED_S,
    WAITING_MAX,
    PasswordCheck,
    TooManyWait,
)
from gateway.broker.access.passwords import PasswordHash
from gateway.pending import Pending, start

APP = User("app", PasswordHash.of("secret"))


class Rig:
    """A check whose threads work when the test says so, and whose clock the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.jobs: list[tuple[Callable[[], bool], Pending[bool]]] = []
        self.users = {"app": APP}
        self.check = PasswordCheck(self.run_in_thread, lambda: self.now_s)

    def run_in_thread(self, function: Callable[[], bool]) -> Pending[bool]:
        pending: Pending[bool] = Pending()
        self.jobs.append((function, pending))
        return pending

    def ask(
        self, name: str = "app", password: bytes = b"secret", source: str = ""
    ) -> Pending[bool]:
        return start(self.check.check(lambda: self.users.get(name), name, password, source))

    def is_known(self, name: str = "app", password: bytes = b"secret", source: str = "") -> bool:
        return self.check.is_known(lambda: self.users.get(name), name, password, source)

    def work(self) -> int:
        """Do what waits; gives how much that was."""
        done = 0
        while self.jobs:
            jobs, self.jobs = self.jobs, []
            assert len(jobs) <= AT_ONCE
            for function, pending in jobs:
                pending.settle(function())
            done += len(jobs)
        return done


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_nothing_is_compared_before_a_thread_does_it(rig: Rig) -> None:
    asked = rig.ask()
    assert not asked.is_settled

    rig.work()

    assert asked.result()


def test_a_success_is_remembered_for_an_hour_after_its_last_use(rig: Rig) -> None:
    rig.ask()
    rig.work()

    for _ in range(3):
        rig.now_s += REMEMBERED_S - 1
        assert rig.ask().result()
        assert rig.is_known()
    assert not rig.jobs
    assert rig.ask(password=b"wrong").is_settled is False
    rig.work()
    rig.now_s += REMEMBERED_S
    assert not rig.is_known()
    assert not rig.ask().is_settled


def test_who_is_known_where_it_comes_from_stays_so_by_each_use(rig: Rig) -> None:
    rig.ask(source="a")
    rig.work()

    for _ in range(3):
        rig.now_s += REMEMBERED_S - 1
        assert rig.is_known(source="a")
    rig.now_s += REMEMBERED_S
    assert not rig.is_known(source="a")


def test_a_failure_is_not_remembered(rig: Rig) -> None:
    for _ in range(2):
        asked = rig.ask(password=b"wrong")
        assert rig.work() == 1
        assert not asked.result()


def test_many_who_ask_the_same_cost_one_check(rig: Rig) -> None:
    asked = [rig.ask() for _ in range(1000)]

    assert rig.work() == 1
    assert all(each.result() for each in asked)


@pytest.mark.parametrize(
    "now",
    [
        {},
        {"app": User("app", None)},
        {"app": User("app", PasswordHash.of("new"))},
    ],
    ids=["deleted", "without a password", "another password"],
)
def test_a_change_of_the_user_ends_what_is_remembered_at_once(
    rig: Rig, now: dict[str, User]
) -> None:
    rig.ask()
    rig.work()
    assert rig.is_known()
    rig.users = now

    assert not rig.is_known()
    asked = rig.ask()
    rig.work()
    assert not asked.result()


def test_a_change_of_another_user_or_of_tags_ends_nothing(rig: Rig) -> None:
    rig.ask()
    rig.work()

    rig.users = {"app": replace(APP, tags=("management",)), "other": User("other", None)}

    assert rig.is_known()
    assert rig.ask().result()
    assert not rig.jobs


def test_a_change_while_a_password_is_compared_has_it_compared_again(rig: Rig) -> None:
    asked, other = rig.ask(), rig.ask(password=b"new")
    rig.users["app"] = User("app", PasswordHash.of("new"))
    jobs, rig.jobs = rig.jobs, []
    for function, pending in jobs:
        pending.settle(function())
    assert not asked.is_settled

    rig.work()

    assert not asked.result()
    assert other.result()


def test_too_many_who_wait_are_refused_and_those_before_them_are_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    waiting = [rig.ask(password=b"%d" % number) for number in range(AT_ONCE + WAITING_MAX - 1)]
    last = rig.ask()
    with pytest.raises(TooManyWait):
        rig.ask(password=b"one more").result()
    assert not last.is_settled
    assert not any(each.is_settled for each in waiting)

    assert rig.work() == AT_ONCE + WAITING_MAX

    assert last.result()


def test_one_peer_with_many_passwords_gets_nobody_else_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    rig.users = {name: User(name, APP.password_hash) for name in (f"u{n}" for n in range(100))}
    flood = [rig.ask(password=b"%d" % n, source="flood") for n in range(2 * WAITING_MAX)]
    asked = [rig.ask(f"u{number}", source=f"10.0.0.{number}") for number in range(100)]

    assert not any(each.is_settled for each in asked)
    rig.jobs, jobs = [], rig.jobs
    for function, pending in jobs:
        pending.settle(function())
    assert rig.work() == WAITING_MAX

    assert all(each.result() for each in asked)
    assert sum(each.is_settled for each in flood) == len(flood)


def test_who_comes_from_elsewhere_waits_for_one_check_of_each_peer_at_most(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    for number in range(WAITING_MAX):
        rig.ask(password=b"%d" % number, source="flood")
    asked = rig.ask(source="elsewhere")
    done = 0

    while not asked.is_settled:
        function, pending = rig.jobs.pop(0)
        pending.settle(function())
        done += 1

    assert asked.result()
    assert done <= AT_ONCE + 2


def test_a_check_that_others_wait_for_too_is_not_given_up_for_one_of_them(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    for number in range(AT_ONCE + WAITING_MAX - 1):
        rig.ask(password=b"%d" % number, source="flood")
    shared = rig.ask(source="flood")
    joined = rig.ask(source="elsewhere")

    others = [rig.ask(password=b"x%d" % number, source="third") for number in range(5)]

    assert not joined.is_settled
    assert not any(each.is_settled for each in others)
    rig.work()
    assert joined.result()
    assert shared.result()


def test_a_check_that_fails_tells_all_who_wait_and_lets_the_next_begin(
    rig: Rig,
) -> None:
    asked = [rig.ask(password=b"%d" % number) for number in range(AT_ONCE + 1)]
    (_, first), *_ = rig.jobs
    first.settle(MemoryError("no room for argon2"))

    with pytest.raises(MemoryError):
        asked[0].result()
    assert len(rig.jobs) == AT_ONCE + 1
    rig.jobs.pop(0)
    rig.work()
    assert not any(each.result() for each in asked[1:])


def test_no_more_than_so_many_successes_are_remembered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 3)
    for number in range(5):
        name = f"u{number}"
        rig.users[name] = User(name, APP.password_hash)
        rig.ask(name)
        rig.work()

    assert [rig.ask(f"u{number}").is_settled for number in range(5)] == [False] * 2 + [True] * 3


def test_what_was_used_longest_ago_is_forgotten_first(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 2)
    rig.users |= {name: User(name, APP.password_hash) for name in ("b", "c")}
    for name in ("app", "b"):
        rig.ask(name)
        rig.work()

    assert rig.is_known("app")
    rig.ask("c")
    rig.work()

    assert [rig.is_known(name) for name in ("app", "b", "c")] == [True, False, True]


def test_what_is_remembered_is_no_password_and_differs_between_processes(rig: Rig) -> None:
    other = Rig()
    for each in (rig, other):
        each.ask()
        each.work()

    for memory in ("_right", "_right_from_there"):
        (mine,), (theirs,) = (getattr(each.check, memory)._known for each in (rig, other))
        assert mine != theirs
        assert b"secret" not in mine


def test_a_password_is_known_for_the_address_from_which_it_was_right(rig: Rig) -> None:
    asked = rig.ask(source="a")
    assert not rig.is_known(source="a")
    rig.work()
    assert asked.result()

    assert rig.is_known(source="a")
    assert not rig.is_known(source="b")
    assert not rig.is_known(password=b"wrong", source="a")
    assert rig.ask(source="b").result(), "it is not compared again"
    assert rig.is_known(source="b")


def test_who_is_known_goes_before_all_that_wait_and_a_wrong_password_does_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    rig.ask(source="shared")
    rig.work()
    flood = [rig.ask(password=b"%d" % n, source="shared") for n in range(AT_ONCE + WAITING_MAX)]

    for source in ("shared", "elsewhere"):
        assert rig.ask(source=source).result()
    assert not any(each.is_settled for each in flood)
    with pytest.raises(TooManyWait):
        rig.ask(password=b"wrong", source="shared").result()


def test_a_flood_at_one_user_gets_no_other_user_of_the_address_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compare", lambda _hashed, password: password == b"secret")
    for number in range(2 * WAITING_MAX):
        rig.ask("guest", b"%d" % number, source="shared")
    asked = rig.ask(source="shared")

    for _ in range(AT_ONCE + 2):
        function, pending = rig.jobs.pop(0)
        pending.settle(function())

    assert asked.result(), "its turn comes next but one"


def test_names_and_passwords_do_not_run_into_each_other(rig: Rig) -> None:
    rig.users["appse"] = User("appse", PasswordHash.of("x"))
    rig.ask("app", b"secret")
    rig.work()

    assert not rig.ask("appse", b"cret").is_settled
