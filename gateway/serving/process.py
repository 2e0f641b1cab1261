"""The process of a server: its limits, its event loop, its start, its stop, and its exit code."""

import asyncio
import ctypes
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from gateway.network.addresses import shown
from gateway.network.listening import take_all
from gateway.server.context import ServerContext
from gateway.server.port import Port
from gateway.serving.collector import Collector
from gateway.serving.served_store import ServedStore
from gateway.settings.model import Settings
from store.errors import StoreError

log = logging.getLogger(__name__)

_STORED_S: Final = 5.0
"""Time that a graceful stop has to store all that was taken."""
_CLOSED_S: Final = 3.0
"""Time that it has to close the store. With the default time of clients it is below 10 s in all."""

_SWITCH_S: Final = 0.0002
"""Longest time that a busy event loop keeps the interpreter from the thread that commits: Python's
own 5 ms would be the price of every sync under load."""
_PR_SET_TIMERSLACK: Final = 29
_SLACK_NS: Final = 1_000
"""The system adds up to 50 µs to a sleep otherwise, half of the loop's rests."""
_AGAIN: Final = 75
"""Exit code of a member from which another one has taken over: started again, it follows."""
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def _raise_descriptor_limit() -> None:
    """Every stream and connection holds descriptors; take as many as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _let_sleeps_end_in_time() -> None:
    """Have the system wake this thread when it should, where it lets us say so (Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _SLACK_NS, 0, 0, 0)


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415  # not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class ProcessBackend(Protocol):
    """Everything behind the ports: a store, and all that is kept in it."""

    @property
    def served(self) -> ServedStore:
        """The store."""
        ...

    @property
    def context(self) -> ServerContext:
        """State that the ports share."""
        ...

    async def open(self) -> None:
        """Open all that is kept in the store, which is open. Raises ConfigError or StoreError."""
        ...

    def begin(self) -> None:
        """Begin the work that goes on beside the clients."""
        ...

    def end(self) -> None:
        """End it."""
        ...

    async def settle(self) -> None:
        """Wait until everything that was taken is stored. Raises StoreError."""
        ...


B = TypeVar("B", bound=ProcessBackend)


class Process(Generic[B]):
    """A server: its backend, its ports, its start and its graceful end.

    Attributes:
        backend: Everything behind the ports.
    """

    def __init__(
        self,
        settings: Settings,
        ports: Iterable[type[Port[B]]],
        backend: Callable[[Settings, asyncio.AbstractEventLoop, asyncio.Event], B],
        stop: asyncio.Event,
    ) -> None:
        """Read the files that the settings name; blocks. On the event loop.

        Args:
            settings: All settings.
            ports: The ports that there may be; the settings say which there are.
            backend: Makes what is behind them.
            stop: Asks the server to stop.

        Raises:
            ConfigError: A setting is wrong, or something that it needs is missing.
        """
        self._settings = settings
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self.backend = backend(settings, self._loop, stop)
        made = (each.configured(settings) for each in ports)
        self._ports = [each for each in made if each is not None]
        self._is_bound = False
        for port in self._ports:
            port.context = self.backend.context
            port.context.ports.append(port)

    @property
    def ready(self) -> str:
        """The text of the ready line: the addresses, and where the data is."""
        words = [each.ready for each in self._ports]
        store = self._settings.store
        words.append(f"data={self.backend.served.directory.path}")
        words.append(f"durability={store.durability.value}")
        if further := [each for port in self._ports for each in port.further_addresses]:
            words.append(f"also={','.join(shown(*each) for each in further)}")
        return " ".join(filter(None, words))

    async def open(self) -> bool:
        """Open the store; a member of a cluster first follows the log, until it takes over.

        Blocks, but for the following.

        Returns:
            False: it was asked to stop meanwhile.

        Raises ConfigError or StoreError.
        """
        served = self.backend.served
        served.take()
        if served.cluster is not None:
            self._bind()
            for port in self._ports:
                await port.wait(self.backend)
            if not await served.follow():
                return False
        served.open()
        return True

    def _bind(self) -> None:
        """Take the addresses, once. Raises ConfigError."""
        if not self._is_bound:
            take_all(port.bind for port in self._ports)
            self._is_bound = True

    async def start(self) -> None:
        """Open the backend, take the addresses, let clients in. Raises ConfigError, StoreError."""
        await self.backend.open()
        for port in self._ports:
            await port.prepare(self.backend)
        self._bind()
        self.backend.served.directory.keep()  # from here on clients may store something
        for port in self._ports:
            await port.serve(self.backend)
        self.backend.begin()

    async def abandon(self) -> None:
        """Close all that a failed start has opened; leave nothing behind of a first one."""
        await self._end()
        self.backend.served.unmake()

    async def run(self) -> int:
        """Serve until asked to stop, or until the store fails; return the exit code."""
        await self._stop.wait()
        is_clean = await self.stop()
        if self.backend.served.is_fenced:
            return _AGAIN
        return 0 if is_clean and self.backend.served.failure is None else 1

    async def stop(self) -> bool:
        """Store all that was taken, confirm, close; return False if the next start has to recover.

        A client has the `close_timeout_ms` of its protocol to read what is queued for it. By then
        everything is stored, so one that does not read is cut off from a clean stop.
        """
        log.info("stopping")
        is_clean = await self._end()
        log.info("stopped clean=%s", is_clean)
        return is_clean

    async def _end(self) -> bool:
        """Do each step of the end, whatever became of those before; return whether all was done."""
        backend, listeners = self.backend, self.backend.context.listeners
        steps = _Steps()
        backend.end()
        for port in self._ports:
            port.stop_accepting()
        listeners.stop_reading()
        stored_by_s = self._loop.time() + _STORED_S
        for port in self._ports:
            await steps.do(port.settle(), stored_by_s)
        await steps.do(backend.settle(), stored_by_s)
        await listeners.end()
        for port in self._ports:
            await port.close()
        await steps.do(backend.served.close(), self._loop.time() + _CLOSED_S)
        return steps.are_done()

    def reload(self) -> None:
        """Take changed files: certificates, the only ones that can change while it serves."""
        endpoints = [each for port in self._ports for each in port.over_tls]
        if not endpoints:
            log.info("there are no tls files to reload")
        for each in endpoints:
            each.reload()


class _Steps:
    """Steps of a stop: each has its time, and one that fails leaves the next ones to be done."""

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    async def do(self, step: Coroutine[Any, Any, None], end_s: float) -> None:
        """Do a step until `end_s` of the loop's time; only the first failure is told."""
        try:
            async with asyncio.timeout_at(end_s):
                await step
        except (TimeoutError, StoreError) as error:
            self._failure = self._failure or error
        except Exception as error:  # the edge of a step: the next ones must be done all the same
            log.exception("a step of the stop failed")
            self._failure = self._failure or error

    def are_done(self) -> bool:
        """Return whether all was done; write the line of a stop that was not clean."""
        if self._failure is not None:
            log.error("stop is not clean, the next start recovers error=%r", self._failure)
        return self._failure is None


MakeServer: TypeAlias = Callable[[Settings, asyncio.Event], Process[Any]]
"""Makes a server of settings, on the running event loop; the event asks it to stop."""


def serve(make: MakeServer, settings: Settings) -> int:
    """Run a server until SIGTERM or SIGINT; blocks. Returns the exit code.

    Prints one line beginning `hutch ready` with the addresses on standard output when it serves.

    Raises:
        ConfigError: A setting cannot be used here (address taken, users file wrong, …).
        StoreError: The data directory cannot be opened: held by another process, damaged, full.
    """
    gc.enable()  # all is loaded; see gateway.__main__
    _raise_descriptor_limit()
    sys.setswitchinterval(_SWITCH_S)
    _let_sleeps_end_in_time()
    loop = _new_event_loop()
    try:
        return loop.run_until_complete(_serve(make, settings, loop))
    finally:
        loop.close()
        for number in _STOP_SIGNALS:  # it is ending
            signal.signal(number, signal.SIG_IGN)


def _stop_by_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)


async def _serve(make: MakeServer, settings: Settings, loop: asyncio.AbstractEventLoop) -> int:
    stop = asyncio.Event()
    server = make(settings, stop)
    # Opening may take long; until clients are served, SIGTERM and SIGINT do what
    # `gateway.__main__` has set: they end the process at once. A member that follows stops.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # files are read now anyway
    if settings.cluster.log:
        _stop_by_signals(loop, stop)
    try:
        if not await server.open():
            return 0 if await server.stop() else 1
        await server.start()
    except BaseException:
        await server.abandon()
        raise
    _stop_by_signals(loop, stop)
    Collector().start()
    loop.add_signal_handler(signal.SIGHUP, server.reload)
    sys.stdout.write(f"hutch ready {server.ready}\n")
    sys.stdout.flush()
    return await server.run()
