"""Positions kept at the server: what is sent, and what becomes of failures."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import pytest

from hutch.client.errors import ServerGone
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.position import StreamPlace
from pyspark_hutch.offsets.stored_offsets import StoredOffsets

HERE, THERE = Endpoint("here", 1), Endpoint("there", 2)


class Servers:
    """Stands in for a cluster of two servers, and keeps what they were sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Endpoint, str, int]] = []
        self.asked: list[str] = []
        self.is_away = False

    def leaders(self, streams: Sequence[str], *, skips_missing: bool) -> dict[str, Endpoint]:
        assert skips_missing
        self.asked += streams
        return {stream: THERE for stream in streams if stream != "gone"}

    @contextmanager
    def connection(self, endpoint: Endpoint) -> Iterator[Sender]:
        if self.is_away:
            raise ServerGone("nothing is there")
        yield Sender(self, endpoint)


class Sender:
    def __init__(self, servers: Servers, endpoint: Endpoint) -> None:
        self.servers = servers
        self.endpoint = endpoint

    def send_request(self, name: str, message: m.StoreOffset) -> None:
        assert (name, message.reference) == ("store_offset", "dashboard")
        self.servers.sent.append((self.endpoint, message.stream, message.offset))


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
def stored(servers: Servers) -> StoredOffsets:
    return StoredOffsets(cast("Cluster", servers), "dashboard")


def test_the_last_row_that_was_read_is_stored_where_the_stream_lives(
    servers: Servers, stored: StoredOffsets
) -> None:
    stored.store({"a": StreamPlace(10), "b": StreamPlace(1), "new": StreamPlace(0)}, {"a": HERE})

    assert servers.sent == [(HERE, "a", 9), (THERE, "b", 0)]
    assert servers.asked == ["b"]


def test_only_what_has_changed_is_sent(servers: Servers, stored: StoredOffsets) -> None:
    for offset in (5, 5, 7):
        stored.store({"a": StreamPlace(offset), "b": StreamPlace(3)}, {"a": HERE, "b": HERE})

    assert servers.sent == [(HERE, "a", 4), (HERE, "b", 2), (HERE, "a", 6)]


def test_a_stream_that_has_gone_is_left_out(servers: Servers, stored: StoredOffsets) -> None:
    stored.store({"gone": StreamPlace(5), "a": StreamPlace(2)})

    assert servers.sent == [(THERE, "a", 1)]


def test_a_failure_is_a_line_in_the_log_and_is_made_good_later(
    servers: Servers, stored: StoredOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    servers.is_away = True
    with caplog.at_level(logging.WARNING):
        stored.store({"a": StreamPlace(5)}, {"a": HERE})
    assert caplog.messages == ["the position of 'dashboard' was not stored: nothing is there"]

    servers.is_away = False
    stored.store({"a": StreamPlace(5)}, {"a": HERE})
    assert servers.sent == [(HERE, "a", 4)]
