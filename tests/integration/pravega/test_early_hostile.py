"""Clients of the early dialect that break its rules, beside one that keeps them."""

import itertools
import select
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from hutch.pravega import early_messages as m
from hutch.pravega.early_codec import EARLY
from tests.early_rig import SEGMENT, EarlyClient, block, stored
from tests.fuzz.inputs import kept, mutated
from tests.integration.pravega.test_early import early
from tests.integration.server import StoreProcess

MIB: Final = 1 << 20
READS: Final = 1_000


class WellBehaved:
    """A client that appends, and looks at what is stored."""

    def __init__(self, client: EarlyClient) -> None:
        self.client = client
        self.level = client.set_up()

    def append(self) -> None:
        self.level = self.client.append(self.level, b"good")

    def check(self) -> None:
        count = self.level // 12
        data = bytearray()
        while len(data) < self.level:
            data += self.client.read(SEGMENT, len(data)).data
        assert bytes(data) == stored(b"good") * count


def test_a_thousand_reads_wait_on_one_connection_and_on_many(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--early-port", "0") as server, ExitStack() as stack:
        good = WellBehaved(stack.enter_context(early(server)))
        waiting = [stack.enter_context(early(server)) for _ in range(100)]
        for each in waiting:
            each.send(m.ReadSegment(SEGMENT, 0, 8))
        crowded = stack.enter_context(early(server))
        crowded.send(*[m.ReadSegment(SEGMENT, 0, 8)] * READS)
        good.append()
        for each in waiting:
            assert each.must(m.SegmentRead).data == stored(b"good")[:8]
        for _ in range(READS):
            assert crowded.must(m.SegmentRead).data == stored(b"good")[:8]
        good.check()
        server.terminate()


def test_what_is_never_complete_takes_what_was_sent_of_it_and_no_more(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--early-port", "0") as server, ExitStack() as stack:
        good = WellBehaved(stack.enter_context(early(server)))
        good.append()
        before = server.rss_bytes()
        for number in range(30):
            holder = stack.enter_context(early(server))
            holder.set_up(f"held-{number}")
            begin, event, _ = block(0, bytes(MIB))
            part = m.PartialMessage(m.FIRST, EARLY.encode(m.KeepAlive(bytes(MIB)))[:MIB])
            holder.send(begin, event, part)
            holder.socket.sendall(bytes.fromhex("fffffffe 00ffffff 01"))  # and 16 MiB never come
        good.append()
        assert server.rss_bytes() - before < 30 * 5 * MIB
        good.check()
        server.terminate()


def test_a_client_that_does_not_read_its_answers_is_not_read_ahead_for(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--early-port", "0") as server, ExitStack() as stack:
        writer = stack.enter_context(early(server))
        writer.set_up("large")
        level = 0
        for _ in range(5):
            level = writer.append(level, bytes(16 * MIB - 100))
        before = server.rss_bytes()
        deaf = stack.enter_context(early(server))
        deaf.send(*[m.ReadSegment("large", 0, 2**31 - 1)] * 100)
        assert select.select([deaf.socket], [], [], 10)[0]
        good = WellBehaved(stack.enter_context(early(server)))
        for _ in range(50):
            good.append()
        assert server.rss_bytes() - before < 40 * MIB
        good.check()
        server.terminate()


def test_damaged_conversations_harm_no_other_client(tmp_path: Path) -> None:
    inputs = [data for _, data in kept("pravega-early")]
    with StoreProcess(tmp_path / "data", "--early-port", "0") as server:
        with early(server) as client:
            good = WellBehaved(client)
            for data in itertools.islice(mutated(inputs, 1), 300):
                with early(server) as hostile, suppress(ConnectionError):
                    hostile.socket.sendall(data)
                good.append()
            good.check()
        server.terminate()
        assert "Traceback" not in server.stderr
