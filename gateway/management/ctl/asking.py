"""A running server asked through the socket in its data directory; blocks."""

import json
import os
import pwd
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from gateway.management.wire import address_of, pack_request

CONNECT_S: Final = 10.0
ANSWER_S: Final = 900.0
"""Longest wait for the server to do a thing: the largest imports take minutes."""
_READ_BYTES: Final = 1024 * 1024
_CREDENTIALS: Final = struct.Struct("iII")
"""Process, user and group, as the kernel gives them. Source: unix(7)."""


class ServerUnreachable(Exception):
    """No server can be asked there; the message says why and what may help."""


class ServerRefused(Exception):
    """The server did not do it; the message says why.

    Attributes:
        code: For programs: what kind of error it is.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def ask(directory: Path, name: str, arguments: Mapping[str, Any], body: bytes = b"") -> Any:  # noqa: ANN401  # whatever JSON holds
    """Ask the server of a data directory for something and return its answer.

    Raises:
        ServerUnreachable: There is no server, or it may not be asked by this user.
        ServerRefused: It said no.
    """
    with _connected(directory) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why
            connection.sendall(pack_request(name, arguments, body))
        answer = _answer(connection, directory)
    if "error" in answer:
        raise ServerRefused(str(answer["error"]), str(answer.get("code")))
    return answer["result"]


@contextmanager
def _connected(directory: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            with address_of(directory) as address:
                connection.connect(address)
            _check_owner(connection, directory)
        except OSError as error:
            raise ServerUnreachable(_why_not(directory, error)) from None
        connection.settimeout(ANSWER_S)
        yield connection


def _check_owner(connection: socket.socket, directory: Path) -> None:
    """Check that this user or root listens on the socket, before anything is sent.

    Requests have hashes of passwords, and any user can put a socket into a directory of its own.

    Raises:
        ServerUnreachable: Another user listens there.
    """
    _, server, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    if server in {os.geteuid(), 0}:
        return
    name = _name_of(server)
    raise ServerUnreachable(
        f"{directory}: the socket there is of the user {name}, and not trusted; "
        f"if it is your server's, ask it as that user: sudo -u {name} hutch …"
    )


def _name_of(user: int) -> str:
    """Return the name of a user; `#` and the number, as sudo takes it, if it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"


def _why_not(directory: Path, error: OSError) -> str:
    match error:
        case PermissionError():
            return f"{directory}: permission denied; only who runs the server may ask it"
        case FileNotFoundError() if not os.path.isdir(directory):  # noqa: PTH112  # asks the same
            return f"there is no directory {directory}: --data or --config says where the data is"
        case FileNotFoundError():
            return f"no server runs on {directory}: --data or --config says where the data is"
        case ConnectionRefusedError():
            return f"no server runs on {directory}; one that was killed has left its socket"
        case _:
            return f"{directory}: {error.strerror or error}"


def _answer(connection: socket.socket, directory: Path) -> dict[str, Any]:
    try:
        with connection.makefile("rb", _READ_BYTES) as reader:
            line = reader.readline()
    except TimeoutError:
        raise ServerUnreachable(f"the server on {directory} does not answer") from None
    except OSError as error:
        raise ServerUnreachable(f"the server on {directory} went away: {error.strerror}") from None
    if not line.endswith(b"\n"):
        raise ServerUnreachable(f"the server on {directory} went away before it had answered")
    answer: dict[str, Any] = json.loads(line)
    return answer
