"""The table of handlers: the second list of the commands' names.

The command tables must not know the handlers, so they are bound here. A test keeps the two equal.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.stream.handlers import consumers, handshake, pipeline, publishers, staging, streams
from gateway.stream.link import Handler

HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "declare_publisher": publishers.declare_publisher,
        "query_publisher_sequence": publishers.query_publisher_sequence,
        "delete_publisher": publishers.delete_publisher,
        "subscribe": consumers.subscribe,
        "credit": consumers.credit,
        "store_offset": consumers.store_offset,
        "query_offset": consumers.query_offset,
        "unsubscribe": consumers.unsubscribe,
        "create_stream": streams.create_stream,
        "delete_stream": streams.delete_stream,
        "metadata": streams.metadata,
        "peer_properties": handshake.peer_properties,
        "sasl_handshake": handshake.sasl_handshake,
        "sasl_authenticate": handshake.sasl_authenticate,
        "tune": handshake.tune,
        "open": handshake.open_virtual_host,
        "close": handshake.close,
        "heartbeat": handshake.heartbeat,
        "route": streams.route,
        "partitions": streams.partitions,
        "consumer_update": consumers.consumer_update,
        "exchange_command_versions": handshake.exchange_command_versions,
        "stream_stats": streams.stream_stats,
        "create_super_stream": streams.create_super_stream,
        "delete_super_stream": streams.delete_super_stream,
        "resolve_offset_spec": streams.resolve_offset_spec,
        "describe_streams": pipeline.describe_streams,
        "plan_streams": pipeline.plan_streams,
        "open_stage": staging.open_stage,
        "stage": staging.stage,
        "close_stage": staging.close_stage,
        "commit_stages": staging.commit_stages,
        "discard_stages": staging.discard_stages,
        "sink_state": staging.sink_state,
    }
)
"""Handlers of all commands that a client sends, except publish (`gateway.stream.publishing`), and
of its one answer. The handler of that gets the whole frame, for the correlation id."""

CHANGES: Final = frozenset(
    ("create_stream", "delete_stream", "create_super_stream", "delete_super_stream")
)
"""Commands that are answered in a cluster though its log is away; see `Patience`."""
