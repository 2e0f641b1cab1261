"""Whom certificates name; what RabbitMQ makes of the same ones is in tests/compat/test_tls.py."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from compat.certificates import CLIENT_NAME, CLIENT_SUBJECT, Authority, name
from gateway.network.certificate import (
    AlternativeName,
    UnreadableCertificate,
    alternative_name,
    common_name,
    described,
    distinguished_name,
)

CN, ORGANIZATION = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME
Make = Callable[..., bytes]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Make certificates, DER."""
    authority = Authority()
    folder = tmp_path_factory.mktemp("signed")

    def make(
        subject: x509.Name = CLIENT_SUBJECT, alternatives: list[x509.GeneralName] | None = None
    ) -> bytes:
        pair = authority.client(folder, subject=subject, alternatives=alternatives or ())
        return ssl.PEM_cert_to_DER_cert(Path(pair.certificate).read_text())

    return make


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        (CLIENT_SUBJECT, CLIENT_NAME),
        (name((CN, "a"), (CN, "b")), "CN=b,CN=a"),
        (name((CN, "Bay, ern"), (ORGANIZATION, '"+<>;\\')), 'O=\\"\\+\\<\\>\\;\\\\,CN=Bay\\, ern'),
        (name((CN, " #a# ")), "CN=\\ #a#\\ "),
        (name((CN, "# a")), "CN=\\# a"),
        (name((CN, " ")), "CN=\\ "),
        (name((CN, "Müller~\x01")), "CN=M\\C3\\BCller\\7E\\01"),
        (name((CN, "日")), "CN=\\E6\\97\\A5"),
        (
            name((NameOID.DOMAIN_COMPONENT, "org"), (NameOID.EMAIL_ADDRESS, "a@b.org")),
            "EMAILADDRESS=a@b.org,DC=org",
        ),
        (name((NameOID.USER_ID, "u")), "UID={asn1_OPENTYPE\\,\\<\\<12\\,1\\,117\\>\\>}"),
        (name((NameOID.POSTAL_CODE, "1")), "2.5.4.17={asn1_OPENTYPE\\,\\<\\<12\\,1\\,49\\>\\>}"),
    ],
)
def test_the_subject_is_written_as_rabbitmq_does(
    signed: Make, subject: x509.Name, written: str
) -> None:
    assert distinguished_name(signed(subject)) == written


def test_parts_that_belong_together_are_joined_by_plus(signed: Make) -> None:
    group = x509.RelativeDistinguishedName(
        [x509.NameAttribute(CN, "a"), x509.NameAttribute(ORGANIZATION, "b")]
    )
    assert distinguished_name(signed(x509.Name([group]))) == "CN=a+O=b"


def test_strings_of_other_kinds_are_read(signed: Make) -> None:
    two_bytes = x509.NameAttribute(CN, "bü", _type=x509.name._ASN1Type.BMPString)
    assert distinguished_name(signed(x509.Name([two_bytes]))) == "CN=b\\C3\\BC"


@pytest.mark.parametrize(
    ("tag", "content", "written"),
    [
        (19, b"app_1@*&", "CN=app_1@*&"),
        (20, b"M\xfcller_1", "CN=M\\C3\\BCller_1"),
        (12, b"M\xc3\xbcller1", "CN=M\\C3\\BCller1"),
        (12, b"M\xffller12", "CN=M\\EDUller12"),
        (22, b"app_1234", "CN=app_1234"),
        (28, b"\0\0\0\xfc\0\0\0b", "CN=\\C3\\BCb"),
    ],
    ids=["printable", "latin-1", "utf-8", "damaged", "ascii", "four bytes"],
)
def test_texts_that_tls_takes_are_read(
    signed: Make, tag: int, content: bytes, written: str
) -> None:
    """`cryptography` would make no such certificate, and refuses some of them."""
    certificate = signed(name((CN, "8 bytes.")))
    assert certificate.count(b"\x0c\x088 bytes.") == 1
    changed = certificate.replace(b"\x0c\x088 bytes.", bytes([tag, len(content)]) + content)
    assert distinguished_name(changed) == written.replace("\\EDU", "\\ED\\B3\\BF")


def test_a_group_may_be_in_any_order(signed: Make) -> None:
    group = x509.RelativeDistinguishedName([x509.NameAttribute(CN, each) for each in ("a", "b")])
    certificate = signed(x509.Name([group]))
    first, second = (b"\x30\x08\x06\x03\x55\x04\x03\x0c\x01" + each for each in (b"a", b"b"))
    assert certificate.count(first + second) == 1
    swapped = certificate.replace(first + second, second + first)
    assert distinguished_name(swapped) == "CN=b+CN=a"
    assert common_name(swapped) == "b,a"


def test_nobody_may_be_named(signed: Make) -> None:
    nobody = signed(x509.Name([]))
    assert distinguished_name(nobody) == ""
    assert common_name(nobody) == ""


def test_common_names_are_plain_and_joined(signed: Make) -> None:
    assert common_name(signed(name((CN, "a, ü"), (ORGANIZATION, "o"), (CN, "b")))) == "a, ü,b"


def test_an_alternative_name_is_found_by_kind_and_place(signed: Make) -> None:
    certificate = signed(
        alternatives=[
            x509.DNSName("a.example.org"),
            x509.RFC822Name("a@example.org"),
            x509.DNSName("b.example.org"),
            x509.UniformResourceIdentifier("spiffe://example.org/a"),
            x509.IPAddress(ipaddress.ip_address("192.0.2.1")),
        ]
    )
    for kind, index, found in (
        (AlternativeName.DNS, 0, "a.example.org"),
        (AlternativeName.DNS, 1, "b.example.org"),
        (AlternativeName.DNS, 2, ""),
        (AlternativeName.EMAIL, 0, "a@example.org"),
        (AlternativeName.URI, 0, "spiffe://example.org/a"),
        (AlternativeName.IP, 0, "192.0.2.1"),
    ):
        assert alternative_name(kind, index)(certificate) == found


def test_without_alternative_names_none_is_found(signed: Make) -> None:
    assert alternative_name(AlternativeName.DNS, 0)(signed()) == ""


def test_every_cut_of_a_certificate_is_told(signed: Make) -> None:
    certificate = signed()
    for end in range(len(certificate)):
        with pytest.raises(UnreadableCertificate):
            distinguished_name(certificate[:end])


def test_a_damaged_certificate_is_unreadable_or_read(signed: Make) -> None:
    certificate = signed(
        name((CN, "app"), (NameOID.USER_ID, "u")),
        [x509.DNSName("a.org"), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))],
    )
    kinds = [alternative_name(kind, 0) for kind in AlternativeName]
    refused = set[int]()
    for place in range(len(certificate)):
        for change in (0x01, 0x10, 0x20, 0x80, 0xFF):
            damaged = bytearray(certificate)
            damaged[place] ^= change
            for find in (distinguished_name, common_name, described, *kinds):
                try:
                    find(bytes(damaged))
                except UnreadableCertificate:
                    refused.add(place)
    assert 0 in refused
    assert len(certificate) - 1 not in refused


@pytest.mark.parametrize(
    ("serial", "shown"), [(1, "1"), (0x80, "80"), (0xABCDEF, "ABCDEF"), (2**158, "4" + "0" * 39)]
)
def test_a_certificate_is_described(tmp_path: Path, serial: int, shown: str) -> None:
    pair = Authority().client(tmp_path, serial=serial)
    text = Path(pair.certificate).read_text()
    found = described(ssl.PEM_cert_to_DER_cert(text))

    certificate = x509.load_pem_x509_certificate(text.encode())
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert found.subject == CLIENT_NAME
    assert found.issuer == "CN=Hutch test authority"
    assert found.serial_number == shown
    assert found.validity == f"{begin:%Y-%m-%dT%H:%M:%SZ} - {end:%Y-%m-%dT%H:%M:%SZ}"


def test_a_certificate_may_live_beyond_2049(tmp_path: Path) -> None:
    """From 2050 on times are written with four digits of the year."""
    pair = Authority().client(tmp_path, life=dt.timedelta(days=365 * 40))
    text = Path(pair.certificate).read_text()
    end = x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc
    assert end.year > 2049
    validity = described(ssl.PEM_cert_to_DER_cert(text)).validity
    assert validity.endswith(f" - {end:%Y-%m-%dT%H:%M:%SZ}")
