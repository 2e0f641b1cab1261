"""The table of calls: which function answers each, and which right it needs on what it names."""

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from gateway.broker.access.model import Right
from gateway.pending import Pending
from gateway.pravega.controller.names import GROUP
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.rpc import (
    groups,
    key_value_tables,
    scopes,
    segments,
    streams,
    times,
    transactions,
)
from gateway.pravega.controller.rpc.desk import Desk
from gateway.pravega.controller.rpc.segments import get_delegation_token, get_uri


class Call(NamedTuple):
    """An entry of the table.

    Attributes:
        answer: What does it.
        right: On the stream that it names; None: any right on that will do.
        done: What the log says of it once it is done; empty: nothing.
        is_of_table: The name may be a table's: rights on its name among streams count too.
        takes_marks: A stream of marks is ended by those that may end its stream.
    """

    answer: Callable[[Desk, Any], Coroutine[Pending[Any], None, Message]]
    right: Right | None
    done: str = ""
    is_of_table: bool = False
    takes_marks: bool = False


async def _servers(desk: Desk, _request: pb.ServerRequest) -> pb.ServerResponse:
    host, port = desk.address
    return pb.ServerResponse(nodeURI=[pb.NodeUri(endpoint=host, port=port)])


CALLS: Final[Mapping[str, Call]] = MappingProxyType(
    {
        "createScope": Call(scopes.create_scope, Right.CONFIGURE, "scope created"),
        "deleteScope": Call(scopes.delete_scope, Right.CONFIGURE, "scope deleted"),
        "deleteScopeRecursive": Call(
            scopes.delete_scope_recursive, Right.CONFIGURE, "scope deleted with its streams"
        ),
        "checkScopeExists": Call(scopes.check_scope_exists, None),
        "listScopes": Call(scopes.list_scopes, None),
        "listStreamsInScope": Call(scopes.list_streams, None),
        "listStreamsInScopeForTag": Call(scopes.list_streams_for_tag, None),
        "createStream": Call(streams.create_stream, Right.CONFIGURE, "stream created"),
        "updateStream": Call(streams.update_stream, Right.CONFIGURE, "stream updated"),
        "getStreamConfiguration": Call(streams.get_stream_configuration, Right.READ),
        "truncateStream": Call(streams.truncate_stream, Right.CONFIGURE, "stream truncated"),
        "sealStream": Call(streams.seal_stream, Right.CONFIGURE, "stream sealed", takes_marks=True),
        "deleteStream": Call(
            streams.delete_stream, Right.CONFIGURE, "stream deleted", takes_marks=True
        ),
        "checkStreamExists": Call(streams.check_stream_exists, None),
        "getCurrentSegments": Call(segments.get_current_segments, None),
        "getEpochSegments": Call(segments.get_epoch_segments, None),
        "getSegments": Call(segments.get_segments, None),
        "getSegmentsImmediatelyFollowing": Call(segments.get_successors, None),
        "getSegmentsImmediatlyFollowing": Call(segments.get_successors, None),
        "getSegmentsBetween": Call(segments.get_segments_between, None),
        "isSegmentValid": Call(segments.is_segment_valid, None),
        "isStreamCutValid": Call(segments.is_stream_cut_valid, None),
        "scale": Call(segments.scale, Right.CONFIGURE, "stream scaled"),
        "checkScale": Call(segments.check_scale, None),
        "getURI": Call(get_uri, None, is_of_table=True),
        "getControllerServerList": Call(_servers, None),
        "getDelegationToken": Call(get_delegation_token, None, is_of_table=True),
        "createTransaction": Call(transactions.create_transaction, Right.WRITE),
        "pingTransaction": Call(transactions.ping_transaction, Right.WRITE),
        "commitTransaction": Call(transactions.commit_transaction, Right.WRITE),
        "abortTransaction": Call(transactions.abort_transaction, Right.WRITE),
        "checkTransactionState": Call(transactions.check_transaction_state, Right.WRITE),
        "listCompletedTransactions": Call(transactions.list_completed_transactions, Right.READ),
        "createReaderGroup": Call(
            groups.create_reader_group, Right.CONFIGURE, "group of readers created"
        ),
        "getReaderGroupConfig": Call(groups.get_reader_group_config, None),
        "updateReaderGroup": Call(
            groups.update_reader_group, Right.WRITE, "group of readers configured anew"
        ),
        "deleteReaderGroup": Call(
            groups.delete_reader_group, Right.CONFIGURE, "group of readers deleted"
        ),
        "noteTimestampFromWriter": Call(times.note_timestamp, Right.WRITE),
        "removeWriter": Call(times.remove_writer, Right.WRITE),
        "listSubscribers": Call(groups.list_subscribers, Right.READ),
        "updateSubscriberStreamCut": Call(groups.update_subscriber_cut, Right.WRITE),
        "createKeyValueTable": Call(
            key_value_tables.create, Right.CONFIGURE, "table created", is_of_table=True
        ),
        "getCurrentSegmentsKeyValueTable": Call(
            key_value_tables.get_segments, None, is_of_table=True
        ),
        "listKeyValueTablesInScope": Call(key_value_tables.list_tables, None),
        "getKeyValueTableConfiguration": Call(
            key_value_tables.get_configuration, None, is_of_table=True
        ),
        "deleteKeyValueTable": Call(
            key_value_tables.delete, Right.CONFIGURE, "table deleted", is_of_table=True
        ),
    }
)


def subject(request: Any) -> tuple[str, str]:  # noqa: ANN401  # any of the requests
    """Return scope and stream or table that a request names, '' where it names none.

    A group of readers is its stream.
    """
    for field in ("readerGroupName", "readerGroup"):
        if name := getattr(request, field, ""):
            return request.scope, GROUP + name
    if subscriber := getattr(request, "subscriber", ""):
        scope, _, name = subscriber.partition("/")
        return scope, GROUP + name
    named = getattr(request, "position", request)
    if isinstance(request, pb.RemoveWriterRequest):
        named = request.stream
    elif "streamInfo" in named.DESCRIPTOR.fields_by_name:
        named = named.streamInfo
    elif "scope" in request.DESCRIPTOR.fields_by_name and not isinstance(request.scope, str):
        named = request.scope
    name = getattr(named, "stream", "") or getattr(named, "kvtName", "")
    return getattr(named, "scope", ""), name
