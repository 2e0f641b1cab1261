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


class Reader:
    """Reads each channel on, from where it was."""

    def __init__(self) -> None:
        self.events: dict[str, list[dict[str, Any]]] = {channel: [] for channel in CHANNELS}

    def go_on(self, port: int) -> None:
        """Read what has come since."""
        with MewbaseClient(port) as client:
            client.connect()
            for channel, found in self.events.items():
                client.publish(channel, {"end": True})
                number = client.subscribe(channel, startPos=len(found))
                while True:
                    fields = client.events(1)[0]
                    client.send("ACKEV", subID=number, pos=fields["pos"], bytes=0)
                    assert fields["pos"] == len(found)
                    found.append(fields["event"])
                    if "end" in fields["event"]:
                        break
                assert client.ask("SUBCLOSE", subID=number, rID=3)["ok"] is True

    def transactions(self, channel: str) -> list[int]:
        """Return the transactions in a channel, in order; each must be whole and in one piece."""
        found = [event for event in self.events[channel] if "tx" in event]
        numbers = [event["tx"] for event in found[::EVENTS]]
        whole = [{"tx": tx, "n": n} for tx in numbers for n in range(EVENTS)]
        assert found == whole
        pieces = [event.get("tx") for event in self.events[channel]]
        for tx in numbers:
            first = pieces.index(tx)
            assert pieces[first : first + EVENTS] == [tx] * EVENTS, "a transaction is torn apart"
        return numbers

    def plain(self, channel: str) -> list[int]:
        """Return the events that are of no transaction."""
        return [event["plain"] for event in self.events[channel] if "plain" in event]


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
    reader = Reader()
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
        reader.go_on(port_of(server))

        there = reader.transactions("channel1")
        assert there == reader.transactions("channel2")
        assert set(committed) <= set(there)
        assert there == sorted(set(there))
        assert set(published) <= set(reader.plain("channel1"))
        assert len(set(reader.plain("channel1"))) == len(reader.plain("channel1"))
    assert committed
