"""Ports that the server of a store alone may have, in the order of the ready line."""

import asyncio
from typing import Final

from gateway.pravega.controller_port import ControllerPort
from gateway.pravega.early.port import EarlyPort
from gateway.pravega.port import SegmentPort
from gateway.server.port import Port
from gateway.serving.process import Process
from gateway.serving.store_backend import StoreBackend, settings_of_a_store
from gateway.settings.model import Settings

STORE_PORTS: Final[tuple[type[Port[StoreBackend]], ...]] = (SegmentPort, ControllerPort, EarlyPort)


def store_server(settings: Settings, stop: asyncio.Event) -> Process[StoreBackend]:
    """Return a server of a store alone; as `Process`."""
    return Process(settings_of_a_store(settings), STORE_PORTS, StoreBackend, stop)
