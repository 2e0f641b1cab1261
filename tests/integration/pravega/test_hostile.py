"""Clients of the wire protocol that ask for too much, beside one that behaves, and a full disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import HEAD
from hutch.pravega.commands import BY_CLASS
from hutch.pravega.error_messages import ErrorMessage
from hutch.pravega.wire_types import TABLE_ITEMS_MAX, KeyAndValue, TableKey
from tests.integration.server import StoreProcess
from tests.integration.small_disk import small_disk
from tests.pravega_client import WRITER, WireClient, end
from tests.waiting import wait_until

MIB: Final = 1 << 20
MANY: Final = 1_000
SEGMENT: Final = "mine/stream/0.#epoch.0"
DISK_BYTES: Final = 64 * MIB


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path / "data") as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


@pytest.fixture
def good(server: StoreProcess) -> Iterator[WireClient]:
    """A client that has a segment with a writer set up."""
    with WireClient(*server.store) as client:
        client.create(SEGMENT)
        client.set_up(SEGMENT)
        yield client


def waiting(number: int) -> m.ReadSegment:
    return m.ReadSegment(SEGMENT, 0, 8, "", number)


def test_a_thousand_reads_of_one_connection_wait_and_are_answered(
    server: StoreProcess, good: WireClient
) -> None:
    with WireClient(*server.store) as crowded:
        crowded.send(*map(waiting, range(MANY)))
        good.append(1, b"for each")
        found = [crowded.must(m.SegmentRead) for _ in range(MANY)]
        assert {each.data for each in found} == {b"for each"}
        assert sorted(each.request_id for each in found) == list(range(MANY))
        crowded.hello()


def test_a_read_of_each_of_a_thousand_connections_waits_and_is_given_up(
    server: StoreProcess, good: WireClient
) -> None:
    before = server.open_file_count()
    with ExitStack() as stack:
        many = [stack.enter_context(WireClient(*server.store)) for _ in range(MANY)]
        for number, each in enumerate(many):
            each.send(waiting(number))
        good.append(1, b"for each")
        assert {each.must(m.SegmentRead).data for each in many} == {b"for each"}
        for each in many:
            each.send(m.ReadSegment(SEGMENT, 8, 8, "", 1))
    # The store may have opened files of its own.
    wait_until(lambda: server.open_file_count() < before + MANY // 10)
    good.append(2, b"alone")


def test_halves_of_frames_cost_what_was_sent_of_them(
    server: StoreProcess, good: WireClient
) -> None:
    code = BY_CLASS[m.AppendBlockEnd].code
    with ExitStack() as stack:
        before = server.rss_bytes()
        for _ in range(100):
            holder = stack.enter_context(WireClient(*server.store))
            holder.socket.sendall(HEAD.pack(code, 16 * MIB) + bytes(100_000))
        good.append(1, b"beside them")
        assert server.rss_bytes() - before < 64 * MIB


def test_tables_take_batches_of_sixteen_mebibytes(server: StoreProcess, good: WireClient) -> None:
    with WireClient(*server.store) as client:
        client.ask(t.CreateTableSegment(1, "table", ""), m.SegmentCreated)
        values = tuple(
            KeyAndValue(TableKey(b"%d" % number), bytes(MIB - 100)) for number in range(15)
        )
        client.ask(t.UpdateTableEntries(1, "table", "", values), t.TableEntriesUpdated)
        good.append(1, b"beside them")
        keys = tuple(TableKey(b"%d" % number) for number in range(15))
        client.ask(t.ReadTable(1, "table", "", keys), t.TableRead)
        tiny = tuple(KeyAndValue(TableKey(b"%d" % n), b"") for n in range(TABLE_ITEMS_MAX))
        client.ask(t.UpdateTableEntries(1, "table", "", tiny), t.TableEntriesUpdated)
        client.ask(t.GetTableSegmentInfo(1, "table", ""), t.TableSegmentInfo)
    good.append(2, b"after them")


def test_a_full_disk_refuses_appends_and_takes_them_again_when_there_is_room(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path, DISK_BYTES) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(16 * MIB))
        (disk / "data").mkdir()
        (tmp_path / "data").symlink_to(disk / "data")
        with StoreProcess(tmp_path / "data") as server:
            with WireClient(*server.store) as client:
                client.create(SEGMENT)
                client.set_up(SEGMENT)
                stored = fill(client)
                wanted = b"".join(bytes([number]) * MIB for number in range(stored))
                assert client.content(SEGMENT) == wanted
                ballast.unlink()
                wait_until(lambda: takes_again(server, stored + 1))
                assert client.content(SEGMENT) == wanted + b"again"
            server.terminate()
            assert "Traceback" not in server.logs


def fill(client: WireClient) -> int:
    """Append MiBs until one is refused; return how many were stored."""
    for number in range(DISK_BYTES // MIB):
        client.send(end(number + 1, bytes([number]) * MIB))
        told = client.receive()
        if not isinstance(told, m.DataAppended):
            assert isinstance(told, ErrorMessage)
            return number
    raise AssertionError("the disk was not full")


def takes_again(server: StoreProcess, number: int) -> bool:
    with WireClient(*server.store) as client:
        client.send(m.SetupAppend(2, WRITER, SEGMENT, ""), end(number, b"again"))
        return isinstance(client.receive(), m.AppendSetup) and isinstance(
            client.receive(), m.DataAppended
        )


def test_what_follows_a_creation_on_a_connection_finds_what_was_created(
    server: StoreProcess,
) -> None:
    name, table = "mine/made/0.#epoch.0", "mine/made_kvtable/0.#epoch.0"
    with WireClient(*server.store) as client:
        client.send(
            m.CreateSegment(1, name, 0, 0, ""),
            m.SetupAppend(2, WRITER, name, ""),
            m.DeleteSegment(3, name, ""),
            t.CreateTableSegment(4, table, ""),
            t.DeleteTableSegment(5, table, must_be_empty=True, token=""),
        )
        client.must(m.SegmentCreated)
        client.must(m.AppendSetup)
        client.must(m.SegmentDeleted)
        client.must(m.SegmentCreated)
        client.must(m.SegmentDeleted)
