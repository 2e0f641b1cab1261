"""Sinks of pipelines on a running server: who makes them, how many, and how they go."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import threading
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from hutch.client.connection import Connection
from hutch.client.login import Endpoint, Login
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import ctl, refusal, run_here
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.integration.test_commits import content
from tests.waiting import HANG_S

ROUNDS: Final = int(os.environ.get("HUTCH_KILL_ROUNDS", "3"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")
OK: Final = ResponseCode.OK
REFUSED: Final = ResponseCode.PRECONDITION_FAILED
SINKS_MAX: Final = 1_000

pytestmark = pytest.mark.timeout(120 + 15 * ROUNDS)


@pytest.fixture
def server(start_server: StartServer) -> HutchServer:
    """A server with a stream, a user that may write to it, and one that may do nothing."""
    server = start_server("--durability", "os")
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    add_user(server, "app", "^orders$")
    add_user(server, "none", "")
    return server


def add_user(server: HutchServer, user: str, writes: str) -> None:
    ctl(server, "add_user", user, stdin=b"secret\n")
    ctl(server, "set_permissions", user, "", writes, writes)


@contextlib.contextmanager
def pipeline_of(server: HutchServer, user: str) -> Iterator[Connection]:
    """Connect as a pipeline of a user does."""
    login = Login(user, password="secret", asks_for_pipeline=True)
    connection = Connection.to(Endpoint(*server.endpoint), login, timeout_s=HANG_S)
    try:
        yield connection
    finally:
        connection.disconnect()


def staged(client: Connection, sinks: Sequence[str], batch: int = 0) -> list[int]:
    """Stage one row for each of some sinks; return the stages."""
    opening = [("open_stage", p.OpenStage(sink, batch, "orders")) for sink in sinks]
    opened = list(client.requests(opening))
    stages = [answer.stage for answer in opened if isinstance(answer, p.StageOpened)]
    row = (len(b"orders x")).to_bytes(4) + b"orders x"
    filling = [("stage", p.StageRecords(stage, 0, 1, 1, row)) for stage in stages]
    closing = [("close_stage", p.CloseStage(stage)) for stage in stages]
    for answer in client.requests([*filling, *closing]):
        assert answer.code == OK, answer  # type: ignore[attr-defined]  # all answers have it
    return stages


def commit_each(
    client: Connection, sinks: Sequence[str], batch: int = 0
) -> list[p.StagesCommitted]:
    """Commit one row to each of some sinks."""
    asked = [
        ("commit_stages", p.CommitStages(sink, batch, (stage,)))
        for sink, stage in zip(sinks, staged(client, sinks, batch), strict=True)
    ]
    answers = client.requests(asked)
    return [answer for answer in answers if isinstance(answer, p.StagesCommitted)]


def sinks_of(server: HutchServer, user: str) -> list[str]:
    return [row["name"] for row in ctl(server, "list_sinks") if row["user"] == user]


def test_commits_of_a_user_without_rights_take_no_sink(server: HutchServer) -> None:
    with pipeline_of(server, "none") as client:
        asked = [("commit_stages", p.CommitStages(f"s{n}", 2**62, ())) for n in range(2_000)]
        answers = list(client.requests(asked))
        nothing = p.StagesCommitted(OK, None, number=0, is_repeat=False, dropped=(), waiting=())
        assert set(answers) == {nothing}
        opened = client.ask(p.StageOpened, "open_stage", p.OpenStage("s", 0, "orders"))
        assert opened.code == ResponseCode.ACCESS_REFUSED

    assert ctl(server, "list_sinks") == []
    with pipeline_of(server, "app") as client:
        (done,) = commit_each(client, ["s1"])
        assert (done.code, done.number, done.is_repeat) == (OK, 1, False)


def test_a_user_has_a_thousand_sinks_and_room_for_another_when_one_is_forgotten(
    server: HutchServer,
) -> None:
    names = [f"sink {number}" for number in range(SINKS_MAX)]
    with pipeline_of(server, "app") as client:
        assert {answer.code for answer in commit_each(client, names)} == {OK}

        (more,) = commit_each(client, ["more"])

        assert more.code == REFUSED
        assert more.reason == (
            "sink 'more' is new, and user 'app' has 1000 sinks in virtual host '/': "
            "`hutch ctl list_sinks` shows them, `hutch ctl forget_sink` makes room"
        )
        assert len(sinks_of(server, "app")) == SINKS_MAX
        assert commit_each(client, ["sink 0"], batch=1)[0].code == OK
        assert len(content(server, "orders")) == SINKS_MAX + 1
        ctl(server, "forget_sink", "sink 7")
        assert commit_each(client, ["more"])[0].code == OK
        assert commit_each(client, ["sink 7"])[0].code == REFUSED


def test_a_taken_name_is_told_with_its_user_and_freed_on_demand(server: HutchServer) -> None:
    add_user(server, "stranger", "^orders$")
    with pipeline_of(server, "stranger") as client:
        commit_each(client, ["nightly"], batch=2**62)
    [row] = ctl(server, "list_sinks", "-p", "/")
    assert (row["virtual_host"], row["name"], row["user"], row["last_batch"]) == (
        *("/", "nightly", "stranger"),
        2**62,
    )
    code, said, _ = run_here("ctl", "list_sinks", "--data", str(server.data_dir))
    assert code == 0
    assert said.splitlines()[0].split("  ")[0] == "virtual host"
    assert said.splitlines()[1].split()[:4] == ["/", "nightly", "stranger", str(2**62)]

    with pipeline_of(server, "app") as client:
        (refused,) = commit_each(client, ["nightly"])
        assert refused.code == ResponseCode.ACCESS_REFUSED
        assert refused.reason == (
            "sink 'nightly' is of user 'stranger': take another name, or have an administrator "
            "free this one by `hutch ctl forget_sink`"
        )
        ctl(server, "forget_sink", "nightly")
        assert commit_each(client, ["nightly"])[0].code == OK

    assert refusal(server, "ctl", "forget_sink", "nightly", "-p", "other") == (
        1,
        "hutch: there is no virtual host 'other'\n",
    )
    assert refusal(server, "ctl", "forget_sink", "gone") == (1, "hutch: there is no sink 'gone'\n")
    server.wait_for_log("administration request=forget_sink by='owner' about={'name': 'nightly'")


def test_a_query_whose_batches_are_partly_empty_writes_each_once(server: HutchServer) -> None:
    """A driver that is started again repeats its last batch, which is empty or has rows."""
    rows = [0, 0, 1, 0, 1]
    with pipeline_of(server, "app") as client:
        for batch, count in enumerate(rows):
            for _ in range(2):
                stages = tuple(staged(client, ["query"] * count, batch))
                client.must("commit_stages", p.CommitStages("query", batch, stages))
        (late,) = commit_each(client, ["query"], batch=3)
        assert late.is_repeat
        state = client.ask(p.SinkStateReply, "sink_state", p.SinkState("query"))

    assert state.last_batch == len(rows) - 1
    assert len(content(server, "orders")) == sum(rows)
    server.kill()
    server.restart()
    with pipeline_of(server, "app") as client:
        assert commit_each(client, ["query"], batch=len(rows) - 1)[0].is_repeat
    assert len(content(server, "orders")) == sum(rows)


@pytest.mark.parametrize("way", ["ctl", "http", "bulk"])
def test_stages_and_sinks_of_a_user_go_with_it(server: HutchServer, way: str) -> None:
    with pipeline_of(server, "app") as client:
        commit_each(client, ["one", "two"])
        staged(client, ["three"])
        api = Api(*server.management)
        if way == "ctl":
            ctl(server, "delete_user", "app")
        elif way == "http":
            assert api.status("DELETE", "users/app") == http.client.NO_CONTENT
        else:
            asked = {"users": ["nobody", "app"]}
            assert api.status("POST", "users/bulk-delete", asked) == http.client.NO_CONTENT

    assert ctl(server, "list_sinks") == ctl(server, "list_stages") == []
    server.wait_for_log("stages of deleted users dropped virtual_host=/ stages=1 bytes=")
    add_user(server, "app", "^orders$")
    with pipeline_of(server, "app") as client:
        assert not commit_each(client, ["one"])[0].is_repeat


def test_a_kill_leaves_a_user_with_its_stages_and_sinks_or_nothing_of_it(
    server: HutchServer,
) -> None:
    chance, names = random.Random(SEED), [f"sink {number}" for number in range(300)]
    for _ in range(ROUNDS):
        with pipeline_of(server, "app") as client:
            known = sinks_of(server, "app")
            commit_each(client, [name for name in names if name not in known])
            if not ctl(server, "list_stages"):
                staged(client, names)
        killer = threading.Timer(chance.uniform(0, 0.02), server.kill)
        killer.start()
        with contextlib.suppress(OSError, http.client.HTTPException):
            Api(*server.management).status("DELETE", "users/app")
        killer.join()

        server.restart()

        left = names if any(row["name"] == "app" for row in ctl(server, "list_users")) else []
        assert sinks_of(server, "app") == sorted(left)
        assert sorted(row["sink"] for row in ctl(server, "list_stages")) == sorted(left)
        if not left:
            add_user(server, "app", "^orders$")
