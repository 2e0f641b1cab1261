"""The table of calls: the function that answers each, and the right that it needs."""

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from gateway.broker.access.model import Right
from gateway.pending import Pending
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import (
    groups,
    key_value_tables,
    scopes,
    segments,
    streams,
    transactions,
)
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.pravega.controller.rpc.segments import get_delegation_token, get_uri
from gateway.pravega.names import GROUP


class CallEntry(NamedTuple):
    """An entry of the table.

    Attributes:
        answer: What does it.
        right: On the stream that it names; None: any right on that will do.
        done: What the log says of it once it is done; empty: nothing.
        is_of_table: The name may be a table's: rights on its name among streams count too.
        takes_marks: A stream of marks is ended by those that may end its stream.
    """

    answer: Callable[[CallContext, Any], Coroutine[Pending[Any], None, Message]]
    right: Right | None
    done: str = ""
    is_of_table: bool = False
    takes_marks: bool = False


async def _servers(context: CallContext, _request: pb.ServerRequest) -> pb.ServerResponse:
    host, port = context.address
    return pb.ServerResponse(nodeURI=[pb.NodeUri(endpoint=host, port=port)])


CALLS: Final[Mapping[str, CallEntry]] = MappingProxyType(
    {
        "createScope": CallEntry(scopes.create_scope, Right.CONFIGURE, "scope created"),
        "deleteScope": CallEntry(scopes.delete_scope, Right.CONFIGURE, "scope deleted"),
        "deleteScopeRecursive": CallEntry(
            scopes.delete_scope_recursive, Right.CONFIGURE, "scope deleted with its streams"
        ),
        "checkScopeExists": CallEntry(scopes.check_scope_exists, None),
        "listScopes": CallEntry(scopes.list_scopes, None),
        "listStreamsInScope": CallEntry(scopes.list_streams, None),
        "listStreamsInScopeForTag": CallEntry(scopes.list_streams_for_tag, None),
        "createStream": CallEntry(streams.create_stream, Right.CONFIGURE, "stream created"),
        "updateStream": CallEntry(streams.update_stream, Right.CONFIGURE, "stream updated"),
        "getStreamConfiguration": CallEntry(streams.get_stream_configuration, Right.READ),
        "truncateStream": CallEntry(streams.truncate_stream, Right.CONFIGURE, "stream truncated"),
        "sealStream": CallEntry(
            streams.seal_stream, Right.CONFIGURE, "stream sealed", takes_marks=True
        ),
        "deleteStream": CallEntry(
            streams.delete_stream, Right.CONFIGURE, "stream deleted", takes_marks=True
        ),
        "checkStreamExists": CallEntry(streams.check_stream_exists, None),
        "getCurrentSegments": CallEntry(segments.get_current_segments, None),
        "getEpochSegments": CallEntry(segments.get_epoch_segments, None),
        "getSegments": CallEntry(segments.get_segments, None),
        "getSegmentsImmediatelyFollowing": CallEntry(segments.get_successors, None),
        "getSegmentsImmediatlyFollowing": CallEntry(segments.get_successors, None),
        "getSegmentsBetween": CallEntry(segments.get_segments_between, None),
        "isSegmentValid": CallEntry(segments.is_segment_valid, None),
        "isStreamCutValid": CallEntry(segments.is_stream_cut_valid, None),
        "scale": CallEntry(segments.scale, Right.CONFIGURE, "stream scaled"),
        "checkScale": CallEntry(segments.check_scale, None),
        "getURI": CallEntry(get_uri, None, is_of_table=True),
        "getControllerServerList": CallEntry(_servers, None),
        "getDelegationToken": CallEntry(get_delegation_token, None, is_of_table=True),
        "createTransaction": CallEntry(transactions.create_transaction, Right.WRITE),
        "pingTransaction": CallEntry(transactions.ping_transaction, Right.WRITE),
        "commitTransaction": CallEntry(transactions.commit_transaction, Right.WRITE),
        "abortTransaction": CallEntry(transactions.abort_transaction, Right.WRITE),
        "checkTransactionState": CallEntry(transactions.check_transaction_state, Right.WRITE),
        "listCompletedTransactions": CallEntry(
            transactions.list_completed_transactions, Right.READ
        ),
        "createReaderGroup": CallEntry(
            groups.create_reader_group, Right.CONFIGURE, "group of readers created"
        ),
        "getReaderGroupConfig": CallEntry(groups.get_reader_group_config, None),
        "updateReaderGroup": CallEntry(
            groups.update_reader_group, Right.WRITE, "group of readers configured anew"
        ),
        "deleteReaderGroup": CallEntry(
            groups.delete_reader_group, Right.CONFIGURE, "group of readers deleted"
        ),
        "noteTimestampFromWriter": CallEntry(streams.note_timestamp, Right.WRITE),
        "removeWriter": CallEntry(streams.remove_writer, Right.WRITE),
        "listSubscribers": CallEntry(groups.list_subscribers, Right.READ),
        "updateSubscriberStreamCut": CallEntry(groups.update_subscriber_cut, Right.WRITE),
        "createKeyValueTable": CallEntry(
            key_value_tables.create, Right.CONFIGURE, "table created", is_of_table=True
        ),
        "getCurrentSegmentsKeyValueTable": CallEntry(
            key_value_tables.get_segments, None, is_of_table=True
        ),
        "listKeyValueTablesInScope": CallEntry(key_value_tables.list_tables, None),
        "getKeyValueTableConfiguration": CallEntry(
            key_value_tables.get_configuration, None, is_of_table=True
        ),
        "deleteKeyValueTable": CallEntry(
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
