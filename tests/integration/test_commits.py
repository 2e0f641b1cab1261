"""Staging and committing by the typed client, across `kill -9` of a real server."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from hutch.client.connection import Connection
from hutch.client.errors import ClientError
from hutch.client.login import Endpoint, Login
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api, eventually
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.load import records_of
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

ROUNDS: Final = int(os.environ.get("HUTCH_KILL_ROUNDS", "3"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")
STREAMS: Final = ("orders", "returns")
ROWS: Final = 400

pytestmark = pytest.mark.timeout(60 + 15 * ROUNDS)


@contextmanager
def pipeline_client(server: HutchServer) -> Iterator[Connection]:
    """Connect as a pipeline does; the connection ends without a word."""
    endpoint = Endpoint(*server.endpoint)
    connection = Connection.to(endpoint, Login(asks_for_pipeline=True), timeout_s=HANG_S)
    try:
        yield connection
    finally:
        connection.disconnect()


def rows_of(batch: int, stream: str) -> list[bytes]:
    return [f"{stream} {batch} {row}".encode() + b"." * (row % 900) for row in range(ROWS)]


def stage(client: Connection, batch: int, stream: str, rows: Sequence[bytes]) -> int:
    """Stage rows in several pieces, and close."""
    opened = client.ask(p.StageOpened, "open_stage", p.OpenStage("query", batch, stream))
    client.check(opened, stream)
    for sequence, begin in enumerate(range(0, len(rows), 100)):
        some = rows[begin : begin + 100]
        data = b"".join(len(row).to_bytes(4) + row for row in some)
        piece = p.StageRecords(opened.stage, sequence, len(some), len(some), data)
        client.must("stage", piece)
    closed = client.ask(p.StageClosed, "close_stage", p.CloseStage(opened.stage))
    assert (closed.code, closed.records) == (ResponseCode.OK, len(rows))
    return opened.stage


def stage_batch(client: Connection, batch: int) -> tuple[int, ...]:
    return tuple(stage(client, batch, stream, rows_of(batch, stream)) for stream in STREAMS)


def commit(client: Connection, batch: int, stages: tuple[int, ...]) -> p.StagesCommitted:
    asked = p.CommitStages("query", batch, stages)
    committed = client.ask(p.StagesCommitted, "commit_stages", asked)
    client.check(committed, "commit")
    return committed


def last_batch(client: Connection) -> int:
    return client.ask(p.SinkStateReply, "sink_state", p.SinkState("query")).last_batch


def content(server: HutchServer, stream: str) -> list[bytes]:
    """Return what another client reads of the rows."""
    with Client.opened(*server.endpoint) as client:
        prefix = f"{stream} ".encode()
        return [record for record in records_of(client, stream) if record.startswith(prefix)]


def make_streams(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:
        for stream in STREAMS:
            client.create(stream)


def test_staged_records_are_seen_with_the_commit_and_administrators_see_them_before(
    start_server: StartServer,
) -> None:
    server = start_server("--durability", "os")
    make_streams(server)
    with pipeline_client(server) as client:
        stages = stage_batch(client, 0)
        assert content(server, "orders") == content(server, "returns") == []
        listed = ctl(server, "list_stages")
        assert [(row["stream"], row["records"], row["state"]) for row in listed] == [
            (stream, ROWS, "closed") for stream in STREAMS
        ]
        user = Api(*server.management).get("users/guest")
        assert user["staged_bytes"] == sum(row["bytes"] for row in listed) > 0

        committed = commit(client, 0, stages)

        assert (committed.number, committed.is_repeat) == (1, False)
        for stream in STREAMS:
            assert content(server, stream) == rows_of(0, stream)
        assert commit(client, 0, stages).is_repeat
        server.wait_for_log("commit done virtual_host=/ sink='query' batch=0 number=1 streams=2")
    assert ctl(server, "list_stages") == []
    assert Api(*server.management).get("users/guest")["staged_bytes"] == 0


def test_a_batch_that_is_larger_than_an_append_comes_in_one_piece(
    start_server: StartServer,
) -> None:
    server = start_server("--durability", "os")
    make_streams(server)
    rows = [b"orders %06d" % number + b"." * 1_000 for number in range(25_000)]
    with pipeline_client(server) as client, Client.opened(*server.endpoint) as publisher:
        stages = tuple(
            stage(client, 0, "orders", rows[begin : begin + 10_000])
            for begin in range(0, len(rows), 10_000)
        )
        publisher.declare(1, "orders")
        publisher.publish(1, {1: b"before"})
        publisher.confirmed_ids(1)
        commit(client, 0, stages)
        publisher.publish(1, {2: b"after"})
        publisher.confirmed_ids(1)

        found = records_of(publisher, "orders")

    assert found == [b"before", *rows, b"after"]


def test_closed_stages_and_sinks_outlive_a_kill(start_server: StartServer) -> None:
    server = start_server()
    make_streams(server)
    with pipeline_client(server) as client:
        commit(client, 0, stage_batch(client, 0))
        stages = stage_batch(client, 1)

    server.kill()
    server.restart()

    with pipeline_client(server) as client:
        assert last_batch(client) == 0
        assert not commit(client, 1, stages).is_repeat
    for stream in STREAMS:
        assert content(server, stream) == rows_of(0, stream) + rows_of(1, stream)


def test_a_query_that_repeats_its_batch_after_each_kill_writes_it_once(
    start_server: StartServer,
) -> None:
    chance = random.Random(SEED)
    server = start_server()
    make_streams(server)
    for _ in range(ROUNDS):
        answered = _write_until_killed(server, chance.uniform(0.05, 0.6))
        server.restart()
        with pipeline_client(server) as client:
            last = last_batch(client)
            assert last >= answered
            commit(client, last + 1, stage_batch(client, last + 1))
        for stream in STREAMS:
            expected = [row for batch in range(last + 2) for row in rows_of(batch, stream)]
            assert content(server, stream) == expected


def _write_until_killed(server: HutchServer, within_s: float) -> int:
    """Write batches until a kill; return the last one that was answered."""
    answered = -1
    killer = threading.Timer(within_s, server.kill)
    with pipeline_client(server) as client:
        batch = last_batch(client)
        killer.start()
        try:
            while True:
                batch += 1
                commit(client, batch, stage_batch(client, batch))
                answered = batch
        except ClientError:
            killer.join()
    return answered


def test_what_a_pipeline_staged_and_left_expires(start_server: StartServer) -> None:
    each_second = {
        "HUTCH_STREAMS__RETENTION_INTERVAL_S": "1",
        "HUTCH_PIPELINE__STAGE_EXPIRY_S": "1",
    }
    server = start_server("--durability", "os", environment=each_second)
    make_streams(server)
    with pipeline_client(server) as client:
        stages = stage_batch(client, 0)
        server.wait_for_log("stages expired virtual_host=/ stages=")
        assert eventually(lambda: ctl(server, "list_stages") == [])

        with pytest.raises(ClientError, match=f"stage {stages[0]} is unknown"):
            commit(client, 0, stages)
    assert content(server, "orders") == []
