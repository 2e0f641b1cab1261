"""The first bytes of protocols that people take for each other; no I/O.

A protocol is told by what its clients send first. What a port's own protocol allows goes before
that, and is never taken for another: the few frames that two protocols allow have no other name.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from gateway.network.addresses import shown

_Bounds: TypeAlias = tuple[int, int]
Pattern: TypeAlias = tuple[_Bounds, ...]
"""The lowest and the highest value of each of the first bytes."""
Patterns: TypeAlias = tuple[Pattern, ...]


class Protocol(NamedTuple):
    """A protocol that a client may speak.

    Attributes:
        name: Word for it in log lines.
        patterns: Of the first bytes; one of them matches.
        spoken_at: Words of the ports where it is spoken, as listeners have them.
        opened_by: The setting that opens such a port; empty where Hutch has none.
    """

    name: str
    patterns: Patterns
    spoken_at: tuple[str, ...] = ()
    opened_by: str = ""


class Match(Enum):
    """Agreement of some first bytes with a pattern."""

    NO = 0
    SO_FAR = 1
    """There are too few of them to say."""
    YES = 2


def _text(*texts: bytes) -> Patterns:
    return tuple(tuple((byte, byte) for byte in text) for text in texts)


def _run(*parts: int | _Bounds) -> Pattern:
    return tuple((part, part) if isinstance(part, int) else part for part in parts)


_ANY: Final = (0x00, 0xFF)
_GRAPHIC: Final = (0x20, 0x7E)
_IN_TEXT: Final = (0x09, 0x7E)
_HELLO_OF_PRAVEGA: Final = _text(b"\xff\xff\xff\x81")


def _frames(*codes: int) -> Patterns:
    """Return the patterns of Pravega's frames: a code, and a length below 2^24."""
    return tuple((*_run(*code.to_bytes(4, "big", signed=True)), (0, 0)) for code in codes)


TLS: Final = Protocol("TLS", (_run(0x16, 3, (0, 4)),))
HTTP: Final = Protocol(
    "HTTP",
    _text(
        *(b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE "),
        *(b"PATCH ", b"OPTIONS ", b"TRACE ", b"CONNECT "),
    ),
    ("http",),
    "management.enabled",
)
HTTP_2: Final = Protocol(
    "HTTP/2", _text(b"PRI * HTTP/2.0\r\n"), ("controller",), "wire.controller_port"
)
AMQP_0: Final = Protocol("AMQP-0-9-1", _text(b"AMQP\0\0", b"AMQP\x01\x01"))
AMQP_1: Final = Protocol("AMQP-1.0", tuple(_run(*b"AMQP", kind, 1) for kind in (0, 2, 3)))
MQTT: Final = Protocol(
    "MQTT",
    tuple(_run(0x10, *((0x80, 0xFF),) * more, (0, 0x7F), 0, (4, 6), *b"MQ") for more in range(4)),
)
PROXY: Final = Protocol("PROXY", _text(b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"))
STREAM: Final = Protocol(
    "stream",
    tuple(
        _run(*size, 0, (1, 0x1F), 0, (1, 2))  # a size, from 4 up to 16 MiB; a key and its version
        for size in ((0, 0, 0, (4, 0xFF)), (0, 0, (1, 0xFF), _ANY), (0, (1, 0xFF), _ANY, _ANY))
    ),
    ("stream",),
    "stream.port",
)
MEWBASE: Final = Protocol(
    "mewbase",
    (
        _run((5, 0xFF), 0, 0, 0, (1, 0x13), _GRAPHIC),  # a size, from 5 up to 64 KiB; a type
        _run(_ANY, (1, 0xFF), 0, 0, (1, 0x13), _GRAPHIC),
    ),
    ("mewbase",),
    "mewbase.port",
)
PRAVEGA: Final = Protocol("pravega", _HELLO_OF_PRAVEGA, ("pravega",), "wire.port")
EARLY: Final = Protocol(
    "pravega-early",
    _frames(1, 8, 100),
    ("pravega-early", "pravega"),
    "early.port",
)
TEXT: Final = Protocol("text", ((_IN_TEXT,) * 4,))

PROTOCOLS: Final = (
    *(TLS, HTTP, HTTP_2, AMQP_0, AMQP_1, MQTT, PROXY),
    *(STREAM, MEWBASE, PRAVEGA, EARLY, TEXT),
)
"""All of them; the first that matches counts."""
LOOK_BYTES: Final = max(len(each) for protocol in PROTOCOLS for each in protocol.patterns)
"""Bytes of the longest pattern: with that many, `foreign` is never undecided."""

PORT_OF_TLS: Final = "tls"
"""Word for any port before its handshake."""
ALLOWED: Final[Mapping[str, Patterns]] = {
    PORT_OF_TLS: TLS.patterns,
    "http": HTTP.patterns,
    "controller": HTTP_2.patterns,
    "stream": STREAM.patterns,
    "mewbase": MEWBASE.patterns,
    "pravega": _HELLO_OF_PRAVEGA
    + _frames(-1, 1, 3, 4, 5, 9, 11, 20, 28, 30, 32, 34, 36, 38, 40, 41, 58)
    + _frames(68, 70, 71, 72, 73, 74, 76, 78, 83, 85, 88, 89, 90, 100),
    "pravega-early": _frames(-2, 0, 1, 3, 4, 8, 100),
}
"""The first bytes that the protocol of each port allows."""
_NEVER_FOREIGN: Final[Mapping[str, tuple[Protocol, ...]]] = {"http": (HTTP, TEXT)}
"""A method of HTTP may be any word."""
_TLS_OPENED_BY: Final[Mapping[str, str]] = {
    "stream": "tls.certificate",
    "mewbase": "mewbase.tls_port",
    "pravega": "wire.tls",
    "controller": "wire.tls",
}
_STRANGE: Final = "none, it is not spoken here"

OpenPorts: TypeAlias = Mapping[str, tuple[str, int]]
"""Addresses of the ports that are open, by their words; that of a port over TLS ends with /ssl."""


def foreign(first: bytes, port: str) -> Protocol | Match:
    """Return the protocol that a client speaks where it is not that of the port.

    Args:
        first: Its first bytes, as many as there are.
        port: Word of the port.

    Returns:
        Match.NO if it may be the port's own, or one that is not in the table; Match.SO_FAR if more
        bytes may name it.
    """
    own = _best(first, ALLOWED.get(port, ((),)))
    if own is Match.YES:
        return Match.NO
    never = _NEVER_FOREIGN.get(port, ())
    for protocol in PROTOCOLS:
        if port in protocol.spoken_at or protocol in never:
            continue
        match = _best(first, protocol.patterns)
        if match is Match.YES and own is Match.NO:
            return protocol
        if match is not Match.NO:
            return Match.SO_FAR
    return Match.NO


def _best(first: bytes, patterns: Patterns) -> Match:
    return max((_match(first, each) for each in patterns), key=lambda match: match.value)


def _match(first: bytes, pattern: Pattern) -> Match:
    if any(not low <= byte <= high for byte, (low, high) in zip(first, pattern, strict=False)):
        return Match.NO
    return Match.YES if len(first) >= len(pattern) else Match.SO_FAR


def wanted(protocol: Protocol, port: str, open_ports: OpenPorts) -> str:
    """Return the address that a client of a protocol wants, or the reason against it.

    Args:
        protocol: What it speaks.
        port: Word of the port where it does; that of one over TLS ends with /ssl.
        open_ports: Those that there are.
    """
    if protocol is TLS:
        words: tuple[str, ...] = (f"{port}/ssl",)
        opened_by = _TLS_OPENED_BY.get(port, "")
    else:
        words, opened_by = protocol.spoken_at, protocol.opened_by
    for word in words:
        if word in open_ports:
            return shown(*open_ports[word])
    for word in words:
        if (over_tls := f"{word}/ssl") in open_ports:
            return f"{shown(*open_ports[over_tls])} with TLS"
    return f"none is open, see {opened_by}" if opened_by else _STRANGE


_GOAWAY: Final = b"\x07\0" + bytes(4) + bytes(4) + b"\0\0\0\x01"
_FIXED: Final[Mapping[str, bytes]] = {
    "TLS": b"\x15\x03\x03\x00\x02\x02\x28",  # a fatal alert, handshake_failure
    "AMQP-0-9-1": b"AMQP\0\0\0\0",  # no version
    "AMQP-1.0": b"AMQP\0\0\0\0",
    "MQTT": b"\x20\x02\x00\x01",  # CONNACK: this version is not spoken
}


def answer(protocol: Protocol, text: str) -> bytes:
    """Return the answer to a client of a protocol in its own words; empty where it has none."""
    line = text.encode("ascii", "replace") + b"\n"
    match protocol.name:
        case "HTTP":
            head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            return head + b"Content-Length: %d\r\n\r\n" % len(line) + line
        case "HTTP/2":  # settings, then GOAWAY: no stream, PROTOCOL_ERROR, the text
            size = (len(line) + 8).to_bytes(3, "big")
            return bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)) + size + _GOAWAY + line
    return _FIXED.get(protocol.name, b"")
