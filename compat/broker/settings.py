"""The settings with which the reference broker runs, whatever starts it."""

from __future__ import annotations

from compat.broker.ports import Ports

PLUGINS = (
    "rabbitmq_management",
    "rabbitmq_prometheus",
    "rabbitmq_stream",
    "rabbitmq_stream_management",
)
NODE_NAME = "rabbit@localhost"
ADVERTISED_HOST = "localhost"


def enabled_plugins() -> str:
    """Return the text of the node's `enabled_plugins` file."""
    return f"[{','.join(PLUGINS)}].\n"


def configuration(listening: Ports, *, advertised_port: int, address: str) -> str:
    """Return the text of `rabbitmq.conf`.

    Args:
        listening: The ports as the node itself binds them.
        advertised_port: The stream port that clients are told, which differs from the bound one
            where a container's port is mapped.
        address: The address that every listener is bound to.
    """
    lines = [
        "loopback_users = none",
        f"listeners.tcp.1 = {address}:{listening.amqp}",
        f"stream.listeners.tcp.1 = {address}:{listening.stream}",
        f"stream.advertised_host = {ADVERTISED_HOST}",
        f"stream.advertised_port = {advertised_port}",
        f"management.tcp.ip = {address}",
        f"management.tcp.port = {listening.http}",
        f"prometheus.tcp.ip = {address}",
        f"prometheus.tcp.port = {listening.prometheus}",
        "log.console = true",
        "log.console.level = warning",
        "log.file = false",
    ]
    return "".join(f"{line}\n" for line in lines)
