"""`hutch ctl` commands on streams."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from gateway.management.ctl.clients import tracked
from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Ask,
    Asked,
    WrongUse,
    argument,
    command,
    listed,
    named,
    named_anew,
    stream_arguments,
)
from gateway.management.ctl.rows import Row, tabular

_NAME: Final = named("stream")
_NEW: Final = named_anew("stream")
_OF: Final = partial(
    argument,
    "--argument -a NAME=VALUE",
    read=stream_arguments,
    dest="arguments",
    action="append",
    default=[],
)
_ARGUMENTS: Final = _OF(
    "max-age=7D, max-length-bytes=20000000000, stream-max-segment-size-bytes=100000000, …;"
    " again for each"
)
PARTITIONS_ARGUMENTS: Final = _OF(
    "of each partition: max-age=7D, max-length-bytes=20000000000, …; again for each"
)

_AGE: Final = re.compile(r"([0-9]{1,9})([YMDhms])")
_UNIT_S: Final = {"Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400, "h": 3_600, "m": 60, "s": 1}


def milliseconds(text: str) -> int:
    """Read a time, or an age before now, as milliseconds since the epoch. Raises WrongUse."""
    if (age := _AGE.fullmatch(text)) is not None:
        return time.time_ns() // 1_000_000 - int(age[1]) * _UNIT_S[age[2]] * 1_000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(
            f"{text!r} is neither a time, as 2026-11-21T13:00:00Z, nor an age, as 7D"
        ) from None
    if moment.tzinfo is None:
        raise WrongUse(f"{text!r} does not say its time zone: Z, or +01:00")
    return int(moment.timestamp() * 1_000)


def shown_time(at_ms: int) -> str:
    """Undo `milliseconds`, to the second."""
    return f"{datetime.fromtimestamp(at_ms // 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}"


@command(ANY_HOST, shown=listed("virtual_host", "name", "message_bytes", "segments", "arguments"))
def list_streams() -> None:
    """List the streams.

    message_bytes is what a stream takes on the disk, segments how many units of its segment size
    that is.
    """


@tabular(
    HOST,
    argument(
        "--tracking",
        (
            "instead, the last publishing id of each publisher and the offset that each"
            " consumer stored"
        ),
    ),
    _NAME,
    uses=("orders", "orders --tracking"),
)
def stream_status(ask: Ask, asked: Asked) -> list[Row]:
    """Show where a stream begins and ends, and how many consumers read it.

    Offsets are -1 while nothing is in the stream. pravega_name is the SCOPE/STREAM by which clients
    of Pravega read its chunks; a stream that is made again has another one.
    """
    if not asked.pop("tracking"):
        return [{"role": "writer", **ask("status_of_stream", asked)}]
    found = ask("list_tracking", asked)
    return tracked(found, value="value", name="reference", kinds=("sequence", "offset"))


@command(HOST, _NEW, _ARGUMENTS, uses=("orders -a max-age=7D -a max-length-bytes=20000000000",))
def add_stream() -> None:
    """Create a stream."""


@command(
    HOST,
    _NAME,
    argument(
        "--force",
        "also a partition of a super stream",
        dest="spares_partitions",
        action="store_false",
    ),
    uses=("-p orders returns",),
)
def delete_stream() -> None:
    """Delete a stream with all that is in it.

    Without a partition a super stream has a hole, and its clients no place for some messages: that
    takes --force. add_super_stream with the same words fills the hole.
    """


@command(
    HOST,
    _NAME,
    argument(
        "--before-offset N", "keep from this offset on; all goes if it is behind the end", type=int
    ),
    argument(
        "--before-time TIME",
        "keep from this time on: 2026-11-21T13:00:00Z, or an age such as 36h or 7D",
        dest="before_timestamp_ms",
        read=milliseconds,
    ),
    uses=("orders --before-offset 1000000", "orders --before-time 7D"),
    shown=lambda answer: f"the first offset is now {answer['first_offset']}\n",
)
def truncate_stream(ask: Ask, asked: Asked) -> object:
    """Remove the beginning of a stream.

    Only whole chunks go, so some messages before the place may stay. Consumers that were there go
    on behind it. Offsets are never given out again.
    """
    if ("before_offset" in asked) == ("before_timestamp_ms" in asked):
        raise WrongUse("say either --before-offset or --before-time")
    return ask("truncate_stream", asked)


@command(HOST, _NAME, uses=("orders",))
def restart_stream() -> None:
    """Close a stream for all its clients, and open it anew.

    They are told that it is not available, and come back by themselves. What was accepted before is
    stored and confirmed first.
    """


@command(
    ANY_HOST,
    shown=listed(
        *("virtual_host", "stage", "user", "sink", "batch", "stream"),
        *("records", "bytes", "state"),
    ),
)
def list_stages() -> None:
    """List the records that clients have staged, and not committed yet.

    A stage is open while records are added, then closed, and committed until it is in its stream.
    The sink is the id of a streaming query, or the name of a series of saves; a save without one
    counts alone. The stages of a user have at most pipeline.staged_bytes_max bytes together. Those
    that are used no more are removed after pipeline.stage_expiry_s.
    """


_SINKS: Final = listed("virtual_host", "name", "user", "last_batch", "last_use")


def _with_last_use(rows: Sequence[Mapping[str, Any]]) -> str:
    return _SINKS([{**row, "last_use": shown_time(row["used_ms"])} for row in rows])


@command(ANY_HOST, shown=_with_last_use)
def list_sinks() -> None:
    """List the sinks: names under which pipelines commit each batch once.

    A sink is the id of a streaming query, or the name of a series of saves (txnAppId). It belongs
    to the user that committed to it first, and to no other. The server remembers the last batch for
    pipeline.sink_expiry_s after its commit. A user has at most 1,000 sinks in a virtual host.
    """


@command(HOST, named("sink"), uses=("orders-by-day", "-p orders orders-by-day"))
def forget_sink() -> None:
    """Forget the last batch of a sink, so that its name is free.

    The server does not know any more which batch was committed last: a job that goes on under this
    name may write its last batch again. Forget sinks of jobs that have ended for good, and names
    that the wrong user has taken. Any user may commit under the name then.
    """
