"""Rights at a real server of streams: what is its own stays as it is, whatever clients ask."""

from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.log.names import is_of_a_stream, is_own, server_table
from gateway.pravega.access.guard import NEEDS, OWNED, REFUSED, path_of
from gateway.pravega.access.token_key import NAME, read_key
from gateway.pravega.access.tokens import EVERYTHING, READ, READ_UPDATE, Tokens, resource_of
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.error_messages import AuthTokenCheckFailed, NoSuchSegment
from hutch.pravega.layout import WireMessage
from hutch.pravega.wire_types import ANY_VERSION, TableKey
from hutch.pravega.wire_types import KeyAndValue as WireEntry
from store.api import TableEntry
from store.local.store_check import SegmentShape, open_to_check
from tests.client import Client
from tests.integration.server import HutchServer
from tests.pravega_client import WRITER, WireClient, end

MINE = "mine/stream/0.#epoch.0"
MY_TABLE = "mine/table_kvtable/0.#epoch.0"
NEW = ("rmq-.2f/_new-1/0.#epoch.0", "rmq-.2f/_new_kvtable/0.#epoch.0", "hutch/new/0.#epoch.0")

STARTS = server_table("server")
"""The server's own count of its starts, which it changes itself."""


class Stored(NamedTuple):
    """A segment in the store, with its bytes, or its entries if it is a table."""

    shape: SegmentShape
    data: bytes
    entries: list[TableEntry]


def state_of(directory: Path) -> dict[str, Stored]:
    """Return all segments of a server that does not run, by name."""
    checked = open_to_check(directory, repairs=False)
    try:
        state = {}
        for shape in checked.segments():
            data, entries = b"", list[TableEntry]()
            if shape.is_table:
                entries.extend(checked.entries_of(shape.name))
            elif shape.length > shape.start:
                size = shape.length - shape.start
                data = checked.ask(checked.store.read, shape.name, shape.start, size).data
            state[shape.name] = Stored(shape, data, entries)
        return state
    finally:
        checked.close()


def may_be_read(segment: str) -> bool:
    return is_of_a_stream(*path_of(segment))


def changes_of(segment: str, token: str) -> list[WireMessage]:
    """Return every request that changes something, on a segment; merges in both directions."""
    key = TableKey(b"key", ANY_VERSION)
    return [
        m.SetupAppend(1, WRITER, segment, token),
        m.CreateSegment(1, segment, 0, 0, token),
        m.CreateTransientSegment(1, WRITER, segment, token),
        m.SealSegment(1, segment, token),
        m.TruncateSegment(1, segment, 1, token),
        m.UpdateSegmentPolicy(1, segment, 5, 1, token),
        m.UpdateSegmentAttribute(1, segment, WRITER, 7, m.ABSENT, token),
        m.MergeSegments(1, segment, MINE, token),
        m.MergeSegments(1, MINE, segment, token),
        m.MergeSegmentsBatch(1, segment, (MINE,), token),
        m.MergeSegmentsBatch(1, MINE, (segment,), token),
        t.CreateTableSegment(1, segment, token),
        t.UpdateTableEntries(1, segment, token, (WireEntry(key, b"value"),)),
        t.RemoveTableKeys(1, segment, token, (key,)),
        t.MergeTableSegments(1, segment, MY_TABLE, token),
        t.MergeTableSegments(1, MY_TABLE, segment, token),
        t.SealTableSegment(1, segment, token),
        t.DeleteTableSegment(1, segment, must_be_empty=False, token=token),
        m.DeleteSegment(1, segment, token),
    ]


def reads_of(segment: str, token: str) -> list[WireMessage]:
    """Return every request that only reads, on a segment."""
    return [
        m.ReadSegment(segment, 0, 8, token, 1),
        m.GetStreamSegmentInfo(1, segment, token),
        m.LocateOffset(1, segment, 0, token),
        m.GetSegmentAttribute(1, segment, WRITER, token),
        t.GetTableSegmentInfo(1, segment, token),
        t.ReadTable(1, segment, token, (TableKey(b"key"),)),
        t.ReadTableKeys(1, segment, token, 10, b""),
        t.ReadTableEntries(1, segment, token, 10, b""),
        t.ReadTableEntriesDelta(1, segment, token, 0, 10),
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that has stored a stream, and a client's own segments."""
    directory = tmp_path_factory.mktemp("rights") / "data"
    with HutchServer(directory, "--store-port", "0") as server:
        with Client.opened(*server.endpoint) as streams:
            streams.create("orders")
            streams.declare(1, "orders")
            streams.publish(1, {1: b"first", 2: b"second"})
            streams.confirmed_ids(2)
        with WireClient(*server.store, token=master_token(directory)) as client:
            client.create(MINE)
            client.set_up(MINE)
            client.append(1, b"of a client")
            client.ask(t.CreateTableSegment(1, MY_TABLE, client.token), m.SegmentCreated)
        server.terminate()
    return directory


def master_token(directory: Path, right: str = READ_UPDATE) -> str:
    return Tokens(read_key(directory / NAME)).mint({EVERYTHING: right}, now_ms=0)


def test_every_request_is_tried() -> None:
    tried = {type(each) for each in (*changes_of(MINE, ""), *reads_of(MINE, ""))}
    assert tried == {each for each, need in NEEDS.items() if need.fields}


def test_nothing_that_a_client_sends_changes_what_is_the_servers(data: Path) -> None:
    before = state_of(data)
    owned = [name for name in before if is_own(*path_of(name))]
    assert [name for name in owned if may_be_read(name) and before[name].data]
    assert [name for name in owned if before[name].entries]
    token = master_token(data)
    with HutchServer(data, "--store-port", "0") as server:
        with WireClient(*server.store) as client:
            for segment in (*owned, *NEW):
                for request in changes_of(segment, token):
                    refused = client.ask(request, AuthTokenCheckFailed)
                    assert refused.error_code == OWNED, request
        server.kill()
    after = state_of(data)
    noted = [state.pop(STARTS) for state in (before, after)]
    assert after == before
    assert [[entry.key for entry in each.entries] for each in noted] == [[b"openings"]] * 2


def test_chunks_are_read_and_tables_are_not(data: Path) -> None:
    before = state_of(data)
    token = master_token(data)
    with HutchServer(data, "--store-port", "0") as server:
        with WireClient(*server.store, token=token) as client:
            for segment in (*before, *NEW):
                if not is_own(*path_of(segment)):
                    continue
                for request in reads_of(segment, token):
                    client.send(request)
                    is_refused = isinstance(client.receive(), AuthTokenCheckFailed)
                    assert is_refused is not may_be_read(segment), request
            chunks = [name for name, each in before.items() if b"second" in each.data]
            assert [client.content(name) for name in chunks] == [before[chunks[0]].data]
        server.kill()


@pytest.mark.parametrize(
    ("token", "changes"),
    [
        ("none", False),
        ("of another key", False),
        ("of another stream", False),
        ("READ", False),
        ("READ_UPDATE", True),
    ],
)
def test_a_segment_of_a_client_is_changed_with_the_right_to_it_alone(
    data: Path, *, token: str, changes: bool
) -> None:
    tokens = Tokens(read_key(data / NAME))
    given = {
        "none": "",
        "of another key": Tokens(b"x" * 64).mint({EVERYTHING: READ_UPDATE}, now_ms=0),
        "of another stream": tokens.mint({resource_of("mine", "str"): READ_UPDATE}, now_ms=0),
        "READ": tokens.mint({resource_of("mine", "stream"): READ}, now_ms=0),
        "READ_UPDATE": tokens.mint({resource_of("mine"): READ_UPDATE}, now_ms=0),
    }[token]
    absent = "mine/stream/9.#epoch.0"
    with HutchServer(data, "--store-port", "0") as server:
        with WireClient(*server.store) as client:
            for request in (
                m.SealSegment(1, absent, given),
                m.TruncateSegment(1, absent, 1, given),
                m.DeleteSegment(1, absent, given),
                m.UpdateSegmentAttribute(1, absent, WRITER, 7, m.ABSENT, given),
                t.RemoveTableKeys(1, absent, given, (TableKey(b"key"),)),
            ):
                if changes:
                    client.ask(request, NoSuchSegment)
                else:
                    assert client.ask(request, AuthTokenCheckFailed).error_code == REFUSED
            may_read = changes or token == "READ"
            client.send(m.GetStreamSegmentInfo(1, MINE, given))
            assert isinstance(client.receive(), AuthTokenCheckFailed) is not may_read
        server.kill()


def test_a_set_up_that_is_refused_leaves_nothing_to_append_with(data: Path) -> None:
    token = master_token(data)
    with HutchServer(data, "--store-port", "0") as server:
        with WireClient(*server.store, token=token) as client:
            last = client.set_up(MINE).last_event_number
            before = client.content(MINE)
            client.ask(m.SetupAppend(1, WRITER, NEW[0], token), AuthTokenCheckFailed)
            client.send(end(last + 1, b"meant for another segment"))
            assert client.is_ended()
        with WireClient(*server.store, token=token) as client:
            assert client.content(MINE) == before
        server.kill()


def test_a_key_that_is_given_is_used_beside_streams_too(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("a key of tokens that has enough characters\n")
    token = Tokens(read_key(file)).mint({EVERYTHING: READ_UPDATE}, now_ms=0)
    given = ("--store-port", "0", "--token-key-file", str(file))
    with HutchServer(tmp_path / "data", *given) as server:
        with WireClient(*server.store, token=token) as client:
            client.create(MINE)
            client.ask(m.DeleteSegment(1, MINE, ""), AuthTokenCheckFailed)
        assert not (tmp_path / "data" / NAME).exists()
        server.terminate()
