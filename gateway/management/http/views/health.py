"""Health checks, also of the server's own certificates."""

import asyncio
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import Response

from gateway.broker.service import ServiceState
from gateway.management.errors import WrongRequest
from gateway.management.http.answers import value_answer
from gateway.management.http.call import Answer, ApiCall
from gateway.network.certificate import UnreadableCertificate, described

LIVE: Final = "/health/live"
READY: Final = "/health/ready"
"""Paths without a login, for what starts and stops servers, and sends clients to them."""


def passed(**more: object) -> Response:
    """Answer that a check passed."""
    return value_answer({"status": "ok", **more})


def failed(reason: str, **more: object) -> Response:
    """Answer why a check failed."""
    answer = {"status": "failed", "reason": reason, **more}
    return value_answer(answer, HTTPStatus.SERVICE_UNAVAILABLE)


async def fine(_: ApiCall) -> Response:
    """Pass a check that cannot fail while the server answers."""
    return passed()


async def aliveness(call: ApiCall) -> Response:
    """Answer that a virtual host is there."""
    call.host()
    return passed()


async def alarms(call: ApiCall) -> Response:
    """Answer whether an alarm is set, or work that should go on has ended."""
    service = call.administration.service
    if alarms := service.alarm_names:
        return failed("There are alarms in effect", alarms=alarms)
    ended = service.ended
    return (
        failed("work of the server has ended: its log says why", ended=ended) if ended else passed()
    )


async def node(call: ApiCall) -> Response:
    """Check for alarms, and answer in the words of RabbitMQ's oldest check."""
    call.check_node()
    alarms = [resource.value for resource in call.administration.service.alarms]
    named = ",".join(f"{{resource_limit,{each},{call.facts.node}}}" for each in alarms)
    return failed(f"resource alarm(s) in effect:[{named}]") if alarms else passed()


def in_service(service: ServiceState) -> Response:
    """Answer whether clients are let in."""
    is_out = service.is_draining or service.is_stopped
    return failed("this node is not in service") if is_out else passed()


async def service(call: ApiCall) -> Response:
    """Return whether clients are let in."""
    return in_service(call.administration.service)


async def connections(call: ApiCall) -> Response:
    """Return whether one more connection is let in."""
    limit, count = call.facts.connections_max, len(call.administration.connections)
    if count < limit:
        return passed()
    return failed("node connection limit is reached", limit=limit, connections=count)


async def quorum(call: ApiCall) -> Response:
    """Return whether another member could take over, where there is a cluster."""
    cluster = call.administration.service.cluster
    if cluster is None:
        return passed(reason="single node cluster")
    members = cluster.members()
    if any(each["role"] == "following" for each in members):
        return passed(members=members)
    return failed("no other member follows the log", members=members)


async def port(call: ApiCall) -> Response:
    """Return whether a port is listened on."""
    text = call.path["port"]
    if not (text.isascii() and text.isdecimal()):
        raise WrongRequest("a port is a number")
    ports = [port for _, _, port in call.facts.listeners()]
    if int(text[:6]) in ports:
        return passed(port=int(text))
    return failed("No active listener", ports=ports, missing=int(text[:6]))


async def protocol(call: ApiCall) -> Response:
    """Return whether some protocols are spoken."""
    spoken = sorted({protocol for protocol, _, _ in call.facts.listeners()})
    missing = [each for each in call.path["protocol"].split(",") if each not in spoken]
    if missing:
        return failed("No active listener", protocols=spoken, missing=missing)
    return passed(protocols=spoken)


_DAYS: Final[Mapping[str, float]] = {"days": 1, "weeks": 7, "months": 365 / 12, "years": 365}
_COUNT: Final = re.compile("[0-9]{1,5}")
_YEARS_MAX: Final = 1_000
_PEM: Final = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


def ends_of(path: Path) -> list[datetime]:
    """Return when each certificate of a file, PEM, runs out; blocks.

    Raises:
        OSError, ValueError: The file cannot be read, or is none of certificates.
    """
    ends = []
    for text in _PEM.findall(path.read_text("ascii", "replace")):
        _, _, end = described(ssl.PEM_cert_to_DER_cert(text)).validity.partition(" - ")
        ends.append(datetime.fromisoformat(end))
    if not ends:
        raise UnreadableCertificate("no certificate")
    return ends


def _until(call: ApiCall) -> datetime:
    """Return until when certificates are to last. Raises WrongRequest."""
    if call.path["unit"] not in _DAYS:
        raise WrongRequest("Time unit not recognised. Supported units: days, weeks, months, years.")
    if _COUNT.fullmatch(call.path["within"]) is None:
        raise WrongRequest("Invalid expiration value.")
    days = int(call.path["within"]) * _DAYS[call.path["unit"]]
    return datetime.now(UTC) + timedelta(days=min(days, 365 * _YEARS_MAX))


async def certificates(call: ApiCall) -> Answer:
    """Return whether the certificates that TLS clients see last for a time from now on."""
    until = _until(call)
    short: dict[str, object] = {}
    for name, path in call.facts.certificates.items():
        try:
            ends = await asyncio.to_thread(ends_of, path)
        except (OSError, ValueError):
            ends = []  # no client could be shown it
        if not ends or min(ends) <= until:
            listed = [f"{end:%Y-%m-%d %H:%M:%S}" for end in ends]
            short |= {name: str(path), f"{name}_expires_on": listed}
    if not short:
        return passed()
    expired = [
        {"node": call.facts.node, "protocol": protocol, "interface": host, "port": port, **short}
        for protocol, host, port in call.facts.listeners()
        if protocol.endswith("/ssl")
    ]
    return failed("Certificates expiring", expired=expired)
