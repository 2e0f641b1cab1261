"""The TCP ports of one broker: asked for by number, or picked by the system."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports that a broker listens on; 0 asks for any free one.

    RabbitMQ cannot be told "any port and say which", so a free port is found first and handed to
    it. Between the two another process may take it: the caller starts again with fresh ports.
    """

    stream: int = 0
    tls: int = 0
    amqp: int = 0
    amqps: int = 0
    mqtt: int = 0
    http: int = 0
    prometheus: int = 0
    # Erlang's port mapper and the node's distribution port. A broker of its own gets its own
    # mapper, so that two brokers of the same node name can run at once.
    epmd: int = 0
    distribution: int = 0

    def chosen(self) -> Ports:
        """Return the same ports with every 0 replaced by a port that is free right now."""
        names = [field.name for field in fields(self) if getattr(self, field.name) == 0]
        return replace(self, **dict(zip(names, free_ports(len(names)), strict=True)))


def free_ports(count: int) -> list[int]:
    """Return `count` different TCP ports on which nothing listens on the loopback address."""
    with contextlib.ExitStack() as stack:
        # All are held at once, or the system could hand out the same one twice.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
