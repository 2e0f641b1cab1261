"""Definitions in RabbitMQ's form, so that RabbitMQ would import them.

Source: exports of RabbitMQ 4.3 (`GET /api/definitions`).
"""

from collections.abc import Mapping
from typing import Final

from gateway.broker.access.passwords import Algorithm
from gateway.broker.definitions.objects import (
    NO_PASSWORD,
    Definitions,
    ExchangeObject,
    HostObject,
    StreamObject,
    UserObject,
)
from gateway.broker.definitions.sections import STREAM_ARGUMENTS

RABBITMQ_VERSION: Final = "4.3.6"
_QUEUE_ARGUMENTS: Final = {ours: theirs for theirs, ours in STREAM_ARGUMENTS.items()}
_TEXTS: Final = frozenset({"max-age", "queue-leader-locator"})


def export_definitions(
    definitions: Definitions, *, virtual_host: str | None = None
) -> tuple[dict[str, object], list[str]]:
    """Write definitions as the tree of RabbitMQ's JSON.

    Args:
        definitions: Everything.
        virtual_host: Only this one, in the form of a single virtual host's export.

    Returns:
        The tree, and a warning for everything that RabbitMQ would not get back.
    """
    warnings: list[str] = []
    head: dict[str, object] = {
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "product_version": RABBITMQ_VERSION,
    }
    if virtual_host is not None:
        described = _host(definitions.hosts[virtual_host])
        del described["name"]
        head |= {
            "rabbitmq_definition_format": "single_virtual_host",
            "original_vhost_name": virtual_host,
            "explanation": f"Definitions of virtual host '{virtual_host}'",
            **described,
        }
        return head | _within_hosts(definitions, virtual_host), warnings
    users = [_user(user, warnings) for user in definitions.users.values()]
    return (
        head
        | {
            "rabbitmq_definition_format": "cluster",
            "explanation": "Definitions of a Hutch server",
            "vhosts": [_host(host) for host in definitions.hosts.values()],
            "users": users,
            "permissions": [
                {
                    "user": permission.user,
                    "vhost": permission.virtual_host,
                    "configure": permission.configure,
                    "write": permission.write,
                    "read": permission.read,
                }
                for permission in definitions.permissions.values()
            ],
            "topic_permissions": [],
            "global_parameters": [],
        }
        | _within_hosts(definitions, None),
        warnings,
    )


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


def _user(user: UserObject, warnings: list[str]) -> dict[str, object]:
    if user.has_foreign_hash:
        warnings.append(
            f"user {user.name!r} is written without a password: RabbitMQ cannot use its hash"
        )
    return {
        "name": user.name,
        "password_hash": NO_PASSWORD if user.has_foreign_hash else user.password_hash,
        "hashing_algorithm": user.algorithm or Algorithm.SHA256.value,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _within_hosts(definitions: Definitions, only: str | None) -> dict[str, object]:
    def placed(virtual_host: str, fields: Mapping[str, object]) -> dict[str, object]:
        return dict(fields) if only is not None else {**fields, "vhost": virtual_host}

    policies = [
        placed(
            policy.virtual_host,
            {
                "name": policy.name,
                "pattern": policy.pattern,
                "apply-to": policy.apply_to,
                "definition": dict(policy.definition),
                "priority": policy.priority,
            },
        )
        for policy in definitions.policies.values()
        if only in (None, policy.virtual_host)
    ]
    return {
        "parameters": [
            placed(
                host.name,
                {"component": "vhost-limits", "name": "limits", "value": dict(host.limits)},
            )
            for host in definitions.hosts.values()
            if host.limits and only in (None, host.name)
        ],
        "policies": policies,
        "queues": [
            placed(stream.virtual_host, _queue(stream))
            for stream in definitions.streams.values()
            if only in (None, stream.virtual_host)
        ],
        "exchanges": [
            placed(exchange.virtual_host, _exchange(exchange))
            for exchange in definitions.exchanges.values()
            if only in (None, exchange.virtual_host)
        ],
        "bindings": [
            placed(
                binding.virtual_host,
                {
                    "source": binding.source,
                    "destination": binding.destination,
                    "destination_type": "queue",
                    "routing_key": binding.routing_key,
                    "arguments": dict(binding.arguments),
                },
            )
            for binding in definitions.bindings.values()
            if only in (None, binding.virtual_host)
        ],
    }


def _queue(stream: StreamObject) -> dict[str, object]:
    arguments: dict[str, object] = {"x-queue-type": "stream"}
    for name, text in stream.arguments.items():
        arguments[_QUEUE_ARGUMENTS[name]] = text if name in _TEXTS else int(text)
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
