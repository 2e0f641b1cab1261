"""The process: limits, event loop, signals, the line that says it serves, and the exit code."""

import asyncio
import ctypes
import gc
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from gateway.serving.collector import Collector
from gateway.settings.model import Settings

_SWITCH_S: Final = 0.0002
"""Longest time that a busy event loop keeps the interpreter from the thread that commits: Python's
own 5 ms would be the price of every sync under load."""
_PR_SET_TIMERSLACK: Final = 29
_SLACK_NS: Final = 1_000
"""The system adds up to 50 µs to a sleep otherwise, half of the loop's rests."""
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


class Serving(Protocol):
    """A server, as its process sees it."""

    def open(self) -> None:
        """Open the data directory; blocks. Raises ConfigError or StoreError."""
        ...

    async def start(self) -> None:
        """Begin to accept. Raises ConfigError or StoreError."""
        ...

    async def abandon(self) -> None:
        """Close what a start that has failed has opened; leave nothing behind of a first one."""
        ...

    @property
    def ready(self) -> str:
        """Text of the ready line: its addresses, and where its data is."""
        ...

    def reload(self) -> None:
        """Take files that have changed."""
        ...

    async def run(self) -> int:
        """Serve until asked to stop; return the exit code."""
        ...


Make = Callable[[asyncio.AbstractEventLoop, asyncio.Event], Serving]
"""Makes a server on an event loop; the event asks it to stop."""
MakeOf = Callable[[Settings, asyncio.AbstractEventLoop, asyncio.Event], Serving]
"""The same of settings."""


def serve(make: Make) -> int:
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
        return loop.run_until_complete(_serve(make, loop))
    finally:
        loop.close()
        for number in _STOP_SIGNALS:  # it is ending
            signal.signal(number, signal.SIG_IGN)


async def _serve(make: Make, loop: asyncio.AbstractEventLoop) -> int:
    stop = asyncio.Event()
    server = make(loop, stop)
    # Opening may take long; until clients are served, SIGTERM and SIGINT do what
    # `gateway.__main__` has set: they end the process at once.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # files are read now anyway
    try:
        server.open()
        await server.start()
    except BaseException:
        await server.abandon()
        raise
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    Collector().start()
    loop.add_signal_handler(signal.SIGHUP, server.reload)
    sys.stdout.write(f"hutch ready {server.ready}\n")
    sys.stdout.flush()
    return await server.run()
