"""The commands, and the way to run one."""

from __future__ import annotations

import os
import sys

from compat.suites.shim import erlang, people, streams
from compat.suites.shim.asking import FAILED, NODE, OK, USAGE, Failure, ask
from compat.suites.shim.printing import FORMATTERS, visible
from compat.suites.shim.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PIPE_CLOSED = 141
"""Exit code of a shell for a process that SIGPIPE has ended."""


class Command:
    """Something a tool can do.

    Attributes:
        do: Does it, and returns what is printed of it.
        usage: What it takes.
        banner: What is printed before, with places for the plain words and the virtual host.
        options: Its own ones.
        is_listing: Whether it prints rows, in a format that can be chosen.
    """

    def __init__(
        self,
        do: Callable[[Words], str],
        usage: str = "",
        banner: str = "",
        options: Sequence[str] = (),
        *,
        is_listing: bool = False,
    ) -> None:
        self.do = do
        self.usage = usage
        self.banner = banner
        self.options = options
        self.is_listing = is_listing

    def run(self, words: Words) -> str:
        """Do what is asked for and return what is to be printed. Raises Failure."""
        words.demand_only(self.options)
        wanted = words.options.get("formatter", "table")
        if wanted != "table" and not (self.is_listing and wanted in FORMATTERS):
            known = ", ".join(FORMATTERS if self.is_listing else ("table",))
            raise Failure(f"formatter {wanted!r} is not known here: {known}", USAGE)
        said = self.do(words)
        lines = [said] if said else []
        if self.banner and not words.is_quiet and wanted != "json":
            lines.insert(0, visible(self.banner.format(*words.plain, "", host=words.host)))
        return "".join(f"{line}\n" for line in lines)


def status(words: Words) -> str:
    """Say where clients come in; suites look for names of protocols and plugins."""
    words.demand_count(0)
    found = ask("status")
    protocols = {each["protocol"] for each in found["listeners"]}
    plugins = ["rabbitmq_stream", "rabbitmq_stream_management", "rabbitmq_management"]
    if "stream/ssl" in protocols:
        plugins.append("rabbitmq_auth_mechanism_ssl")
    lines = ["Plugins", "", *(f" * {plugin}" for plugin in plugins)]
    lines += ["", "Alarms", "", *(found["alarms"] or ["(none)"]), "", "Listeners", ""]
    lines += [
        f"Interface: {each['host']}, port: {each['port']}, protocol: {each['protocol']}"
        for each in found["listeners"]
        if not each["is_shut"]
    ]
    return "\n".join(lines)


def ping(words: Words) -> str:
    """Say whether the server is there."""
    words.demand_count(0)
    ask("status")
    return "Ping succeeded"


def plainly(request: str) -> Callable[[Words], str]:
    """Return what asks for something that takes nothing."""

    def do(words: Words) -> str:
        words.demand_count(0)
        ask(request)
        return ""

    return do


_HOST = "[--vhost V]"
_IN_HOST = 'in vhost "{host}" ...'
LISTINGS: Mapping[str, Command] = {
    "list_stream_connections": Command(
        streams.list_stream_connections,
        f"{_HOST} [--formatter table|json] [{','.join(streams.CONNECTION)}]",
        "Listing stream connections ...",
        is_listing=True,
    ),
    "list_stream_group_consumers": Command(
        streams.list_stream_group_consumers,
        f"--stream S --reference R {_HOST} [--formatter table|json] [{','.join(streams.MEMBER)}]",
        "Listing group consumers ...",
        ("stream", "reference"),
        is_listing=True,
    ),
}
"""Commands of both tools."""
CTL: Mapping[str, Command] = {
    "status": Command(status, "", f"Status of node {NODE} ..."),
    "await_startup": Command(status, "", f"Status of node {NODE} ..."),
    "ping": Command(ping, "", f"Will ping {NODE}."),
    "eval": Command(erlang.evaluate, "EXPRESSION"),
    "add_user": Command(people.add_user, "USER [PASSWORD]", 'Adding user "{0}" ...'),
    "change_password": Command(
        people.change_password, "USER [PASSWORD]", 'Changing password for user "{0}" ...'
    ),
    "clear_password": Command(
        people.clear_password, "USER", 'Clearing password for user "{0}" ...'
    ),
    "delete_user": Command(people.delete_user, "USER", 'Deleting user "{0}" ...'),
    "list_users": Command(people.list_users, "", "Listing users ...", is_listing=True),
    "set_user_tags": Command(
        people.set_user_tags, "USER [TAG]...", 'Setting tags for user "{0}" ...'
    ),
    "set_permissions": Command(
        people.set_permissions,
        f"{_HOST} USER CONFIGURE WRITE READ",
        'Setting permissions for user "{0}" ' + _IN_HOST,
    ),
    "clear_permissions": Command(
        people.clear_permissions,
        f"{_HOST} USER",
        'Clearing permissions for user "{0}" ' + _IN_HOST,
    ),
    "add_vhost": Command(people.add_vhost, "VHOST", 'Adding vhost "{0}" ...'),
    "delete_vhost": Command(people.delete_vhost, "VHOST", 'Deleting vhost "{0}" ...'),
    "list_vhosts": Command(
        people.list_vhosts,
        "[name,description,tags,default_queue_type]",
        "Listing vhosts ...",
        is_listing=True,
    ),
    "set_policy": Command(
        people.set_policy,
        f"{_HOST} [--priority N] [--apply-to streams] NAME PATTERN JSON",
        'Setting policy "{0}" for pattern "{1}" to "{2}" for vhost "{host}" ...',
        ("priority", "apply-to"),
    ),
    "clear_policy": Command(
        people.clear_policy, f"{_HOST} NAME", 'Clearing policy "{0}" on vhost "{host}" ...'
    ),
    "stop_app": Command(plainly("stop_app"), "", f"Stopping rabbit application on node {NODE} ..."),
    "start_app": Command(plainly("start_app"), "", f"Starting node {NODE} ..."),
    **LISTINGS,
}
STREAMS: Mapping[str, Command] = {
    "stream_status": Command(
        streams.stream_status,
        f"[--tracking] {_HOST} [--formatter table|json] STREAM",
        f"Status of stream {{0}} on node {NODE} ...",
        ("tracking",),
        is_listing=True,
    ),
    "restart_stream": Command(
        streams.restart_stream, f"{_HOST} STREAM", "Restarting stream {0}..."
    ),
    "add_super_stream": Command(
        streams.add_super_stream,
        f"{_HOST} [--partitions N | --binding-keys A,B] SUPER_STREAM",
        "Adding a super stream...",
        ("partitions", "binding-keys"),
    ),
    "delete_super_stream": Command(
        streams.delete_super_stream, f"{_HOST} SUPER_STREAM", "Deleting a super stream..."
    ),
}
TOOLS: Mapping[str, Mapping[str, Command]] = {
    "rabbitmqctl": CTL,
    "rabbitmq-streams": {**STREAMS, **CTL},
}
"""Commands of each tool; here both tools have those of rabbitmqctl."""


def help_of(tool: str, words: Words) -> str:
    """Describe a tool, or the command that is named."""
    known = TOOLS[tool]
    named = [name for name in words.plain[:1] if name in known]
    lines = ["", "Usage", ""]
    for name in named or known:
        lines.append(f"{tool} [-q] [-s] {name} {known[name].usage}".rstrip())
        if named:
            lines += ["", known[name].do.__doc__ or ""]
    return "\n".join(lines) + "\n"


def said(tool: str, typed: Sequence[str]) -> str:
    """Do what was typed and return what is to be printed. Raises Failure."""
    words = Words(typed)
    if "help" in words:
        return help_of(tool, words)
    if not words.plain:
        raise Failure(f"which command?\n{help_of(tool, words)}", USAGE)
    name = words.plain.pop(0)
    if name == "help":
        return help_of(tool, words)
    command = TOOLS[tool].get(name)
    if command is None:
        raise Failure(f"command {name!r} not found here: {tool} --help lists them", USAGE)
    return command.run(words)


def main(tool: str, typed: Sequence[str]) -> int:
    """Run one command; return the exit code."""
    try:
        text, code = said(tool, typed), OK
    except Failure as failure:
        lines = (visible(line) for line in str(failure).split("\n"))
        sys.stderr.write("Error: " + "\n".join(lines) + "\n")
        return failure.code
    try:
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        sys.stderr.write(f"Error: cannot write: {error.strerror}\n")
        code = FAILED
    if code != OK:  # what is left in the buffer goes nowhere, at exit too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
