"""Connections of this process, kept for a while after a task, since Spark uses its workers again.

A process keeps one idle connection for each server and user. A connection that was named for
another query is closed and not used, since its name would mislead. A thread closes connections that
were idle for a while. It also sends heartbeats for tasks that are busy elsewhere: a Spark task may
take minutes over one batch.
"""

import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from hutch.client.connection import Connection
from hutch.client.errors import ClientError
from hutch.client.login import Endpoint, Login, described
from pyspark_hutch.options.connection_settings import BrokerSettings, BrokerTls
from pyspark_hutch.options.passwords import password_of

_LOOK_S: Final = 1.0


class Name(NamedTuple):
    """The name of a connection, as administrators see it.

    Attributes:
        owner: Application and query, whose tasks use a connection in turn.
        task: The task that opened it.
    """

    owner: str
    task: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, self))


class _Key(NamedTuple):
    endpoint: Endpoint
    settings: BrokerSettings


class _Idle(NamedTuple):
    connection: Connection
    owner: str
    until: float


class Pool:
    """Connections by server, settings and name.

    Connections of the process that this one was forked from are never used: they are not ours.
    """

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begin empty; also in a forked process, where the lock may have been held for ever."""
        self._lock = threading.Lock()
        self._idle: dict[_Key, _Idle] = {}
        self._lent: set[Connection] = set()
        self._keeper: threading.Thread | None = None

    @contextmanager
    def connection(
        self, endpoint: Endpoint, settings: BrokerSettings, name: Name
    ) -> Iterator[Connection]:
        """Lend a connection; after an error in the block it is dropped, else kept for the next."""
        key = _Key(endpoint, settings)
        connection = self._take(key, name.owner) or opened(endpoint, settings, str(name))
        with self._lock:
            self._lent.add(connection)
            self._keep()
        try:
            yield connection
        except BaseException:
            self._end_loan(connection)
            connection.disconnect()
            raise
        if self._end_loan(connection):
            self._give_back(key, name.owner, connection)
        else:
            connection.disconnect()  # forked meanwhile: it belongs to the other process

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            ended, self._idle = self._idle, {}
        for idle in ended.values():
            idle.connection.close()

    def _take(self, key: _Key, owner: str) -> Connection | None:
        with self._lock:
            idle = self._idle.pop(key, None)
        if idle is None or idle.connection.is_broken:
            return None
        if idle.owner != owner:
            idle.connection.close()
            return None
        if not idle.connection.is_alive():
            idle.connection.disconnect()
            return None
        return idle.connection

    def _end_loan(self, connection: Connection) -> bool:
        """Note the end of a loan; False if it was not this process that lent."""
        with self._lock:
            was_lent = connection in self._lent
            self._lent.discard(connection)
        return was_lent

    def _give_back(self, key: _Key, owner: str, connection: Connection) -> None:
        idle_s = key.settings.pool_idle_timeout_ms / 1000
        with self._lock:
            is_kept = not connection.is_broken and key not in self._idle
            if is_kept:
                self._idle[key] = _Idle(connection, owner, time.monotonic() + idle_s)
                self._keep()
        if not is_kept:
            connection.close()

    def _keep(self) -> None:
        """Start the thread that looks after connections; it ends when there are none."""
        if self._keeper is None:
            self._keeper = threading.Thread(
                target=self._look_after, name="hutch connections", daemon=True
            )
            self._keeper.start()

    def _look_after(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            with self._lock:
                old = [key for key, idle in self._idle.items() if idle.until <= now]
                ended = [self._idle.pop(key).connection for key in old]
                kept = [idle.connection for idle in self._idle.values()] + list(self._lent)
                if not kept:
                    self._keeper = None
            for connection in kept:  # first, since it takes a moment to close one in order
                _beat(connection)
            for connection in ended:
                connection.close()
            if not kept:
                return


def _beat(connection: Connection) -> None:
    """Send a heartbeat, unless the connection's user is at it and does so itself."""
    if connection.is_broken or not connection.lock.acquire(blocking=False):
        return
    try:
        with suppress(ClientError):  # the next user will see it
            connection.beat()
    finally:
        connection.lock.release()


POOL: Final = Pool()
"""The connections of this process."""


def opened(endpoint: Endpoint, settings: BrokerSettings, name: str) -> Connection:
    """Connect and log in.

    Args:
        endpoint: Where to.
        settings: User, password, virtual host, TLS, time limits.
        name: Shown to administrators of the server.

    Raises:
        ClientError: In one line, why not.
    """
    tls = settings.tls
    return Connection.to(
        endpoint,
        login_of(settings, name),
        timeout_s=settings.request_timeout_ms / 1000,
        connect_timeout_s=settings.connect_timeout_ms / 1000,
        tls=None if tls is None else _context(tls),
        server_name=None if tls is None else tls.server_name,
    )


def login_of(settings: BrokerSettings, name: str) -> Login:
    """Return the user of the settings, with the password read here and now."""
    shown = described("hutch pyspark", name)
    return Login(
        settings.username,
        password_of(settings.password),
        settings.vhost,
        properties=dict(settings.client_properties) | shown,
        asks_for_pipeline=True,
    )


def _context(tls: BrokerTls) -> ssl.SSLContext:
    named = f"option tls.ca={tls.ca}"
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.check_hostname = tls.verify_hostname
        if tls.cert is not None:
            named = f"option tls.cert={tls.cert}" + (f", tls.key={tls.key}" if tls.key else "")
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        raise ClientError(f"{named}: cannot be used here: {error.strerror or error}") from None
    return context
