"""`hutch ctl` commands on who uses streams, by the names and columns of RabbitMQ's tools."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.management.ctl.grammar import HOST, Ask, Asked, Command, Options, argument
from gateway.management.ctl.rows import (
    LAYOUT,
    NODE,
    Row,
    chosen,
    columns_argument,
    layout_arguments,
    picked,
    tabbed,
)

_MEMBER: Final = ("subscription_id", "connection_name", "state")
_CONSUMER: Final = (
    "subscription_id",
    "stream",
    "messages_consumed",
    "offset",
    "offset_lag",
    "credits",
    "active",
    "activity_status",
    "properties",
)
_PUBLISHER: Final = (
    "publisher_id",
    "stream",
    "reference",
    "messages_published",
    "messages_confirmed",
    "messages_errored",
)
_GROUP: Final = ("stream", "reference", "partition_index", "consumers")
_WHOSE: Final = ("connection_pid", "node")


def tracked(
    server: Ask, place: Asked, *, value: str, name: str, kinds: tuple[str, str]
) -> list[Row]:
    """Ask what is kept of a stream's clients, as rows.

    Args:
        server: Is asked.
        place: The stream, and what of it.
        value: What the column of a value is called.
        name: What the column of a reference is called.
        kinds: What last publishing ids and stored offsets are called.
    """
    found = server("list_tracking", place)
    return [
        {"type": kind, name: reference, value: number}
        for kind, part in zip(kinds, ("writers", "offsets"), strict=True)
        for reference, number in found.get(part, {}).items()
    ]


def _tracking(server: Ask, asked: Asked) -> list[Row]:
    return tracked(server, asked, value="tracking_value", name="name", kinds=("writer", "offset"))


def _listed(request: str, server: Ask, asked: Asked) -> list[Row]:
    found = [
        {
            **each,
            "node": NODE,
            "connection_pid": f"<{NODE}.1.{each.get('connection_number')}.0>",
        }
        for each in server(request, {"virtual_host": asked["virtual_host"]})
    ]
    return picked(found, asked["columns"])


def _listing(
    name: str,
    summary: str,
    request: str,
    usual: Sequence[str],
    more: Sequence[str] = (),
) -> Command:
    """Return a command that lists something of a virtual host in chosen columns."""
    known = (*usual, *more)
    return Command(
        name,
        summary,
        (HOST, *layout_arguments(), columns_argument(known)),
        lambda options: {
            "virtual_host": options.vhost,
            "columns": chosen(options.columns, known, usual),
        },
        tabbed(),
        (f"hutch ctl {name}", f"hutch ctl {name} {','.join(usual[:3])}"),
        more=LAYOUT,
        conversation=partial(_listed, request),
    )


def _members(server: Ask, asked: Asked) -> list[Row]:
    wanted = {name: value for name, value in asked.items() if name != "columns"}
    members = [
        {**each, "state": f"{'active' if each['is_active'] else 'waiting'} (connected)"}
        for each in server("list_group_consumers", wanted)
    ]
    return picked(members, asked["columns"])


def _kept(options: Options) -> Asked:
    kind = "offset" if options.offset else "writer" if options.writer else "all"
    return {"virtual_host": options.vhost, "name": options.stream, "type": kind}


COMMANDS: Final = (
    _listing(
        "list_stream_consumers", "who reads streams", "list_consumers", _CONSUMER, more=_WHOSE
    ),
    _listing(
        "list_stream_publishers",
        "who publishes to streams",
        "list_publishers",
        _PUBLISHER,
        more=_WHOSE,
    ),
    _listing(
        "list_stream_consumer_groups",
        "the groups of single active consumers",
        "list_groups",
        _GROUP,
    ),
    Command(
        "list_stream_group_consumers",
        "the single active consumers of one name on a stream",
        (
            HOST,
            argument("--stream", metavar="STREAM", required=True, help="name of the stream"),
            argument("--reference", metavar="NAME", required=True, help="name of the consumers"),
            *layout_arguments(),
            columns_argument(_MEMBER),
        ),
        lambda options: {
            "virtual_host": options.vhost,
            "stream": options.stream,
            "reference": options.reference,
            "columns": chosen(options.columns, _MEMBER, _MEMBER),
        },
        tabbed("state"),
        ("hutch ctl list_stream_group_consumers --stream orders --reference app",),
        more=LAYOUT,
        conversation=_members,
    ),
    Command(
        "list_stream_tracking",
        "the offsets that consumers of a stream stored, and its publishers' last publishing ids",
        (
            HOST,
            *layout_arguments(),
            argument("--all", action="store_true", help="both (which is usual)"),
            argument("--offset", action="store_true", help="stored offsets alone"),
            argument("--writer", action="store_true", help="publishing ids alone"),
            argument("stream", metavar="STREAM", help="name of the stream"),
        ),
        _kept,
        tabbed(),
        ("hutch ctl list_stream_tracking orders", "hutch ctl list_stream_tracking orders --offset"),
        more=LAYOUT,
        conversation=_tracking,
    ),
)
