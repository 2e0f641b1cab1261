"""The real RabbitMQ as a server under test."""

from pathlib import Path

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.servers import RABBITMQ, ServerName, evict_files
from compat.bench.usage import listeners_on
from compat.broker import BrokerUnavailable, Ports, RunningBroker, obtain
from compat.broker.records import folder_of


class Rabbitmq:
    """A broker that `compat.broker` starts, or one that runs already.

    It is never restarted: the ways to start one remove its data at the end, and its readers
    check nothing after a restart that they would not check before.
    """

    can_restart = False
    name: ServerName = RABBITMQ

    def __init__(self, given: tuple[str, int] | None) -> None:
        """Prepare the broker.

        Args:
            given: Host and port of one that runs; None to get one by `compat.broker`.
        """
        self._given = given
        self._broker: RunningBroker | None = None

    @property
    def _running(self) -> RunningBroker:
        assert self._broker is not None
        return self._broker

    @property
    def address(self) -> Address:
        return Address(*self._running.stream_address)

    @property
    def tls_address(self) -> Address | None:
        broker = self._running
        if broker.certificates is None or not broker.ports.tls:
            return None
        return Address(broker.host, broker.ports.tls, ca=str(broker.certificates.ca))

    @property
    def pids(self) -> tuple[int, ...]:
        if self._running.pid is not None:
            return (self._running.pid,)
        return tuple(listeners_on(self._running.ports.stream))

    @property
    def management_port(self) -> int:
        return self._running.ports.http

    @property
    def data_folder(self) -> Path | None:
        return folder_of(self._running.name) / "home" if self._running.way == "chroot" else None

    def start(self) -> None:
        """Start the broker, or take the one that was given.

        Raises:
            BenchError: There is no way to one here.
        """
        if self._broker is not None:
            return
        if self._given is not None:
            host, port = self._given
            self._broker = RunningBroker("given", host, Ports(stream=port))
            return
        try:
            self._broker = obtain()
        except BrokerUnavailable as error:
            raise BenchError(str(error)) from error

    def restart(self, *, evict: bool) -> None:
        """Drop its files from the page cache if asked, and leave it running."""
        if evict and self.data_folder is not None:
            evict_files(self.data_folder)

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.stop()
            self._broker = None
