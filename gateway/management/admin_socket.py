"""The socket in the data directory through which administrators reach the running server.

A process that may open it is an administrator: it is readable and writable for its owner alone,
whatever the umask. Everything is bounded: connections, lines, bodies, and a client's time.
"""

import asyncio
import errno
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gateway.management.errors import AdministrationError, WrongRequest
from gateway.management.wire import (
    LINE_BYTES_MAX,
    SOCKET_NAME,
    Head,
    address_of,
    pack_error,
    pack_result,
    read_head,
)
from gateway.settings.errors import ConfigError, Problem

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
IDLE_S: Final = 60.0
"""Longest time that a client may take to send its next request."""
STALL_S: Final = 30.0
"""Longest time without a byte of a body, or of an answer."""
BODY_S: Final = 600.0
"""Longest time for all of a body, since others wait."""
_READ_BYTES: Final = 256 * 1024
_BACKLOG: Final = 16
_OWNER_ONLY: Final = 0o600

Answer = Callable[[str, Mapping[str, Any], bytes], Awaitable[object]]
"""Carries out a request: its name, its arguments, its body."""


class AdminSocket:
    """Listens in a data directory whose lock this process holds.

    Attributes:
        answer: Answers each request; it may become another one.
    """

    def __init__(self, directory: Path, answer: Answer) -> None:
        self._directory = directory
        self.answer = answer
        self._server: asyncio.Server | None = None
        self._inode: tuple[int, int] | None = None
        # Each with whether it waits for its client, the longest waiting first.
        self._tasks: dict[asyncio.Task[None], bool] = {}
        # One large body at a time: the next one waits, unread.
        self._body = asyncio.Lock()

    @property
    def path(self) -> Path:
        """Path of the socket."""
        return self._directory / SOCKET_NAME

    @property
    def is_started(self) -> bool:
        """True if it listens, or has done so."""
        return self._server is not None

    async def start(self) -> None:
        """Replace what a server that was killed has left, and listen.

        Raises:
            ConfigError: There is something else in its place.
            OSError: There can be no socket.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.make_way()
            # The mode of the socket is that of the file that bind makes, but for the umask.
            with suppress(OSError):  # not everywhere; no client gets in before listen in any case
                os.fchmod(listening.fileno(), _OWNER_ONLY)
            with address_of(self._directory) as address:
                listening.bind(address)
            self.path.chmod(_OWNER_ONLY)
            listening.listen(_BACKLOG)
            listening.setblocking(False)  # noqa: FBT003  # the standard library's signature
            status = self.path.lstat()
            self._inode = status.st_dev, status.st_ino
            self._server = await asyncio.start_unix_server(
                self._connected, sock=listening, limit=LINE_BYTES_MAX
            )
        except BaseException:
            listening.close()
            raise
        log.info("admin socket ready path=%s", self.path)

    def make_way(self) -> None:
        """Remove what a server that was killed has left.

        Raises:
            ConfigError: There is something else in its place.
            OSError: It cannot be seen or removed.
        """
        try:
            self._remove(_any_socket)
        except FileExistsError as error:
            reason = f"{self.path} is in the way: {error.strerror}"
            raise ConfigError(Problem("store.data_directory", reason)) from error

    def stop_accepting(self) -> None:
        """Let no more administrators in."""
        if self._server is not None:
            self._server.close()
            self._remove(lambda status: (status.st_dev, status.st_ino) == self._inode)

    async def stop(self) -> None:
        """Stop answering."""
        self.stop_accepting()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove(self, is_ours: Callable[[os.stat_result], bool]) -> None:
        with suppress(FileNotFoundError):
            status = self.path.lstat()
            if is_ours(status):
                self.path.unlink()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS_MAX:
            # A client that is silent makes room for one that may not be.
            waiting = next((known for known, is_waiting in self._tasks.items() if is_waiting), None)
            if waiting is None:
                await _refuse(writer, "busy", "the server is busy with other administrators")
                return
            del self._tasks[waiting]
            waiting.cancel()
        self._tasks[task] = True
        try:
            await self._converse(task, reader, writer)
        except (OSError, EOFError, TimeoutError) as error:
            log.debug("admin connection ended error=%r", error)
        except asyncio.CancelledError:
            log.debug("admin connection given up")
        except Exception:  # the edge of a connection
            log.exception("admin connection failed")
        finally:
            self._tasks.pop(task, None)
            writer.close()

    async def _converse(
        self,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        while True:
            async with asyncio.timeout(IDLE_S):
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    await _refuse(
                        writer, "wrong_request", f"a line has {LINE_BYTES_MAX} bytes at most"
                    )
                    return
            try:
                head = read_head(line)
            except WrongRequest as error:
                # Where the next request begins is not known.
                await _refuse(writer, error.code, str(error))
                return
            if task in self._tasks:
                self._tasks[task] = False
            await _send(writer, await self._judged(head, reader))
            # Behind those that have waited longer.
            self._tasks.pop(task, None)
            self._tasks[task] = True

    async def _judged(self, head: Head, reader: asyncio.StreamReader) -> bytes:
        if not head.body_bytes:
            return await self._answered(head)
        async with self._body:
            async with asyncio.timeout(BODY_S):
                body = await _body(reader, head.body_bytes)
            return await self._answered(head, body)

    async def _answered(self, head: Head, body: bytes = b"") -> bytes:
        try:
            result = await self.answer(head.name, head.arguments, body)
        except AdministrationError as error:
            return pack_error(error.code, str(error))
        except Exception:  # the edge of a request: the next may be fine
            log.exception("admin request failed request=%r", head.name[:100])
            return pack_error("failed", "the server failed at this; its log says how")
        # It may be large, and others are to be served meanwhile.
        return await asyncio.get_running_loop().run_in_executor(None, pack_result, result)


async def _body(reader: asyncio.StreamReader, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        async with asyncio.timeout(STALL_S):
            part = await reader.read(min(_READ_BYTES, size - len(body)))
        if not part:
            raise EOFError(f"{size} bytes were announced, {len(body)} came")
        body += part
    return bytes(body)


async def _send(writer: asyncio.StreamWriter, line: bytes) -> None:
    view = memoryview(line)
    for start in range(0, len(view), _READ_BYTES):
        writer.write(view[start : start + _READ_BYTES])
        async with asyncio.timeout(STALL_S):
            await writer.drain()


async def _refuse(writer: asyncio.StreamWriter, code: str, message: str) -> None:
    with suppress(OSError, TimeoutError):
        await _send(writer, pack_error(code, message))
    writer.close()


def _any_socket(status: os.stat_result) -> bool:
    if not stat.S_ISSOCK(status.st_mode):
        raise FileExistsError(errno.EEXIST, "is no socket, and not ours to remove")
    return True
