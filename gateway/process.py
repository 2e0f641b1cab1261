"""The process: limits, event loop, signals, the line that says it serves, and the exit code."""

import asyncio
import gc
import resource
import signal
import sys
from contextlib import suppress
from typing import Final

from gateway.assembly import CLOSED_BY_S, Server
from gateway.settings.model import Settings

_SWITCH_S: Final = 0.0002
"""Longest time that a busy event loop keeps the interpreter from the thread that commits: Python's
own 5 ms would be the price of every sync under load."""
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def _raise_descriptor_limit() -> None:
    """Every stream and connection holds descriptors; take as many as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415  # not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def serve(settings: Settings) -> int:
    """Run a server until SIGTERM or SIGINT; blocks. Returns the exit code.

    Prints one line beginning `hutch ready` with the addresses on standard output when it serves.

    Raises:
        ConfigError: A setting cannot be used here (address taken, users file wrong, …).
        StoreError: The data directory cannot be opened: held by another process, damaged, full.
    """
    gc.enable()  # all is loaded; see gateway.__main__
    _raise_descriptor_limit()
    sys.setswitchinterval(_SWITCH_S)
    loop = _new_event_loop()
    try:
        return loop.run_until_complete(_serve(settings, loop))
    finally:
        loop.close()
        for number in _STOP_SIGNALS:  # it is ending
            signal.signal(number, signal.SIG_IGN)


async def _serve(settings: Settings, loop: asyncio.AbstractEventLoop) -> int:
    stop = asyncio.Event()
    server = Server(settings, loop, stop)
    # Opening may take long; until clients are served, SIGTERM and SIGINT do what
    # `gateway.__main__` has set: they end the process at once.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # files are read now anyway
    try:
        server.backend.open_store()
        await server.start()
    except BaseException:
        await server.backend.abandon(CLOSED_BY_S)
        raise
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    # What is there now stays: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    advertised = shown(*server.advertised)
    tls = http = ""
    loop.add_signal_handler(signal.SIGHUP, server.reload)
    if server.tls is not None:
        tls = f" tls={shown(*server.tls.address)}"
        tls += f" tls_advertised={shown(*server.advertised_over_tls)}"
    if server.management.address is not None:
        http = f" management={shown(*server.management.address)}"
    sys.stdout.write(
        f"hutch ready stream={shown(*server.address)} advertised={advertised}{tls}{http}"
        f" data={server.backend.directory.path} durability={settings.store.durability.value}\n"
    )
    sys.stdout.flush()
    return await server.run()


def shown(host: str, port: int) -> str:
    """Return an address as programs take it: of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
