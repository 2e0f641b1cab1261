"""Pages run as printed: their files, their commands, and the ports that they name."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
STREAM_PORT: Final = 5552
"""Where clients connect that are told nothing."""


@dataclass
class Section:
    """Section of a page: files by name, and commands."""

    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the files where the commands will find them."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")


def section_of(page: Path, heading: str) -> Section:
    """Take the files and commands of a section from a page; `heading` has its number signs."""
    level = heading.split(maxsplit=1)[0]
    text = page.read_text(encoding="utf-8").split(f"\n{heading}\n")[1]
    text = re.split(rf"\n#{{1,{len(level)}}} ", text)[0]
    section = Section()
    for before, kind, content in re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```", text, re.DOTALL):
        if kind == "sh":
            section.commands += content.splitlines()
        else:
            named = re.search(r"`([^`]+)`:$", before)
            assert named is not None, f"a file without a name behind {before!r}"
            section.files[named[1]] = content
    return section


def absent(reason: str) -> None:
    """Skip, or fail where nothing may be skipped."""
    if os.environ.get("HUTCH_REQUIRE_ALL"):
        pytest.fail(reason)
    pytest.skip(reason)


def path_with_us() -> str:
    """Return a PATH on which `python` and `hutch` are those of the tests."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@contextlib.contextmanager
def usual_ports(*ports: int) -> Iterator[None]:
    """Have ports for the time of a block; skip if something else has them.

    Tests of other pages, in other processes, wait for their turn.
    """
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for port in ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    absent(f"port {port} is taken")
        yield


@contextlib.contextmanager
def hutch_serving(data: Path) -> Iterator[None]:
    """Serve on the port that clients know, which is free."""
    command = [sys.executable, "-m", "gateway", "serve", "--data", str(data)]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert f"stream=127.0.0.1:{STREAM_PORT} " in running.stdout.readline()
        yield
    finally:
        running.terminate()
        running.communicate(timeout=30)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def forwarded(port: int, there: int) -> Iterator[None]:
    """Let a port of this machine lead to another one."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", there)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async def serve() -> None:
        async with await asyncio.start_server(take, "127.0.0.1", port):
            is_open.set()
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    loop, stop, is_open = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_open.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
