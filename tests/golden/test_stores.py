"""Data directories of each format version open, and hold everything that was in them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from gateway.stream.wire import messages as m
from gateway.stream.wire.offsets import at_offset
from tests.client import Client
from tests.conformance.harness import Loop
from tests.golden.stores import (
    ATTRIBUTE,
    FOLDERS,
    MERGED,
    SERVED,
    WRITER,
    digest,
    done,
    listed,
    open_small,
    shown,
    unpacked,
)
from tests.integration.administrator import can_log_in
from tests.integration.server import HutchServer


@pytest.mark.integration
@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("version", FOLDERS)
def test_a_server_serves_all_of_a_directory(tmp_path: Path, version: int, name: str) -> None:
    data, expected = unpacked(version, name, tmp_path)
    with HutchServer(data) as server, Client.opened(*server.endpoint) as client:
        for number, (stream, records) in enumerate(expected["records"].items()):
            if stream == "gone":
                continue
            first = records[0][0]
            client.subscribe(number, stream, at_offset(first))
            found = client.records(len(records), subscription_id=number)
            kept = [[offset, shown(body)] for offset, body in found if offset >= first]
            assert kept == records, stream
        for reference, last in expected["publishing_ids"].items():
            asked = m.QueryPublisherSequence(reference, "named")
            answer = client.ask(m.PublisherSequence, "query_publisher_sequence", asked)
            assert answer.sequence == last
        for reference, offset in expected["offsets"].items():
            query = m.QueryOffset(reference, "small")
            assert client.ask(m.StoredOffset, "query_offset", query).offset == offset
        assert listed(server) == expected["listed"]
        assert can_log_in(server, "anna", "secret of anna", "side")
        client.create("new")
        for stream in (*expected["records"], "new"):
            if stream != "gone":
                client.declare(99, stream)
                client.publish(99, {1: b"new"})
                assert client.confirmed() == (99, (1,))
                client.must("delete_publisher", m.DeletePublisher(99))
        server.terminate()
        assert ("store was taken over" in server.stderr) == (version == 1)
        server.start()
        assert listed(server)["streams"] == sorted([*expected["listed"]["streams"], "new"])
        server.terminate()
        assert "store was taken over" not in server.stderr
        assert "ERROR" not in server.logs
        assert "Traceback" not in server.logs


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("version", FOLDERS)
def test_a_store_holds_all_of_a_directory(tmp_path: Path, version: int, name: str) -> None:
    data, expected = unpacked(version, name, tmp_path)
    loop = Loop()
    store = open_small(data, loop)
    for segment, held in expected["segments"].items():
        info = done(loop, store.info, segment)
        assert (info.start, info.sealed) == (held["start"], held["sealed"]), segment
        content = b""
        while info.start + len(content) < info.length:
            position = info.start + len(content)
            content += done(loop, store.read, segment, position, info.length - position).data
        assert digest(content) == held["data"], segment
        if "attribute" in held:
            assert done(loop, store.get_attribute, segment, ATTRIBUTE) == held["attribute"]
        writer = done(loop, store.open_writer, segment, WRITER)
        assert writer.event_number >= 0
        if not held["sealed"]:
            done(loop, writer.append, b"more", writer.event_number + 1)
    for table, rows in expected["tables"].items():
        keys = [key.encode() for key in rows]
        entries = done(loop, store.read_table, table, keys)
        assert {
            entry.key.decode(): {"value": entry.value.decode(), "version": entry.version}
            for entry in entries
        } == rows
        assert done(loop, store.read_table, table, [b"k3"]) == [None]
    for part in ("a", "b"):
        for gone in ("source", "gone"):
            with pytest.raises(Exception, match="no segment"):
                done(loop, store.get_attribute, f"{part}/{gone}", UUID(int=1))
    done(loop, store.close)
