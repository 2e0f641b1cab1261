"""Case 63: transactions over two channels, across `kill -9` of the server in a loop."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest

from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

KILLS: Final = int(os.environ.get("HUTCH_MEWBASE_KILLS", "10"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")
CHANNELS: Final = ("channel1", "channel2")
EVENTS: Final = 5
"""Events of one transaction in each channel."""

pytestmark = pytest.mark.timeout(60 + 15 * KILLS)


class Channel:
    """The events of a channel, looked at as they come.

    Attributes:
        position: Position of the next event.
        transactions: Those that it has, in order.
        plain: Its events that are of no transaction.
    """

    def __init__(self) -> None:
        self.position = 0
        self.transactions: list[int] = []
        self.plain: list[int] = []
        self._missing = 0

    def take(self, event: dict[str, Any]) -> None:
        """Look at the next event: each transaction is whole and in one piece."""
        self.position += 1
        if "tx" not in event:
            assert not self._missing, "a transaction is torn apart"
            self.plain += [event["plain"]] if "plain" in event else []
            return
        if not self._missing:
            self.transactions.append(event["tx"])
            self._missing = EVENTS
        assert event == {"tx": self.transactions[-1], "n": EVENTS - self._missing}
        self._missing -= 1

    def go_on(self, client: MewbaseClient, name: str) -> None:
        """Read what has come since."""
        client.publish(name, {"end": self.position})
        number = client.subscribe(name, startPos=self.position)
        event: dict[str, Any] = {}
        while "end" not in event:
            fields = client.events(1)[0]
            client.send("ACKEV", subID=number, pos=fields["pos"], bytes=0)
            assert fields["pos"] == self.position
            event = fields["event"]
            self.take(event)
        assert client.ask("SUBCLOSE", subID=number, rID=3)["ok"] is True


def transact(port: int, numbers: Iterator[int], answered: list[int]) -> None:
    """Commit transactions until the connection ends."""
    with MewbaseClient(port) as client:
        client.connect()
        for tx in numbers:
            client.ask("STARTTX", sessID=1, rID=0)
            for n in range(EVENTS):
                for channel in CHANNELS:
                    client.ask("PUB", channel=channel, sessID=1, event={"tx": tx, "n": n}, rID=1)
            assert client.ask("COMMITTX", sessID=1, rID=2)["ok"] is True
            answered.append(tx)


def publish(port: int, numbers: Iterator[int], answered: list[int]) -> None:
    """Publish to the first channel until the connection ends."""
    with MewbaseClient(port) as client:
        client.connect()
        for number in numbers:
            client.publish(CHANNELS[0], {"plain": number})
            answered.append(number)


def until_killed(server: HutchServer, after_s: float, *work: Any) -> None:  # noqa: ANN401
    """Run some functions with their arguments until the server is killed."""

    def run(function: Any, arguments: tuple[object, ...]) -> None:  # noqa: ANN401
        try:
            function(port_of(server), *arguments)
        except (EOFError, ConnectionError):
            return

    threads = [threading.Thread(target=run, args=(each[0], each[1:])) for each in work]
    for thread in threads:
        thread.start()
    time.sleep(after_s)
    server.kill()
    for thread in threads:
        thread.join()


def test_case_63_kill_9_leaves_all_of_a_transaction_in_each_channel_or_nothing(
    start_mewbase: StartMewbase,
) -> None:
    chance = random.Random(SEED)
    server = start_mewbase()
    channels = {name: Channel() for name in CHANNELS}
    one, other = channels.values()
    numbers, plain = count(), count()
    committed: list[int] = []
    published: list[int] = []
    for _ in range(KILLS):
        until_killed(
            server,
            chance.uniform(0.02, 0.3),
            (transact, numbers, committed),
            (publish, plain, published),
        )
        server.restart()
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            for name, channel in channels.items():
                channel.go_on(client, name)

        assert one.transactions == other.transactions
        assert set(committed) <= set(one.transactions)
        assert one.transactions == sorted(set(one.transactions))
        assert set(published) <= set(one.plain)
        assert len(set(one.plain)) == len(one.plain)
    assert committed
