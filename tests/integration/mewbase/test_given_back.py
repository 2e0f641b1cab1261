"""Readers and binders take memory that is there again when their clients have gone."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from gateway.mewbase.binders.binder import ID_BYTES_MAX
from gateway.settings.mewbase import BINDER_IDS_MAX
from tests.chunks import ZSTD, SubBatch
from tests.client import Client
from tests.integration.costs import MIB, amount, given_back
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.mewbase_client import MewbaseClient, frame

READERS: Final = amount(60, 6)
IDS: Final = amount(BINDER_IDS_MAX, 3_000)
AT_ONCE: Final = 500
PROJECTION: Final = """
[[projections]]
name = "replace"
channel = "channel1"
binder = "last"
id = "id"
"""


def test_sub_batches_of_64_mib_go_with_the_readers_that_had_them_opened(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase("--durability", "os")
    with Client.opened(*server.endpoint, user="mew", password="base") as client:
        client.declare(1, "channel1")
        for number in range(4):
            client.publish(1, {number: SubBatch.of([bytes(MIB - 100)] * 60, ZSTD)})
            client.confirmed_ids(1)
    with given_back(server), ExitStack() as stack:
        readers = [stack.enter_context(MewbaseClient(port_of(server))) for _ in range(READERS)]
        for reader in readers:
            reader.connect()
            reader.subscribe("channel1", startPos=0)
        for reader in readers:
            reader.events(1)


@pytest.mark.parametrize(
    ("id_bytes", "is_kept"), [(ID_BYTES_MAX, True), (8_000, False)], ids=["kept", "too long"]
)
def test_long_ids_of_a_binder_take_little(
    start_mewbase: StartMewbase, tmp_path: Path, id_bytes: int, *, is_kept: bool
) -> None:
    def id_of(number: int) -> str:
        return f"{number:x}".ljust(id_bytes, "x")

    path = tmp_path / "projections.toml"
    path.write_text(PROJECTION)
    server = start_mewbase("--durability", "os", HUTCH_MEWBASE__PROJECTIONS_FILE=str(path))
    with given_back(server), MewbaseClient(port_of(server)) as client:
        client.connect()
        for first in range(0, IDS, AT_ONCE):
            ids = (id_of(number) for number in range(first, first + AT_ONCE))
            events = ({"channel": "channel1", "event": {"id": each}, "rID": 1} for each in ids)
            client.socket.sendall(b"".join(frame("PUB", each) for each in events))
            for _ in range(AT_ONCE):
                assert client.must("RESPONSE")["ok"]
        if is_kept:
            last = id_of(IDS - 1)
            client.send("QUERY", queryID=1, binder="last", docID=last)
            assert client.must("QUERYRESULT")["result"] == {"id": last}
