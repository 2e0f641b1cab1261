"""TLS of Hutch and of RabbitMQ: what is offered, and whom a certificate logs in."""

from __future__ import annotations

import ssl
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from compat.broker import RunningBroker
from compat.certificates import Authority, Certificates, Pair, name
from gateway.network.certificate import distinguished_name
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.http_client import Api, eventually
from tests.integration.server import Endpoint, HutchServer
from tests.integration.tls_rig import (
    context_of,
    external_code,
    greeted,
    tls_arguments,
    tls_endpoint,
)

pytestmark = pytest.mark.timeout(300)

CN, O = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME  # noqa: E741 - as in a subject
SUBJECTS = {
    "plain": name((O, "client"), (CN, "app")),
    "special characters": name((O, "a, b"), (CN, '"q"+<>;\\=#~')),
    "spaces and signs at the edges": name((O, "# o "), (CN, " ")),
    "other alphabets": name((O, "Größe"), (CN, "日本")),
    "several of one kind": name((CN, "a"), (CN, "b")),
    "all kinds with a name": name(
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "st"),
        (NameOID.LOCALITY_NAME, "l"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "ou"),
        (NameOID.SURNAME, "sn"),
        (NameOID.GIVEN_NAME, "gn"),
        (NameOID.INITIALS, "i"),
        (NameOID.GENERATION_QUALIFIER, "gq"),
        (NameOID.TITLE, "t"),
        (NameOID.SERIAL_NUMBER, "n"),
        (NameOID.PSEUDONYM, "p"),
        (NameOID.DN_QUALIFIER, "dn"),
        (NameOID.DOMAIN_COMPONENT, "dc"),
        (NameOID.EMAIL_ADDRESS, "a@b.org"),
    ),
    "kinds without a name": name(
        (NameOID.USER_ID, "u"),
        (NameOID.STREET_ADDRESS, "street"),
        (NameOID.POSTAL_CODE, "1"),
        (x509.ObjectIdentifier("1.2.3.4.5"), "x"),
    ),
    "a group": x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(CN, "a"), x509.NameAttribute(O, "b")])]
    ),
}


@pytest.fixture(scope="module")
def made(rabbitmq: RunningBroker) -> Certificates:
    if rabbitmq.certificates is None:
        pytest.skip("the broker of the environment is not known to serve TLS")
    return rabbitmq.certificates


@pytest.fixture(scope="module")
def hutch(made: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    data = tmp_path_factory.mktemp("tls") / "data"
    with HutchServer(data, *tls_arguments(made)) as server:
        yield server


@pytest.fixture
def both(rabbitmq: RunningBroker, hutch: HutchServer) -> tuple[Endpoint, Endpoint]:
    """Where RabbitMQ and Hutch listen for TLS."""
    return Endpoint(rabbitmq.host, rabbitmq.ports.tls), tls_endpoint(hutch)


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_a_user_named_as_hutch_writes_the_subject_can_log_in_to_rabbitmq(
    rabbitmq: RunningBroker, made: Certificates, tmp_path: Path, subject: x509.Name
) -> None:
    pair = Authority.of(made).client(tmp_path, subject=subject)
    assert_logs_in(rabbitmq, made, pair)


EIGHT_BYTES = b"\x0c\x088 bytes."
TWO_PARTS = [b"0\x08\x06\x03\x55\x04\x03\x0c\x01" + each for each in (b"a", b"b")]


@pytest.mark.parametrize(
    ("subject", "old", "new"),
    [
        (name((CN, "8 bytes.")), EIGHT_BYTES, b"\x13\x08app_1@&*"),
        (name((CN, "8 bytes.")), EIGHT_BYTES, b"\x14\x08M\xfcller_1"),
        (name((NameOID.POSTAL_CODE, "8 bytes.")), EIGHT_BYTES, b"\x30\x08\x0c\x06inside"),
        (
            x509.Name(
                [x509.RelativeDistinguishedName([x509.NameAttribute(CN, each) for each in "ab"])]
            ),
            b"".join(TWO_PARTS),
            b"".join(reversed(TWO_PARTS)),
        ),
    ],
    ids=["characters of no PrintableString", "latin-1", "a sequence", "a group out of order"],
)
def test_a_subject_that_cryptography_refuses_names_the_same_user(
    rabbitmq: RunningBroker,
    made: Certificates,
    tmp_path: Path,
    subject: x509.Name,
    old: bytes,
    new: bytes,
) -> None:
    pair = Authority.of(made).client(tmp_path, subject=subject)
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    before = certificate.tbs_certificate_bytes
    after = before.replace(old, new)
    assert before != after
    key = serialization.load_pem_private_key(made.ca_key.read_bytes(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signature = key.sign(after, padding.PKCS1v15(), hashes.SHA256())
    signed = (
        certificate.public_bytes(serialization.Encoding.DER)
        .replace(before, after)
        .replace(certificate.signature, signature)
    )
    with pytest.raises(ValueError, match="error parsing asn1 value"):
        _ = x509.load_der_x509_certificate(signed).subject
    pair.certificate.write_text(ssl.DER_cert_to_PEM_cert(signed))
    assert_logs_in(rabbitmq, made, pair)


def assert_logs_in(rabbitmq: RunningBroker, made: Certificates, pair: Pair) -> None:
    """Make a user of the name that Hutch reads in a certificate; try it with RabbitMQ."""
    user = distinguished_name(ssl.PEM_cert_to_DER_cert(pair.certificate.read_text()))
    path = f"users/{urllib.parse.quote(user, safe='')}"
    rabbitmq.management(path, "PUT", {"password_hash": "", "tags": ""})
    endpoint = Endpoint(rabbitmq.host, rabbitmq.ports.tls)
    try:
        with greeted(endpoint, context_of(made.ca, pair)) as client:
            assert external_code(client) == ResponseCode.OK
    finally:
        rabbitmq.management(path, "DELETE")


def test_both_offer_external_over_tls_and_only_there(
    rabbitmq: RunningBroker,
    hutch: HutchServer,
    made: Certificates,
    both: tuple[Endpoint, Endpoint],
) -> None:
    plain = (Endpoint(*rabbitmq.stream_address), hutch.endpoint)
    for secure, bare in zip(both, plain, strict=True):
        with greeted(secure, context_of(made.ca)) as client:
            assert "EXTERNAL" in client.mechanisms
        with Client.opened(*bare) as client:
            assert "EXTERNAL" not in client.mechanisms


def test_both_refuse_external_alike(made: Certificates, both: tuple[Endpoint, Endpoint]) -> None:
    for endpoint in both:
        for tls in (context_of(made.ca), context_of(made.ca, made.client)):
            with greeted(endpoint, tls) as client:
                assert external_code(client, b"guest") == ResponseCode.AUTHENTICATION_FAILURE
                client.wait_until_gone()


def test_both_tell_clients_over_tls_the_port_of_tls(
    made: Certificates, both: tuple[Endpoint, Endpoint]
) -> None:
    for endpoint in both:
        with Client.opened(*endpoint, tls=context_of(made.ca)) as client:
            assert client.open_properties["advertised_port"] == str(endpoint.port)
            assert client.open_properties["advertised_host"] == "localhost"
            client.create("told-over-tls")
            told = client.ask(m.MetadataReply, "metadata", m.Metadata(("told-over-tls",)))
            assert {(each.host, each.port) for each in told.brokers} == {
                ("localhost", endpoint.port)
            }
            client.request("delete_stream", m.DeleteStream("told-over-tls"))


def test_both_refuse_versions_before_1_2(
    made: Certificates, both: tuple[Endpoint, Endpoint]
) -> None:
    tls = context_of(made.ca)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
    for endpoint in both:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            Client(*endpoint, tls=tls)


def test_both_send_away_who_speaks_without_tls(both: tuple[Endpoint, Endpoint]) -> None:
    for endpoint in both:
        for data in (b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("000000090011000100000001")):
            with Client(*endpoint) as client:
                client.send(data)
                while client.socket.recv(100):
                    pass


@pytest.mark.parametrize(
    ("version", "suite", "shows_certificate"),
    [
        (ssl.TLSVersion.TLSv1_3, "", True),
        (ssl.TLSVersion.TLSv1_3, "", False),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES256-GCM-SHA384", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-CHACHA20-POLY1305", False),
    ],
)
def test_both_say_the_same_of_a_connection_over_tls(
    rabbitmq: RunningBroker,
    hutch: HutchServer,
    made: Certificates,
    both: tuple[Endpoint, Endpoint],
    version: ssl.TLSVersion,
    suite: str,
    shows_certificate: bool,  # noqa: FBT001 - a case of the test
) -> None:
    tls = context_of(made.ca, made.client if shows_certificate else None, version)
    if suite:
        tls.set_ciphers(suite)
    apis = Api(rabbitmq.host, rabbitmq.ports.http), Api(*hutch.management)
    shown = []
    for endpoint, api in zip(both, apis, strict=True):
        with Client.opened(*endpoint, tls=tls) as client:
            mine = client.socket.getsockname()[1]
            found: list[dict[str, object]] = []

            def is_listed() -> bool:
                every = api.get("connections")  # noqa: B023
                found[:] = [each for each in every if each.get("peer_port") == mine]  # noqa: B023
                return bool(found) and "ssl" in found[0]  # noqa: B023

            assert eventually(is_listed)
            (connection,) = found
            shown.append(
                {
                    name: value
                    for name, value in connection.items()
                    if name.startswith(("ssl", "peer_cert"))
                }
            )
    assert shown[0] == shown[1]
    assert shown[1]["ssl"] is True
    assert (shown[1]["peer_cert_subject"] is not None) == shows_certificate
