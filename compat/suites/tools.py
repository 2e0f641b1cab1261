"""`rabbitmqctl` and `rabbitmq-streams`, as far as client suites call them, on a running Hutch.

Run by the scripts in `bin/`, without the rest of this project: it has to start in a moment. It
speaks to the socket named by HUTCH_ADMIN_SOCKET (default `data/admin.sock`) and says what
RabbitMQ's tools say, in their layout, with their exit codes. Of Erlang expressions it knows those
that the suites evaluate.
"""

from __future__ import annotations

import binascii
import json
import os
import re
import socket
import sys

TYPE_CHECKING = False  # typing's own takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Command: TypeAlias = Callable[["Arguments"], str]
    Action: TypeAlias = Callable[[re.Match[str]], str]

OK = 0
USAGE = 64
UNREACHABLE = 69
FAILED = 70
"""As RabbitMQ's tools: sysexits' EX_USAGE, EX_UNAVAILABLE, EX_SOFTWARE."""

NODE = "rabbit@localhost"
SOCKET_VARIABLE = "HUTCH_ADMIN_SOCKET"
ANSWER_S = 60.0
SALT_BYTES = 4
_MS = 1_000

Arguments = list[str]


class Failure(Exception):
    """The command did not do it.

    Attributes:
        code: What the process exits with.
    """

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def ask(request: str, **arguments: Any) -> Any:  # noqa: ANN401  # whatever JSON holds
    """Ask the server for something and return its answer. Raises Failure."""
    path = os.environ.get(SOCKET_VARIABLE, "data/admin.sock")
    line = json.dumps({"request": request, "arguments": arguments}).encode() + b"\n"
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(path)
            connection.sendall(line)
            while not answer.endswith(b"\n") and (part := connection.recv(65_536)):
                answer += part
    except OSError as error:
        raise Failure(f"unable to reach the server at {path}: {error}", UNREACHABLE) from None
    content = json.loads(answer or b'{"error": "the server went away"}')
    if "error" in content:
        raise Failure(content["error"])
    return content["result"]


def option(arguments: Arguments, *names: str, default: str = "") -> str:
    """Take an option with its value, as `--vhost V` or `--vhost=V`, out of the arguments."""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name not in names:
            continue
        del arguments[place]
        if equals:
            return value
        if place == len(arguments):
            raise Failure(f"{name} has no value", USAGE)
        return arguments.pop(place)
    return default


def expect(arguments: Arguments, count: int) -> Arguments:
    """Return the arguments, which have to be so many. Raises Failure."""
    if len(arguments) != count:
        raise Failure(f"{count} arguments are needed, not {len(arguments)}", USAGE)
    return arguments


def password_hash(password: str) -> dict[str, str]:
    """Return RabbitMQ's own hash of a password: salt, then SHA-256 of salt and password."""
    import hashlib  # noqa: PLC0415  # not needed by the commands that are called often

    salt = os.urandom(SALT_BYTES)
    digest = hashlib.sha256(salt + password.encode()).digest()
    return {
        "password_hash": binascii.b2a_base64(salt + digest, newline=False).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
    }


# What rabbitmqctl does


def status(_: Arguments) -> str:
    """Say where clients come in; suites look for names of protocols and plugins."""
    found = ask("status")
    protocols = {each["protocol"] for each in found["listeners"]}
    plugins = ["rabbitmq_stream", "rabbitmq_stream_management", "rabbitmq_management"]
    if "stream/ssl" in protocols:
        plugins.append("rabbitmq_auth_mechanism_ssl")
    lines = [f"Status of node {NODE} ...", "Plugins", ""]
    lines += [f" * {plugin}" for plugin in plugins]
    lines += ["", "Alarms", "", *(found["alarms"] or ["(none)"]), "", "Listeners", ""]
    lines += [
        f"Interface: {each['host']}, port: {each['port']}, protocol: {each['protocol']}"
        for each in found["listeners"]
        if not each["is_shut"]
    ]
    return "\n".join(lines)


def add_user(arguments: Arguments) -> str:
    """Create a user with a password."""
    name, password = expect(arguments, 2)
    ask("add_user", name=name, **password_hash(password))
    return f'Adding user "{name}" ...'


def change_password(arguments: Arguments) -> str:
    """Give a user another password."""
    name, password = expect(arguments, 2)
    ask("change_password", name=name, **password_hash(password))
    return f'Changing password for user "{name}" ...'


def clear_password(arguments: Arguments) -> str:
    """Let a user log in without a password only, as by a certificate."""
    (name,) = expect(arguments, 1)
    ask("change_password", name=name, password_hash="")
    return f'Clearing password for user "{name}" ...'


def named(request: str, words: str) -> Command:
    """Return a command that takes nothing but a name."""

    def command(arguments: Arguments) -> str:
        (name,) = expect(arguments, 1)
        ask(request, name=name)
        return f'{words} "{name}" ...'

    return command


def plain(request: str, words: str) -> Command:
    """Return a command that takes nothing."""

    def command(arguments: Arguments) -> str:
        expect(arguments, 0)
        ask(request)
        return f"{words} node {NODE} ..."

    return command


def set_user_tags(arguments: Arguments) -> str:
    """Replace a user's tags."""
    if not arguments:
        raise Failure("which user?", USAGE)
    name, *tags = arguments
    ask("set_user_tags", name=name, tags=tags)
    return f'Setting tags for user "{name}" to [{", ".join(tags)}] ...'


def set_permissions(arguments: Arguments) -> str:
    """Say what a user may do in a virtual host."""
    host = option(arguments, "--vhost", "-p", default="/")
    user, configure, write, read = expect(arguments, 4)
    ask(
        "set_permissions",
        user=user,
        virtual_host=host,
        configure=configure,
        write=write,
        read=read,
    )
    return f'Setting permissions for user "{user}" in vhost "{host}" ...'


def clear_permissions(arguments: Arguments) -> str:
    """Take a user everything in a virtual host; fine if it had nothing."""
    host = option(arguments, "--vhost", "-p", default="/")
    (user,) = expect(arguments, 1)
    if any(one["user"] == user for one in ask("list_permissions", virtual_host=host)):
        ask("clear_permissions", user=user, virtual_host=host)
    return f'Clearing permissions for user "{user}" in vhost "{host}" ...'


def set_policy(arguments: Arguments) -> str:
    """Say what holds for streams by their names."""
    host = option(arguments, "--vhost", "-p", default="/")
    priority = option(arguments, "--priority", default="0")
    apply_to = option(arguments, "--apply-to", default="all")
    name, pattern, definition = expect(arguments, 3)
    ask(
        "set_policy",
        virtual_host=host,
        name=name,
        pattern=pattern,
        definition=json.loads(definition),
        apply_to=apply_to,
        priority=int(priority),
    )
    return f'Setting policy "{name}" for pattern "{pattern}" ...'


def clear_policy(arguments: Arguments) -> str:
    """Delete a policy."""
    host = option(arguments, "--vhost", "-p", default="/")
    (name,) = expect(arguments, 1)
    ask("clear_policy", virtual_host=host, name=name)
    return f'Clearing policy "{name}" on vhost "{host}" ...'


def list_stream_connections(arguments: Arguments) -> str:
    """List connections with the columns that are asked for, as a table with tabs or as JSON."""
    formatter = option(arguments, "--formatter", default="table")
    if formatter not in FORMATTERS:
        raise Failure(f"formatter {formatter!r} is not known here: {', '.join(FORMATTERS)}", USAGE)
    host = option(arguments, "--vhost", "-p", default="/")
    columns = [column for argument in arguments for column in argument.split(",") if column]
    if unknown := [column for column in columns if column not in COLUMNS]:
        raise Failure(f"info key(s) {', '.join(unknown)} are not supported", USAGE)
    rows = [_connection(each) for each in ask("list_connections", virtual_host=host)]
    if formatter == "json":
        columns = columns or ["node", "conn_name"]
        chosen = [{column: row[column] for column in columns} for row in rows]
        return "[\n" + "\n,".join(json.dumps(row, separators=(",", ":")) for row in chosen) + "\n]"
    columns = columns or ["conn_name"]
    lines = ["\t".join(columns)]
    for row in rows:
        row["client_properties"] = _properties(row["client_properties"])
        lines.append("\t".join(row[column] for column in columns))
    return "\n".join(lines)


FORMATTERS = ("table", "json")
COLUMNS = ("node", "conn_name", "pid", "user", "vhost", "client_properties")


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


def _properties(properties: list[list[str]]) -> str:
    """Write properties as the table formatter does; who reads it can't read empty values."""
    pairs = (f'{{"{name}","{value}"}}' for name, _, value in properties if value)
    return f"[{','.join(pairs)}]"


# Erlang that suites evaluate


def _kill(match: re.Match[str]) -> str:
    ask("close_connections", number=int(match[1]), reason="killed by its number")
    return "true"


def _restart(match: re.Match[str]) -> str:
    ask("restart_stream", virtual_host=match[1], name=match[2])
    return "true"


def _request(name: str) -> Action:
    def evaluate(match: re.Match[str]) -> str:
        ask(name, **match.groupdict())
        return "ok"

    return evaluate


def _set_timeout(match: re.Match[str]) -> str:
    ask("set_consumer_update_timeout", timeout_ms=int(match[1]) * _MS)
    return "ok"


EXPRESSIONS: Sequence[tuple[str, Action]] = (
    (r"nodes\(\)", lambda _: "[]"),
    (r"node\(\)", lambda _: NODE),
    (r'exit\(rabbit_misc:string_to_pid\("<\S+?\.(\d+)\.0>"\), *kill\)', _kill),
    (
        r"rabbit_alarm:set_alarm\(\{\{resource_limit, *(?P<resource>\w+), *node\(\)\}, *\[\]\}\)",
        _request("set_alarm"),
    ),
    (
        r"rabbit_alarm:clear_alarm\(\{resource_limit, *(?P<resource>\w+), *node\(\)\}\)",
        _request("clear_alarm"),
    ),
    (r"application:set_env\(rabbitmq_stream, *request_timeout, *(\d+)\)", _set_timeout),
    (r"rabbit_maintenance:drain\(\)", _request("drain")),
    (r"rabbit_maintenance:revive\(\)", _request("revive")),
    (
        r'case rabbit_stream_manager:lookup_leader\(<<"(.+?)">>, *<<"(.+?)">>\) of .* end',
        _restart,
    ),
)


def evaluate(arguments: Arguments) -> str:
    """Do what an Erlang expression would do, if it is one of those known."""
    (text,) = expect(arguments, 1)
    for pattern, action in EXPRESSIONS:
        match = re.fullmatch(pattern, text.strip().rstrip(".").strip())
        if match is not None:
            return action(match)
    raise Failure(f"this expression is not known here: {text}", USAGE)


# What rabbitmq-streams does


def restart_stream(arguments: Arguments) -> str:
    """Let everybody who uses a stream go; it comes back at once."""
    host = option(arguments, "--vhost", "-p", default="/")
    (name,) = expect(arguments, 1)
    ask("restart_stream", virtual_host=host, name=name)
    return f"Restarting stream {name} in vhost {host} on nodes: [{NODE}] ..."


def add_super_stream(arguments: Arguments) -> str:
    """Create a super stream."""
    host = option(arguments, "--vhost", "-p", default="/")
    partitions = option(arguments, "--partitions", default="3")
    keys = option(arguments, "--binding-keys")
    (name,) = expect(arguments, 1)
    wanted: dict[str, Any] = {"partitions": int(partitions)}
    if keys:
        wanted = {"binding_keys": [key.strip() for key in keys.split(",")]}
    ask("add_super_stream", virtual_host=host, name=name, **wanted)
    return f'Adding super stream "{name}" ...'


CTL: dict[str, Command] = {
    "status": status,
    "await_startup": status,
    "eval": evaluate,
    "add_user": add_user,
    "change_password": change_password,
    "clear_password": clear_password,
    "delete_user": named("delete_user", "Deleting user"),
    "set_user_tags": set_user_tags,
    "set_permissions": set_permissions,
    "clear_permissions": clear_permissions,
    "add_vhost": named("add_vhost", "Adding vhost"),
    "delete_vhost": named("delete_vhost", "Deleting vhost"),
    "set_policy": set_policy,
    "clear_policy": clear_policy,
    "list_stream_connections": list_stream_connections,
    "stop_app": plain("stop_app", "Stopping rabbit application on"),
    "start_app": plain("start_app", "Starting"),
}
STREAMS: dict[str, Command] = {
    "restart_stream": restart_stream,
    "add_super_stream": add_super_stream,
    "list_stream_connections": list_stream_connections,
}
TOOLS = {"rabbitmqctl": CTL, "rabbitmq-streams": {**CTL, **STREAMS}}
"""rabbitmqctl knows the commands on streams that list something as well."""

IGNORED = frozenset(("-q", "--quiet", "-s", "--silent", "--no-table-headers", "-l", "--longnames"))


def command_of(tool: str, arguments: Arguments) -> Command:
    """Return the command that is meant. Raises Failure."""
    command = TOOLS[tool].get(arguments[0]) if arguments else None
    if command is None:
        raise Failure(f"{tool} has no such command here: {' '.join(arguments)}", USAGE)
    if command is not list_stream_connections and option(arguments, "--formatter"):
        raise Failure(f"{arguments[0]} takes no --formatter here", USAGE)
    return command


def main(tool: str, arguments: Sequence[str]) -> int:
    """Run one command; return the exit code."""
    left = [argument for argument in arguments if argument not in IGNORED]
    try:
        option(left, "-n", "--node")
        option(left, "-t", "--timeout")
        sys.stdout.write(command_of(tool, left)(left[1:]) + "\n")
    except Failure as failure:
        sys.stderr.write(f"Error: {failure}\n")
        return failure.code
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
