"""Checklist 36 on a running server: how long a group is without a reader when one vanishes."""

from __future__ import annotations

import contextlib
import time
from typing import Final

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import StartServer

HAND_OVERS: Final = 100
MEMBERS: Final = 4
HAND_OVER_S_MAX: Final = 5.0
GROUP: Final = {"single-active-consumer": "true", "name": "app"}


def joined(client: Client) -> Client:
    request = m.Subscribe(1, "orders", FIRST, 10, GROUP)
    assert client.code_of("subscribe", request) == ResponseCode.OK
    return client


def read_as_the_active_one(member: Client) -> None:
    assert member.answer_consumer_update(FIRST).active
    assert member.delivery().chunk.records() == [b"x"]


def test_a_reader_that_vanishes_is_followed_by_the_next_within_five_seconds(
    start_server: StartServer,
) -> None:
    server = start_server("--durability", "os")
    with Client.opened(*server.endpoint) as writer:
        writer.create("orders")
        writer.declare(1, "orders")
        writer.publish(1, {1: b"x"})
        writer.confirmed()
    with contextlib.ExitStack() as connections:

        def another() -> Client:
            return joined(connections.enter_context(Client.opened(*server.endpoint)))

        members = [another() for _ in range(MEMBERS)]
        read_as_the_active_one(members[0])
        waits_s = []
        for _ in range(HAND_OVERS):
            vanished = time.monotonic()
            members.pop(0).disconnect()
            read_as_the_active_one(members[0])
            waits_s.append(time.monotonic() - vanished)
            members.append(another())

    assert sorted(waits_s)[HAND_OVERS * 99 // 100 - 1] < HAND_OVER_S_MAX
