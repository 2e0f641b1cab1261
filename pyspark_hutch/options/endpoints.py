"""Addresses of servers: the lists of `endpoints`, and the parts of a `uri`."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from hutch.client.login import Endpoint
from pyspark_hutch.options.errors import Unfit
from pyspark_hutch.options.kinds import TEXT_BYTES_MAX, ValueKind, checked_text
from pyspark_hutch.options.passwords import is_password

PORT: Final = 5552
TLS_PORT: Final = 5551
ENDPOINTS_MAX: Final = 1_000
PORT_MAX: Final = 65_535

_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]{2,45}(?:%[\w.~-]{1,32})?)\](?::([0-9]{1,5}))?")
_PLAIN: Final = re.compile(r"([\w.-]{1,253})(?::([0-9]{1,5}))?")
_SCHEMES: Final = {"rabbitmq-stream": False, "rabbitmq-stream+tls": True}


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """A host and its port; None where the port is the usual one, which TLS decides."""

    host: str
    port: int | None

    def endpoint(self, *, tls: bool) -> Endpoint:
        """Return the address with its port."""
        return Endpoint(self.host, self.port or (TLS_PORT if tls else PORT))


@dataclass(frozen=True, slots=True)
class Uri:
    """Parts of a URI; None where it says nothing."""

    address: ListedAddress
    tls: bool
    username: str | None
    password: str | None = field(repr=False)
    vhost: str | None


def _addresses(text: str) -> tuple[ListedAddress, ...]:
    parts = text.split(",")
    if "@" in text:
        raise Unfit("takes no user or password: they have options of their own")
    if len(parts) > ENDPOINTS_MAX:
        raise Unfit(f"takes at most {ENDPOINTS_MAX:,} of them")
    found = tuple(address_of(part.strip()) for part in parts)
    if len(set(found)) < len(found):
        raise Unfit("names a server twice")
    return found


def address_of(text: str) -> ListedAddress:
    """Return the address that `host`, `host:port` or `[IPv6]:port` stands for."""
    match = _BRACKETED.fullmatch(text) or _PLAIN.fullmatch(text)
    if match is None:
        raise Unfit("")
    if match.re is _BRACKETED:
        _check_ipv6(match[1])
    port = None if match[2] is None else int(match[2])
    if port is not None and not 0 < port <= PORT_MAX:
        raise Unfit(f"takes ports from 1 to {PORT_MAX}")
    return ListedAddress(match[1], port)


def _check_ipv6(host: str) -> None:
    try:
        IPv6Address(host)
    except ValueError:
        raise Unfit("") from None


def _uri(text: str) -> Uri:
    if not text.isprintable() or " " in text:  # some of which urlsplit would leave out
        raise Unfit("")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise Unfit("") from None
    if parts.scheme not in _SCHEMES or parts.query or parts.fragment:
        raise Unfit("")
    user, password, place = _user_and_place(parts)
    return Uri(address_of(place), _SCHEMES[parts.scheme], user, password, _vhost(parts.path))


def _user_and_place(parts: SplitResult) -> tuple[str | None, str | None, str]:
    before, at, place = parts.netloc.rpartition("@")
    if not at:
        return None, None, place
    user, colon, password = before.partition(":")
    if colon and not is_password(_decoded(password)):
        raise Unfit("has a password that is none")
    return _name(user), _decoded(password) if colon else None, place


def _vhost(path: str) -> str | None:
    name = path.removeprefix("/")
    if "/" in name:
        raise Unfit("a / in the name of a virtual host is written %2F")
    return _name(name) if name else None


def _name(part: str) -> str:
    try:
        return checked_text(_decoded(part), TEXT_BYTES_MAX)
    except Unfit as error:
        raise Unfit(str(error) or "has a user or a virtual host that is no name") from None


def _decoded(part: str) -> str:
    if re.search("%(?![0-9A-Fa-f]{2})", part):
        raise Unfit("a % is written %25")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Unfit("has a part that is no UTF-8") from None


ENDPOINTS: Final = ValueKind(
    f"host:port between commas, an IPv6 address in brackets; the port is {PORT} by default",
    _addresses,
)
URI: Final = ValueKind(
    "rabbitmq-stream://user:password@host:port/vhost, or rabbitmq-stream+tls://… the same", _uri
)
