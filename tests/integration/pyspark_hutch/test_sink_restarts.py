"""A server that is killed while a task of the sink writes, and users with few rights."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest

from hutch.client.errors import ClientError, Refused
from pyspark_hutch.sink.task import RowsWritten
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.sink_rig import batch_of, bodies_in, bodies_of, settings_for, write
from tests.waiting import HANG_S

COUNT = 12_000
AT_ONCE = 400
BY_COLUMN = {
    "delivery": "dedup",
    "producerName": "name",
    "publishingIdColumn": "n",
    "producerKeyColumn": "k",
}
PATIENT = {"planner.retries": 20, "planner.retryIntervalMs": 200, "maxInFlight": 1_500}


def numbered() -> list[pa.RecordBatch]:
    """Rows with a number each, and one key."""
    return [
        batch_of(
            bodies_of(AT_ONCE, first=first),
            n=pa.array(range(first, first + AT_ONCE), pa.int64()),
            k=["x"] * AT_ONCE,
        )
        for first in range(0, COUNT, AT_ONCE)
    ]


class Restarts:
    """Kills a server before some batches, and starts it again while the task goes on."""

    def __init__(self, server: HutchServer, *before: int) -> None:
        self._server = server
        self._before = before
        self._threads: list[threading.Thread] = []

    def __call__(self, index: int) -> None:
        if index in self._before:
            self.end()
            self._threads.append(threading.Thread(target=self._server.restart))
            self._threads[-1].start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join(HANG_S)


@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "subBatchSize": 50}])
def test_a_named_producer_loses_and_doubles_nothing_over_kills(
    start_server: StartServer, options: dict[str, object]
) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    restarts = Restarts(server, 6, 15)

    settings = settings_for(server, stream="s", **BY_COLUMN, **PATIENT, **options)
    found = write(settings, *numbered(), before_batch=restarts)
    restarts.end()

    assert found == RowsWritten(COUNT, 0)
    assert bodies_in(server, "s") == bodies_of(COUNT)
    assert write(settings, *numbered()) == RowsWritten(0, COUNT)


def test_without_a_name_rows_are_doubled_at_most(start_server: StartServer) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    restarts = Restarts(server, 6, 15)

    settings = settings_for(server, stream="s", ignoreUnknownColumns="true", **PATIENT)
    found = write(settings, *numbered(), before_batch=restarts)
    restarts.end()

    assert found == RowsWritten(COUNT, 0)
    times = Counter(bodies_in(server, "s"))
    assert set(times) == set(bodies_of(COUNT))
    assert max(times.values()) <= 3


def test_a_task_after_a_kill_goes_on_with_a_new_connection(start_server: StartServer) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    settings = settings_for(server, stream="s", **PATIENT, **{"pool.idleTimeoutMs": 30_000})

    write(settings, batch_of(bodies_of(10)), closes=False)
    server.restart()
    write(settings, batch_of(bodies_of(10, first=10)))

    assert bodies_in(server, "s") == bodies_of(20)


def test_a_server_that_stays_away_is_told_in_one_line(start_server: StartServer) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    settings = settings_for(server, stream="s", maxInFlight=500, **{"planner.retries": 2})

    with pytest.raises(ClientError, match=r"^cannot connect to .*; \d+ rows were not confirmed$"):
        write(
            settings,
            *[batch_of(bodies_of(AT_ONCE))] * 30,
            before_batch=lambda index: server.kill() if index == 5 else None,
        )


def user_with(server: HutchServer, *, writes: str, reads: str) -> dict[str, str]:
    ctl(server, "add_user", "clerk", stdin=b"secret\n")
    ctl(server, "set_permissions", "clerk", "", writes, reads)
    return {"username": "clerk", "password": "secret"}


def test_dedup_without_the_right_to_read_needs_simple_messages(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    login = user_with(server, writes=".*", reads="")
    settings = settings_for(server, stream="s", **BY_COLUMN, **login)

    write(settings, *numbered()[:2])
    again = write(settings, *numbered()[:3])

    assert again == RowsWritten(3 * AT_ONCE, 0), "the server does not tell what it drops"
    assert bodies_in(server, "s") == bodies_of(3 * AT_ONCE)
    with pytest.raises(Refused) as failure:
        write(
            settings_for(server, stream="s", compression="gzip", **BY_COLUMN, **login), *numbered()
        )
    assert str(failure.value) == (
        "stream 's' may not be used by this user (access refused): "
        "delivery=dedup with compression=gzip needs the right to read"
    )


def test_a_user_who_may_not_write_is_told_in_one_line(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("s")
    login = user_with(server, writes="", reads=".*")

    with pytest.raises(Refused) as failure:
        write(settings_for(server, stream="s", **login), batch_of([b""]))

    assert str(failure.value) == (
        "stream 's' cannot be published to: it may not be used by this user (access refused)"
    )


def test_a_stream_that_may_not_be_made_is_named(server: HutchServer) -> None:
    login = user_with(server, writes=".*", reads=".*")

    with pytest.raises(Refused, match=r"^stream 's' cannot be created: it .*access refused"):
        write(settings_for(server, stream="s", createStream="true", **login), batch_of([b""]))
