"""`hutch ctl` commands on how the whole server serves."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from gateway.management.ctl.grammar import Command, argument
from gateway.management.definitions.report import visible

_MS: Final = 1_000
_GB: Final = 1_000_000_000
_RESOURCE: Final = argument("resource RESOURCE", "disk or memory", choices=("disk", "memory"))
_UNTIL: Final = "Forgotten when the server ends."


def _shown(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['protocol']:12} {each['host']}:{each['port']}"
        + ("   shut" if each["is_shut"] else "")
        for each in answer["listeners"]
    ]
    state = "in service"
    if answer["is_stopped"]:
        state = "stopped by stop_app"
    elif answer["is_draining"]:
        state = "draining"
    lines += [
        f"state        {state}",
        f"alarms       {', '.join(answer['alarms']) or 'none'}",
        f"connections  {answer['connections']}",
        f"version      {answer['product_name']} {answer['product_version']}",
        f"uptime       {timedelta(seconds=answer['uptime'])}",
        f"data         {visible(answer['data_directory'])}",
        f"disk         {_disk(answer)}",
    ]
    return "\n".join(lines) + "\n"


def _disk(answer: Mapping[str, Any]) -> str:
    if "disk_free" not in answer:
        return "unknown"
    free, total = (f"{answer[name] / _GB:.2f} GB" for name in ("disk_free", "disk_total"))
    full = "; publishes find no space" if answer["is_disk_full"] else ""
    return f"{free} free of {total}{full}"


COMMANDS: Final = (
    Command(
        "status",
        "what the server is, where clients come in, and what stands against it",
        shown=_shown,
    ),
    Command(
        "ping",
        "say whether a server is there",
        shown=lambda _: "the server answers\n",
        request="status",
    ),
    Command(
        "set_alarm",
        "say that the server is short of disk or memory",
        (_RESOURCE,),
        uses=("disk",),
        more="With the disk alarm nobody may declare a publisher, and clients that have one are \n"
        "not read any more; consumers go on. The memory alarm is told to who asks for the status.\n"
        + _UNTIL,
    ),
    Command(
        "clear_alarm", "say that there is enough disk or memory again", (_RESOURCE,), uses=("disk",)
    ),
    Command(
        "drain",
        "let no more clients in, and send those that ask elsewhere",
        uses=("",),
        more="Who is connected stays; who asks where a stream is hears of no leader here.\n"
        + _UNTIL,
    ),
    Command("revive", "end drain", uses=("",)),
    Command(
        "stop_app",
        "end every connection and let nobody in; the process and its data stay",
        shown=lambda answer: f"{answer['closed']} closed\n",
        uses=("",),
        more="The next start of the server lets clients in, as start_app does.",
    ),
    Command("start_app", "serve again after stop_app", uses=("",)),
    Command(
        "set_consumer_update_timeout",
        "say how long a single active consumer may take to answer",
        (
            argument(
                "timeout_ms SECONDS",
                "as 60, or 0.5",
                type=float,
                read=lambda seconds: int(seconds * _MS),
            ),
        ),
        uses=("60",),
        more="Who does not answer in time loses its connection. " + _UNTIL + "\n"
        "stream.consumer_update_timeout_ms is the setting.",
    ),
)
