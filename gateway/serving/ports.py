"""Ports that a server may have, in the order of the ready line; each protocol is one row."""

import asyncio
from typing import Final

from gateway.management.port import AdminPort, ManagementPort
from gateway.mewbase.port import MewbasePort
from gateway.pravega.controller_port import ControllerPort
from gateway.pravega.early.port import EarlyPort
from gateway.pravega.port import SegmentPort
from gateway.server.port import Port
from gateway.serving.backend import Backend
from gateway.serving.process import Process
from gateway.settings.model import Settings
from gateway.stream.port import StreamPort

PORTS: Final[tuple[type[Port[Backend]], ...]] = (
    StreamPort,
    ManagementPort,
    AdminPort,
    SegmentPort,
    ControllerPort,
    EarlyPort,
    MewbasePort,
)


def server(settings: Settings, stop: asyncio.Event) -> Process[Backend]:
    """Return a server of streams; as `Process`."""
    return Process(settings, PORTS, Backend, stop)
