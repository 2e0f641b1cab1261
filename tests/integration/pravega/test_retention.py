"""The retention of Pravega's streams, by a running server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import config
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient, event
from tests.waiting import wait_until

SEGMENT: Final = "mine/events/0.#epoch.0"
EVENT: Final = event(bytes(1_000))
KEPT: Final = 10 * len(EVENT)


class Writer:
    """A writer of a segment."""

    def __init__(self, server: StoreProcess) -> None:
        self.number = 0
        self._server = server

    def bounds(self) -> tuple[int, int]:
        """Return the segment's start and length."""
        with WireClient(*self._server.store) as wire:
            info = wire.ask(m.GetStreamSegmentInfo(1, SEGMENT, ""), m.StreamSegmentInfo)
        return info.start_offset, info.write_offset

    def write_until_it_begins_behind(self, offset: int) -> None:
        """Write an event now and then, until some are gone."""

        def is_gone() -> bool:
            time.sleep(0.05)
            self.number += 1
            wire.append(self.number, EVENT)
            return self.bounds()[0] > offset

        with WireClient(*self._server.store) as wire:
            wire.set_up(SEGMENT)
            wait_until(is_gone)


def test_old_events_go_and_the_least_stays_also_after_a_kill(tmp_path: Path) -> None:
    environment = {"HUTCH_WIRE__RETENTION_INTERVAL_S": "1"}
    arguments = ("--controller-port", "0", "--durability", "os")
    with StoreProcess(tmp_path / "data", *arguments, environment=environment) as server:
        with ControllerClient(controller_port(server)) as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            wanted = config("mine", "events")
            wanted.retentionPolicy.retentionType = pb.RetentionPolicy.SIZE
            wanted.retentionPolicy.retentionParam = KEPT
            assert client.ask("createStream", wanted).status == 0
        writer = Writer(server)
        begin = end = 0
        for _ in range(2):
            writer.write_until_it_begins_behind(begin)
            begin, end = writer.bounds()
            assert end - begin >= KEPT
            assert begin % len(EVENT) == 0
            server.wait_for_log("stream truncated by its retention stream=mine/events")
            server.kill()
            server.start()
        start, length = writer.bounds()
        assert length == end
        assert start >= begin
        server.terminate()
