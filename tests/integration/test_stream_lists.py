"""Commands of stream clients that carry a list, there or back: what they cost grows with the list.

The commands are those of the protocol's tables: one that is missing here fails a test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from gateway.broker.streams.staging_limits import COMMIT_STAGES_MAX
from hutch.client.login import Login
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Command, Sender
from hutch.stream.layout import FrameLayout, layout_of
from hutch.stream.offsets import FIRST
from hutch.stream.wire_types import Counted, NumberMap, Rest, StringMap, Trailing
from tests.chunks import filtered_body, publish_body
from tests.client import Client
from tests.integration.conftest import assert_no_traceback
from tests.integration.costs import Costs, amount, check_growth
from tests.integration.server import HutchServer

PARTITIONS: Final = 1_000
STREAM: Final = "stream"
OK: Final = ResponseCode.OK
_numbers = count()
_super_streams: list[str] = []
"""Those that a call has made."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    folder: Path = tmp_path_factory.mktemp("lists")
    with HutchServer(folder / "data", "--durability", "os") as server:
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture(scope="module")
def client(server: HutchServer) -> Iterator[Client]:
    with Client(*server.endpoint) as client:
        client.authenticate(Login("guest", "guest", asks_for_pipeline=True))
        client.tune_and_open("/", frame_bytes_max=None, heartbeat_s=0)
        client.create(STREAM)
        client.declare(1, STREAM)
        yield client


def has_list(message: type[m.Message] | None) -> bool:
    """Tell whether a message has a list, in a field or in an item of it."""
    return message is not None and any(is_list(wire) for _, wire in layout_of(message).fields)


def is_list(wire: object) -> bool:
    match wire:
        case Counted() | Rest() | StringMap() | NumberMap():
            return True
        case Trailing():
            return is_list(wire.inner)
        case FrameLayout():
            return any(is_list(each) for _, each in wire.fields)
    return False


def names_of(command: Command) -> Iterator[str]:
    """Yield a name for each version of a command that carries a list, there or back."""
    for version, request in enumerate(command.requests, start=1):
        # A kernel reads the entries of these.
        is_entries = request in {m.KernelBody, p.StageRecords}
        if Sender.CLIENT in command.sender and (
            is_entries or has_list(request) or has_list(command.reply)
        ):
            yield f"{command.name} {version}"


WITH_LISTS: Final = [name for command in pipeline.TABLE.commands for name in names_of(command)]
OF_THE_SERVER: Final = {"sasl_handshake 1", "open 1", "stream_stats 1"}
"""Their lists come back, and are as long as the server makes them."""

# A request of each command with so many items, after what it needs, and the most of them.


def new(prefix: str) -> str:
    return f"{prefix}{next(_numbers)}"


def texts(items: int) -> tuple[str, ...]:
    """Return as many texts, which all differ and are short: many of them fit a frame."""
    return tuple(f"{number:x}" for number in range(items))


def pairs(items: int) -> dict[str, str]:
    return dict.fromkeys(texts(items), "")


def entries(items: int) -> list[tuple[int, bytes]]:
    return [(next(_numbers), b"") for _ in range(items)]


def filters(items: int) -> dict[str, str]:
    return {f"filter.{each}": each for each in texts(items)}


def subscription(client: Client, items: int) -> m.Subscribe:
    client.request("unsubscribe", m.Unsubscribe(1))
    return m.Subscribe(1, STREAM, FIRST, 0, filters(items))


def super_stream(items: int) -> m.CreateSuperStream:
    name = new("super")
    _super_streams.append(name)
    partitions = tuple(f"{name}-{number}" for number in range(items))
    return m.CreateSuperStream(name, partitions, texts(items), {})


def partitions(client: Client, items: int) -> tuple[str, tuple[str, ...]]:
    """Make a super stream with as many partitions; return the names of all."""
    asked = super_stream(items)
    client.must("create_super_stream", asked)
    return asked.super_stream, asked.partitions


def fan(client: Client, items: int) -> str:
    """Make a super stream whose partitions all have one key."""
    asked = dataclasses.replace(super_stream(items), binding_keys=("key",) * items)
    client.must("create_super_stream", asked)
    return asked.super_stream


def described(client: Client, items: int) -> p.DescribeStreams:
    """Name each of some new streams several times."""
    names = partitions(client, -(-items // NAMED_OFTEN))[1]
    return p.DescribeStreams(tuple(islice(cycle(names), items)), None)


def ranges(client: Client, items: int) -> p.PlanStreams:
    names = partitions(client, -(-items // NAMED_OFTEN))[1]
    asked = p.DescribeStreams(names, None)
    streams = client.ask(p.StreamsDescribed, "describe_streams", asked).streams
    found = (p.RangeToPlan(each.name, each.generation, 0, 0, 1) for each in cycle(streams))
    return p.PlanStreams(tuple(islice(found, items)))


def stages(client: Client, items: int, stream: str) -> tuple[int, ...]:
    """Fill as many stages with a record each."""
    opening = [("open_stage", p.OpenStage("", 0, stream))] * items
    opened = [each for each in client.requests(opening) if isinstance(each, p.StageOpened)]
    numbers = tuple(each.stage for each in opened)
    record = bytes(4)
    for asked in (
        [("stage", p.StageRecords(each, 0, 1, 1, record)) for each in numbers],
        [("close_stage", p.CloseStage(each)) for each in numbers],
    ):
        for answer in client.requests(asked):
            client.check(answer, "stage")
    return numbers


def commit(client: Client, items: int) -> p.CommitStages:
    client.create(stream := new("committed"))
    return p.CommitStages("", 0, stages(client, items, stream))


def records(client: Client, items: int) -> p.StageRecords:
    stage = client.ask(p.StageOpened, "open_stage", p.OpenStage("", 0, STREAM)).stage
    return p.StageRecords(stage, 0, items, items, bytes(4 * items))


class Case(NamedTuple):
    """A command to try.

    Attributes:
        most: Items of the largest request.
        request: Makes one with a number of items.
    """

    most: int
    request: Callable[[Client, int], m.Message]


IN_FIRST_FRAME: Final = 8 * 1024 // 8
IN_FRAME: Final = (1 << 20) // 9
"""Pairs of short texts."""
ENTRIES: Final = (1 << 20) // 16
PARTITIONS_TRIED: Final = amount(PARTITIONS, 400)
STREAMS_TRIED: Final = amount(p.STREAMS_MAX, 2_000)
NAMED_OFTEN: Final = -(-STREAMS_TRIED // PARTITIONS_TRIED)

CASES: Final[dict[str, Case]] = {
    "publish 1": Case(ENTRIES, lambda _, n: m.KernelBody(publish_body(1, entries(n)))),
    "publish 2": Case(
        ENTRIES,
        lambda _, n: m.KernelBody(filtered_body(1, [(each, "f", b"") for each, _ in entries(n)])),
    ),
    "subscribe 1": Case(64 * 1024 // 20, subscription),
    "create_stream 1": Case(
        amount(StringMap.PAIRS_MAX, 20_000), lambda _, n: m.CreateStream(new("s"), pairs(n))
    ),
    "metadata 1": Case(amount(IN_FRAME, 10_000), lambda _, n: m.Metadata(texts(n))),
    "exchange_command_versions 1": Case(
        1 << 15, lambda _, n: m.ExchangeCommandVersions((m.CommandVersions(1, 1, 1),) * n)
    ),
    "create_super_stream 1": Case(PARTITIONS_TRIED, lambda _, n: super_stream(n)),
    "route 1": Case(PARTITIONS_TRIED, lambda client, n: m.Route("key", fan(client, n))),
    "partitions 1": Case(
        PARTITIONS_TRIED, lambda client, n: m.Partitions(partitions(client, n)[0])
    ),
    "resolve_offset_spec 1": Case(
        amount(StringMap.PAIRS_MAX, 20_000),
        lambda _, n: m.ResolveOffsetSpec(STREAM, FIRST, pairs(n)),
    ),
    "describe_streams 1": Case(STREAMS_TRIED, described),
    "plan_streams 1": Case(STREAMS_TRIED, ranges),
    "stage 1": Case(65_535, records),
    "commit_stages 1": Case(amount(COMMIT_STAGES_MAX, 400), commit),
    "discard_stages 1": Case(
        amount(COMMIT_STAGES_MAX, 400), lambda client, n: p.DiscardStages(stages(client, n, STREAM))
    ),
}


def test_every_command_with_a_list_is_tried_here() -> None:
    assert CASES.keys() | OF_THE_SERVER | {"peer_properties 1"} == set(WITH_LISTS)


def test_a_greeting_costs_little(server: HutchServer) -> None:
    for _ in range(10):
        with Client(*server.endpoint) as stranger, Costs(server):
            stranger.request("peer_properties", m.PeerProperties(pairs(IN_FIRST_FRAME)))


@pytest.mark.parametrize("name", CASES)
def test_a_list_twice_as_long_costs_twice_as_much_and_no_turn_is_long(
    server: HutchServer, client: Client, name: str
) -> None:
    command, version = name.split()

    def cost(items: int) -> Costs:
        request = CASES[name].request(client, items)
        with Costs(server, is_judged=False) as costs:
            if command == "publish":
                client.send_request(command, request, version=int(version))
                client.confirmed_ids(items)
            else:
                answer = client.request(command, request, version=int(version))
                assert getattr(answer, "code", OK) == OK, answer
        while _super_streams:  # the collector of garbage has as little to look at as before
            client.must("delete_super_stream", m.DeleteSuperStream(_super_streams.pop()))
        return costs

    check_growth(cost, CASES[name].most)
