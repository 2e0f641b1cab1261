"""Calls of the controller that carry a list, there or back: what they cost grows with the list.

The calls are those of the service: one that is missing here fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.table import CALLS
from tests.controller_client import SERVICE, ControllerClient
from tests.integration.costs import Costs, amount, check_growth
from tests.integration.pravega.conftest import controller_port
from tests.integration.server import StoreProcess

MOST: Final = amount(1_000, 300)
"""Open segments of a stream; the names in a list are as many."""
EPOCHS: Final = 5
"""All segments that still hold data were written in so many epochs."""
SCOPE: Final = "scope"
_numbers = count()
_streams: list[pb.StreamInfo] = []
"""Those that a call has made, as are the tables."""
_tables: list[pb.KeyValueTableInfo] = []
_scopes: list[pb.ScopeInfo] = []
"""Those that are there to be listed."""

Client = ControllerClient
Ids = list[int]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    folder: Path = tmp_path_factory.mktemp("lists")
    arguments = ("--durability", "os", "--controller-port", "0")
    with StoreProcess(folder / "data", *arguments) as server:
        yield server
        server.terminate()
        assert "Traceback" not in server.logs


@pytest.fixture(scope="module")
def client(server: StoreProcess) -> Iterator[Client]:
    with ControllerClient(controller_port(server)) as client:
        client.ask("createScope", pb.ScopeInfo(scope=SCOPE))
        yield client


def has_list(message: Descriptor) -> bool:
    return any(
        field.is_repeated or (field.message_type is not None and has_list(field.message_type))
        for field in message.fields
    )


WITH_LISTS: Final = [
    name
    for name, method in SERVICE.methods_by_name.items()
    if has_list(method.input_type) or has_list(method.output_type)
]


# Streams


def new() -> pb.StreamInfo:
    _streams.append(pb.StreamInfo(scope=SCOPE, stream=f"stream{next(_numbers)}"))
    return _streams[-1]


def config(of: pb.StreamInfo, items: int) -> pb.StreamConfig:
    policy = pb.ScalingPolicy(minNumSegments=items)
    return pb.StreamConfig(streamInfo=of, scalingPolicy=policy, tags=pb.Tags(tag=["one", "two"]))


def stream(client: Client, items: int, epochs: int = 1) -> tuple[pb.StreamInfo, list[Ids]]:
    """Make a stream with as many segments in each epoch; return them too."""
    of = new()
    assert client.ask("createStream", config(of, items)).status == pb.CreateStreamStatus.SUCCESS
    found = client.ask("getCurrentSegments", of).segmentRanges
    ids = [[each.segmentId.segmentId for each in found]]
    for _ in range(1, epochs):
        answer = client.ask("scale", scaling(of, ids[-1], items))
        assert answer.status == pb.ScaleResponse.STARTED
        ids.append([each.segmentId.segmentId for each in answer.segments])
    return of, ids


def old_stream(client: Client, items: int) -> tuple[pb.StreamInfo, list[Ids]]:
    """Make such a stream with all epochs: what follows from them is found once for each."""
    return stream(client, items, EPOCHS)


def scaling(of: pb.StreamInfo, ids: Ids, items: int) -> pb.ScaleRequest:
    keys = [
        pb.ScaleRequest.KeyRangeEntry(start=place / items, end=(place + 1) / items)
        for place in range(items)
    ]
    return pb.ScaleRequest(streamInfo=of, sealedSegments=ids, newKeyRanges=keys)


def cut(ids: Ids) -> dict[int, int]:
    return dict.fromkeys(ids, 0)


# A request of each call with so many items, there or back


def between(client: Client, items: int) -> pb.StreamCutRange:
    of, ids = old_stream(client, items)
    request = pb.StreamCutRange(streamInfo=of, to=cut(ids[-1]))
    getattr(request, "from").update(cut(ids[0]))
    return request


def truncation(client: Client, items: int) -> pb.StreamCut:
    of, ids = old_stream(client, items)
    return pb.StreamCut(streamInfo=of, cut=cut(ids[-1]))


def first_cut(client: Client, items: int) -> pb.StreamCut:
    of, ids = old_stream(client, items)
    return pb.StreamCut(streamInfo=of, cut=cut(ids[0]))


def whole(client: Client, items: int) -> pb.ScaleRequest:
    of, (ids,) = stream(client, items)
    return scaling(of, ids, items)


def split(client: Client, items: int) -> pb.SegmentId:
    """Make a stream whose one segment is followed by all the others."""
    of, ((first,),) = stream(client, 1)
    client.ask("scale", scaling(of, [first], items))
    return pb.SegmentId(streamInfo=of, segmentId=first)


@cache
def scope(client: Client, items: int) -> pb.ScopeInfo:
    """Make a scope with so many streams."""
    of = pb.ScopeInfo(scope=f"scope{next(_numbers)}")
    client.ask("createScope", of)
    for number in range(items):
        name = pb.StreamInfo(scope=of.scope, stream=f"{number}")
        client.ask("createStream", config(name, 1))
    return of


def ended(client: Client, items: int) -> pb.ListCompletedTxnRequest:
    """Make a stream with so many transactions that are over."""
    of, _ = stream(client, 1)
    for _ in range(items):
        began = client.ask("createTransaction", pb.CreateTxnRequest(streamInfo=of, lease=60_000))
        client.ask("abortTransaction", pb.TxnRequest(streamInfo=of, txnId=began.txnId))
    return pb.ListCompletedTxnRequest(streamInfo=of)


def group(items: int = 1, of: pb.StreamInfo | None = None, ids: Ids | None = None) -> Any:  # noqa: ANN401
    """Return the configuration of a group that begins at a cut of so many segments."""
    cut = pb.StreamCut(streamInfo=of or pb.StreamInfo(scope=SCOPE, stream="some"))
    cut.cut.update(dict.fromkeys(ids or range(items), 0))
    return pb.ReaderGroupConfiguration(
        scope=SCOPE,
        readerGroupName=f"group{next(_numbers)}",
        retentionType=1,
        startingStreamCuts=[cut],
    )


def made_group(client: Client, *given: Any) -> pb.ReaderGroupConfiguration:  # noqa: ANN401
    """Make such a group."""
    answer = client.ask("createReaderGroup", group(*given))
    assert answer.status == pb.CreateReaderGroupResponse.SUCCESS
    made: pb.ReaderGroupConfiguration = answer.config
    return made


def subscribers(client: Client, items: int) -> pb.StreamInfo:
    """Make a stream that waits for so many groups."""
    of, _ = stream(client, 1)
    for _ in range(items):
        made_group(client, 1, of)
    return of


def given_up(client: Client, items: int) -> pb.SubscriberStreamCut:
    of, (ids,) = stream(client, items)
    made = made_group(client, 1, of)
    return pb.SubscriberStreamCut(
        subscriber=f"{SCOPE}/{made.readerGroupName}",
        readerGroupId=made.readerGroupId,
        streamCut=pb.StreamCut(streamInfo=of, cut=cut(ids)),
    )


def scopes(client: Client, items: int) -> pb.ScopesRequest:
    """Have so many scopes, beside those of other tests."""
    while len(_scopes) > items:
        client.ask("deleteScope", _scopes.pop())
    while len(_scopes) < items:
        _scopes.append(pb.ScopeInfo(scope=f"scope{next(_numbers)}"))
        client.ask("createScope", _scopes[-1])
    return pb.ScopesRequest()


def table(client: Client, items: int) -> pb.KeyValueTableInfo:
    """Make a table with so many parts."""
    _tables.append(pb.KeyValueTableInfo(scope=SCOPE, kvtName=f"table{next(_numbers)}"))
    request = table_config(_tables[-1], items)
    assert client.ask("createKeyValueTable", request).status == 0
    return _tables[-1]


def table_config(of: pb.KeyValueTableInfo, items: int) -> pb.KeyValueTableConfig:
    return pb.KeyValueTableConfig(
        scope=of.scope, kvtName=of.kvtName, partitionCount=items, primaryKeyLength=8
    )


@cache
def scope_of_tables(client: Client, items: int) -> pb.ScopeInfo:
    """Make a scope with so many tables."""
    of = pb.ScopeInfo(scope=f"scope{next(_numbers)}")
    client.ask("createScope", of)
    for number in range(items):
        named = pb.KeyValueTableInfo(scope=of.scope, kvtName=f"{number}")
        client.ask("createKeyValueTable", table_config(named, 1))
    return of


REQUESTS: Final[dict[str, Callable[[Client, int], Message]]] = {
    "createStream": lambda _, items: config(new(), items),
    "updateStream": lambda client, items: config(old_stream(client, items)[0], items),
    "getStreamConfiguration": lambda client, items: old_stream(client, items)[0],
    "truncateStream": truncation,
    "getCurrentSegments": lambda client, items: old_stream(client, items)[0],
    "getEpochSegments": lambda client, items: pb.GetEpochSegmentsRequest(
        streamInfo=old_stream(client, items)[0], epoch=EPOCHS // 2
    ),
    "getSegments": lambda client, items: pb.GetSegmentsRequest(
        streamInfo=old_stream(client, items)[0], timestamp=1 << 62
    ),
    "getSegmentsImmediatelyFollowing": split,
    "getSegmentsImmediatlyFollowing": split,
    "getSegmentsBetween": between,
    "isStreamCutValid": first_cut,
    "scale": whole,
    "createTransaction": lambda client, items: pb.CreateTxnRequest(
        streamInfo=stream(client, items)[0], lease=60_000
    ),
    "listCompletedTransactions": ended,
    "listScopes": scopes,
    "listStreamsInScope": lambda client, items: pb.StreamsInScopeRequest(
        scope=scope(client, items)
    ),
    "listStreamsInScopeForTag": lambda client, items: pb.StreamsInScopeWithTagRequest(
        scope=scope(client, items), tag="one"
    ),
    "createReaderGroup": lambda _, items: group(items),
    "getReaderGroupConfig": lambda client, items: pb.ReaderGroupInfo(
        scope=SCOPE, readerGroup=made_group(client, items).readerGroupName
    ),
    "updateReaderGroup": made_group,
    "noteTimestampFromWriter": lambda client, items: pb.TimestampFromWriter(
        writer="writer", timestamp=1, position=first_cut(client, items)
    ),
    "listSubscribers": subscribers,
    "updateSubscriberStreamCut": given_up,
    "getCurrentSegmentsKeyValueTable": table,
    "listKeyValueTablesInScope": lambda client, items: pb.KVTablesInScopeRequest(
        scope=scope_of_tables(client, items)
    ),
    "getControllerServerList": lambda _client, _items: pb.ServerRequest(),
}


def test_every_call_with_a_list_is_tried_here() -> None:
    assert set(CALLS) == set(SERVICE.methods_by_name)
    assert set(REQUESTS) == set(WITH_LISTS)


@pytest.mark.parametrize("name", WITH_LISTS)
def test_a_call_about_twice_as_many_costs_twice_as_much_and_no_turn_is_long(
    server: StoreProcess, client: Client, name: str
) -> None:
    def cost(items: int) -> Costs:
        request: Any = REQUESTS[name](client, items)
        with Costs(server, is_judged=False) as costs:
            client.ask(name, request)
        while _streams:  # the collector of garbage has as little to look at as before
            of = _streams.pop()
            client.ask("sealStream", of)
            client.ask("deleteStream", of)
        while _tables:
            client.ask("deleteKeyValueTable", _tables.pop())
        return costs

    check_growth(cost, MOST)


def test_a_stream_of_as_many_segments_as_may_be_ends_in_short_turns(
    server: StoreProcess, client: Client
) -> None:
    of, _ = stream(client, MOST, EPOCHS)
    for name in ("sealStream", "deleteStream"):
        with Costs(server):
            answer = client.ask(name, of)
        assert answer.status == 0


def test_a_table_of_as_many_parts_as_may_be_is_made_and_deleted_in_short_turns(
    server: StoreProcess, client: Client
) -> None:
    of = pb.KeyValueTableInfo(scope=SCOPE, kvtName="parts")
    for name, request in (
        ("createKeyValueTable", table_config(of, MOST)),
        ("deleteKeyValueTable", of),
    ):
        with Costs(server):
            answer = client.ask(name, request)
        assert answer.status == 0
