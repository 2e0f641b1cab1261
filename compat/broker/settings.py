"""The settings with which the reference broker runs, whatever starts it."""

from __future__ import annotations

from compat.broker.ports import Ports

PLUGINS = (
    "rabbitmq_auth_mechanism_ssl",
    "rabbitmq_management",
    "rabbitmq_mqtt",
    "rabbitmq_prometheus",
    "rabbitmq_shovel",
    "rabbitmq_stream",
    "rabbitmq_stream_management",
)
NODE_NAME = "rabbit@localhost"
ADVERTISED_HOST = "localhost"


def enabled_plugins() -> str:
    """Return the text of the node's `enabled_plugins` file."""
    return f"[{','.join(PLUGINS)}].\n"


def configuration(
    listening: Ports, *, advertised_port: int, address: str, certificates: str
) -> str:
    """Return the text of `rabbitmq.conf`.

    Args:
        listening: The ports as the node itself binds them.
        advertised_port: The stream port that clients are told, which differs from the bound one
            where a container's port is mapped.
        address: The address that every listener is bound to.
        certificates: The folder of certificates as the node itself sees it.
    """
    lines = [
        "loopback_users = none",
        f"listeners.tcp.1 = {address}:{listening.amqp}",
        f"listeners.ssl.1 = {address}:{listening.amqps}",
        f"mqtt.listeners.tcp.1 = {address}:{listening.mqtt}",
        f"stream.listeners.tcp.1 = {address}:{listening.stream}",
        f"stream.advertised_host = {ADVERTISED_HOST}",
        f"stream.advertised_port = {advertised_port}",
        f"stream.listeners.ssl.1 = {address}:{listening.tls}",
        f"stream.advertised_tls_host = {ADVERTISED_HOST}",
        f"stream.advertised_tls_port = {listening.tls}",
        f"ssl_options.cacertfile = {certificates}/ca.pem",
        f"ssl_options.certfile = {certificates}/server.pem",
        f"ssl_options.keyfile = {certificates}/server-key.pem",
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = false",
        "ssl_options.versions.1 = tlsv1.3",
        "ssl_options.versions.2 = tlsv1.2",
        "auth_mechanisms.1 = PLAIN",
        "auth_mechanisms.2 = AMQPLAIN",
        "auth_mechanisms.3 = ANONYMOUS",
        "auth_mechanisms.4 = EXTERNAL",
        f"management.tcp.ip = {address}",
        f"management.tcp.port = {listening.http}",
        f"prometheus.tcp.ip = {address}",
        f"prometheus.tcp.port = {listening.prometheus}",
        "log.console = true",
        "log.console.level = warning",
        "log.file = false",
    ]
    return "".join(f"{line}\n" for line in lines)
