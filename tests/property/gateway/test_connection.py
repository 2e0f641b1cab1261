"""Whatever a client sends, and however it is split: only answers or an end, and always the same."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging.handlers import BufferingHandler
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hutch.stream import messages as m
from tests.chunks import delivery_of
from tests.property.gateway.conversations import (
    HANDSHAKE,
    frame_of,
    splits,
    steady_conversations,
    wild_conversations,
)
from tests.unit.gateway.log.log_rig import chunks_in
from tests.unit.gateway.server.connection_rig import AT_ONCE_S, Client, Server


@contextmanager
def no_error_logged() -> Iterator[None]:
    """A peer's mistake is never an ERROR of ours."""
    handler = BufferingHandler(1_000_000)
    handler.setLevel(logging.ERROR)
    logger = logging.getLogger("gateway")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert [record.getMessage() for record in handler.buffer] == []


@dataclass
class Outcome:
    """What a client saw, without what depends on when a chunk was committed."""

    answers: list[tuple[str, int | None, object]] = field(default_factory=list)
    errors: list[object] = field(default_factory=list)
    confirms: Counter[tuple[int, int]] = field(default_factory=Counter)
    is_closed: bool = False
    is_aborted: bool = False
    stored: list[bytes] = field(default_factory=list)


def stored_in(server: Server) -> list[tuple[int, bytes]]:
    """Offsets and records of the stream `s`, if it exists; a sub-batch is not looked into."""
    broker = server.broker
    if broker.streams._streams.get("s") is None:
        return []
    content = broker.store_rig.content_now(broker.log("s"))
    return [(chunk.chunk_id, chunk.data) for chunk, _ in chunks_in(content)]


def converse(server: Server, data: bytes, pieces: list[int]) -> tuple[Client, Outcome]:
    """Send bytes in pieces; everything that they lead to has happened afterwards."""
    client = server.connect()
    client.feed(data, pieces)
    client.loop.run_all()
    outcome = Outcome(is_closed=client.edge.is_closed, is_aborted=client.edge.is_aborted)
    for frame in client.received():
        message = frame.message
        if isinstance(message, m.PublishConfirm):
            outcome.confirms.update((message.publisher_id, each) for each in message.publishing_ids)
        elif isinstance(message, m.PublishError):
            outcome.errors.append(message)
        elif frame.command.name == "deliver":
            delivery_of(frame).chunk.entries()
        else:
            outcome.answers.append((frame.command.name, frame.correlation_id, message))
    assert client._taken == len(client.edge.sent) or outcome.is_aborted, "half a frame was sent"
    outcome.stored = [data for _, data in stored_in(server)]
    return client, outcome


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


TUNE = frame_of("tune", m.Tune(0, 0))
CLOSE_ANSWER = bytes.fromhex("0000000a 8016 0001 00000001 0001")
WRONG = bytes.fromhex("00000004 00ff 0001")


@given(data=steady_conversations(), pieces=splits)
@example(data=HANDSHAKE + WRONG + CLOSE_ANSWER, pieces=[len(HANDSHAKE) + 8 + 3, 3, 3])
@example(data=HANDSHAKE + WRONG + WRONG + CLOSE_ANSWER, pieces=[1] * 500)
def test_any_split_of_the_same_bytes_gives_the_same_answers(
    directory: Path, data: bytes, pieces: list[int]
) -> None:
    with no_error_logged():
        _, whole = converse(Server(directory, refusal_delay_ms=0), data, [])
        _, split = converse(Server(directory, refusal_delay_ms=0), data, pieces)

    if any(name == "close" for name, _, _ in whole.answers):
        # Entries whose confirms the end has overtaken are stored all the same.
        for each in (whole, split):
            each.confirms.clear()
    assert split.answers == whole.answers
    assert split.errors == whole.errors
    assert split.confirms == whole.confirms
    assert b"".join(split.stored) == b"".join(whole.stored)
    assert (split.is_closed, split.is_aborted) == (whole.is_closed, whole.is_aborted)


@given(data=wild_conversations(), pieces=splits)
@example(data=HANDSHAKE + b"\xff\xff\xff\xff", pieces=[])
@example(data=b"\xff\xff\xff\xff", pieces=[])
@example(data=b"GET / HTTP/1.1\r\n\r\n", pieces=[])
@example(data=b"AMQP\0\0\x09\x01", pieces=[])
def test_whatever_comes_in_only_answers_or_an_end_go_out_and_others_are_served(
    directory: Path, data: bytes, pieces: list[int]
) -> None:
    server = Server(directory, refusal_delay_ms=0)
    neighbour = server.connect()
    neighbour.send(HANDSHAKE)
    neighbour.send(frame_of("declare_publisher", m.DeclarePublisher(9, "", "s")))

    with no_error_logged():
        client, _ = converse(server, data, pieces)
        client.loop.pass_time(0)

    assert not client.edge.is_aborted
    neighbour.received()
    neighbour.send(frame_of("metadata", m.Metadata(())))
    assert neighbour.received()[-1].message == m.MetadataReply((), ())
    assert not neighbour.edge.is_closed


@given(data=wild_conversations(), cut=st.integers(0, 1_000))
@example(data=HANDSHAKE.replace(TUNE, frame_of("tune", m.Tune(0, 60))), cut=1_000)
def test_a_client_that_vanishes_leaves_nothing_behind(
    directory: Path, data: bytes, cut: int
) -> None:
    server = Server(directory, refusal_delay_ms=0)
    client = server.connect()
    client.feed(data[:cut], [7] * 200)

    client.edge.abort()
    client.loop.pass_time(AT_ONCE_S)

    assert server.closed == [client.connection]
    # A timer of long heartbeats serves all connections that are looked at in one second. It goes
    # off when it is due, though the last of them has gone.
    due = server.shared.heartbeats._due
    assert server.loop.timer_count == len(due)
    assert not any(due.values())
    link = client.link
    assert (link.publishers, link.subscriptions, link.references) == ({}, {}, set())
    for stream in server.broker.streams._streams.values():
        assert link not in stream.watchers


@given(data=wild_conversations(), pieces=splits)
def test_what_a_connection_keeps_in_memory_is_bounded(
    directory: Path, data: bytes, pieces: list[int]
) -> None:
    server = Server(directory, refusal_delay_ms=0)
    client = server.connect()

    client.feed(data, pieces)

    inbox = client.connection.inbox
    kept = len(inbox._rest) + (0 if inbox._large is None else len(inbox._large))
    assert kept <= 2 * len(data) + 128 * 1024
