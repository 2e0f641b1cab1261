import os
import select
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from hutch.client import channel as channel_module
from hutch.client.errors import ServerGone
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from pyspark_hutch.client import pool as pool_module
from pyspark_hutch.client.pool import Name, Pool
from pyspark_hutch.options.connection_settings import BrokerSettings
from tests.fake_server import FakeServer
from tests.reading_rig import settings_of
from tests.waiting import HANG_S

FIRST = Name("app", "task 1")
SECOND = Name("app", "task 2")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams["s"] = []
        yield fake


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    monkeypatch.setattr(pool_module, "_LOOK_S", 0.02)
    made = Pool()
    yield made
    made.close()


def where(server: FakeServer) -> Endpoint:
    return Endpoint(server.host, server.port)


def use(pool: Pool, server: FakeServer, settings: BrokerSettings, name: Name = FIRST) -> int:
    """Ask something over a connection of the pool; tells how many the server has seen."""
    with pool.connection(where(server), settings, name) as connection:
        connection.request("stream_stats", m.StreamStats("s"))
    return len(server.talks)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_tasks_of_one_owner_use_a_connection_in_turn(pool: Pool, server: FakeServer) -> None:
    settings = settings_of(server)

    assert [use(pool, server, settings, name) for name in (FIRST, SECOND, FIRST)] == [1, 1, 1]
    assert server.talks[0].properties["connection_name"] == "app/task 1"


def test_other_users_and_owners_have_connections_of_their_own(
    pool: Pool, server: FakeServer
) -> None:
    use(pool, server, settings_of(server))
    use(pool, server, settings_of(server), Name("other"))
    use(pool, server, settings_of(server, username="somebody"))

    assert len(server.talks) == 3
    assert server.count("close") == 1, "what was named for another query is not kept beside"


def test_two_that_are_lent_at_once_are_two_and_one_is_kept(pool: Pool, server: FakeServer) -> None:
    settings = settings_of(server)
    with (
        pool.connection(where(server), settings, FIRST) as one,
        pool.connection(where(server), settings, SECOND) as other,
    ):
        assert one is not other

    assert server.count("close") == 1
    assert use(pool, server, settings) == 2


def test_an_idle_connection_is_closed_in_order_after_its_time(
    pool: Pool, server: FakeServer
) -> None:
    use(pool, server, settings_of(server, pool_idle_timeout_ms=100))

    wait_until(lambda: server.count("close") == 1)
    wait_until(lambda: pool._keeper is None)
    assert use(pool, server, settings_of(server)) == 2


def test_a_connection_is_not_kept_after_an_error(pool: Pool, server: FakeServer) -> None:
    settings = settings_of(server)

    with (
        pytest.raises(KeyError),
        pool.connection(where(server), settings, FIRST),
    ):
        raise KeyError

    assert use(pool, server, settings) == 2


def test_a_connection_that_the_server_ended_meanwhile_is_made_anew(
    pool: Pool, server: FakeServer
) -> None:
    settings = settings_of(server)
    with pool.connection(where(server), settings, FIRST) as connection:
        pass

    server.cut()
    assert select.select([connection.socket], [], [], 10)[0], "the end has come"

    assert use(pool, server, settings) == 2


def test_a_server_that_is_not_there_is_an_error_of_the_borrower(
    pool: Pool, server: FakeServer
) -> None:
    server.go()

    with pytest.raises(ServerGone):
        use(pool, server, settings_of(server))


def test_heartbeats_go_out_while_a_connection_is_idle_and_while_its_user_is_elsewhere(
    pool: Pool, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "BEATS", 60 / 0.05)
    settings = settings_of(server)
    with pool.connection(where(server), settings, FIRST):
        wait_until(lambda: server.talks[0].heartbeats >= 3)

    seen = server.talks[0].heartbeats
    wait_until(lambda: server.talks[0].heartbeats >= seen + 3)
    assert use(pool, server, settings) == 1


def test_heartbeats_do_not_fall_between_the_bytes_of_who_sends(
    pool: Pool, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "BEATS", 60 / 0.001)
    monkeypatch.setattr(pool_module, "_LOOK_S", 0.001)
    settings = settings_of(server)
    wanted = [("stream_stats", m.StreamStats("s"))] * 100

    with pool.connection(where(server), settings, FIRST) as connection:
        for _ in range(20):
            assert len(list(connection.requests(wanted))) == 100

    assert server.count("stream_stats") == 2_000
    assert server.count("heartbeat") > 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("lock", ["free", "held"])
def test_a_forked_process_shares_nothing(pool: Pool, server: FakeServer, lock: str) -> None:
    settings = settings_of(server)
    use(pool, server, settings)
    released = threading.Event()
    holder = threading.Thread(target=lambda: _hold(pool, released))
    if lock == "held":
        holder.start()
        wait_until(pool._lock.locked)

    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if use(pool, server, settings) else 1)
        finally:
            os._exit(2)
    released.set()
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert use(pool, server, settings) == 2
    assert server.count("close") == 0, "the child has not closed what is its parent's"
    if lock == "held":
        holder.join()


def _hold(pool: Pool, released: threading.Event) -> None:
    with pool._lock:
        released.wait(HANG_S)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_loan_that_a_forked_process_ends_does_not_end_the_parents(
    pool: Pool, server: FakeServer
) -> None:
    settings = settings_of(server)
    with pool.connection(where(server), settings, FIRST) as connection:
        child = os.fork()
        if child == 0:
            try:
                pool._end_loan(connection)
                os._exit(0 if not pool._idle and not pool._lent else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        connection.request("stream_stats", m.StreamStats("s"))

    assert use(pool, server, settings) == 1


def test_a_name_is_owner_and_task() -> None:
    assert str(FIRST) == "app/task 1"
    assert str(Name("app")) == "app"
