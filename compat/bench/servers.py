"""A server under test, as the benchmark sees it: an address, processes, and a way to restart."""

import os
from pathlib import Path
from typing import Final, Literal, Protocol

from compat.bench.connection import Address, Connection

ServerName = Literal[
    "hutch_os", "hutch_disk", "rabbitmq", "pravega", "acknowledging", "cluster", "nats"
]

HUTCH_OS: Final = "hutch_os"
HUTCH_DISK: Final = "hutch_disk"
RABBITMQ: Final = "rabbitmq"
PRAVEGA: Final = "pravega"
ACKNOWLEDGING: Final = "acknowledging"
CLUSTER: Final = "cluster"
NATS: Final = "nats"
TITLES: Final[dict[ServerName, str]] = {
    HUTCH_OS: "Hutch `os`",
    HUTCH_DISK: "Hutch `disk`",
    RABBITMQ: "RabbitMQ",
    PRAVEGA: "Pravega",
    ACKNOWLEDGING: "acknowledging only",
    CLUSTER: "Hutch, a cluster",
    NATS: "nats-py",
}
STREAM_SERVERS: Final[frozenset[ServerName]] = frozenset({HUTCH_OS, HUTCH_DISK, RABBITMQ})
WIRE_SERVERS: Final[frozenset[ServerName]] = frozenset(
    {HUTCH_OS, HUTCH_DISK, PRAVEGA, ACKNOWLEDGING}
)
CLUSTER_SERVERS: Final[frozenset[ServerName]] = frozenset({HUTCH_DISK, CLUSTER, NATS})


class Server(Protocol):
    """One of the servers that are measured in turn."""

    @property
    def name(self) -> ServerName:
        """Name of the server."""

    @property
    def address(self) -> Address:
        """Address of its port; known once it has been started."""

    @property
    def tls_address(self) -> Address | None:
        """Address of its TLS port; None if that is not known."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Its outermost processes; empty where it runs on another machine."""

    @property
    def management_port(self) -> int:
        """Port of its management API; 0 if that is not known."""

    @property
    def data_folder(self) -> Path | None:
        """Its data directory; None if that is not known."""

    @property
    def can_restart(self) -> bool:
        """Return whether `restart` keeps the data, so that a drain after it makes sense."""

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens if it runs."""

    def restart(self, *, evict: bool) -> None:
        """Stop and start it on the same data, in between with an empty page cache if asked."""

    def stop(self) -> None:
        """End it and remove its data."""


def properties_of(address: Address) -> dict[str, str]:
    """Return what a server says of itself, such as `product` and `version`."""
    with Connection(address) as connection:
        return connection.server_properties


def evict_files(folder: Path) -> None:
    """Drop a folder's files from the page cache, so that they must be read from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)  # dirty pages cannot be dropped
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
