"""Health check of the server's own certificates."""

import asyncio
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.management.errors import WrongRequest
from gateway.management.http.call import Answer, Call
from gateway.management.http.views.health import failed, passed
from gateway.network.certificate import Unreadable, described

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
        raise Unreadable("no certificate")
    return ends


def _until(call: Call) -> datetime:
    """Return until when certificates are to last. Raises WrongRequest."""
    if call.path["unit"] not in _DAYS:
        raise WrongRequest("Time unit not recognised. Supported units: days, weeks, months, years.")
    if _COUNT.fullmatch(call.path["within"]) is None:
        raise WrongRequest("Invalid expiration value.")
    days = int(call.path["within"]) * _DAYS[call.path["unit"]]
    return datetime.now(UTC) + timedelta(days=min(days, 365 * _YEARS_MAX))


async def check(call: Call) -> Answer:
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
