"""What becomes of a caller whose password is right, is wrong, or was not compared."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.model import Right, User, UserPermission
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.passwords import PasswordHash
from gateway.broker.access.refusals import Refusals
from gateway.pending import Pending
from gateway.pravega.access.callers import Anyone, Caller, LogIn
from gateway.pravega.controller.errors import Busy
from gateway.serving.controller_callers import StreamUser, log_in_by
from tests.controller_client import basic
from tests.unit.gateway.stream.link_rig import Broker

ADDRESS = "10.0.0.1"
CALLER = Anyone()


class Users:
    """One user, app."""

    def __init__(self) -> None:
        self._app = User("app", PasswordHash.of("secret"))

    def user(self, name: str) -> User | None:
        return self._app if name == self._app.name else None


@pytest.fixture
def log_in() -> LogIn:
    def run(function: object) -> Pending[bool]:
        pending: Pending[bool] = Pending()
        pending.settle(function())  # type: ignore[operator]  # a function without arguments
        return pending

    def caller_of(name: str) -> Caller:
        assert name == "app"
        return CALLER

    passwords = PasswordCheck(run, lambda: 0.0)
    attempts = AttemptLedger(lambda: 0.0, failed_a_second_max=1)
    authentication = Authentication(Users(), passwords, attempts, Refusals(lambda: 0.0))
    return log_in_by(authentication, caller_of)


async def test_the_right_password_gives_the_caller_and_a_wrong_one_none(log_in: LogIn) -> None:
    assert await log_in(basic("app", "secret"), ADDRESS) is CALLER
    assert await log_in(basic("app", "wrong"), ADDRESS) is None
    assert await log_in("", ADDRESS) is None


async def test_a_password_that_was_not_compared_is_not_told_to_be_wrong(log_in: LogIn) -> None:
    assert await log_in(basic("app", "wrong"), ADDRESS) is None

    with pytest.raises(Busy, match="busy: the password was not compared"):
        await log_in(basic("app", "secret"), ADDRESS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.close()


def test_a_caller_has_its_rights_while_its_user_is_what_it_was_at_the_login(broker: Broker) -> None:
    access, run = broker.access, broker.store_rig.run
    every = UserPermission(user="app", virtual_host="/", configure=".*", write=".*", read=".*")

    def log_in() -> StreamUser:
        return StreamUser("app", access, broker.virtual_hosts, access.standings.of("app"))

    run(access.put_many([User("app", PasswordHash.of("secret"))], [every]))
    before = log_in()
    assert before.may(Right.WRITE, "scope", "stream")

    run(access.delete_user("app"))
    assert not before.may(Right.WRITE, "scope", "stream")
    run(access.put_many([User("app", PasswordHash.of("secret"))], [every]))
    assert not before.may(Right.WRITE, "scope", "stream")
    assert log_in().may(Right.WRITE, "scope", "stream")
