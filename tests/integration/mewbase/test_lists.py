"""Frames with documents and strings: what they cost grows with what is in them.

The frames are those of the protocol's table: one with a document that is missing here fails a test.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from gateway.mewbase.matcher import MATCHER_BYTES_MAX
from gateway.mewbase.wire.frames import FRAMES, FrameType, SendingSide, ValueKind
from gateway.settings.mewbase import EVENT_BYTES_MAX
from tests.integration.costs import MIB, Costs, amount, check_growth
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

FIELD: Final = b"\x0aa\0"
"""A field that is null, of which a document may have many of one name."""
EVENT_BYTES: Final = EVENT_BYTES_MAX - 100
FRAME_BYTES: Final = 16 * MIB - 1_000
FIRST_FRAME_BYTES: Final = 8 * 1024 - 200
PROJECTION: Final = '[[projections]]\nname = "p"\nchannel = "channel2"\nbinder = "b"\nid = "id"\n'
AT_ONCE: Final = 1_000
EVENTS: Final = 20_000
_numbers = count()


@pytest.fixture
def server(start_mewbase: StartMewbase, tmp_path: Path) -> HutchServer:
    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)
    return start_mewbase("--durability", "os", HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))


def document(items: int) -> RawBSONDocument:
    """Return a document with so many fields."""
    return RawBSONDocument(struct.pack("<i", items * len(FIELD) + 5) + FIELD * items + b"\0")


def array(items: int) -> dict[str, object]:
    """Return a document with an array that has so many items."""
    return {"a": document(items)}


class Case(NamedTuple):
    """A frame to try.

    Attributes:
        bytes_max: Size of the largest document that is read; what it is too large for is refused.
        fields: Those of a frame with a document.
    """

    bytes_max: int
    fields: Callable[[object], dict[str, object]]


def published(event: object) -> dict[str, object]:
    return {"channel": "channel1", "rID": 1, "event": event}


def logged_in(given: object) -> dict[str, object]:
    return {"version": "0.1", "rID": 1, "authInfo": given}


def subscribed(matcher: object) -> dict[str, object]:
    return {"channel": "channel1", "rID": 1, "matcher": matcher}


def asked(matcher: object) -> dict[str, object]:
    return {"queryID": next(_numbers), "binder": "b", "matcher": matcher}


CASES: Final[dict[str, Case]] = {
    "CONNECT authInfo": Case(FRAME_BYTES, logged_in),
    "PUB event": Case(EVENT_BYTES, published),
    "PUB event that is too large": Case(FRAME_BYTES, published),
    "SUBSCRIBE matcher": Case(MATCHER_BYTES_MAX - 100, subscribed),
    "SUBSCRIBE matcher that is too large": Case(FRAME_BYTES, subscribed),
    "QUERY matcher": Case(MATCHER_BYTES_MAX - 100, asked),
    "QUERY matcher that is too large": Case(FRAME_BYTES, asked),
}


def test_every_frame_with_a_document_is_tried_here() -> None:
    documents = {
        f"{frame.type} {field.name}"
        for frame in FRAMES
        for field in frame.fields
        if frame.sender is SendingSide.CLIENT and field.kind is ValueKind.DOCUMENT
    }
    assert {" ".join(name.split()[:2]) for name in CASES} == documents


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("filled", [document, array])
def test_twice_as_much_costs_twice_as_much_and_no_turn_is_long(
    server: HutchServer, name: str, filled: Callable[[int], object]
) -> None:
    case = CASES[name]
    most = amount(case.bytes_max, min(case.bytes_max, 8 * MIB)) // len(FIELD)

    def cost(items: int) -> Costs:
        sent = bson.encode({"type": name.split(maxsplit=1)[0], "frame": case.fields(filled(items))})
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            with Costs(server, is_judged=False) as costs:
                client.socket.sendall(sent)
                client.receive()
        return costs

    check_growth(cost, most)


STRINGS: Final = [
    (frame, field.name)
    for frame in FRAMES
    for field in frame.fields
    if frame.sender is SendingSide.CLIENT and field.kind is ValueKind.TEXT
]
FILLED: Final[dict[ValueKind, object]] = {ValueKind.TEXT: "0", ValueKind.DOCUMENT: {}}


@pytest.mark.parametrize(
    ("frame", "name"), STRINGS, ids=[f"{frame.type} {name}" for frame, name in STRINGS]
)
def test_a_string_of_twice_the_size_costs_twice_as_much_and_no_turn_is_long(
    server: HutchServer, frame: FrameType, name: str
) -> None:
    fields = {
        each.name: FILLED.get(each.kind, 1)
        for each in frame.fields
        if each.is_mandatory or each.name == "rID"
    }

    def cost(size: int) -> Costs:
        sent = bson.encode({"type": frame.type, "frame": fields | {name: "x" * size}})
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            with Costs(server, is_judged=False) as costs:
                client.socket.sendall(sent)
                client.receive()
        return costs

    check_growth(cost, amount(FRAME_BYTES, 8 * MIB))


def test_transactions_of_twice_as_many_events_cost_twice_as_much(server: HutchServer) -> None:
    def cost(items: int) -> Costs:
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            client.ask("STARTTX", sessID=1, rID=1)
            event = {"sessID": 1, **published({"a": 1})}
            sent = bson.encode({"type": "PUB", "frame": event})
            for first in range(0, items, AT_ONCE):
                some = min(AT_ONCE, items - first)
                client.socket.sendall(sent * some)
                for _ in range(some):
                    assert client.must("RESPONSE")["ok"]
            with Costs(server, is_judged=False) as costs:
                assert client.ask("COMMITTX", sessID=1, rID=1)["ok"]
        return costs

    check_growth(cost, amount(EVENTS, 4_000))
