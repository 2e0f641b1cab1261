"""`hutch ctl` commands on the clients of streams, by the names and columns of RabbitMQ's tools."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from gateway.management.ctl.grammar import HOST, Asked, Command, argument
from gateway.management.ctl.rows import LAYOUT, LAYOUT_OPTIONS, NODE, Row, columns, tabbed


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


def _members(rows: Sequence[Row]) -> list[Row]:
    return [
        {**row, "state": f"{'active' if row['is_active'] else 'waiting'} (connected)"}
        for row in rows
    ]


def _kept(asked: Asked) -> Asked:
    del asked["all"]
    has_offset, has_writer = asked.pop("offset"), asked.pop("writer")
    return {**asked, "type": "offset" if has_offset else "writer" if has_writer else "all"}


def _listing(
    name: str, summary: str, request: str, *usual: str, more: Sequence[str] = ()
) -> Command:
    """Return a command that lists something of a virtual host in chosen columns."""
    return Command(
        name,
        summary,
        (HOST, *LAYOUT_OPTIONS, columns(*usual, *more, usual=usual)),
        tabbed(),
        ("", ",".join(usual[:3])),
        LAYOUT,
        request,
        answered=_placed,
    )


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

COMMANDS: Final = (
    _listing(
        "list_stream_consumers", "who reads streams", "list_consumers", *_CONSUMER, more=_WHOSE
    ),
    _listing(
        *("list_stream_publishers", "who publishes to streams", "list_publishers"),
        *_PUBLISHER,
        more=_WHOSE,
    ),
    _listing(
        *("list_stream_consumer_groups", "the groups of single active consumers", "list_groups"),
        *_GROUP,
    ),
    Command(
        "list_stream_group_consumers",
        "the single active consumers of one name on a stream",
        (
            HOST,
            argument("--stream STREAM", "name of the stream", required=True),
            argument("--reference NAME", "name of the consumers", required=True),
            *LAYOUT_OPTIONS,
            columns("subscription_id", "connection_name", "state"),
        ),
        tabbed("state"),
        ("--stream orders --reference app",),
        LAYOUT,
        "list_group_consumers",
        answered=_members,
    ),
    Command(
        "list_stream_tracking",
        "the offsets that consumers of a stream stored, and its publishers' last publishing ids",
        (
            HOST,
            *LAYOUT_OPTIONS,
            argument("--all", "both (which is usual)"),
            argument("--offset", "stored offsets alone"),
            argument("--writer", "publishing ids alone"),
            argument("name STREAM", "name of the stream"),
        ),
        tabbed(),
        ("orders", "orders --offset"),
        LAYOUT,
        "list_tracking",
        _kept,
        partial(tracked, value="tracking_value", name="name", kinds=("writer", "offset")),
    ),
)
