"""Groups of readers, and marks, by the controller and the wire: rights, and what is kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from hutch.pravega.error_messages import AuthTokenCheckFailed
from hutch.stream import messages as stream_messages
from store.local.store_check import open_to_check
from tests.client import Client
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import (
    BESIDE,
    config,
    controller,
    held,
    of,
    users_of_streams,
)
from tests.integration.server import HutchServer, StoreProcess
from tests.pravega_client import WRITER, WireClient

DENIED = grpc.StatusCode.PERMISSION_DENIED
EVENTS = of("mine", "events")


def group(name: str = "group", stream: pb.StreamInfo = EVENTS, **given: Any) -> Any:  # noqa: ANN401
    return pb.ReaderGroupConfiguration(
        scope="mine",
        readerGroupName=name,
        startingStreamCuts=[pb.StreamCut(streamInfo=stream)],
        **given,
    )


def info(identity: str = "", name: str = "group") -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope="mine", readerGroup=name, readerGroupId=identity)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server with a stream, and users that may do a part each."""
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        maker=("^mine/_RG", "", "^mine/events$"),
        member=("", "^mine/_RG", "^mine/events$"),
        reader=("", "", "^mine/events$"),
        blind=("^mine/_RG", "^mine/_RG", ""),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        with controller(server, "all") as all_:
            all_.ask("createScope", pb.ScopeInfo(scope="mine"))
            all_.ask("createStream", config("mine", "events"))
        yield server
        server.terminate()


def test_a_group_is_made_by_who_may_configure_it_and_read_its_streams(server: HutchServer) -> None:
    for user in ("member", "reader", "blind"):
        with controller(server, user) as client:
            assert client.refusal("createReaderGroup", group()) is DENIED, user
    with controller(server, "maker") as maker:
        made = maker.ask("createReaderGroup", group()).config
        assert maker.ask("getReaderGroupConfig", info()).config == made
        assert maker.refusal("updateReaderGroup", made) is DENIED
    with controller(server, "member") as member:
        assert member.ask("getReaderGroupConfig", info()).config == made
        answer = member.ask("updateReaderGroup", made)
        assert (answer.status, answer.generation) == (pb.UpdateReaderGroupResponse.SUCCESS, 1)
        assert member.refusal("deleteReaderGroup", info(made.readerGroupId)) is DENIED
    with controller(server, "reader") as reader:
        assert reader.refusal("getReaderGroupConfig", info()) is DENIED
        assert not reader.ask("listSubscribers", EVENTS).subscribers
    with controller(server, "blind") as blind:
        assert blind.refusal("updateReaderGroup", made) is DENIED
    with controller(server, "maker") as maker:
        assert maker.ask("deleteReaderGroup", info(made.readerGroupId)).status == 0


def test_marks_are_read_as_their_stream_is_and_no_client_changes_them(server: HutchServer) -> None:
    marks = of("mine", "_MARKevents")
    segment = "mine/_MARKevents/0.#epoch.0"
    for user in ("all", "reader"):
        with controller(server, user) as client:
            answer = client.ask("getCurrentSegments", marks)
            assert len(answer.segmentRanges) == 1
        with WireClient(*server.store, token=answer.delegationToken) as wire:
            found = wire.ask(m.GetStreamSegmentInfo(1, segment, wire.token), m.StreamSegmentInfo)
            assert found.write_offset == 0
            for request in (
                m.SetupAppend(2, WRITER, segment, wire.token),
                m.SealSegment(2, segment, wire.token),
                m.TruncateSegment(2, segment, 0, wire.token),
                m.DeleteSegment(2, segment, wire.token),
            ):
                assert isinstance(wire.ask(request, AuthTokenCheckFailed), AuthTokenCheckFailed)
    with controller(server, "blind") as blind:
        for call in ("getCurrentSegments", "sealStream", "deleteStream"):
            assert blind.refusal(call, marks) is DENIED
    with controller(server, "all") as all_:
        assert all_.ask("sealStream", marks).status == pb.UpdateStreamStatus.SUCCESS
        assert all_.ask("deleteStream", marks).status == pb.DeleteStreamStatus.SUCCESS
        assert all_.ask("getCurrentSegments", marks).segmentRanges
        none = of("mine", "_MARKnone")
        assert all_.ask("sealStream", none).status == pb.UpdateStreamStatus.STREAM_NOT_FOUND
        assert all_.ask("deleteStream", none).status == pb.DeleteStreamStatus.STREAM_NOT_FOUND
        assert all_.refusal("createStream", config("mine", "_MARKnew")) is DENIED


def test_a_group_and_what_it_gave_up_are_there_after_a_kill(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--controller-port", "0") as server:
        with ControllerClient(controller_port(server)) as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "events"))
            identity = str(uuid.uuid4())
            wanted = group(
                retentionType=1,
                readerGroupId=identity,
                groupRefreshTimeMillis=100,
                automaticCheckpointIntervalMillis=-1,
                maxOutstandingCheckpointRequest=3,
                endingStreamCuts=[pb.StreamCut(streamInfo=EVENTS, cut={0: 7})],
                rolloverSizeBytes=1 << 20,
            )
            assert client.ask("createReaderGroup", wanted).config == wanted
            given_up = pb.SubscriberStreamCut(
                subscriber="mine/group",
                readerGroupId=identity,
                streamCut=pb.StreamCut(streamInfo=EVENTS, cut={0: 12}),
            )
            assert client.ask("updateSubscriberStreamCut", given_up).status == 0
        server.kill()
        server.start()
        with ControllerClient(controller_port(server)) as client:
            assert client.ask("getReaderGroupConfig", info()).config == wanted
            assert client.ask("listSubscribers", EVENTS).subscribers == ["mine/group"]
            given_up.streamCut.cut[0] = 11
            refused = pb.UpdateSubscriberStatus.STREAM_CUT_NOT_VALID
            assert client.ask("updateSubscriberStreamCut", given_up).status == refused
            assert len(client.ask("getCurrentSegments", of("mine", "_RGgroup")).segmentRanges) == 1
        server.terminate()


def test_what_cannot_be_a_group_is_said(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--controller-port", "0") as server:
        with ControllerClient(controller_port(server)) as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "events"))
            nowhere = group(stream=of("mine", "a/b"))
            for wrong in (group(retentionType=3), group(readerGroupId="none"), nowhere):
                refused = client.refusal("createReaderGroup", wrong)
                assert refused is grpc.StatusCode.INVALID_ARGUMENT
            answer = client.ask("createReaderGroup", group("_group"))
            assert answer.status == pb.CreateReaderGroupResponse.INVALID_RG_NAME
            wide = config("mine", "_RGnew")
            wide.scalingPolicy.minNumSegments = 2
            assert client.refusal("createStream", wide) is grpc.StatusCode.INVALID_ARGUMENT
            with pytest.raises(grpc.RpcError, match="a stream _MARK… is the server's own"):
                client.ask("createStream", config("mine", "_MARKnew"))
            assert client.ask("createStream", config("mine", "_RGold")).status == 0
        server.terminate()


def test_the_marks_of_a_streams_chunks_go_with_the_stream(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", *BESIDE) as server:
        with Client.opened(*server.endpoint) as streams:
            streams.create("orders")
        with controller(server, "guest", "guest") as guest:
            marks = of("rmq-.2f", f"_MARK{held(server, 'orders')}")
            answer = guest.ask("getCurrentSegments", marks)
            (found,) = answer.segmentRanges
            segment = f"{marks.scope}/{marks.stream}/{found.segmentId.segmentId}.#epoch.0"
            with WireClient(*server.store, token=answer.delegationToken) as wire:
                asked = m.GetStreamSegmentInfo(1, segment, wire.token)
                assert wire.ask(asked, m.StreamSegmentInfo).write_offset == 0
                with Client.opened(*server.endpoint) as streams:
                    streams.must("delete_stream", stream_messages.DeleteStream("orders"))
                assert guest.refusal("getCurrentSegments", marks) is DENIED
        server.terminate()
        checked = open_to_check(server.data_dir, repairs=False)
        try:
            assert not [shape.name for shape in checked.segments() if "_MARK" in shape.name]
        finally:
            checked.close()
