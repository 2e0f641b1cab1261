"""Streams, super streams, connections and groups of consumers."""

from __future__ import annotations

from compat.suites.shim.asking import NO_SUCH_THING, NODE, REFUSED, USAGE, Failure, ask
from compat.suites.shim.printing import Quoted, columns_of, formatted
from compat.suites.shim.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECTION = ("node", "conn_name", "pid", "user", "vhost", "client_properties")
MEMBER = ("subscription_id", "connection_name", "state")
STATUS = (
    *("role", "node", "epoch", "offset", "committed_offset", "committed_chunk_id"),
    *("first_offset", "readers", "segments"),
)
PARTITIONS = 3
"""Default number of a super stream's partitions."""


def list_stream_connections(words: Words) -> str:
    """List connections with the columns that are asked for."""
    is_json = words.options.get("formatter") == "json"
    columns = columns_of(words, CONNECTION, ("node", "conn_name") if is_json else ("conn_name",))
    found = ask("list_connections", virtual_host=words.host)
    return formatted(words, columns, [_connection(each) for each in found])


def _connection(each: dict[str, Any]) -> dict[str, Any]:
    properties = each["client_properties"].items()
    return {
        "node": NODE,
        "conn_name": each["name"],
        "pid": f"<{NODE}.1.{each['number']}.0>",
        "user": each["user"],
        "vhost": each["virtual_host"],
        "client_properties": [[name, "longstr", value] for name, value in properties],
    }


def list_stream_group_consumers(words: Words) -> str:
    """List the single active consumers of one name on a stream."""
    for needed in ("stream", "reference"):
        if needed not in words:
            raise Failure(f"not enough arguments: --{needed} is needed", USAGE)
    columns = columns_of(words, MEMBER, MEMBER)
    found = ask(
        "list_group_consumers",
        REFUSED,
        virtual_host=words.host,
        stream=words.options["stream"],
        reference=words.options["reference"],
    )
    for each in found:
        each["state"] = Quoted("active (connected)" if each["is_active"] else "waiting (connected)")
    return formatted(words, columns, found)


def stream_status(words: Words) -> str:
    """Say where a stream begins and ends."""
    words.demand_count(1)
    (name,) = words.plain
    place = {"virtual_host": words.host, "name": name}
    if "tracking" in words:
        return _tracking(words, ask("list_tracking", NO_SUCH_THING, **place))
    found = ask("status_of_stream", NO_SUCH_THING, **place)
    status = {"role": "writer", "node": NODE, "epoch": 1, "segments": 1, **found}
    return formatted(words, STATUS, [status])


def _tracking(words: Words, found: dict[str, dict[str, int]]) -> str:
    rows = [
        {"type": kind, "reference": reference, "value": value}
        for kind, key in (("sequence", "writers"), ("offset", "offsets"))
        for reference, value in found.get(key, {}).items()
    ]
    return formatted(words, ("type", "reference", "value"), rows)


def restart_stream(words: Words) -> str:
    """End all users of a stream; it comes back at once."""
    words.demand_count(1)
    ask("restart_stream", NO_SUCH_THING, virtual_host=words.host, name=words.plain[0])
    return NODE


def add_super_stream(words: Words) -> str:
    """Create a super stream."""
    words.demand_count(1)
    (name,) = words.plain
    wanted: dict[str, Any] = {"partitions": words.number("partitions", PARTITIONS)}
    if wanted["partitions"] < 1:
        raise Failure("the partition number must be greater than 0", USAGE)
    if keys := words.options.get("binding-keys"):
        wanted = {"binding_keys": [key.strip() for key in keys.split(",")]}
    ask("add_super_stream", virtual_host=words.host, name=name, **wanted)
    return f"Super stream {name} has been created"


def delete_super_stream(words: Words) -> str:
    """Delete a super stream with its partitions."""
    words.demand_count(1)
    (name,) = words.plain
    ask("delete_super_stream", virtual_host=words.host, name=name)
    return f"Super stream {name} has been deleted"
