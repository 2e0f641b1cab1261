"""An address taken to listen on, and the setting to blame where it cannot be had."""

import errno
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.network import congestion
from gateway.network.addresses import is_loopback
from gateway.settings.errors import ConfigError, Problem

_SIGNS_OF_LIFE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""Seconds of silence, seconds between questions, and how many have no answer."""
_OF_THE_PORT: Final = frozenset((errno.EADDRINUSE, errno.EACCES, errno.EPERM))

_Info: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


def bind(host: str, port: int) -> socket.socket:
    """Take the address; connections are refused until a `Listener` starts. Raises OSError."""
    family, kind, protocol, _, address = _found(host, port)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        congestion.begin(listening)
        _ask_for_life(listening)
        listening.bind(address)
        listening.setblocking(False)  # noqa: FBT003  # the standard library's signature
    except OSError:
        listening.close()
        raise
    return listening


def _ask_for_life(listening: socket.socket) -> None:
    """Let the system ask every client now and then whether its machine is there.

    Accepted sockets have what the listening one has. A protocol's own signs of life are for peers
    that agreed on them; a machine that has vanished is found within two minutes anyway.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _SIGNS_OF_LIFE.items():
        if hasattr(socket, option):  # not every system has them by these names
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def is_on_loopback(host: str) -> bool:
    """Return whether this machine alone reaches what listens on a host; True if nothing can."""
    try:
        *_, address = _found(host, 0)
    except OSError:  # told when the address is taken
        return True
    return is_loopback(str(address[0]))


def _found(host: str, port: int) -> _Info:
    """Return the address that a host stands for. Raises OSError."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError as error:  # a label of more than 63 characters, or none
        raise socket.gaierror(socket.EAI_NONAME, "no name of a host") from error
    return infos[0]


def cannot_listen(
    host_setting: str, port_setting: str, host: str, port: int, error: OSError
) -> ConfigError:
    """Blame the port that is taken or not for us, else the host that is not this machine's.

    Args:
        host_setting: The host's setting, as "stream.host".
        port_setting: The port's.
        host: Its value.
        port: Its value.
        error: What `bind` or listen raised.
    """
    setting = port_setting if error.errno in _OF_THE_PORT else host_setting
    reason = f"cannot listen on {host}:{port}: {error.strerror or error}"
    return ConfigError(Problem(setting, reason))


class Place(NamedTuple):
    """An address to listen on, and the settings that it comes from, as "stream.host"."""

    host: str
    port: int
    host_setting: str
    port_setting: str

    def bind(self) -> socket.socket:
        """Take the address, as `bind` does. Raises ConfigError."""
        with self.blamed():
            return bind(self.host, self.port)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn an OSError of `bind` or listen into a ConfigError, as `cannot_listen` does."""
        try:
            yield
        except OSError as error:
            settings = self.host_setting, self.port_setting
            raise cannot_listen(*settings, self.host, self.port, error) from error


class Port:
    """A port to listen on: its place, and its socket once the address is taken."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._socket: socket.socket | None = None

    def bind(self) -> None:
        """Take the address. Raises ConfigError."""
        self._socket = self.place.bind()

    @property
    def socket(self) -> socket.socket:
        """The socket; `bind` comes before."""
        assert self._socket is not None
        return self._socket

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that were taken."""
        host, port = self.socket.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Release the address, if it was taken."""
        if self._socket is not None:
            self._socket.close()


def take_all(binds: Iterable[Callable[[], None]]) -> None:
    """Take addresses, each by its own `bind`. Raises ConfigError: all that cannot be had."""
    problems: list[Problem] = []
    for take in binds:
        try:
            take()
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(*problems)
