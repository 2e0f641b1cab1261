"""Addresses taken to listen on, and the setting to blame where they cannot be had."""

import contextlib
import errno
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.network.addresses import is_localhost, is_loopback, shown
from gateway.settings.errors import ConfigError, Problem

_SIGNS_OF_LIFE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""Seconds of silence, seconds between questions, and how many have no answer."""
_OF_THE_PORT: Final = frozenset((errno.EADDRINUSE, errno.EACCES, errno.EPERM))
_LOOPBACKS: Final = ("127.0.0.1", "::1")
_NOT_THERE: Final = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT))
"""Errors of a machine without IPv6, or without an address of it."""
_PICKS: Final = 32
"""Ports that the system may pick until one is free on all addresses."""

Address: TypeAlias = tuple[str, int]
"""Host and port."""
_Info: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


def bind_all(host: str, port: int) -> list[socket.socket]:
    """Take one port on all addresses of a host; connections are refused until a `Listener` starts.

    Args:
        host: An address, or a name. localhost is 127.0.0.1, and ::1 if the machine has it.
        port: The port; 0 lets the system pick one.

    Raises:
        OSError: One of them cannot be had, and none is taken. `filename` is the address, if the
            host stands for one.
    """
    infos = _found(host, port)
    picks = 0
    while True:
        picks += 1
        taken: list[socket.socket] = []
        try:
            for info in infos:
                _take(info, taken, is_needed=not (taken and is_localhost(host)))
        except OSError as error:
            for each in taken:
                each.close()
            is_unlucky = port == 0 and taken and error.errno == errno.EADDRINUSE
            if not is_unlucky or picks == _PICKS:
                raise
        else:
            return taken


def _take(info: _Info, taken: list[socket.socket], *, is_needed: bool) -> None:
    """Take an address, at the port of those that are taken. Raises OSError."""
    family, kind, protocol, canonical, (host, port, *scope) = info
    if taken:
        port = taken[0].getsockname()[1]
    try:
        taken.append(_bound((family, kind, protocol, canonical, (host, port, *scope))))
    except OSError as error:
        if is_needed or error.errno not in _NOT_THERE:
            raise


def bind(host: str, port: int) -> socket.socket:
    """Take an address, of a name the first one; else as `bind_all`. Raises OSError."""
    return _bound(_found(host, port)[0])


def _bound(info: _Info) -> socket.socket:
    family, kind, protocol, _, address = info
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        begin_without_pacing(listening)
        _ask_for_life(listening)
        listening.bind(address)
        listening.setblocking(False)  # noqa: FBT003  # the standard library's signature
    except OSError as error:
        listening.close()
        raise OSError(error.errno, error.strerror, shown(*address[:2])) from error
    return listening


def listen_at(sockets: Iterable[socket.socket], backlog: int) -> None:
    """Have the system accept connections at addresses that are taken.

    Raises:
        OSError: Another process listens at one by now; `filename` is the address.
    """
    for each in sockets:
        try:
            each.listen(backlog)
        except OSError as error:
            where = shown(*address_of(each))
            raise OSError(error.errno, error.strerror, where) from error


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
    """Return whether this machine alone reaches a listener on a host; True if nothing can."""
    try:
        found = _found(host, 0)
    except OSError:  # told when the address is taken
        return True
    return all(is_loopback(str(address[0])) for *_, address in found)


def _found(host: str, port: int) -> list[_Info]:
    """Return the addresses that a host stands for, each once. Raises OSError."""
    infos: list[_Info] = []
    for each in _LOOPBACKS if is_localhost(host) else (host,):
        try:
            infos += socket.getaddrinfo(
                each, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except UnicodeError as error:  # a label of more than 63 characters, or none
            raise socket.gaierror(socket.EAI_NONAME, "no name of a host") from error
    return list(dict.fromkeys(infos))


def cannot_listen(
    host_setting: str, port_setting: str, host: str, port: int, error: OSError
) -> ConfigError:
    """Blame the port that is taken or not for us, else the host that is not this machine's.

    Args:
        host_setting: The host's setting, as "stream.host".
        port_setting: The port's.
        host: Its value.
        port: Its value.
        error: What `bind_all` or `listen_at` raised.
    """
    setting = port_setting if error.errno in _OF_THE_PORT else host_setting
    where = error.filename or shown(host, port)
    reason = f"cannot listen on {where}: {error.strerror or error}"
    return ConfigError(Problem(setting, reason))


class ListenPlace(NamedTuple):
    """An address to listen on, and the settings that it comes from, as "stream.host"."""

    host: str
    port: int
    host_setting: str
    port_setting: str

    def bind(self) -> list[socket.socket]:
        """Take the addresses, as `bind_all` does. Raises ConfigError."""
        with self.blamed():
            return bind_all(self.host, self.port)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn an OSError of `bind_all` or `listen_at` into a ConfigError; see `cannot_listen`."""
        try:
            yield
        except OSError as error:
            settings = self.host_setting, self.port_setting
            raise cannot_listen(*settings, self.host, self.port, error) from error


def address_of(listening: socket.socket) -> Address:
    """Return host and port of a socket."""
    host, port = listening.getsockname()[:2]
    return host, port


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


_TCP_CONGESTION: Final = getattr(socket, "TCP_CONGESTION", -1)
_WITHOUT_PACING: Final = b"reno"
_NAME_BYTES_MAX: Final = 16


def begin_without_pacing(listening: socket.socket) -> None:
    """Let connections that are accepted begin without congestion control that paces.

    Within one machine there is no congestion to guess, and a guess has a price: an algorithm that
    paces (BBR) sets a timer for every few packets, and a socket that was ever paced stays paced.
    The sockets that are accepted inherit this algorithm, which does not pace.
    """
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _WITHOUT_PACING)


def restore_congestion(connected: socket.socket) -> None:
    """Leave the congestion control of a connection from another machine to the system's choice."""
    with contextlib.suppress(OSError), socket.socket(connected.family) as fresh:
        chosen = fresh.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _NAME_BYTES_MAX)
        connected.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, chosen)
