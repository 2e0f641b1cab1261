"""`hutch ctl` commands on the scopes of Pravega's controller."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.management.ctl.grammar import named
from gateway.management.ctl.rows import columns, tabular

_SCOPE: Final = named("scope", "scope")
_UNITS: Final = {
    "kbytes_per_second": "KB/s",
    "events_per_second": "events/s",
    "time": "ms",
    "size": "bytes",
}
_MOST: Final = 2**63 - 1
"""Written by clients where there is no maximum, as is 0."""


def _scaling(policy: Mapping[str, Any]) -> str:
    kind, least = policy["type"], policy["min_segments"]
    if "target_rate" not in policy:
        return f"{kind} {least}"
    rate, factor = policy["target_rate"], policy["scale_factor"]
    return f"{rate} {_UNITS.get(kind, kind)} x{factor} from {least}"


def _retention(policy: Mapping[str, Any]) -> str:
    kind = policy["type"]
    if "min" not in policy:
        return str(kind)
    most = f" to {policy['max']}" if 0 < policy["max"] < _MOST else ""
    return f"{policy['min']}{most} {_UNITS.get(kind, kind)}"


@tabular(
    columns("name", "streams", "reader_groups", "tables"),
    uses=("", "name,streams"),
)
def list_scopes() -> None:
    """List the scopes of Pravega's clients, with numbers of what is in each.

    The scopes rmq-… of virtual hosts are not among them: list_streams lists what they hold, and
    stream_status has the name by which Pravega's clients read a stream.
    """


@tabular(
    _SCOPE,
    columns("name", "state", "segments", "epoch", "scaling", "retention", "tags"),
    uses=("sales", "sales name,segments"),
    texts={"scaling": _scaling, "retention": _retention},
)
def list_scope_streams() -> None:
    """List the streams of a scope.

    segments are those that are written now. scaling is "fixed" and a number of segments, or the
    rate of a segment, the factor by which a busy one is split, and the least number of segments.
    retention is what is kept at least, and at most. --json has their parts. _RG… are the streams
    in which groups of readers agree; those of marks (_MARK…) are left out.
    """


@tabular(
    _SCOPE,
    columns("name", "streams", "retention", "members", "unread_bytes"),
    uses=("sales", "sales name,members,unread_bytes"),
)
def list_reader_groups() -> None:
    """List the groups of readers of a scope.

    retention says which streams wait for a group: "none" of them, or all of them, until it gives up
    a cut itself (manual_at_stream_cut) or has a checkpoint (automatic_at_last_checkpoint).
    members are the readers that are online. unread_bytes lie behind its last checkpoint; before it
    has one, behind the places from which its readers have taken their segments last. Both are empty
    where what the readers write of themselves cannot be read, as the log then says. Groups of
    PyPI's client are not listed: they are tables of the client's own.
    """
