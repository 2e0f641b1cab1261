"""Addresses of peers: those of this machine, and those that count as one."""

import ipaddress
from typing import Final

_NETWORK_BITS: Final = 64
"""Size of an IPv6 network, whose addresses all belong to one peer."""


def is_loopback(address: str) -> bool:
    """Return whether a peer's address is on this machine."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def is_localhost(host: str) -> bool:
    """Return whether a host is the name of the machine itself, on every machine."""
    return host.lower().removesuffix(".") == "localhost"


def names_loopback(host: str) -> bool:
    """Return whether a client that connects to a host reaches its own machine."""
    try:
        return is_loopback(host)
    except ValueError:  # a name
        return is_localhost(host)


def source_of(address: str) -> str:
    """Return the address or network that an address counts as.

    Args:
        address: Of IPv4 or IPv6, perhaps with a zone; anything else counts as itself.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    if parsed.is_loopback:
        return str(parsed)
    return str(ipaddress.IPv6Network((parsed, _NETWORK_BITS), strict=False))


def shown(host: str, port: int) -> str:
    """Return an address as programs take it: of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_of(peer: str) -> str:
    """Return the host of a client's `host:port`, as connections have it."""
    return peer.rpartition(":")[0]
