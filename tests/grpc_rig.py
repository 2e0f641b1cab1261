"""A service of gRPC at a port, in the loop of the test."""

from __future__ import annotations

import asyncio

from gateway.grpc.front import GrpcKind
from gateway.grpc.status import CallService
from gateway.network.listening import bind
from gateway.pravega.segment_access import unlisted
from gateway.server.connections.shared import Shared
from gateway.server.front import ConnectionLimits
from gateway.server.listener import Listener
from gateway.server.loop.schedule import Schedule
from gateway.server.sockets import Sockets

_MIB = 1024 * 1024
LIMITS = ConnectionLimits(
    close_timeout_ms=10_000,
    unconfirmed_max=1_000,
    unconfirmed_resume=500,
    backlog_pause_bytes=256 * 1024,
    backlog_bytes_max=16 * _MIB,
)


def listening(service: CallService, *, login_timeout_ms: int = 10_000) -> Listener:
    """Let clients come in at a port that the system picks; stop the listener when done."""
    loop = asyncio.get_running_loop()
    shared = Shared(
        loop=loop,
        schedule=Schedule(loop),
        receive_buffer=bytearray(_MIB),
        scratch=bytearray(_MIB),
        say=lambda *_: None,
    )
    kind = GrpcKind(
        "controller",
        service,
        LIMITS,
        say=shared.say,
        login_timeout_ms=login_timeout_ms,
        list_connection=unlisted,
    )
    listener = Listener([bind("127.0.0.1", 0)], shared, kind, Sockets(100, shared.say))
    listener.start()
    return listener
