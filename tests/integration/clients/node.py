"""The stock Node client as a child process: installed once, driven by JSON lines."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from tests.integration.server import REPOSITORY, Endpoint
from tests.waiting import HANG_S

DRIVER: Final = REPOSITORY / "compat" / "clients" / "node"
# Whatever JSON can say.
Json: TypeAlias = Any

INSTALL_SECONDS: Final = 120.0


class NodeUnavailable(Exception):
    """Node, npm or the client package cannot be had on this machine."""


def install_client() -> Path:
    """Install the pinned client into the user's cache, unless it is there already.

    The directory's name holds a digest of the lock file, so that another pin is
    another directory and a cache is never stale.

    Returns:
        The directory that holds `node_modules`.

    Raises:
        NodeUnavailable: `node` or `npm` is missing, or the installation failed.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NodeUnavailable("node and npm are not both installed")
    lock = (DRIVER / "package-lock.json").read_bytes()
    version = json.loads((DRIVER / "package.json").read_text())["dependencies"][
        "rabbitmq-stream-js-client"
    ]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hutch"
    target = cache / f"node-{version}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if target.is_dir():
        return target
    # Installed beside the place and moved there whole: two test runs may race.
    staging = cache / f".{target.name}.{os.getpid()}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(DRIVER / name, staging)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            command,
            cwd=staging,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NodeUnavailable(f"npm ci took more than {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        raise NodeUnavailable(f"npm ci failed: {done.stderr.strip()[-500:]}")
    try:
        staging.rename(target)
    except OSError:
        # Another run got there first; its copy is as good.
        shutil.rmtree(staging, ignore_errors=True)
    return target


class NodeError(Exception):
    """The client, or its driver, refused a command."""


class NodeClient:
    """One process with one connected client; commands run one after another.

    Args:
        installed: What `install_client` returned.
        directory: Where received records and the process's log are written.
    """

    def __init__(self, installed: Path, directory: Path, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._directory = directory
        self._log = (directory / "node.stderr").open("wb")
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._next_id = 0
        self._process = subprocess.Popen(
            ["node", str(DRIVER / "driver.cjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | {"HUTCH_NODE_CLIENT": str(installed)},
        )
        self._reader = threading.Thread(target=self._read_answers, daemon=True)
        self._reader.start()
        self.call("connect", host=endpoint.host, port=endpoint.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(HANG_S)
        self._reader.join(HANG_S)
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    def call(self, command: str, **options: Json) -> Json:
        """Run one command and return what it answered.

        Raises:
            NodeError: The client refused, or gave no answer in time.
        """
        self._next_id += 1
        request = {"id": self._next_id, "do": command, **options}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        try:
            line = self._answers.get(timeout=HANG_S)
        except queue.Empty:
            raise NodeError(f"{command}: no answer within {HANG_S} s") from None
        if line is None:
            raise NodeError(f"{command}: the process ended: {self.stderr}")
        answer = json.loads(line)
        assert answer["id"] == self._next_id
        if "error" in answer:
            raise NodeError(f"{command}: {answer['error']}")
        return answer["ok"]

    def take(self, consumer: str, count: int, **options: Json) -> list[tuple[int, bytes]]:
        """Wait until the consumer has `count` records; return all it has, with offsets."""
        file = self._directory / f"{consumer}.records"
        self.call("take", consumer=consumer, count=count, file=str(file), **options)
        data = file.read_bytes()
        records = []
        position = 0
        while position < len(data):
            offset, size = struct.unpack_from(">QI", data, position)
            position += 12
            records.append((offset, data[position : position + size]))
            position += size
        return records

    @property
    def stderr(self) -> str:
        """What the process complained about."""
        return (self._directory / "node.stderr").read_text(errors="replace")

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)
