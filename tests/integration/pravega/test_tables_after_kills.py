"""Tables and merges of a `hutch store serve` that is killed and started again."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import NO_KEY, KeyAndValue, TableKey
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient

NAME = UUID(int=7)
KILLS = 4


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path / "data") as server:
        yield server


def restarted(server: StoreProcess) -> WireClient:
    """Kill the server, start it again, and connect."""
    server.kill()
    server.start()
    return WireClient(*server.store)


def entries(value: bytes, *names: bytes, version: int | None = None) -> tuple[KeyAndValue, ...]:
    keys = (TableKey(name) if version is None else TableKey(name, version) for name in names)
    return tuple(KeyAndValue(key, value) for key in keys)


def table(client: WireClient, name: str, found: tuple[KeyAndValue, ...]) -> tuple[int, ...]:
    client.ask(t.CreateTableSegment(1, name, ""), m.SegmentCreated)
    return client.ask(t.UpdateTableEntries(1, name, "", found), t.TableEntriesUpdated).versions


def values_in(client: WireClient, name: str) -> dict[bytes, bytes]:
    page = client.ask(t.ReadTableEntries(1, name, "", 1_000, b""), t.TableEntriesRead)
    return {entry.key.key: entry.value for entry in page.entries}


def test_conditions_hold_on_the_versions_from_before_kill_9(server: StoreProcess) -> None:
    with WireClient(*server.store) as client:
        version, _ = table(client, "t", entries(b"1", b"a", b"b"))
        client.ask(t.RemoveTableKeys(1, "t", "", (TableKey(b"b"),)), t.TableKeysRemoved)
        client.ask(t.SealTableSegment(1, "t", ""), m.SegmentSealed)
        (kept,) = table(client, "u", entries(b"1", b"a"))
    with restarted(server) as client:
        assert values_in(client, "t") == {b"a": b"1"}
        read = client.ask(t.ReadTable(1, "t", "", (TableKey(b"a"),)), t.TableRead)
        assert read.entries[0].key.version == version
        update = t.UpdateTableEntries(1, "t", "", entries(b"2", b"a"))
        client.ask(update, e.SegmentIsSealed)
        again = t.UpdateTableEntries(1, "u", "", entries(b"2", b"a", version=NO_KEY))
        client.ask(again, e.TableKeyBadVersion)
        right = t.UpdateTableEntries(1, "u", "", entries(b"2", b"a", version=kept))
        client.ask(right, t.TableEntriesUpdated)


def test_a_merge_of_tables_that_kill_9_cuts_off_is_completed_by_the_next(
    server: StoreProcess,
) -> None:
    whole = {b"%d" % number: b"new" for number in range(200)}
    client = WireClient(*server.store)
    for kill in range(KILLS):
        target, source = f"target{kill}", f"source{kill}"
        table(client, target, entries(b"old", b"0", b"kept"))
        table(client, source, entries(b"new", *whole))
        merge = t.MergeTableSegments(1, target, source, "")
        client.send(merge)
        client.close()
        client = restarted(server)
        assert values_in(client, target) in (
            {b"0": b"old", b"kept": b"old"},
            whole | {b"kept": b"old"},
        )
        client.send(merge)
        answer = client.receive()  # the source is gone if the first one came to its end
        assert isinstance(answer, m.SegmentsMerged | e.NoSuchSegment), answer
        assert values_in(client, target) == whole | {b"kept": b"old"}
        client.ask(t.GetTableSegmentInfo(1, source, ""), e.NoSuchSegment)
    client.close()


def test_a_merge_that_comes_again_after_kill_9_is_answered_as_the_first_was(
    server: StoreProcess,
) -> None:
    update = m.AttributeUpdate(NAME, 3, 5, 0)  # accumulate
    merge = m.MergeSegments(1, "s", "source", "", (update,))
    with WireClient(*server.store) as client:
        for name in ("s", "source"):
            client.create(name)
            client.set_up(name)
            client.append(1, name.encode())
        first = client.ask(merge, m.SegmentsMerged)
    with restarted(server) as client:
        assert client.ask(merge, m.SegmentsMerged) == first
        assert client.content("s") == b"ssource"
        found = client.ask(m.GetSegmentAttribute(1, "s", NAME, ""), m.SegmentAttribute)
        assert found.value == 5
