"""The settings that policies may hold: the values of each, and those that streams do not have.

Source: RabbitMQ 4.3, asked with each of them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from gateway.broker.errors import UnusableValue

DEFINED: Final = (
    "max-length-bytes",
    "max-age",
    "stream-max-segment-size-bytes",
    "stream-filter-size-bytes",
)
"""The keys of a definition that mean something for a stream."""

_RETRIES: Final = ("all", "failed", "returned", "disabled")

Check: TypeAlias = Callable[[object], bool]


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    return type(value) is int  # a bool is an int to isinstance


def _from(least: int) -> Check:
    return lambda value: type(value) is int and value >= least


def _one_of(*choices: object) -> Check:
    return lambda value: type(value) in (str, int) and value in choices


_OTHERS: Final[Mapping[str, tuple[str, Check]]] = {
    "alternate-exchange": ("alternate exchange name", _text),
    "consumer-disconnected-timeout": ("consumer disconnected timeout", _from(0)),
    "consumer-timeout": ("consumer timeout", _from(0)),
    "dead-letter-exchange": ("dead letter exchange name", _text),
    "dead-letter-routing-key": ("dead letter routing key", _text),
    "dead-letter-strategy": ("dead letter strategy", _one_of("at-most-once", "at-least-once")),
    "delayed-retry-max": ("delayed retry maximum delay", _from(1)),
    "delayed-retry-min": ("delayed retry minimum delay", _from(1)),
    "delayed-retry-type": ("delayed retry type", _one_of(*_RETRIES)),
    "delivery-limit": ("delivery limit", _number),
    "expires": ("queue expiry", _from(1)),
    "initial-cluster-size": ("cluster size", _from(0)),
    "max-in-memory-bytes": ("maximum memory in bytes", _from(0)),
    "max-in-memory-length": ("maximum memory in bytes", _from(0)),
    "max-length": ("maximum length", _from(0)),
    "message-ttl": ("message TTL", _from(0)),
    "overflow": (
        "overflow value",
        _one_of("drop-head", "reject-publish", "reject-publish-dlx"),
    ),
    "queue-leader-locator": (
        "queue leader locator value",
        _one_of("client-local", "random", "least-leaders", "balanced"),
    ),
    "queue-mode": ("queue-mode value", _one_of("default", "lazy")),
    "queue-version": ("queue-version value", _one_of(1, 2)),
    "target-group-size": ("qq target count value", _from(1)),
}
"""Names of the others in a refusal, and the values that they may have."""

KNOWN: Final = frozenset(DEFINED) | _OTHERS.keys()
"""The keys that RabbitMQ's own policies may have; its plugins bring more."""

KNOWN_TO_OPERATORS: Final = frozenset(
    (
        "delayed-retry-max",
        "delayed-retry-min",
        "delayed-retry-type",
        "delivery-limit",
        "expires",
        "max-in-memory-bytes",
        "max-in-memory-length",
        "max-length",
        "max-length-bytes",
        "message-ttl",
        "overflow",
        "queue-version",
        "target-group-size",
    )
)
"""The keys that operators' policies may have; of these only max-length-bytes is one of streams."""

NOT_OF_STREAMS: Final = frozenset(
    (
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "dead-letter-strategy",
        "delivery-limit",
        "expires",
        "max-in-memory-bytes",
        "max-in-memory-length",
        "max-length",
        "message-ttl",
        "overflow",
        "queue-mode",
        "target-group-size",
        # Of older versions, whose definitions are imported.
        "ha-mode",
        "ha-params",
        "ha-promote-on-failure",
        "ha-promote-on-shutdown",
        "ha-sync-mode",
        "max-priority",
        "queue-master-locator",
        "single-active-consumer",
    )
)
"""A policy that has one of these applies to no stream, whatever else it says."""


def not_of_streams(definition: Mapping[str, Any]) -> list[str]:
    """Return the keys that keep a policy from all streams."""
    return sorted(definition.keys() & NOT_OF_STREAMS)


def check_known(definition: Mapping[str, Any], known: frozenset[str] = KNOWN) -> None:
    """Refuse keys that mean nothing in RabbitMQ, as one misspelt. Raises Unusable."""
    unknown = sorted(definition.keys() - known)
    if unknown:
        raise UnusableValue(f"{', '.join(unknown)[:200]} are not recognised policy settings")


def merged(policy: Mapping[str, Any], of_operators: Mapping[str, Any]) -> dict[str, Any]:
    """Return two definitions as one: of a limit that both have, the smaller."""
    together = {**policy, **of_operators}
    for key in policy.keys() & of_operators.keys():
        both = policy[key], of_operators[key]
        if all(type(value) is int for value in both):
            together[key] = min(both)
    return together


def check_values(definition: Mapping[str, Any]) -> None:
    """Refuse values that no queue could have; those of streams are judged where they are read.

    Raises:
        Unusable: It names the key and the value.
    """
    for key in sorted(definition.keys() & _OTHERS.keys()):
        called, is_right = _OTHERS[key]
        if not is_right(definition[key]):
            given = json.dumps(definition[key])[:100]
            raise UnusableValue(f"{key}: {given} is not a valid {called}")
    kind = definition.get("delayed-retry-type", "disabled")
    if kind != "disabled" and "delayed-retry-min" not in definition:
        raise UnusableValue(f"delayed-retry-min is required when delayed-retry-type is {kind}")
