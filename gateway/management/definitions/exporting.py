"""Definitions in RabbitMQ's form, so that RabbitMQ would import them.

Source: exports of RabbitMQ 4.3 (`GET /api/definitions`).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.rules.arguments import number_of
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchanges import Binding
from gateway.management.definitions.objects import (
    NO_PASSWORD,
    Definitions,
    Host,
    Key,
    Stream,
    has_foreign_hash,
    named,
)
from gateway.management.definitions.sections import OPERATOR_POLICIES, STREAM_ARGUMENTS
from gateway.management.kinds import BINDINGS, EXCHANGES, PERMISSIONS, POLICIES

RABBITMQ_VERSION: Final = "4.3.6"
_QUEUE_ARGUMENTS: Final = {ours: theirs for theirs, ours in STREAM_ARGUMENTS.items()}
_TEXTS: Final = frozenset({"max-age", "queue-leader-locator"})
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def export_definitions(
    definitions: Definitions, *, virtual_host: str | None = None
) -> tuple[dict[str, object], list[str]]:
    """Write definitions as the tree of RabbitMQ's JSON.

    Args:
        definitions: Everything.
        virtual_host: Only this one, in the form of a single virtual host's export.

    Returns:
        The tree, and a warning for everything that RabbitMQ would not get back: also for what JSON
        cannot say, as names that are no UTF-8, which is not in the tree.
    """
    return _Export(definitions, virtual_host).tree()


class _Export:
    def __init__(self, definitions: Definitions, only: str | None) -> None:
        self._definitions = definitions
        self._only = only
        self._warnings: list[str] = []
        self._left_out: set[tuple[str, Key]] = set()

    def tree(self) -> tuple[dict[str, object], list[str]]:
        """Write all of it."""
        head: dict[str, object] = {
            "rabbit_version": RABBITMQ_VERSION,
            "rabbitmq_version": RABBITMQ_VERSION,
            "product_name": "RabbitMQ",
            "product_version": RABBITMQ_VERSION,
        }
        top = self._of_all() if self._only is None else self._of_one(self._only)
        return head | top | self._within_hosts(), self._warnings

    def _of_one(self, virtual_host: str) -> dict[str, object]:
        described = _host(self._definitions.hosts["", virtual_host])
        del described["name"]
        return {
            "rabbitmq_definition_format": "single_virtual_host",
            "original_vhost_name": virtual_host,
            "explanation": f"Definitions of virtual host '{virtual_host}'",
            **described,
        }

    def _of_all(self) -> dict[str, object]:
        definitions = self._definitions
        for user in definitions.users.values():
            if has_foreign_hash(user):
                self._warnings.append(
                    f"user {user.name!r} is written without a password:"
                    " RabbitMQ cannot use its hash"
                )
        return {
            "rabbitmq_definition_format": "cluster",
            "explanation": "Definitions of a Hutch server",
            "vhosts": self._entries("hosts", _host),
            "users": self._entries("users", _user),
            "permissions": self._entries("permissions", PERMISSIONS.outer),
            "topic_permissions": [],
            "global_parameters": [],
        }

    def _entries(
        self, kind: str, written: Callable[[Any], dict[str, object]]
    ) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        for key, thing in self._definitions.of(kind).items():
            if self._only not in (None, key[0]):
                continue
            entry = written(thing)
            entry.pop("vhost", None)
            if self._only is None and kind not in ("hosts", "users"):
                entry["vhost"] = key[0]
            fault = self._fault_of(kind, key, entry)
            if fault:
                self._warnings.append(f"{named(kind, key)} is left out: {fault}")
                self._left_out.add((kind, key))
            else:
                entries.append(entry)
        return entries

    def _fault_of(self, kind: str, key: Key, entry: Mapping[str, object]) -> str:
        if kind == "bindings":
            source, destination = ("exchanges", key[:2]), ("streams", (key[0], key[2]))
            if source in self._left_out or destination in self._left_out:
                return "so is what it binds"
        try:
            _encode(entry).encode()
        except UnicodeEncodeError:
            return "it has bytes that are not UTF-8"
        except ValueError:
            return "it has a number that JSON has not"
        return ""

    def _within_hosts(self) -> dict[str, object]:
        limits: list[dict[str, object]] = []
        for host in self._definitions.hosts.values():
            if host.limits and self._only in (None, host.name):
                parameter = {"component": "vhost-limits", "name": "limits"}
                where = {"vhost": host.name} if self._only is None else {}
                limits.append({**parameter, "value": dict(host.limits), **where})
        return {
            "parameters": [
                *limits,
                *self._entries("operator_policies", _operator_policy),
            ],
            "policies": self._entries("policies", POLICIES.outer),
            "queues": self._entries("streams", _queue),
            "exchanges": self._entries("exchanges", EXCHANGES.outer),
            "bindings": self._entries("bindings", _binding),
        }


def _host(host: Host) -> dict[str, object]:
    about: dict[str, object] = {"description": host.description, "tags": list(host.tags)}
    if host.default_queue_type is not None:
        about["default_queue_type"] = host.default_queue_type
    return {"name": host.name, **about, "metadata": about, "limits": dict(host.limits)}


def _user(user: User) -> dict[str, object]:
    return outer_user(user, None if has_foreign_hash(user) else user.password_hash)


def outer_user(user: User, hashed: PasswordHash | None) -> dict[str, object]:
    """Write a user in RabbitMQ's form, with this hash of its password."""
    return {
        "name": user.name,
        "password_hash": NO_PASSWORD if hashed is None else hashed.text,
        "hashing_algorithm": (Algorithm.SHA256 if hashed is None else hashed.algorithm).value,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _operator_policy(policy: Policy) -> dict[str, object]:
    value = POLICIES.outer(policy)
    return {"component": OPERATOR_POLICIES, "name": value.pop("name"), "value": value}


def _queue(stream: Stream) -> dict[str, object]:
    return {
        "name": stream.name,
        "durable": True,
        "auto_delete": False,
        "type": "stream",
        "arguments": queue_arguments(stream.arguments),
    }


def queue_arguments(arguments: Mapping[str, str]) -> dict[str, object]:
    """Write a stream's arguments as those of a queue."""
    written: dict[str, object] = {"x-queue-type": "stream"}
    for argument, text in arguments.items():
        is_text = argument in _TEXTS
        written[_QUEUE_ARGUMENTS[argument]] = text if is_text else number_of(text)
    return written


def _binding(binding: Binding) -> dict[str, object]:
    in_order = dict.fromkeys(("source", "destination", "destination_type"), "queue")
    return {**in_order, **BINDINGS.outer(binding)}
