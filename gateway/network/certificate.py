"""The user that a client's certificate names, for logins by EXTERNAL.

TLS has verified what is read here: the form is right, and a trusted authority has signed it.

`cryptography` reads the bytes by the types below, which leave texts as they are: its own
certificates refuse texts that TLS and RabbitMQ take (docs/adr/0024).

Source: RFC 5280, RFC 4514; how RabbitMQ writes names was observed on RabbitMQ 4.3.
"""

import enum
import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, NamedTuple

from cryptography.hazmat import asn1
from cryptography.x509 import ObjectIdentifier
from cryptography.x509.oid import ExtensionOID, NameOID

_KEYWORDS: Final = {
    NameOID.SURNAME: "SN",
    NameOID.GIVEN_NAME: "GIVENNAME",
    NameOID.INITIALS: "INITIALS",
    NameOID.GENERATION_QUALIFIER: "GENERATIONQUALIFIER",
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.TITLE: "TITLE",
    NameOID.COUNTRY_NAME: "C",
    NameOID.SERIAL_NUMBER: "SERIALNUMBER",
    NameOID.PSEUDONYM: "PSEUDONYM",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.EMAIL_ADDRESS: "EMAILADDRESS",
    NameOID.USER_ID: "UID",
}
"""RabbitMQ's words for the parts of a subject; it writes all others by their numbers."""

_NAME: Final = ObjectIdentifier("2.5.4.41")
_AS_TEXT: Final = frozenset(_KEYWORDS) - {NameOID.USER_ID} | {_NAME, NameOID.DN_QUALIFIER}
"""Kinds with values that RabbitMQ reads; it writes the bytes of others as Erlang shows them."""

_ENCODINGS: Final = {b"\x14": "latin-1", b"\x1c": "utf-32-be", b"\x1e": "utf-16-be"}
"""Encodings of texts by their tags; all others are UTF-8 or a part of it."""

_SEQUENCE: Final = b"\x30"
_ESCAPED: Final = frozenset('"+,;<>\\')
_ESCAPED_IN_FRONT: Final = frozenset(" #")
_FIRST_SHOWN, _LAST_SHOWN = 0x20, 0x7D


class AlternativeName(bytes, enum.Enum):
    """Kinds of alternative names, by their tags."""

    EMAIL = b"\x81"
    DNS = b"\x82"
    URI = b"\x86"
    IP = b"\x87"


class UnreadableCertificate(ValueError):
    """The bytes are no certificate, or are not DER."""


@contextmanager
def _unreadable() -> Iterator[None]:
    """Turn every error about the bytes into Unreadable."""
    try:
        yield
    except ValueError as error:
        raise UnreadableCertificate(str(error)) from error


Naming = Callable[[bytes], str]
"""Returns the user's name in a certificate (DER); empty if it has none. Raises Unreadable."""


@asn1.sequence
class _Attribute:
    kind: ObjectIdentifier
    value: asn1.TLV


_Name = list[asn1.TLV]
"""Groups of attributes. They are sets, which some authorities do not sort as DER demands."""
_Time = asn1.UTCTime | asn1.GeneralizedTime


@asn1.sequence
class _Validity:
    begin: _Time
    end: _Time


@asn1.sequence
class _Extension:
    kind: ObjectIdentifier
    is_critical: bool | None
    value: bytes


@asn1.sequence
class _SignedPart:
    """Source: RFC 5280, 4.1."""

    version: Annotated[int | None, asn1.Explicit(0)]
    serial: int
    algorithm: asn1.TLV
    issuer: _Name
    validity: _Validity
    subject: _Name
    key: asn1.TLV
    issuer_number: Annotated[asn1.BitString | None, asn1.Implicit(1)]
    subject_number: Annotated[asn1.BitString | None, asn1.Implicit(2)]
    extensions: Annotated[list[_Extension] | None, asn1.Explicit(3)]


@asn1.sequence
class _Certificate:
    signed: _SignedPart
    algorithm: asn1.TLV
    signature: asn1.TLV


@asn1.sequence
class _SignedList:
    """Source: RFC 5280, 5.1."""

    version: int | None
    algorithm: asn1.TLV
    issuer: _Name
    begin: _Time
    end: _Time | None
    revoked: list[asn1.TLV] | None
    extensions: Annotated[list[_Extension] | None, asn1.Explicit(0)]


@asn1.sequence
class _RevocationList:
    signed: _SignedList
    algorithm: asn1.TLV
    signature: asn1.TLV


@asn1.sequence
class _Group:
    """A sequence around attributes, since a list can be read only as a part of one."""

    attributes: list[_Attribute]


@asn1.sequence
class _AlternativeNames:
    """A sequence around names; why, `_Group` says."""

    names: list[asn1.TLV]


@_unreadable()
def distinguished_name(certificate: bytes) -> str:
    """Return the whole subject as RabbitMQ writes it: the last part first, "CN=app,O=acme"."""
    return _written(_signed(certificate).subject)


@_unreadable()
def common_name(certificate: bytes) -> str:
    """Return the subject's common name; several are joined by commas."""
    groups = _groups(_signed(certificate).subject)
    return ",".join(
        _text(each) for group in groups for each in group if each.kind == NameOID.COMMON_NAME
    )


class Description(NamedTuple):
    """A certificate as administrators see it, written as RabbitMQ does."""

    subject: str
    issuer: str
    serial_number: str
    validity: str


@_unreadable()
def described(certificate: bytes) -> Description:
    """Show a certificate, DER: "CN=app,O=acme", hexadecimal digits, two times. Raises Unreadable.

    Source: as observed on RabbitMQ 4.3.
    """
    signed = _signed(certificate)
    begin, end = (
        f"{each.as_datetime().replace(tzinfo=None).isoformat()}Z"
        for each in (signed.validity.begin, signed.validity.end)
    )
    return Description(
        _written(signed.subject),
        _written(signed.issuer),
        f"{signed.serial:X}",
        f"{begin} - {end}",
    )


@_unreadable()
def revocation_list_issuer(revocation_list: bytes) -> str:
    """Return the issuer of a list of revoked certificates, DER, as `described` writes it.

    Raises Unreadable.
    """
    return _written(asn1.decode_der(_RevocationList, revocation_list).signed.issuer)


def alternative_name(kind: AlternativeName, index: int) -> Naming:
    """Return a function that finds the alternative name of a kind with that index, from 0 on."""

    @_unreadable()
    def find(certificate: bytes) -> str:
        found = [each.data for each in _alternative_names(certificate) if each.tag_bytes == kind]
        if index >= len(found):
            return ""
        name = bytes(found[index])
        if kind is AlternativeName.IP:
            return str(ipaddress.ip_address(name))
        return name.decode("utf-8", "surrogateescape")

    return find


def _escaped(text: str) -> str:
    """Escape a value as RabbitMQ does: each character beyond ASCII by its bytes of UTF-8."""
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


def _written(name: _Name) -> str:
    groups = ["+".join(map(_part, group)) for group in _groups(name)]
    return ",".join(reversed(groups))


def _groups(name: _Name) -> list[list[_Attribute]]:
    """Return the groups of attributes in the order of the certificate."""
    lists = [_element(_SEQUENCE, bytes(group.data)) for group in name]
    return [asn1.decode_der(_Group, _element(_SEQUENCE, each)).attributes for each in lists]


def _part(attribute: _Attribute) -> str:
    kind = attribute.kind
    return f"{_KEYWORDS.get(kind, kind.dotted_string)}={_escaped(_text(attribute))}"


def _text(attribute: _Attribute) -> str:
    tag, content = attribute.value.tag_bytes, bytes(attribute.value.data)
    if attribute.kind in _AS_TEXT:
        return content.decode(_ENCODINGS.get(tag, "utf-8"), "surrogateescape")
    return "{asn1_OPENTYPE,<<" + ",".join(map(str, _element(tag, content))) + ">>}"


def _alternative_names(certificate: bytes) -> list[asn1.TLV]:
    for each in _signed(certificate).extensions or ():
        if each.kind == ExtensionOID.SUBJECT_ALTERNATIVE_NAME:
            return asn1.decode_der(_AlternativeNames, _element(_SEQUENCE, each.value)).names
    return []


def _signed(certificate: bytes) -> _SignedPart:
    return asn1.decode_der(_Certificate, certificate).signed


def _element(tag: bytes, content: bytes) -> bytes:
    """Return an element of DER: the tag, the length, which `cryptography` writes, the content."""
    return tag + asn1.encode_der(content)[1:]
