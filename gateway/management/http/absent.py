"""Paths of RabbitMQ's API that are not here, each with the reason and what to do instead."""

import re
from collections.abc import Mapping
from typing import Final

_TO_LOG_IN: Final = "there is no web page to log in to: requests carry a user and a password"
_MEMORY: Final = "memory is not divided as Erlang's is: /api/nodes/NODE/memory has all of it"

_REASONS: Final[Mapping[str, str]] = {
    "/api/shovels": "there are no shovels: `hutch bridge` carries messages",
    "/api/federation-links": "there is no federation: `hutch pipeline copy` copies streams",
    "/api/queues/quorum/…": "there are no quorum queues: every queue is a stream on this node",
    "/api/queues/…/…/actions": "a stream has no replicas that could be synchronised",
    "/api/rebalance/queues": "there is nothing to rebalance: one node leads every stream",
    "/api/users/…/queues": "streams are not a user's: /api/queues lists all of them",
    "/api/channels/…": "there are no channels: /api/stream/publishers lists publishers",
    "/api/connections/…/sessions": "connections have no sessions: AMQP 1.0 is not spoken",
    "/api/bindings/…/e/…/e/…": "an exchange leads to streams, not to other exchanges",
    "/api/topic-permissions/…": "there are no topic permissions, only /api/permissions",
    "/api/global-parameters/…": "there are no global parameters",
    "/api/feature-flags/…/enable": "there are no feature flags: all that is here is enabled",
    "/api/vhosts/…/deletion/protection": "virtual hosts are not protected from their deletion",
    "/api/vhosts/…/start/…": "a virtual host runs as long as the server does",
    "/api/nodes/…/memory/…": _MEMORY,
    "/api/all-configuration": "this old name is not known: /api/definitions is the same",
    "/api/config/effective": "`hutch config` shows the settings in force",
    "/api/reset": "no statistics are kept that could be reset",
    "/api/login": _TO_LOG_IN,
    "/api/traces": "nothing is traced",
    "/api/trace-files": "nothing is traced",
    "/api/top": "there are no Erlang processes",
    "/metrics": "there are no metrics for Prometheus: /api/overview and /api/queues have numbers",
}
"""Reasons by paths, where `…` stands for one name, and more may follow."""


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace("…", "[^/]+") + "(/.*)?")


_PATTERNS: Final = [(_pattern(path), reason) for path, reason in _REASONS.items()]


def reason_of(path: str) -> str | None:
    """Return why a path is not here; None if RabbitMQ has none like it either."""
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(path)), None)
