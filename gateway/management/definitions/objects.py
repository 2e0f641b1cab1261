"""Definitions: the broker's own objects by kind and key, without a server."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gateway.broker.access.model import Permission, User
from gateway.broker.access.passwords import RABBITMQ_ALGORITHMS
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchange import SUPER_STREAM
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.definitions.errors import shown

Key: TypeAlias = tuple[str, ...]
"""The virtual host, empty for users and virtual hosts; the name; the rest of a binding."""

NO_PASSWORD: Final = ""
"""The hash of a user that cannot log in with a password."""

KINDS: Final[Mapping[str, str]] = {
    "hosts": "virtual host",
    "users": "user",
    "permissions": "permission",
    "policies": "policy",
    "operator_policies": "operator policy",
    "streams": "stream",
    "exchanges": "exchange",
    "bindings": "binding",
}
"""The kinds with their names in messages, in the order in which they have to be made."""


@dataclass(frozen=True, slots=True)
class Host:
    """A virtual host with its limits."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream with its arguments as a Create carries them."""

    name: str
    arguments: Mapping[str, str]


@dataclass(slots=True)
class Definitions:
    """Objects by kind and key."""

    hosts: dict[Key, Host] = field(default_factory=dict)
    users: dict[Key, User] = field(default_factory=dict)
    permissions: dict[Key, Permission] = field(default_factory=dict)
    policies: dict[Key, Policy] = field(default_factory=dict)
    operator_policies: dict[Key, Policy] = field(default_factory=dict)
    streams: dict[Key, Stream] = field(default_factory=dict)
    exchanges: dict[Key, Exchange] = field(default_factory=dict)
    bindings: dict[Key, Binding] = field(default_factory=dict)

    def of(self, kind: str) -> dict[Key, Any]:
        """Return the objects of one of KINDS."""
        things: dict[Key, Any] = getattr(self, kind)
        return things


def binding_key(virtual_host: str, binding: Binding) -> Key:
    """Return the key of a binding: all that it says."""
    arguments = json.dumps(dict(binding.arguments), sort_keys=True)
    return virtual_host, binding.source, binding.destination, binding.routing_key, arguments


def has_foreign_hash(user: User) -> bool:
    """Return whether a password is kept in a form that RabbitMQ lacks, and is not given away."""
    hashed = user.password_hash
    return hashed is not None and hashed.algorithm not in RABBITMQ_ALGORITHMS


def is_super_stream(exchange: Exchange | None) -> bool:
    """Return whether there is an exchange whose bindings are partitions."""
    return exchange is not None and exchange.arguments.get(SUPER_STREAM) is True


def place_of(kind: str, key: Key) -> tuple[str, str]:
    """Return the virtual host and the name under which a person looks for an object."""
    host, name = key[:2]
    return host, f"{name} → {key[2]}" if kind == "bindings" else name


def named(kind: str, key: Key) -> str:
    """Name an object in a message."""
    host, name = key[:2]
    word = {"permissions": "permission of", "bindings": "binding from"}.get(kind, KINDS[kind])
    text = f"{word} {shown(name)}"
    if kind == "bindings":
        text += f" to {shown(key[2])}"
    return text if kind in ("hosts", "users") else f"{text} in virtual host {shown(host)}"
