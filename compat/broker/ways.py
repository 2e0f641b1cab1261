"""The three ways to a reference broker, tried in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from compat.broker import container, node, records
from compat.broker.container import NoEngine
from compat.broker.ports import Ports
from compat.broker.records import Record
from compat.broker.running import NotReady, RunningBroker, await_serving
from compat.broker.tree import tree
from compat.certificates import Certificates
from compat.debian import CannotBuild

ADDRESS_VARIABLE = "HUTCH_RABBITMQ"
HTTP_VARIABLE = "HUTCH_RABBITMQ_HTTP"
TLS_VARIABLE = "HUTCH_RABBITMQ_TLS"
CERTIFICATES_VARIABLE = "HUTCH_RABBITMQ_CERTIFICATES"
PID_VARIABLE = "HUTCH_RABBITMQ_PID"
REQUIRE_VARIABLE = "HUTCH_REQUIRE_ALL"
# A free port can be taken by another process before the broker binds it.
ATTEMPTS = 2
FOUND_TIMEOUT_S = 20


class BrokerUnavailable(Exception):
    """No way leads to a broker; the text gives each way's reason."""


def obtain(
    ports: Ports | None = None, *, name: str = "", detached: bool = False, found: bool = True
) -> RunningBroker:
    """Return a running RabbitMQ 4.3, starting one if none is given.

    Args:
        ports: The ports it shall listen on, 0 or None for any.
        name: The name by which it is listed and stopped; empty picks one.
        detached: Let it run on when this process ends; otherwise it goes with it, or with the
            next use of this module if this process is killed.
        found: Take the broker that the environment names, if it names one.

    Raises:
        BrokerUnavailable: There is no way here, or the environment names a broker that does not
            answer.
        FileExistsError: A broker of that name runs.
    """
    if found and os.environ.get(ADDRESS_VARIABLE):
        return from_environment()
    stop_abandoned()
    owner = None if detached else records.myself()
    wanted = ports or Ports()
    reasons = [f"environment: {ADDRESS_VARIABLE} is not set"] if found else []
    ways: list[tuple[str, Callable[[Ports], Record]]] = [
        ("container", lambda chosen: in_container(name, chosen, owner)),
        ("chroot", lambda chosen: node.start(tree(), name, chosen, owner=owner)),
    ]
    for way, start in ways:
        try:
            return running(with_free_ports(wanted, start))
        except (NoEngine, CannotBuild, NotReady) as error:
            reasons.append(f"{way}: {error}")
    raise BrokerUnavailable("no reference broker: " + "; ".join(reasons))


def in_container(name: str, ports: Ports, owner: records.Process | None) -> Record:
    """Start a container if there is an engine."""
    container.require_engine()
    return container.start(name, ports, owner=owner)


def with_free_ports(wanted: Ports, start: Callable[[Ports], Record]) -> Record:
    """Call `start` with chosen ports, again with others if it does not get ready."""
    for _ in range(ATTEMPTS - 1):
        chosen = wanted.chosen()
        try:
            return start(chosen)
        except NotReady:
            if chosen == wanted:  # every port was given: others are not allowed
                raise
    return start(wanted.chosen())


def from_environment() -> RunningBroker:
    """Return the broker that the environment names.

    Raises:
        BrokerUnavailable: The address is wrong, or nothing answers there.
    """
    host, stream = host_and_port(ADDRESS_VARIABLE, os.environ[ADDRESS_VARIABLE])
    http = 0
    if text := os.environ.get(HTTP_VARIABLE):
        _, http = host_and_port(HTTP_VARIABLE, text)
    tls, certificates = tls_from_environment()
    pid = os.environ.get(PID_VARIABLE, "")
    ports = Ports(stream=stream, http=http, tls=tls)
    try:
        await_serving(host, ports, timeout_s=FOUND_TIMEOUT_S)
    except NotReady as error:
        raise BrokerUnavailable(f"{ADDRESS_VARIABLE} names a broker, but {error}") from error
    machine = int(pid) if pid.isdigit() else None
    return RunningBroker("environment", host, ports, pid=machine, certificates=certificates)


def tls_from_environment() -> tuple[int, Certificates | None]:
    """Return the port and certificates of the TLS listener, if the environment names both."""
    text, folder = os.environ.get(TLS_VARIABLE), os.environ.get(CERTIFICATES_VARIABLE)
    if not text or not folder:
        return 0, None
    _, port = host_and_port(TLS_VARIABLE, text)
    return port, Certificates(Path(folder))


def host_and_port(variable: str, text: str) -> tuple[str, int]:
    """Split `host:port`, naming the environment variable if that fails."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit():
        raise BrokerUnavailable(f"{variable} must be host:port, it is {text!r}")
    return host, int(port)


def running(record: Record) -> RunningBroker:
    """Return what a record says as a running broker."""
    part = container if record.way == "container" else node
    return RunningBroker(
        record.way,
        part.ADDRESS,
        record.ports,
        pid=part.machine_of(record),
        name=record.name,
        certificates=records.certificates_of(record.name) if record.ports.tls else None,
        stop=lambda: stop(latest(record)),
        control=lambda *words: control(latest(record), words),
        crash=lambda: crash(latest(record)),
    )


def latest(record: Record) -> Record:
    """Return the record as it is now: a node that was started again has another process."""
    return records.load(record.name) or record


def crash(record: Record) -> None:
    """End a started broker by SIGKILL and start it on its data."""
    if record.way == "container":
        container.crash(record)
    else:
        node.crash(tree(), record)


def control(record: Record, words: Sequence[str]) -> str:
    """Run `rabbitmqctl` beside a started broker and return what it printed.

    Raises:
        OSError: It ended with another status than 0.
    """
    if record.way == "container":
        done = container.control(record, words)
    else:
        done = node.control(tree(), record, words)
    if done.returncode != 0:
        raise OSError(f"rabbitmqctl {words}: {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def stop(record: Record) -> None:
    """End a started broker and remove what it left."""
    (container.stop if record.way == "container" else node.stop)(record)


def is_running(record: Record) -> bool:
    """Return whether a recorded broker still runs."""
    if record.way == "container":
        return container.is_running(record)
    return record.runner is not None and record.runner.is_running()


def stop_abandoned() -> None:
    """End the brokers whose owner has ended, and forget those that ended by themselves."""
    for record in records.all_records():
        is_abandoned = record.owner is not None and not record.owner.is_running()
        if is_abandoned or not is_running(record):
            stop(record)
    records.forget_half_made()
