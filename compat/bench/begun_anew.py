"""Servers that are begun anew for each row: they have no one address."""

from pathlib import Path
from typing import Final

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.servers import ServerName


class BegunAnew:
    """Stands for the servers of one kind that the steps start."""

    can_restart: Final = False
    management_port: Final = 0
    pids: tuple[int, ...] = ()
    tls_address: Address | None = None

    def __init__(self, name: ServerName, data_folder: Path | None = None) -> None:
        """Stand for them; their data are put beside `data_folder`, which is not made."""
        self.name: ServerName = name
        self.data_folder = data_folder

    @property
    def address(self) -> Address:
        """Raises BenchError: each row has a server of its own."""
        raise BenchError("each row has a server of its own")

    def start(self) -> None:
        """Leave it to the steps."""

    def restart(self, *, evict: bool) -> None:
        """Leave it to the steps."""

    def stop(self) -> None:
        """Leave it to the steps."""
