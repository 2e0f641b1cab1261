"""Users of the controller: files of them, and what they do with PyPI's client and by gRPC."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from gateway.broker.access.passwords import PasswordHash
from gateway.pravega.controller.rpc import controller_pb2 as pb
from tests.controller_client import ControllerClient, basic
from tests.integration.pravega.conftest import controller_port
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

PASSWORD = "a password"
PYPI_CLIENT = (sys.executable, "-m", "tests.integration.pravega.pypi_client")
BESIDE = ("--store-port", "0", "--store-controller-port", "0")

_USER = """\
[[users]]
name = "{name}"
password_hash = "{hashed}"
[[permissions]]
user = "{name}"
vhost = "/"
configure = '{patterns[0]}'
write = '{patterns[1]}'
read = '{patterns[2]}'
"""


def users_of_streams(folder: Path, **patterns: tuple[str, str, str]) -> Path:
    """Write a file of users, each with patterns to configure, to write and to read."""
    path = folder / "users.toml"
    hashed = PasswordHash.of(PASSWORD)
    users = (
        _USER.format(name=name, hashed=hashed, patterns=three) for name, three in patterns.items()
    )
    path.write_text("".join(users))
    return path


def controller(server: HutchServer, user: str, password: str = PASSWORD) -> ControllerClient:
    return ControllerClient(controller_port(server), basic(user, password))


def of(scope: str, stream: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope=scope, stream=stream)


def config(scope: str, stream: str) -> pb.StreamConfig:
    scaling = pb.ScalingPolicy(minNumSegments=1)
    return pb.StreamConfig(streamInfo=of(scope, stream), scalingPolicy=scaling)


def held(server: HutchServer, stream: str) -> str:
    """Return the name under which the controller knows the chunks of a stream."""
    told = re.search(rf"stream created stream={stream} .*generation=(\d+)", server.logs)
    assert told is not None
    return f"_{stream}-{told[1]}"


def environment_of(user: str, password: str = PASSWORD) -> dict[str, str]:
    """Return an environment in which PyPI's client logs in as a user."""
    return os.environ | {
        "pravega_client_auth_method": "Basic",
        "pravega_client_auth_username": user,
        "pravega_client_auth_password": password,
    }


def run_client(
    uri: str, *arguments: str, user: str, password: str = PASSWORD, ca: Path | None = None
) -> list[bytes]:
    """Run PyPI's client; return the events that it read.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    environment = environment_of(user, password)
    if ca is not None:
        environment["pravega_client_tls_cert_path"] = str(ca)
    done = subprocess.run(
        [*PYPI_CLIENT, uri, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    return [bytes.fromhex(line) for line in done.stdout.split()]
