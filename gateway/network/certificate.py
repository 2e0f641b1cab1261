"""Whom a client's certificate names: the user that EXTERNAL logs in.

What is read here was verified before, by who shook hands with the client: its form is right and an
authority that is believed has signed it.

Source: RFC 5280, RFC 4514; how RabbitMQ writes names was observed on RabbitMQ 4.3.
"""

import enum
import ipaddress
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_SEQUENCE: Final = 0x30
_OCTET_STRING: Final = 0x04
_EXTENSIONS: Final = 0xA3
_VERSION: Final = 0xA0
_SERIAL, _ALGORITHM, _ISSUER, _VALIDITY, _SUBJECT, _KEY = range(6)
"""Places of what is signed, behind the version."""
_UTC_TIME: Final = 0x17
_FIRST_YEAR_OF_1900S: Final = "50"
_COMMON_NAME: Final = "2.5.4.3"
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_LONG_LENGTH: Final = 0x80
_SEVEN_BITS: Final = 0x7F
_FIRST_ARCS: Final = 40

_KEYWORDS: Final = {
    "2.5.4.4": "SN",
    "2.5.4.42": "GIVENNAME",
    "2.5.4.43": "INITIALS",
    "2.5.4.44": "GENERATIONQUALIFIER",
    _COMMON_NAME: "CN",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "TITLE",
    "2.5.4.6": "C",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.65": "PSEUDONYM",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "EMAILADDRESS",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""What RabbitMQ calls the parts of a subject; all others it calls by their numbers."""

_AS_TEXT: Final = frozenset(_KEYWORDS) - {"0.9.2342.19200300.100.1.1"} | {"2.5.4.41", "2.5.4.46"}
"""Kinds whose values RabbitMQ reads; of the others it writes the bytes as Erlang shows them."""

_ENCODINGS: Final = {20: "latin-1", 28: "utf-32-be", 30: "utf-16-be"}
"""Of the kinds of strings; the other kinds are UTF-8 or a part of it."""

_ESCAPED: Final = frozenset('"+,;<>\\')
_ESCAPED_IN_FRONT: Final = frozenset(" #")
_FIRST_SHOWN, _LAST_SHOWN = 0x20, 0x7D


class AlternativeName(enum.IntEnum):
    """Kinds of alternative names, by their tags."""

    EMAIL = 0x81
    DNS = 0x82
    URI = 0x86
    IP = 0x87


class Unreadable(ValueError):
    """The bytes are no certificate, or one that is put together in another way than they are."""


Naming = Callable[[bytes], str]
"""From a certificate, DER, to the name of a user; empty if it has none. Raises Unreadable."""


def distinguished_name(certificate: bytes) -> str:
    """Return the whole subject as RabbitMQ writes it: the last part first, "CN=app,O=acme"."""
    return _written(_fields(certificate)[_SUBJECT][1])


def common_name(certificate: bytes) -> str:
    """Return the subject's common name; several are joined by commas."""
    subject = _name(_fields(certificate)[_SUBJECT][1])
    return ",".join(text for group in subject for kind, text in group if kind == _COMMON_NAME)


class Description(NamedTuple):
    """A certificate as administrators see it, written as RabbitMQ does."""

    subject: str
    issuer: str
    serial_number: str
    validity: str


def described(certificate: bytes) -> Description:
    """Show a certificate, DER: "CN=app,O=acme", hexadecimal digits, two times. Raises Unreadable.

    Source: as observed on RabbitMQ 4.3.
    """
    fields = _fields(certificate)
    begin, end = (_moment(tag, text) for tag, text in _elements(fields[_VALIDITY][1]))
    return Description(
        _written(fields[_SUBJECT][1]),
        _written(fields[_ISSUER][1]),
        f"{int.from_bytes(fields[_SERIAL][1], signed=True):X}",
        f"{begin} - {end}",
    )


def revocation_list_issuer(revocation_list: bytes) -> str:
    """Return whose list of revoked certificates it is, DER, as `described` writes an issuer.

    Raises Unreadable. Source: RFC 5280, 5.1: the version may be missing, and the algorithm precedes
    the issuer.
    """
    signed = next(_elements(_only(revocation_list, _SEQUENCE)), None)
    sequences = [] if signed is None else list(_elements(signed[1]))
    names = [content for tag, content in sequences[:3] if tag == _SEQUENCE]
    if len(names) < 2:  # noqa: PLR2004  # the algorithm and the issuer
        raise Unreadable("no list of revoked certificates")
    return _written(names[1])


def _moment(tag: int, content: bytes) -> str:
    """Return a time in ISO 8601. Source: RFC 5280, 4.1.2.5: with seconds and in UTC."""
    text = content.decode("latin-1")
    if tag == _UTC_TIME:
        century = "19" if text[:2] >= _FIRST_YEAR_OF_1900S else "20"
        text = century + text
    date, time = text[:8], text[8:14]
    return f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"


def alternative_name(kind: AlternativeName, index: int) -> Naming:
    """Return what finds the alternative name of a kind with that index, from 0 on."""

    def find(certificate: bytes) -> str:
        found = [value for tag, value in _alternative_names(certificate) if tag == kind]
        if index >= len(found):
            return ""
        if kind is AlternativeName.IP:
            return str(ipaddress.ip_address(found[index]))
        return found[index].decode("utf-8", "surrogateescape")

    return find


def _escaped(text: str) -> str:
    """Escape a value as RabbitMQ does: whatever is not a plain character by the bytes of UTF-8."""
    written: list[str] = []
    last = len(text) - 1
    for place, character in enumerate(text):
        is_edge = (place == 0 and character in _ESCAPED_IN_FRONT) or (
            place == last and character == " "
        )
        if is_edge or character in _ESCAPED:
            written.append("\\" + character)
        elif _FIRST_SHOWN <= ord(character) <= _LAST_SHOWN:
            written.append(character)
        else:
            encoded = character.encode("utf-8", "surrogatepass")
            written.extend(f"\\{each:02X}" for each in encoded)
    return "".join(written)


def _written(name: bytes) -> str:
    groups = [
        "+".join(f"{_KEYWORDS.get(kind, kind)}={_escaped(text)}" for kind, text in group)
        for group in _name(name)
    ]
    return ",".join(reversed(groups))


def _name(content: bytes) -> list[list[tuple[str, str]]]:
    """Return a subject or issuer: groups of kind and text, in the order of the certificate."""
    return [
        [_attribute(attribute) for _, attribute in _elements(group)]
        for _, group in _elements(content)
    ]


def _attribute(content: bytes) -> tuple[str, str]:
    (_, raw_kind), (tag, value) = _elements(content)
    kind = _dotted(raw_kind)
    if kind in _AS_TEXT:
        return kind, value.decode(_ENCODINGS.get(tag, "utf-8"), "surrogateescape")
    behind_kind = content.index(raw_kind) + len(raw_kind)
    return kind, "{asn1_OPENTYPE,<<" + ",".join(map(str, content[behind_kind:])) + ">>}"


def _alternative_names(certificate: bytes) -> list[tuple[int, bytes]]:
    for tag, content in _fields(certificate):
        if tag != _EXTENSIONS:
            continue
        for _, extension in _elements(_only(content, _SEQUENCE)):
            (_, kind), *_, (value_tag, value) = _elements(extension)
            if _dotted(kind) == _ALTERNATIVE_NAMES and value_tag == _OCTET_STRING:
                return list(_elements(_only(value, _SEQUENCE)))
    return []


def _fields(certificate: bytes) -> list[tuple[int, bytes]]:
    """Return what is signed: serial number, algorithm, issuer, validity, subject, key, …."""
    signed = next(_elements(_only(certificate, _SEQUENCE)), None)
    if signed is None or signed[0] != _SEQUENCE:
        raise Unreadable("no certificate")
    fields = list(_elements(signed[1]))
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    if len(fields) <= _KEY:
        raise Unreadable("a certificate without a subject")
    return fields


def _only(data: bytes, tag: int) -> bytes:
    """Return the content of the one element that there is."""
    found = list(_elements(data))
    if len(found) != 1 or found[0][0] != tag:
        raise Unreadable("another element than expected")
    return found[0][1]


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the elements that lie behind each other, each with its tag. Source: X.690, DER."""
    position = 0
    while position < len(data):
        header = data[position : position + 2]
        position += 2
        if len(header) < 2:  # noqa: PLR2004  # a tag and a length
            raise Unreadable("cut short")
        tag, length = header
        if length & _LONG_LENGTH:
            count = length & _SEVEN_BITS
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + length > len(data):
            raise Unreadable("cut short")
        yield tag, data[position : position + length]
        position += length


def _dotted(content: bytes) -> str:
    """Return an object identifier in digits."""
    arcs: list[int] = []
    value = 0
    for each in content:
        value = value << 7 | each & _SEVEN_BITS
        if not each & _LONG_LENGTH:
            arcs.append(value)
            value = 0
    if not arcs:
        raise Unreadable("an empty identifier")
    first = min(arcs[0] // _FIRST_ARCS, 2)
    return ".".join(map(str, (first, arcs[0] - _FIRST_ARCS * first, *arcs[1:])))
