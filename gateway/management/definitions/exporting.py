"""Definitions in RabbitMQ's form, so that RabbitMQ would import them.

Source: exports of RabbitMQ 4.3 (`GET /api/definitions`).
"""

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Final, TypeVar

from gateway.broker.access.passwords import Algorithm
from gateway.broker.arguments import number_of
from gateway.management.definitions.objects import (
    NO_PASSWORD,
    BindingObject,
    DefinedObject,
    Definitions,
    ExchangeObject,
    HostObject,
    OperatorPolicyObject,
    PermissionObject,
    PolicyObject,
    StreamObject,
    UserObject,
    named,
)
from gateway.management.definitions.sections import OPERATOR_POLICIES, STREAM_ARGUMENTS

RABBITMQ_VERSION: Final = "4.3.6"
_QUEUE_ARGUMENTS: Final = {ours: theirs for theirs, ours in STREAM_ARGUMENTS.items()}
_TEXTS: Final = frozenset({"max-age", "queue-leader-locator"})
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

Thing = TypeVar("Thing", bound=DefinedObject)


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
        self._left_out: set[Hashable] = set()

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
        described = _host(self._definitions.hosts[virtual_host])
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
            if user.has_foreign_hash:
                self._warnings.append(
                    f"user {user.name!r} is written without a password:"
                    " RabbitMQ cannot use its hash"
                )
        return {
            "rabbitmq_definition_format": "cluster",
            "explanation": "Definitions of a Hutch server",
            "vhosts": self._entries(definitions.hosts, _host),
            "users": self._entries(definitions.users, _user),
            "permissions": self._entries(definitions.permissions, _permission),
            "topic_permissions": [],
            "global_parameters": [],
        }

    def _entries(
        self, things: Mapping[Hashable, Thing], written: Callable[[Thing], dict[str, object]]
    ) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = []
        for key, thing in things.items():
            entry = written(thing)
            if not isinstance(thing, HostObject | UserObject):
                if self._only not in (None, thing.virtual_host):
                    continue
                if self._only is None:
                    entry["vhost"] = thing.virtual_host
            fault = self._fault_of(thing, entry)
            if fault:
                self._warnings.append(f"{named(thing)} is left out: {fault}")
                self._left_out.add((type(thing), key))
            else:
                entries.append(entry)
        return entries

    def _fault_of(self, thing: DefinedObject, entry: Mapping[str, object]) -> str:
        if isinstance(thing, BindingObject):
            source = (ExchangeObject, (thing.virtual_host, thing.source))
            destination = (StreamObject, (thing.virtual_host, thing.destination))
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
        definitions = self._definitions
        limits: list[dict[str, object]] = []
        for host in definitions.hosts.values():
            if host.limits and self._only in (None, host.name):
                parameter = {"component": "vhost-limits", "name": "limits"}
                where = {"vhost": host.name} if self._only is None else {}
                limits.append({**parameter, "value": dict(host.limits), **where})
        return {
            "parameters": [
                *limits,
                *self._entries(definitions.operator_policies, _operator_policy),
            ],
            "policies": self._entries(definitions.policies, _policy),
            "queues": self._entries(definitions.streams, _queue),
            "exchanges": self._entries(definitions.exchanges, _exchange),
            "bindings": self._entries(definitions.bindings, _binding),
        }


def _host(host: HostObject) -> dict[str, object]:
    metadata: dict[str, object] = {"description": host.description, "tags": list(host.tags)}
    if host.default_queue_type is not None:
        metadata["default_queue_type"] = host.default_queue_type
    return {
        "name": host.name,
        "description": host.description,
        "tags": list(host.tags),
        **(
            {}
            if host.default_queue_type is None
            else {"default_queue_type": host.default_queue_type}
        ),
        "metadata": metadata,
        "limits": dict(host.limits),
    }


def _user(user: UserObject) -> dict[str, object]:
    return {
        "name": user.name,
        "password_hash": NO_PASSWORD if user.has_foreign_hash else user.password_hash,
        "hashing_algorithm": user.algorithm or Algorithm.SHA256.value,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _permission(permission: PermissionObject) -> dict[str, object]:
    return {
        "user": permission.user,
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    }


def _policy(policy: PolicyObject) -> dict[str, object]:
    return {
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }


def _operator_policy(policy: OperatorPolicyObject) -> dict[str, object]:
    value = _policy(policy)
    return {"component": OPERATOR_POLICIES, "name": value.pop("name"), "value": value}


def _queue(stream: StreamObject) -> dict[str, object]:
    arguments: dict[str, object] = {"x-queue-type": "stream"}
    for name, text in stream.arguments.items():
        arguments[_QUEUE_ARGUMENTS[name]] = text if name in _TEXTS else number_of(text)
    return {
        "name": stream.name,
        "durable": True,
        "auto_delete": False,
        "type": "stream",
        "arguments": arguments,
    }


def _exchange(exchange: ExchangeObject) -> dict[str, object]:
    return {
        "name": exchange.name,
        "type": exchange.type,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": dict(exchange.arguments),
    }


def _binding(binding: BindingObject) -> dict[str, object]:
    return {
        "source": binding.source,
        "destination": binding.destination,
        "destination_type": "queue",
        "routing_key": binding.routing_key,
        "arguments": dict(binding.arguments),
    }
