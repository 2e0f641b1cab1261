"""A server that is killed while rows are staged and committed, and users with few rights."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from hutch.client.errors import Refused
from hutch.stream.pipeline import StagesCommitted
from pyspark_hutch.sink import stages as stages_module
from pyspark_hutch.sink.commits import Staged, commit
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.reading_rig import cluster_of
from tests.sink_rig import batch_of, bodies_in, bodies_of, settings_for
from tests.stage_rig import PURPOSE, stage

COUNT = 12_000
AT_ONCE = 400
PATIENT = {"planner.retries": 20, "planner.retryIntervalMs": 200}


def batches(stream: str = "s") -> list[pa.RecordBatch]:
    return [
        batch_of(bodies_of(AT_ONCE, first=first), stream=[stream] * AT_ONCE)
        for first in range(0, COUNT, AT_ONCE)
    ]


def make(server: HutchServer, *streams: str) -> None:
    with Client.opened(*server.endpoint) as client:
        for stream in streams:
            client.create(stream)


def committed(server: HutchServer, *staged: Staged) -> StagesCommitted:
    cluster = cluster_of(server, planner_retries=20, planner_retry_interval_ms=200)
    return commit(cluster, PURPOSE, staged, 30_000)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "subBatchSize": 50}])
def test_rows_are_there_once_after_kills_at_every_step(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    monkeypatch.setattr(stages_module, "FRAME_BYTES", 4_000)
    server = start_server()
    make(server, "s", "t")
    settings = settings_for(server, **PATIENT, **options)
    restarts = {index: threading.Thread(target=server.restart) for index in (10, COUNT)}

    def kill(index: int) -> None:
        if index in restarts:
            restarts[index].start()

    first = stage(settings, batches(), partition=0, before_batch=kill)
    restarts[10].join()
    second = stage(settings, batches("t"), partition=1)
    assert bodies_in(server, "s") == bodies_in(server, "t") == []
    kill(COUNT)
    done = committed(server, first, second)
    restarts[COUNT].join()
    again = committed(server, stage(settings, batches(), partition=0))
    server.restart()

    assert again.is_repeat
    assert again.number == done.number
    assert bodies_in(server, "s") == bodies_in(server, "t") == bodies_of(COUNT)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("durability", ["disk", "os"])
def test_a_task_too_large_to_begin_anew_goes_on_after_kills(
    start_server: StartServer, durability: str
) -> None:
    server = start_server("--durability", durability)
    make(server, "s", "t")
    bodies = bodies_of(460, size=100_000)
    pieces = [batch_of(bodies[at : at + 10], stream=["s"] * 10) for at in range(0, 460, 10)]
    small = bodies_of(2)
    pieces[5] = pa.concat_batches([pieces[5], batch_of(small, stream=["t"] * 2)])
    restarts = {index: threading.Thread(target=server.restart) for index in (36, 43)}

    def kill(index: int) -> None:
        if index in restarts:
            for earlier in restarts.values():
                if earlier.ident is not None:
                    earlier.join()
            restarts[index].start()

    staged = stage(settings_for(server, **PATIENT), pieces, before_batch=kill)
    restarts[43].join()

    assert sum(map(len, bodies)) > 40 << 20 > stages_module.KEPT_BYTES_MAX
    committed(server, staged)
    assert bodies_in(server, "s") == bodies
    assert bodies_in(server, "t") == small


def test_the_rows_of_tasks_lie_behind_each_other(server: HutchServer) -> None:
    make(server, "s")
    settings = settings_for(server, stream="s", ignoreUnknownColumns=True)
    parts = [
        stage(settings, [batch_of(bodies_of(5, first=5 * number))], partition=number)
        for number in (2, 0, 1)
    ]

    committed(server, *parts)

    assert bodies_in(server, "s") == bodies_of(15)


def test_more_than_a_user_may_stage_is_refused_with_the_settings_name(
    start_server: StartServer,
) -> None:
    server = start_server(environment={"HUTCH_PIPELINE__STAGED_BYTES_MAX": str(1 << 20)})
    make(server, "s")

    with pytest.raises(Refused, match=r"^stream 's' cannot be published to: .*staged_bytes_max"):
        stage(settings_for(server, stream="s"), [batch_of(bodies_of(30, size=100_000))])

    small = stage(settings_for(server, stream="s"), [batch_of(bodies_of(3, size=100_000))])
    committed(server, small)
    assert bodies_in(server, "s") == bodies_of(3, size=100_000)


def test_a_user_who_may_not_write_stages_nothing(server: HutchServer) -> None:
    make(server, "s")
    ctl(server, "add_user", "clerk", stdin=b"secret\n")
    ctl(server, "set_permissions", "clerk", "", "", ".*")
    login = {"username": "clerk", "password": "secret"}

    with pytest.raises(Refused) as failure:
        stage(settings_for(server, stream="s", **login), [batch_of([b""])])

    assert str(failure.value).startswith(
        "stream 's' cannot be published to: it may not be used by this user (access refused)"
    )
