"""A connection whose member of a group becomes the active one, or no longer is."""

import time
from collections.abc import Iterator

import pytest

from hutch.client.connection import Connection
from hutch.client.login import Endpoint, Login
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, encode_command
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import NONE, at_offset
from tests.fake_server import FakeServer, Talk, chunks
from tests.waiting import HANG_S, wait_until


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams["s"] = chunks(2, 3)
        yield fake


@pytest.fixture
def connection(server: FakeServer) -> Iterator[Connection]:
    made = Connection.to(Endpoint(server.host, server.port), Login(), timeout_s=HANG_S)
    yield made
    made.disconnect()


def soon() -> float:
    return time.monotonic() + HANG_S


def push_update(talk: Talk, *, active: bool) -> None:
    talk.send(
        encode_command("consumer_update", m.ConsumerUpdate(1, active=active), correlation_id=7)
    )


@pytest.mark.parametrize("active", [True, False])
def test_a_member_of_a_group_starts_where_its_subscription_says(
    server: FakeServer,
    connection: Connection,
    active: bool,  # noqa: FBT001  # of the table
) -> None:
    answers: list[Decoded] = []
    server.handlers["consumer_update"] = lambda _talk, asked: answers.append(asked)
    push_update(server.talks[0], active=active)

    assert connection.pushed(soon()) == m.ConsumerUpdate(1, active=active)

    wait_until(lambda: answers)
    assert answers[0].correlation_id == 7
    assert answers[0].message == m.ConsumerUpdateReply(ResponseCode.OK, NONE)


def test_a_program_may_say_where_an_active_member_starts(
    server: FakeServer, connection: Connection
) -> None:
    answers: list[Decoded] = []
    asked: list[m.Message] = []
    server.handlers["consumer_update"] = lambda _talk, answer: answers.append(answer)

    def updated(news: Decoded) -> None:
        asked.append(news.message)
        connection.answer_update(news, at_offset(42))

    connection.updated = updated
    push_update(server.talks[0], active=True)

    assert connection.pushed(soon()) == m.ConsumerUpdate(1, active=True)

    wait_until(lambda: answers)
    assert asked == [m.ConsumerUpdate(1, active=True)]
    assert (answers[0].correlation_id, answers[0].message) == (
        7,
        m.ConsumerUpdateReply(ResponseCode.OK, at_offset(42)),
    )


def test_a_program_may_ask_the_server_before_it_says_where_a_member_starts(
    server: FakeServer, connection: Connection
) -> None:
    answers: list[Decoded] = []
    server.handlers["consumer_update"] = lambda _talk, answer: answers.append(answer)

    def updated(news: Decoded) -> None:
        question = m.StreamStats("s")
        numbers = connection.ask(m.StreamStatsReply, "stream_stats", question).statistics
        connection.answer_update(news, at_offset(numbers["committed_offset"]))

    connection.updated = updated
    push_update(server.talks[0], active=True)
    push_update(server.talks[0], active=False)

    connection.pushed(soon())
    connection.pushed(soon())

    wait_until(lambda: len(answers) == 2)
    assert answers[0].message == m.ConsumerUpdateReply(ResponseCode.OK, at_offset(4))
