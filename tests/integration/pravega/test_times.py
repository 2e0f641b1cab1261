"""Times that writers tell to a running server, and the marks of them that readers find."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grpc

from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.rounds.marks import Watermark, pack
from gateway.pravega.controller.rpc import controller_pb2 as pb
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import config, of
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient
from tests.waiting import wait_until

MARKS: Final = "mine/_MARKevents/0.#epoch.0"
EVENTS: Final = of("mine", "events")
WHOLE: Final = StreamSegment(0.0, 1.0, 0, 0)


def time_of(writer: str, time: int, offset: int) -> pb.TimestampFromWriter:
    position = pb.StreamCut(streamInfo=EVENTS, cut={0: offset})
    return pb.TimestampFromWriter(writer=writer, timestamp=time, position=position)


def test_marks_of_time_go_on_after_a_kill(tmp_path: Path) -> None:
    environment = {"HUTCH_WIRE__WATERMARK_INTERVAL_S": "1"}
    with StoreProcess(
        tmp_path / "data", "--controller-port", "0", environment=environment
    ) as server:

        def marks() -> bytes:
            with WireClient(*server.store) as wire:
                return wire.content(MARKS)

        with ControllerClient(controller_port(server)) as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "events"))
            client.ask("getCurrentSegments", of("mine", "_MARKevents"))
            for writer, time in (("one", 100), ("two", 120)):
                answer = client.ask("noteTimestampFromWriter", time_of(writer, time, 7))
                assert answer.result == pb.TimestampResponse.SUCCESS
        first = pack(Watermark(100, 120, {WHOLE: 7}))
        wait_until(lambda: marks() == first)
        server.kill()
        server.start()
        with ControllerClient(controller_port(server)) as client:
            for wrong, result in (
                (time_of("two", 110, 9), pb.TimestampResponse.INVALID_TIME),
                (time_of("two", 130, 6), pb.TimestampResponse.INVALID_POSITION),
            ):
                assert client.ask("noteTimestampFromWriter", wrong).result == result
            assert client.ask("noteTimestampFromWriter", time_of("two", 130, 9)).result == 0
            ended = pb.RemoveWriterRequest(writer="one", stream=EVENTS)
            assert client.ask("removeWriter", ended).result == pb.RemoveWriterResponse.SUCCESS
            ended.writer = "three"
            unknown = pb.RemoveWriterResponse.UNKNOWN_WRITER
            assert client.ask("removeWriter", ended).result == unknown
            nowhere = time_of("two", 1, 1)
            nowhere.position.streamInfo.stream = "none"
            refused = client.refusal("noteTimestampFromWriter", nowhere)
            assert refused is grpc.StatusCode.NOT_FOUND
        wait_until(lambda: marks() == first + pack(Watermark(130, 130, {WHOLE: 9})))
        server.terminate()
