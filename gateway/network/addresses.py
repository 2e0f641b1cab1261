"""Addresses of peers: what is on this machine, and which addresses count as one."""

import ipaddress
from typing import Final

_NETWORK_BITS: Final = 64
"""Of IPv6: one peer has all addresses of such a network."""


def is_loopback(address: str) -> bool:
    """Tell whether a peer's address is on this machine."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def source_of(address: str) -> str:
    """Return what an address counts as: itself, or its network.

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
