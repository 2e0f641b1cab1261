"""What one client of the wire protocol can cost a server: turns of its loop, and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from gateway.pravega.segments import SEGMENTS_MAX
from gateway.pravega.transients import OWN_MAX
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.layout import WireMessage
from hutch.pravega.wire_types import KeyAndValue, TableKey
from store.api import ATTRIBUTES_MAX
from tests.integration.costs import GROWTH_BYTES_MAX, MIB, Costs
from tests.integration.server import StoreProcess
from tests.pravega_client import WRITER, WireClient

MERGES: Final = 60
MANY: Final = 20_000
SOME: Final = 500
"""Requests that a client sends before it reads their answers."""
SEGMENT: Final = "scope/stream/0.#epoch.0"
READERS: Final = 20
READS: Final = 999
"""Reads that wait on each connection."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path / "data", "--durability", "os") as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


def fill(client: WireClient, table: str) -> None:
    """Make a table of 15 MiB."""
    client.ask(t.CreateTableSegment(1, table, ""), m.SegmentCreated)
    for number in range(15):
        large = KeyAndValue(TableKey(b"%d" % number), bytes(MIB - 100))
        client.ask(t.UpdateTableEntries(1, table, "", (large,)), t.TableEntriesUpdated)


def test_merges_of_a_large_table_that_come_together_take_the_memory_of_one(
    server: StoreProcess,
) -> None:
    with WireClient(*server.store) as client, WireClient(*server.store) as other:
        fill(client, "scope/t/source")
        client.ask(t.CreateTableSegment(1, "scope/t/target", ""), m.SegmentCreated)
        merge = t.MergeTableSegments(1, "scope/t/target", "scope/t/source", "")
        with Costs(server) as costs:
            client.send(*[merge] * MERGES)
            other.send(*[merge] * MERGES)
            told = Counter(type(each.receive()) for each in [client, other] * MERGES)
        assert told == {m.SegmentsMerged: 1, e.NoSuchSegment: 2 * MERGES - 1}
        assert costs.peak_bytes <= GROWTH_BYTES_MAX
    costs.wait_until_given_back()


def test_reads_that_wait_for_the_same_bytes_are_answered_in_short_turns(
    server: StoreProcess,
) -> None:
    with WireClient(*server.store) as writer, ExitStack() as stack:
        writer.create(SEGMENT)
        writer.set_up(SEGMENT)
        readers = [stack.enter_context(WireClient(*server.store)) for _ in range(READERS)]
        for reader in readers:
            reader.send(*(m.ReadSegment(SEGMENT, 0, 8, "", number) for number in range(READS)))
            reader.ask(m.KeepAlive(), m.KeepAlive)
        with Costs(server) as costs:
            writer.append(1, b"for each")
            for reader in readers:
                answers = [reader.must(m.SegmentRead) for _ in range(READS)]
                assert {each.data for each in answers} == {b"for each"}
        for reader in readers:
            reader.send(*(m.ReadSegment(SEGMENT, 9, 8, "", number) for number in range(READS)))
            reader.ask(m.KeepAlive(), m.KeepAlive)
        with Costs(server):
            stack.close()
            writer.append(2, b"for none")
    costs.wait_until_given_back()


def segments_with_long_names(number: int) -> WireMessage:
    return m.CreateSegment(number, f"scope/stream/{number}".ljust(10_000, "x"), 0, 0, "")


def segments(number: int) -> WireMessage:
    return m.CreateSegment(number, f"scope/stream/{number}", 0, 0, "")


def transient_segments(number: int) -> WireMessage:
    return m.CreateTransientSegment(number, WRITER, SEGMENT, "")


def attributes(number: int) -> WireMessage:
    name = UUID(int=1 << 80 | number)
    return m.UpdateSegmentAttribute(number, SEGMENT, name, number, m.ABSENT, "")


@pytest.mark.parametrize(
    ("request_of", "done_max"),
    [
        (segments_with_long_names, 0),
        (segments, SEGMENTS_MAX),
        (transient_segments, OWN_MAX),
        (attributes, ATTRIBUTES_MAX),
    ],
)
def test_what_has_a_limit_is_refused_beyond_it_and_memory_is_given_back(
    server: StoreProcess, request_of: Callable[[int], WireMessage], done_max: int
) -> None:
    with WireClient(*server.store) as client:
        client.create(SEGMENT)
        answers: Counter[type[WireMessage]] = Counter()
        with Costs(server) as costs:
            for first in range(0, MANY, SOME):
                client.send(*map(request_of, range(first, first + SOME)))
                answers.update(type(client.receive()) for _ in range(SOME))
            client.ask(m.KeepAlive(), m.KeepAlive)
        done = MANY - answers[e.ErrorMessage]
        # The segment that is there already, and its own attributes, count too.
        assert done_max - 10 <= done <= done_max
    with WireClient(*server.store) as client, Costs(server):
        for _ in range(100):  # while what the other connection had is removed
            client.ask(m.KeepAlive(), m.KeepAlive)
    costs.wait_until_given_back()
