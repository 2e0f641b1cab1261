"""`hutch ctl` commands on how the whole server serves."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from gateway.command_line import visible
from gateway.management.ctl.grammar import Ask, Asked, argument, command, listed, named

_MS: Final = 1_000
_GB: Final = 1_000_000_000
_RESOURCE: Final = argument("resource RESOURCE", "disk or memory", choices=("disk", "memory"))


_members: Final = listed(
    *("name", "role", "term", "number", "lag_messages", "lag_seconds", "last_beat_seconds"),
    "address",
)


def _shown(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['protocol']:12} {each['host']}:{each['port']}"
        + ("   shut" if each["is_shut"] else "")
        for each in answer["listeners"]
    ]
    state = "in service"
    if "follows" in answer:
        state = visible(answer["follows"])
    elif answer["is_stopped"]:
        state = "stopped by stop_app"
    elif answer["is_draining"]:
        state = "draining"
    lines += [
        f"state        {state}",
        f"alarms       {', '.join(answer['alarms']) or 'none'}",
        *(f"ended        {visible(text)}" for text in answer["ended"]),
        f"connections  {answer['connections']}",
        f"version      {answer['product_name']} {answer['product_version']}",
        f"uptime       {timedelta(seconds=answer['uptime'])}",
        f"data         {visible(answer['data_directory'])}",
        f"disk         {_disk(answer)}",
    ]
    members = "\n" + _members(answer["members"]) if answer["members"] else ""
    return "\n".join(lines) + "\n" + members


def _disk(answer: Mapping[str, Any]) -> str:
    if "disk_free" not in answer:
        return "unknown"
    free, total = (f"{answer[name] / _GB:.2f} GB" for name in ("disk_free", "disk_total"))
    full = "; publishes find no space" if answer["is_disk_full"] else ""
    return f"{free} free of {total}{full}"


def _closed(answer: Mapping[str, Any]) -> str:
    return f"{answer['closed']} closed\n"


@command(shown=_shown)
def status() -> None:
    """Show what runs here, where clients connect, and which alarms there are."""


@command(shown=lambda _: "the server answers\n")
def ping(ask: Ask, asked: Asked) -> object:
    """Say whether a server is there."""
    return ask("status", asked)


@command(shown=_members)
def members() -> None:
    """List the members of the cluster: which one is active, and how far each is.

    The lag is of messages of the log that another member has. Any member can be asked.
    """


@command(shown=lambda _: "it takes over\n")
def takeover() -> None:
    """Have this member take over, which follows; the active one ends and starts again as follower.

    Ask the member that is to serve: --data is its directory. To stop the active member does the
    same, and waits until the other one has all.
    """


@command(named("member"), uses=("b",))
def forget_member() -> None:
    """Forget a member that will not come back, so that the log is not kept for it.

    A member that lives is known again with its next beat.
    """


@command(_RESOURCE, uses=("disk",))
def set_alarm() -> None:
    """Say that the server is short of disk or memory.

    With the disk alarm no client may declare a publisher, and clients that have one are not read
    any more; consumers go on. The memory alarm is only shown in the status.
    Forgotten when the server ends.
    """


@command(_RESOURCE, uses=("disk",))
def clear_alarm() -> None:
    """Say that there is enough disk or memory again."""


@command(uses=("",))
def drain() -> None:
    """Let no more clients in, and send those that ask elsewhere.

    Clients that are connected stay; one that asks where a stream is gets no leader.
    Forgotten when the server ends.
    """


@command(uses=("",))
def revive() -> None:
    """End drain."""


@command(uses=("",), shown=_closed)
def stop_app() -> None:
    """End every connection and let no client in; the process and its data stay.

    The next start of the server lets clients in, as start_app does.
    """


@command(uses=("",))
def start_app() -> None:
    """Serve again after stop_app."""


@command(
    argument(
        "timeout_ms SECONDS",
        "as 60, or 0.5",
        type=float,
        read=lambda seconds: int(seconds * _MS),
    ),
    uses=("60",),
)
def set_consumer_update_timeout() -> None:
    """Say how long a single active consumer may take to answer.

    One that does not answer in time loses its connection. Forgotten when the server ends.
    stream.consumer_update_timeout_ms is the setting.
    """
