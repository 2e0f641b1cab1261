"""What comes in pieces in the early dialect: its cost grows with their number.

No message of the dialect has a list; a block has many events, and a message many parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from hutch.pravega import early_messages as m
from hutch.pravega.early_codec import EARLY
from hutch.pravega.early_messages import EARLY_COMMANDS
from hutch.pravega.layout import WireMessage, layout_of
from hutch.pravega.wire_types import Items
from tests.early_rig import EarlyClient, block
from tests.integration.costs import Costs, amount, check_growth
from tests.integration.pravega.test_given_back import early_port
from tests.integration.server import StoreProcess

EVENTS: Final = amount(500_000, 20_000)
PARTS: Final = amount(200_000, 10_000)
_numbers = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    folder: Path = tmp_path_factory.mktemp("lists")
    with StoreProcess(folder / "data", "--durability", "os", "--early-port", "0") as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


def test_no_message_has_a_list() -> None:
    fields = [wire for row in EARLY_COMMANDS for _, wire in layout_of(row.message).fields]
    assert not any(isinstance(wire, Items) for wire in fields)


def events(items: int, appender: UUID) -> bytes:
    """Return a block of as many empty events."""
    return b"".join(map(EARLY.encode, block(0, *[b""] * items, appender=appender)))


def parts(items: int, _: UUID) -> bytes:
    """Return a message that comes in as many parts of a byte."""
    whole = EARLY.encode(m.KeepAlive(bytes(items)))
    places = [m.FIRST, *[m.MIDDLE] * (len(whole) - 2), m.LAST]
    cut = (m.PartialMessage(place, whole[at : at + 1]) for at, place in enumerate(places))
    return b"".join(map(EARLY.encode, cut))


@pytest.mark.parametrize(
    ("written", "most", "answer"),
    [(events, EVENTS, m.DataAppended), (parts, PARTS, m.KeepAlive)],
)
def test_twice_as_many_cost_twice_as_much_and_no_turn_is_long(
    server: StoreProcess,
    written: Callable[[int, UUID], bytes],
    most: int,
    answer: type[WireMessage],
) -> None:
    def cost(items: int) -> Costs:
        appender, segment = UUID(int=next(_numbers)), f"s/t/{next(_numbers)}.#epoch.0"
        data = written(items, appender)
        with EarlyClient(*early_port(server)) as client:
            client.set_up(segment, appender)
            with Costs(server, is_judged=False) as costs:
                client.socket.sendall(data)
                client.must(answer)
        return costs

    check_growth(cost, most)
