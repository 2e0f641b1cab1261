"""RabbitMQ in a container, where a container engine runs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from compat.broker import records, settings
from compat.broker.ports import Ports
from compat.broker.processes import erlang_machine
from compat.broker.records import Process, Record
from compat.broker.running import NotReady, await_serving
from compat.certificates import Certificates

IMAGE = "rabbitmq:4.3-management"
ADDRESS = "127.0.0.1"
ENGINE_TIMEOUT_S = 20
START_TIMEOUT_S = 120
CONTROL_TIMEOUT_S = 60
# The settings travel in the environment: a mounted file would have to exist on the engine's
# machine, which need not be this one. The image's own entry point then drops to its user.
ENTER = """
printf %s "$HUTCH_SETTINGS" > /etc/rabbitmq/rabbitmq.conf
printf %s "$HUTCH_PLUGINS" > /etc/rabbitmq/enabled_plugins
mkdir -p /etc/rabbitmq/certificates
printf %s "$HUTCH_CA" > /etc/rabbitmq/certificates/ca.pem
printf %s "$HUTCH_CERTIFICATE" > /etc/rabbitmq/certificates/server.pem
printf %s "$HUTCH_KEY" > /etc/rabbitmq/certificates/server-key.pem
chown -R rabbitmq:rabbitmq /etc/rabbitmq/certificates
exec docker-entrypoint.sh rabbitmq-server
"""


class NoEngine(Exception):
    """No container engine answers; the text says what was tried."""


def require_engine() -> None:
    """Raise `NoEngine` unless `docker info` succeeds."""
    if shutil.which("docker") is None:
        raise NoEngine("there is no docker command")
    try:
        done = docker("info")
    except subprocess.TimeoutExpired as error:
        raise NoEngine("docker info did not answer") from error
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise NoEngine(f"docker info: {reason}")


def docker(
    *arguments: str, timeout_s: float = ENGINE_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run one short docker command and return what it printed, whatever its status."""
    return subprocess.run(
        ["docker", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def start(name: str, ports: Ports, *, owner: Process | None) -> Record:
    """Start a container on the machine's own network and wait until it serves.

    On the machine's network no proxy stands between, which matters when it is measured, and the
    ports it binds are the ports that clients see.

    Args:
        name: The broker's name; empty picks one.
        ports: Its ports, none of them 0.
        owner: The process with which it shall end, None to leave it running.

    Raises:
        NoEngine: The image cannot be had or the container not made.
        NotReady: It served nothing in time; what it printed comes with it.
        FileExistsError: A broker of that name is recorded.
    """
    name, _ = records.new_folder(name)
    try:
        container = run_image(ports, records.certificates_of(name))
    except Exception as error:  # the engine's client raises whatever its transport does
        records.forget(name)
        raise NoEngine(f"the engine did not start {IMAGE}: {error}") from error
    record = Record(name=name, way="container", ports=ports, container=container, owner=owner)
    records.save(record)
    try:
        await_serving(ADDRESS, ports, timeout_s=START_TIMEOUT_S)
    except NotReady as error:
        printed = docker("logs", "--tail", "20", container).stdout
        stop(record)
        raise NotReady(f"{error}; it printed: {printed[-400:] or 'nothing'}") from error
    return record


def run_image(ports: Ports, made: Certificates) -> str:
    """Start the image and return the container's id."""
    # Imported here: the other two ways work without the library.
    from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415

    # Its reaper would end the container with this process, also one that is meant to stay; what
    # is left behind is found by its record instead.
    testcontainers_config.ryuk_disabled = True
    text = settings.configuration(
        ports,
        advertised_port=ports.stream,
        address=ADDRESS,
        certificates="/etc/rabbitmq/certificates",
    )
    image = DockerContainer(IMAGE).with_command(["sh", "-eu", "-c", ENTER])
    image = image.with_kwargs(network_mode="host")
    for variable, value in {
        "ERL_EPMD_PORT": str(ports.epmd),
        "HUTCH_CA": made.ca.read_text(),
        "HUTCH_CERTIFICATE": made.server.certificate.read_text(),
        "HUTCH_KEY": made.server.key.read_text(),
        "HUTCH_PLUGINS": settings.enabled_plugins(),
        "HUTCH_SETTINGS": text,
        "RABBITMQ_DIST_PORT": str(ports.distribution),
        "RABBITMQ_NODENAME": settings.NODE_NAME,
    }.items():
        image = image.with_env(variable, value)
    return str(image.start().get_wrapped_container().id)


def control(record: Record, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run `rabbitmqctl` in a container."""
    command = ("exec", "--user", "rabbitmq", record.container, "rabbitmqctl", *words)
    return docker(*command, timeout_s=CONTROL_TIMEOUT_S)


def crash(record: Record) -> None:
    """End a container by SIGKILL, and start it on what it has written."""
    docker("kill", record.container)
    docker("start", record.container)
    await_serving(ADDRESS, record.ports, timeout_s=START_TIMEOUT_S)


def stop(record: Record) -> None:
    """Remove the container with its data, and its record."""
    docker("rm", "--force", "--volumes", record.container)
    records.forget(record.name)


def is_running(record: Record) -> bool:
    """Return whether the engine still runs the container."""
    done = docker("inspect", "--format", "{{.State.Running}}", record.container)
    if done.returncode != 0:
        return "no such" not in done.stderr.lower()  # the engine is away: nothing is known
    return done.stdout.strip() == "true"


def machine_of(record: Record) -> int | None:
    """Return the Erlang machine's process id on this machine, None where it cannot be seen."""
    done = docker("inspect", "--format", "{{.State.Pid}}", record.container)
    text = done.stdout.strip()
    return erlang_machine(int(text)) if text.isdigit() and int(text) > 0 else None
