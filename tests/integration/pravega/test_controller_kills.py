"""Changes of scopes, streams and transactions that `kill -9` cuts short, at moments of chance."""

from __future__ import annotations

import itertools
import random
import threading
import time
from pathlib import Path
from typing import NamedTuple

import grpc

from gateway.pravega.access.guard import path_of
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.names import (
    GROUP,
    MARK,
    segment_name,
    transaction_segment_name,
)
from hutch.pravega import messages as m
from store.local.store_check import open_to_check
from tests.controller_client import ControllerClient
from tests.integration.pravega.conftest import controller_port
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient, event

KILLS = 10
LONGEST_S = 0.3
EVENT = event(b"of a transaction")


class Seen(NamedTuple):
    """Names of streams whose changes were answered."""

    created: set[str]
    gone: set[str]
    committed: set[str]
    aborted: set[str]


class Changer(threading.Thread):
    """Makes one change after the other, until the server is gone."""

    def __init__(self, server: StoreProcess, scope: str) -> None:
        super().__init__()
        self.seen = Seen(set(), set(), set(), set())
        self._scope = scope
        self._client = ControllerClient(controller_port(server))
        self._wire = WireClient(*server.store)
        self._client.ask("createScope", pb.ScopeInfo(scope=scope))

    def run(self) -> None:
        with self._client, self._wire:
            try:
                for number in itertools.count():
                    self._change(number)
            except (grpc.RpcError, OSError, EOFError):
                return  # it was killed

    def _change(self, number: int) -> None:
        name = f"s{number}"
        stream = pb.StreamInfo(scope=self._scope, stream=name)
        scaling = pb.ScalingPolicy(minNumSegments=2)
        self._client.ask("createStream", pb.StreamConfig(streamInfo=stream, scalingPolicy=scaling))
        self.seen.created.add(name)
        kind = number % 5
        if kind == 0:
            self._client.ask("sealStream", stream)
            self._client.ask("deleteStream", stream)
            self.seen.gone.add(name)
        elif kind == 1:
            entry = pb.ScaleRequest.KeyRangeEntry
            keys = [entry(start=0.0, end=0.3), entry(start=0.3, end=1.0)]
            request = pb.ScaleRequest(streamInfo=stream, sealedSegments=[0, 1], newKeyRanges=keys)
            self._client.ask("scale", request)
        elif kind == 4:
            self._group(stream)
        else:
            self._transaction(stream, commit=kind == 2)

    def _group(self, stream: pb.StreamInfo) -> None:
        """Make a group of the stream's name, and delete it."""
        cut = pb.StreamCut(streamInfo=stream)
        config = pb.ReaderGroupConfiguration(
            scope=stream.scope, readerGroupName=stream.stream, startingStreamCuts=[cut]
        )
        made = self._client.ask("createReaderGroup", config).config
        info = pb.ReaderGroupInfo(
            scope=stream.scope, readerGroup=stream.stream, readerGroupId=made.readerGroupId
        )
        self._client.ask("deleteReaderGroup", info)
        self.seen.gone.add(f"{GROUP}{stream.stream}")

    def _transaction(self, stream: pb.StreamInfo, *, commit: bool) -> None:
        began = self._client.ask(
            "createTransaction", pb.CreateTxnRequest(streamInfo=stream, lease=60_000)
        )
        identity = (began.txnId.highBits & (1 << 64) - 1) << 64 | began.txnId.lowBits & (
            (1 << 64) - 1
        )
        for segment in (0, 1):
            part = transaction_segment_name(stream.scope, stream.stream, segment, identity)
            self._wire.set_up(part)
            self._wire.append(1, EVENT)
        request = pb.TxnRequest(streamInfo=stream, txnId=began.txnId)
        self._client.ask("commitTransaction" if commit else "abortTransaction", request)
        (self.seen.committed if commit else self.seen.aborted).add(stream.stream)


def listed(client: ControllerClient, scope: str) -> set[str]:
    found: set[str] = set()
    token = pb.ContinuationToken()
    while True:
        request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope=scope), continuationToken=token)
        answer = client.ask("listStreamsInScope", request)
        if not answer.streams:
            return found
        found |= {each.stream for each in answer.streams}
        token = answer.continuationToken


def check_streams(server: StoreProcess, scope: str, seen: Seen) -> set[str]:
    """Check that each change was made or was not; return the streams that there are."""
    with ControllerClient(controller_port(server)) as client, WireClient(*server.store) as wire:
        names = listed(client, scope)
        assert seen.created - seen.gone - names <= {f"s{len(seen.created) - 1}"}
        assert not names & seen.gone
        marks = {name for name in names if name.startswith(MARK)}
        groups = {name for name in names if name.startswith(GROUP)}
        assert {name.removeprefix(MARK) for name in marks} == names - marks
        for name in seen.created:
            group = pb.ReaderGroupInfo(scope=scope, readerGroup=name)
            found = client.ask("getReaderGroupConfig", group).status
            if found == pb.ReaderGroupConfigResponse.SUCCESS:
                assert GROUP + name in names
        for name in names - marks - groups:
            stream = pb.StreamInfo(scope=scope, stream=name)
            now = client.ask("getCurrentSegments", stream).segmentRanges
            for each in now:
                segment = segment_name(scope, name, each.segmentId.segmentId)
                info = wire.ask(m.GetStreamSegmentInfo(1, segment, ""), m.StreamSegmentInfo)
                assert not info.is_sealed, segment
            lengths = {length_of(wire, segment_name(scope, name, each)) for each in (0, 1)}
            assert len(lengths) == 1, f"{scope}/{name} has half of a transaction: {lengths}"
            if name in seen.committed:
                assert lengths == {len(EVENT)}
            if name in seen.aborted:
                assert lengths == {0}
    return names


def length_of(wire: WireClient, segment: str) -> int:
    info = wire.ask(m.GetStreamSegmentInfo(1, segment, ""), m.StreamSegmentInfo)
    return info.write_offset


def check_nothing_is_left(directory: Path, scope: str, names: set[str], seen: Seen) -> None:
    """Check that each segment of the scope belongs to a stream that there is."""
    checked = open_to_check(directory, repairs=False)
    try:
        segments = [shape.name for shape in checked.segments()]
    finally:
        checked.close()
    mine = [name for name in segments if path_of(name)[:1] == (scope,)]
    assert {path_of(name)[1] for name in mine} == {
        name for name in names if not name.startswith(MARK)
    }
    ended = seen.committed | seen.aborted
    parts = [name for name in mine if "#transaction." in name]
    assert not {path_of(name)[1] for name in parts} & ended


def test_each_change_is_made_or_is_not_wherever_it_is_cut_short(tmp_path: Path) -> None:
    chance = random.Random(9)
    seen_kinds = [0, 0, 0]
    with StoreProcess(tmp_path / "data", "--controller-port", "0") as server:
        for number in range(KILLS):
            scope = f"scope-{number}"
            changer = Changer(server, scope)
            changer.start()
            time.sleep(chance.uniform(0.01, LONGEST_S))  # the moment of the kill is the test
            server.kill()
            changer.join()
            server.start()
            names = check_streams(server, scope, changer.seen)
            server.terminate()
            check_nothing_is_left(server.data_dir, scope, names, changer.seen)
            server.start()
            seen = changer.seen
            ended = (seen.gone, seen.committed, seen.aborted)
            seen_kinds = [a + len(b) for a, b in zip(seen_kinds, ended, strict=True)]
        server.terminate()
    assert all(seen_kinds), "the server was killed before each kind of change was made once"
