"""Changing users, permissions and virtual hosts of either server, in the middle of a script.

A change is given in Hutch's words, those of its admin socket; RabbitMQ is asked over HTTP.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from compat.broker import RunningBroker

SALT = b"salt"
SOCKET_NAME = "admin.sock"
ANSWER_TIMEOUT_S = 30.0


class ChangeFailed(Exception):
    """A server did not make a change that the script needs."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change; `~` in its texts stands for the run.

    Attributes:
        name: Of the request, as `add_user`.
        arguments: By name.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def of_run(self, run: str) -> Change:
        """Return the change with the run put in."""
        return Change(self.name, json.loads(json.dumps(self.arguments).replace("~", run)))

    def undone(self) -> Change | None:
        """Return what takes away what this one made, None if it made nothing of its own."""
        if self.name == "add_user":
            return Change("delete_user", {"name": self.arguments["name"]})
        if self.name == "add_vhost":
            return Change("delete_vhost", {"name": self.arguments["name"]})
        if self.name == "add_exchange":
            names = ("virtual_host", "name")
            return Change("delete_exchange", {each: self.arguments[each] for each in names})
        if self.name in ("set_policy", "set_operator_policy"):
            cleared = self.name.replace("set", "clear")
            return Change(cleared, {"name": self.arguments["name"]})
        return None


def hashed(password: str) -> str:
    """Return the hash of a password; none for an empty one, which stands for no password."""
    if not password:
        return ""
    return base64.b64encode(SALT + hashlib.sha256(SALT + password.encode()).digest()).decode()


class Administration(Protocol):
    """Makes changes on one server."""

    def make(self, change: Change) -> None:
        """Make a change; it acts when this returns. Raises ChangeFailed."""
        ...


class HutchAdministration:
    """Asks the socket in a data directory."""

    def __init__(self, data_directory: Path) -> None:
        self.path = data_directory / SOCKET_NAME

    def make(self, change: Change) -> None:
        """Ask, and await the answer."""
        request = {"request": change.name, "arguments": change.arguments}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(str(self.path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(connection.makefile("rb").readline())
        if "error" in answer:
            raise ChangeFailed(f"{change}: {answer['error']}")


class RabbitMQAdministration:
    """Asks the management API."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker

    def make(self, change: Change) -> None:
        """Ask, and await the answer."""
        requests = HTTP_REQUESTS[change.name](dict(change.arguments))
        for method, path, body in requests:
            try:
                self.broker.management(path, method, body)
            except OSError as error:
                raise ChangeFailed(f"{change}: {error}") from error


HttpRequest = tuple[str, str, object]


def put_user(given: Mapping[str, Any]) -> list[HttpRequest]:
    """Create or replace a user."""
    body = {
        "password_hash": given["password_hash"],
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "",
    }
    return [("PUT", f"users/{named(given['name'])}", body)]


def set_permissions(given: Mapping[str, Any]) -> list[HttpRequest]:
    """Say what a user may do."""
    body = {right: given[right] for right in ("configure", "write", "read")}
    return [("PUT", permissions_path(given), body)]


def set_limits(kind: str, given: Mapping[str, Any]) -> list[HttpRequest]:
    """Set limits, one request each."""
    path = f"{kind}-limits/{named(given['name'])}"
    return [("PUT", f"{path}/{name}", {"value": value}) for name, value in given["limits"].items()]


def put_exchange(given: Mapping[str, Any]) -> list[HttpRequest]:
    """Make an exchange."""
    body = {each: given[each] for each in given.keys() - {"name", "virtual_host"}}
    return [("PUT", exchange_path(given), {"durable": True} | body)]


def bind(given: Mapping[str, Any]) -> list[HttpRequest]:
    """Bind a stream to an exchange."""
    source, destination = named(given["source"]), named(given["destination"])
    path = f"bindings/{named(given['virtual_host'])}/e/{source}/q/{destination}"
    return [("POST", path, {each: given[each] for each in ("routing_key", "arguments")})]


def put_policy(given: Mapping[str, Any], kind: str = "policies") -> list[HttpRequest]:
    """Make or replace a policy."""
    body = {
        "pattern": given["pattern"],
        "definition": given["definition"],
        "priority": given.get("priority", 0),
        "apply-to": given.get("apply_to", "streams"),
    }
    return [("PUT", policy_path(given, kind), body)]


def policy_path(given: Mapping[str, Any], kind: str = "policies") -> str:
    """Return where a policy is."""
    return f"{kind}/{named(given.get('virtual_host', '/'))}/{named(given['name'])}"


def exchange_path(given: Mapping[str, Any]) -> str:
    """Return where an exchange is."""
    return f"exchanges/{named(given['virtual_host'])}/{named(given['name'])}"


def permissions_path(given: Mapping[str, Any]) -> str:
    """Return where the permissions of a user in a virtual host are."""
    return f"permissions/{named(given['virtual_host'])}/{named(given['user'])}"


def named(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


OPERATORS = "operator-policies"
HTTP_REQUESTS: dict[str, Callable[[dict[str, Any]], list[HttpRequest]]] = {
    "add_user": put_user,
    "change_password": put_user,
    "delete_user": lambda given: [("DELETE", f"users/{named(given['name'])}", None)],
    "set_permissions": set_permissions,
    "clear_permissions": lambda given: [("DELETE", permissions_path(given), None)],
    "add_vhost": lambda given: [("PUT", f"vhosts/{named(given['name'])}", {})],
    "delete_vhost": lambda given: [("DELETE", f"vhosts/{named(given['name'])}", None)],
    "add_exchange": put_exchange,
    "delete_exchange": lambda given: [("DELETE", exchange_path(given), None)],
    "bind": bind,
    "set_policy": put_policy,
    "clear_policy": lambda given: [("DELETE", policy_path(given), None)],
    "set_operator_policy": lambda given: put_policy(given, OPERATORS),
    "clear_operator_policy": lambda given: [("DELETE", policy_path(given, OPERATORS), None)],
    "set_user_limits": lambda given: set_limits("user", given),
    "set_vhost_limits": lambda given: set_limits("vhost", given),
}
