"""`hutch ctl` commands on the clients of streams, by the names and columns of RabbitMQ's tools."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.management.ctl.grammar import HOST, Ask, Asked, argument, named
from gateway.management.ctl.rows import NODE, Row, columns, tabular

_WHOSE: Final = ("connection_pid", "node")
_CONSUMER: Final = (
    *("subscription_id", "stream", "messages_consumed", "offset", "offset_lag", "credits"),
    *("active", "activity_status", "properties"),
)
_PUBLISHER: Final = (
    *("publisher_id", "stream", "reference"),
    *("messages_published", "messages_confirmed", "messages_errored"),
)
_GROUP: Final = ("stream", "reference", "partition_index", "consumers")


def tracked(
    found: Mapping[str, Mapping[str, int]], *, value: str, name: str, kinds: tuple[str, str]
) -> list[Row]:
    """Lay out what is kept of a stream's clients, as rows.

    Args:
        found: The server's answer.
        value: What the column of a value is called.
        name: What the column of a reference is called.
        kinds: What last publishing ids and stored offsets are called.
    """
    return [
        {"type": kind, name: reference, value: number}
        for kind, part in zip(kinds, ("writers", "offsets"), strict=True)
        for reference, number in found.get(part, {}).items()
    ]


def _placed(rows: Sequence[Row]) -> list[Row]:
    """Add whose each publisher or consumer is."""
    return [
        {**row, "node": NODE, "connection_pid": f"<{NODE}.1.{row.get('connection_number')}.0>"}
        for row in rows
    ]


@tabular(
    HOST,
    columns(*_CONSUMER, *_WHOSE, usual=_CONSUMER),
    uses=("", "subscription_id,stream,messages_consumed"),
)
def list_stream_consumers(ask: Ask, asked: Asked) -> list[Row]:
    """List the consumers of streams."""
    return _placed(ask("list_consumers", asked))


@tabular(
    HOST,
    columns(*_PUBLISHER, *_WHOSE, usual=_PUBLISHER),
    uses=("", "publisher_id,stream,reference"),
)
def list_stream_publishers(ask: Ask, asked: Asked) -> list[Row]:
    """List the publishers to streams."""
    return _placed(ask("list_publishers", asked))


@tabular(HOST, columns(*_GROUP), uses=("", "stream,reference,partition_index"))
def list_stream_consumer_groups(ask: Ask, asked: Asked) -> object:
    """List the groups of single active consumers."""
    return ask("list_groups", asked)


@tabular(
    HOST,
    argument("--stream STREAM", "name of the stream", required=True),
    argument("--reference NAME", "name of the consumers", required=True),
    columns("subscription_id", "connection_name", "state"),
    uses=("--stream orders --reference app",),
    quoted=("state",),
)
def list_stream_group_consumers(ask: Ask, asked: Asked) -> list[Row]:
    """List the single active consumers of one name on a stream."""
    return [
        {**row, "state": f"{'active' if row['is_active'] else 'waiting'} (connected)"}
        for row in ask("list_group_consumers", asked)
    ]


@tabular(
    HOST,
    argument("--all", "both (which is usual)"),
    argument("--offset", "stored offsets alone"),
    argument("--writer", "publishing ids alone"),
    named("stream"),
    uses=("orders", "orders --offset"),
)
def list_stream_tracking(ask: Ask, asked: Asked) -> list[Row]:
    """List a stream's stored offsets, and its publishers' last publishing ids."""
    del asked["all"]
    has_offset, has_writer = asked.pop("offset"), asked.pop("writer")
    kind = "offset" if has_offset else "writer" if has_writer else "all"
    found = ask("list_tracking", {**asked, "type": kind})
    return tracked(found, value="tracking_value", name="name", kinds=("writer", "offset"))
