"""The server of a segment store alone: no streams, no management, and users only in a file."""

import asyncio
import logging
import time
from typing import Final

from gateway.server.awaiting import awaited, done_before
from gateway.broker.access.access_table import TABLE as ACCESS_TABLE
from gateway.broker.access.attempts import AttemptLedger
from gateway.broker.access.authentication import Authentication
from gateway.broker.access.password_check import PasswordCheck
from gateway.broker.access.refusals import Refusals
from gateway.broker.access.standings import NO_USERS
from gateway.serving.controller_callers import log_in_by
from gateway.early_port import EarlyPort
from gateway.log.tracking import has_table
from gateway.network.addresses import shown
from gateway.network.listening import take_all
from gateway.pravega.controller.rights import LogIn
from gateway.pravega.early.host import is_of_the_gateway, is_of_the_server
from gateway.serving.served_store import ServedStore
from gateway.server.listeners import Listeners
from gateway.server.schedule import Schedule
from gateway.server.shared import Shared
from gateway.server.sockets import Sockets
from gateway.server.threads import Threads
from gateway.settings.errors import ConfigError, Problem
from gateway.settings.model import Settings
from gateway.settings.wire import WireSettings
from gateway.stopping import CLOSED_BY_S, SENT_BY_S, STORED_BY_S
from gateway.store_ports import StorePorts
from gateway.serving.store_users import SETTING, StoreUsers, read_users
from store.local.files import descriptor_limit, store_descriptors

log = logging.getLogger(__name__)

PORT: Final = 12345
_OTHER_DESCRIPTORS: Final = 64
_SCRATCH_BYTES: Final = 64 * 1024


class StoreServer:
    """Serves the store of a data directory at its ports."""

    def __init__(
        self, settings: Settings, loop: asyncio.AbstractEventLoop, stop: asyncio.Event
    ) -> None:
        """Read the files that the settings name. Raises ConfigError."""
        self._settings = settings
        self._loop = loop
        self._stop = stop
        self._schedule = Schedule(
            loop, busy_poll_us=settings.stream.busy_poll_us, rest_us=settings.stream.rest_us
        )
        self._served = ServedStore(settings.store, loop, self._schedule, stop)
        self._users = _users_of(settings.wire)
        port = settings.wire.port
        port = PORT if port is None else port
        over_tls, has_users = settings.tls.certificate is not None, self._users is not None
        self._ports = StorePorts(settings, loop, port=port, over_tls=over_tls, has_users=has_users)
        self._all_ports: list[StorePorts | EarlyPort] = [self._ports]
        self._listeners = Listeners()

    def open(self) -> None:
        """Open the data directory; blocks. Raises ConfigError or StoreError."""
        self._served.open()

    async def start(self) -> None:
        """Take the addresses, and begin to accept. Raises ConfigError or StoreError."""
        await self._prepare()
        take_all(port.bind for port in self._all_ports)
        descriptors = descriptor_limit()
        left = descriptors - store_descriptors(descriptors) - _OTHER_DESCRIPTORS
        refusals = Refusals(time.monotonic)
        say = refusals.say
        shared = Shared(
            loop=self._loop,
            schedule=self._schedule,
            receive_buffer=bytearray(self._settings.stream.receive_buffer_bytes),
            scratch=bytearray(_SCRATCH_BYTES),
            say=say,
        )
        sockets = Sockets(max(left, descriptors // 4), say)
        for port in self._all_ports:
            port.start(self._served.store, shared, sockets, self._listeners.add)
        await self._ports.start_controller(
            self._served.store, shared, sockets, self._listeners.add, log_in=self._log_in(refusals)
        )
        self._served.directory.keep()  # from here on clients may store something

    async def _prepare(self) -> None:
        """Find out whose the segments are, and check what the settings open of them.

        Raises ConfigError or StoreError.
        """
        settings = self._settings
        holds_streams = await awaited(has_table(self._served.store, ACCESS_TABLE))
        standings = NO_USERS if self._users is None else self._users.standings
        self._ports.prepare(holds_streams=holds_streams, standings=standings)
        if holds_streams and settings.wire.controller_port is not None and self._users is None:
            raise _needs_users("the directory holds streams")
        if settings.early.port is not None:
            is_closed = is_of_the_gateway if holds_streams else is_of_the_server
            early = EarlyPort(settings, port=settings.early.port, is_closed=is_closed)
            early.prepare(beside_tokens=self._ports.asks_for_tokens)
            self._all_ports.append(early)

    def _log_in(self, refusals: Refusals) -> LogIn | None:
        users = self._users
        if users is None:
            return None
        failed_max = self._settings.users.failed_logins_a_second_max
        authentication = Authentication(
            users,
            PasswordCheck(Threads(self._loop).run, time.monotonic),
            AttemptLedger(time.monotonic, failed_a_second_max=failed_max),
            refusals,
            guest_loopback_only=False,
            users_file=SETTING,
        )
        return log_in_by(authentication, users.caller)

    async def abandon(self) -> None:
        """Close what a start that has failed has opened; leave nothing behind of a first one."""
        await self._served.abandon(CLOSED_BY_S)

    @property
    def ready(self) -> str:
        """Text of the ready line: the addresses, and where the data is."""
        durability = self._settings.store.durability.value
        directory = self._served.directory.path
        addresses = " ".join(port.ready for port in self._all_ports)
        further = ",".join(shown(*each) for each in self._listeners.further_addresses())
        also = f" also={further}" if further else ""
        return f"{addresses} data={directory} durability={durability}{also}"

    def reload(self) -> None:
        """Take changed files: certificates, the only ones that can change while it serves."""
        if not self._ports.over_tls:
            log.info("there are no tls files to reload")
        for tls in self._ports.over_tls:
            tls.reload()

    async def run(self) -> int:
        """Serve until asked to stop, or until the store fails; return the exit code."""
        await self._stop.wait()
        is_clean = await self.stop()
        return 0 if is_clean and self._served.failure is None else 1

    async def stop(self) -> bool:
        """Stop accepting, store what was taken, acknowledge it, close; True if all was done."""
        log.info("stopping")
        begun_s = self._loop.time()
        is_clean = await done_before(begun_s + STORED_BY_S, self._ports.stop_controller())
        for tls in self._ports.over_tls:
            tls.stop()
        self._listeners.stop_accepting()
        self._listeners.stop_reading()
        for port in self._all_ports:
            is_clean &= await done_before(begun_s + STORED_BY_S, port.settled())
        await self._listeners.end(begun_s + SENT_BY_S - self._loop.time())
        is_clean &= await done_before(begun_s + CLOSED_BY_S, self._served.close())
        log.info("stopped clean=%s", is_clean)
        return is_clean


def _needs_users(why: str) -> ConfigError:
    return ConfigError(
        Problem("wire.controller_port", f"needs wire.users_file beside it, where {why}")
    )


def _users_of(wire: WireSettings) -> StoreUsers | None:
    """Read the users, if there are any. Raises ConfigError."""
    has_controller = wire.controller_port is not None
    if wire.users_file is None:
        if has_controller and wire.token_key_file is not None:
            raise _needs_users("wire.token_key_file asks for tokens")
        return None
    if not has_controller:
        reason = "needs wire.controller_port beside it: users log in there"
        raise ConfigError(Problem(SETTING, reason))
    return read_users(wire.users_file)
