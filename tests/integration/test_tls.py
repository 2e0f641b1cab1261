"""Streams over TLS: what is spoken inside, who is believed, and who the certificate logs in."""

from __future__ import annotations

import datetime as dt
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from compat.certificates import CLIENT_NAME, Authority, Certificates, Pair, make, name
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client, PeerGone
from tests.integration.administrator import IMPATIENT, ctl
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer, run_serve
from tests.integration.tls_rig import (
    HOST,
    certified_server,
    context_of,
    external_code,
    greeted,
    tls_arguments,
    tls_endpoint,
)
from tests.waiting import HANG_S


@pytest.fixture(scope="module")
def tls_server(
    made: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HutchServer]:
    """A server that asks for certificates, with a user that one of them names."""
    data = tmp_path_factory.mktemp("tls") / "data"
    with certified_server(data, made, IMPATIENT) as server:
        yield server


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_published_over_tls_is_read_over_tls_and_without(
    tls_server: HutchServer, made: Certificates, version: ssl.TLSVersion
) -> None:
    stream = f"both-{version.name}"
    tls = context_of(made.ca, version=version)
    bodies = [bytes([i % 256]) * (i * 37 % 40_000) for i in range(300)]
    with Client.opened(*tls_endpoint(tls_server), tls=tls) as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.version() == version.name.replace("_", ".")
        client.create(stream)
        client.declare(1, stream)
        for first in range(0, len(bodies), 20):
            client.publish(1, list(enumerate(bodies))[first : first + 20])
        client.confirmed_ids(len(bodies))
        client.subscribe(1, stream, FIRST)
        assert client.records(len(bodies), subscription_id=1) == list(enumerate(bodies))
    with Client.opened(*tls_server.endpoint) as plain:
        plain.subscribe(1, stream, FIRST)
        assert plain.records(len(bodies), subscription_id=1) == list(enumerate(bodies))


def test_each_listener_tells_its_own_port(tls_server: HutchServer, made: Certificates) -> None:
    endpoint = tls_endpoint(tls_server)
    with (
        Client.opened(*endpoint, tls=context_of(made.ca)) as secure,
        Client.opened(*tls_server.endpoint) as plain,
    ):
        secure.create("told")
        for client, port in ((secure, endpoint.port), (plain, tls_server.port)):
            assert client.open_properties["advertised_port"] == str(port)
            told = client.ask(m.MetadataReply, "metadata", m.Metadata(("told",)))
            assert [(broker.host, broker.port) for broker in told.brokers] == [(HOST, port)]


def test_external_is_offered_over_tls_only(tls_server: HutchServer, made: Certificates) -> None:
    with Client.opened(*tls_server.endpoint) as plain:
        assert "EXTERNAL" not in plain.mechanisms
    with greeted(tls_endpoint(tls_server), context_of(made.ca)) as client:
        assert client.mechanisms == ("PLAIN", "AMQPLAIN", "EXTERNAL")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_certificate_s_subject_logs_in(
    tls_server: HutchServer, made: Certificates, version: ssl.TLSVersion
) -> None:
    tls = context_of(made.ca, made.client, version)
    with greeted(tls_endpoint(tls_server), tls) as client:
        assert external_code(client) == ResponseCode.OK
        client.tuned = m.Tune(1 << 20, 0)
        client.tune_and_open()
        found = ctl(tls_server, "list_connections")
        assert CLIENT_NAME in str(found)


def test_without_a_certificate_external_logs_nobody_in(
    tls_server: HutchServer, made: Certificates
) -> None:
    with greeted(tls_endpoint(tls_server), context_of(made.ca)) as client:
        assert external_code(client, b"guest") == ResponseCode.AUTHENTICATION_FAILURE


def test_a_certificate_of_nobody_logs_nobody_in(
    tls_server: HutchServer, made: Certificates, tmp_path: Path
) -> None:
    subject = name((NameOID.COMMON_NAME, "nobody"))
    nobody = Authority.of(made).client(tmp_path, subject=subject)
    with greeted(tls_endpoint(tls_server), context_of(made.ca, nobody)) as client:
        assert external_code(client) == ResponseCode.AUTHENTICATION_FAILURE


def refused(server: HutchServer, tls: ssl.SSLContext) -> str:
    """Connect; gives the words in which the server's refusal arrives."""
    with pytest.raises((ssl.SSLError, PeerGone, ConnectionError)) as caught:
        greeted(tls_endpoint(server), tls)
    return str(caught.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_certificates_that_are_not_believed_are_refused(
    tls_server: HutchServer, made: Certificates, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    own = x509.load_pem_x509_certificate(made.client.certificate.read_bytes())
    ours, other = Authority.of(made), Authority()
    for pair in (
        ours.client(tmp_path, "old", life=dt.timedelta(minutes=-1)),
        other.client(tmp_path, "stranger"),
        # The very names and number of a certificate that is believed, with another key.
        other.client(tmp_path, "double", serial=own.serial_number),
        ours.server(tmp_path, "purpose"),
    ):
        assert refused(tls_server, context_of(made.ca, pair, version))
    for words in ("certificate has expired", "unable to get local issuer"):
        tls_server.wait_for_log(words)


def test_versions_before_1_2_are_refused(tls_server: HutchServer, made: Certificates) -> None:
    tls = context_of(made.ca)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
    assert "PROTOCOL_VERSION" in refused(tls_server, tls)


SOONER_S = 8.0
"""Below the time that the server gives a handshake, 10 s."""


def gone_within(endpoint: tuple[str, int], data: bytes, seconds: float) -> bool:
    """Tell whether the server ends a connection on which it gets `data`."""
    with socket.create_connection(endpoint, HANG_S) as client:
        client.sendall(data)
        client.settimeout(seconds)
        while client.recv(4096):
            pass
    return True


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 300, b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("00000009 0011 0001 00000001 00")],
)
def test_who_speaks_without_tls_is_sent_away_at_once(tls_server: HutchServer, data: bytes) -> None:
    assert gone_within(tls_endpoint(tls_server), data, SOONER_S)


def test_tls_on_the_plain_port_is_sent_away_at_once(
    tls_server: HutchServer, made: Certificates
) -> None:
    started = time.monotonic()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Client(*tls_server.endpoint, tls=context_of(made.ca))
    assert time.monotonic() - started < SOONER_S


def test_a_handshake_that_is_not_finished_ends(
    start_server: StartServer, made: Certificates
) -> None:
    limit = {"HUTCH_TLS__HANDSHAKE_TIMEOUT_MS": "300"}
    server = start_server(*tls_arguments(made), environment=limit)
    for begun in (b"", b"\x16\x03\x01\x02\x00\x01"):
        assert gone_within(tls_endpoint(server), begun, 3)


def test_a_certificate_can_be_demanded(start_server: StartServer, made: Certificates) -> None:
    demanding = {"HUTCH_TLS__REQUIRE_CLIENT_CERTIFICATE": "true"}
    server = start_server(*tls_arguments(made), environment=demanding)
    assert "CERTIFICATE_REQUIRED" in refused(server, context_of(made.ca))
    with Client.opened(*tls_endpoint(server), tls=context_of(made.ca, made.client)) as client:
        client.create("believed")


def test_revoked_certificates_are_refused(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    authority = Authority.of(made)
    revoked = authority.client(tmp_path, "revoked")
    listed = authority.revoke(tmp_path / "revoked-list.pem", revoked)
    both = tmp_path / "ca-and-list.pem"
    both.write_bytes(made.ca.read_bytes() + listed.read_bytes())
    server = start_server(*tls_arguments(made), "--tls-ca", str(both))

    assert refused(server, context_of(made.ca, revoked))
    server.wait_for_log("certificate revoked")
    with Client.opened(*tls_endpoint(server), tls=context_of(made.ca, made.client)):
        pass


def below(root: Authority, folder: Path, common_name: str) -> tuple[Authority, Path, Pair]:
    """An authority that another has signed, its certificate, and a client that shows both."""
    authority = Authority(common_name, signed_by=root)
    certificate = authority.write(folder / f"{common_name}.pem")
    client = authority.client(folder, f"client-of-{common_name}")
    with client.certificate.open("ab") as chain:
        chain.write(certificate.read_bytes())
    return authority, certificate, client


def test_certificates_under_a_revoked_authority_are_refused(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    root = Authority.of(made)
    bad, bad_certificate, bad_client = below(root, tmp_path, "bad")
    good, _, good_client = below(root, tmp_path, "good")
    lists = [
        root.revoke(tmp_path / "root-list.pem", bad_certificate),
        bad.revoke(tmp_path / "bad-list.pem"),
        good.revoke(tmp_path / "good-list.pem"),
    ]
    together = tmp_path / "ca-and-lists.pem"
    together.write_bytes(b"".join(each.read_bytes() for each in (made.ca, *lists)))
    server = start_server(*tls_arguments(made), "--tls-ca", str(together))

    assert refused(server, context_of(made.ca, bad_client))
    server.wait_for_log("certificate revoked")
    with Client.opened(*tls_endpoint(server), tls=context_of(made.ca, good_client)):
        pass
    assert "has no revocation list" not in server.logs


def test_an_authority_whose_list_is_missing_is_named_at_the_start(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    root = Authority.of(made)
    _, certificate, client = below(root, tmp_path, "listless")
    files = made.ca, certificate, root.revoke(tmp_path / "root-list.pem")
    together = tmp_path / "ca-and-list.pem"
    together.write_bytes(b"".join(each.read_bytes() for each in files))
    server = start_server(*tls_arguments(made), "--tls-ca", str(together))

    (line,) = (each for each in server.logs.splitlines() if "has no revocation list" in each)
    assert "authority=CN=listless" in line
    assert refused(server, context_of(made.ca, client))
    with Client.opened(*tls_endpoint(server), tls=context_of(made.ca, made.client)):
        pass


def test_a_key_that_other_users_may_read_is_warned_of(
    start_server: StartServer, made: Certificates
) -> None:
    made.server.key.chmod(0o644)
    warned = start_server(*tls_arguments(made))
    made.server.key.chmod(0o640)
    fine = start_server(*tls_arguments(made))

    assert (
        f"tls key is open to other users, fix it with chmod 600 key={made.server.key}"
        in warned.logs
    )
    assert "tls key" not in fine.logs


def test_without_an_authority_no_certificate_is_asked_for(
    start_server: StartServer, made: Certificates
) -> None:
    server = start_server(*tls_arguments(made, asks_clients=False))
    with greeted(tls_endpoint(server), context_of(made.ca, made.client)) as client:
        assert client.mechanisms == ("PLAIN", "AMQPLAIN")


@pytest.mark.parametrize(
    ("setting", "user"),
    [
        ({"LOGIN_FROM": "common_name"}, "hutch-client"),
        ({"LOGIN_FROM": "subject_alternative_name", "LOGIN_SAN_INDEX": "1"}, "b.example.org"),
        (
            {"LOGIN_FROM": "subject_alternative_name", "LOGIN_SAN_TYPE": "email"},
            "app@example.org",
        ),
    ],
)
def test_other_parts_of_the_certificate_can_name_the_user(
    start_server: StartServer,
    made: Certificates,
    tmp_path: Path,
    setting: dict[str, str],
    user: str,
) -> None:
    alternatives = [
        x509.DNSName("a.example.org"),
        x509.RFC822Name("app@example.org"),
        x509.DNSName("b.example.org"),
    ]
    pair = Authority.of(made).client(tmp_path, alternatives=alternatives)
    environment = {f"HUTCH_TLS__{key}": value for key, value in setting.items()}
    server = start_server(*tls_arguments(made), environment=environment)
    ctl(server, "add_user", user, stdin=b"secret\n")
    with greeted(tls_endpoint(server), context_of(made.ca, pair)) as client:
        assert external_code(client) == ResponseCode.OK


def test_new_files_are_for_new_connections(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    shown = tmp_path / "server.pem"
    key = tmp_path / "server-key.pem"
    for source, target in ((made.server.certificate, shown), (made.server.key, key)):
        target.write_bytes(source.read_bytes())
    server = start_server("--tls-port", "0", "--tls-cert", str(shown), "--tls-key", str(key))
    endpoint = tls_endpoint(server)
    with Client.opened(*endpoint, tls=context_of(made.ca)) as before:
        before.create("goes-on")
        other = make(tmp_path / "other")
        shown.write_bytes(other.server.certificate.read_bytes())
        server.process.send_signal(signal.SIGHUP)  # the key is not that of the certificate yet
        server.wait_for_log("is not the key of")
        key.write_bytes(other.server.key.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("tls files loaded")

        with Client.opened(*endpoint, tls=context_of(other.ca)):
            pass
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(*endpoint, tls=context_of(made.ca))
        before.declare(1, "goes-on")
        before.publish(1, {1: b"still here"})
        assert before.confirmed() == (1, (1,))


def test_changed_files_are_found(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    shown = tmp_path / "server.pem"
    shown.write_bytes(made.server.certificate.read_bytes())
    server = start_server(
        *tls_arguments(made),
        *("--tls-cert", str(shown)),
        environment={"HUTCH_TLS__RELOAD_INTERVAL_S": "1"},
    )
    again = tmp_path / "again.pem"
    again.write_bytes(made.server.certificate.read_bytes() + made.ca.read_bytes())
    again.replace(shown)
    server.wait_for_log("tls files loaded")


def test_a_taken_tls_port_stops_the_start(
    tls_server: HutchServer, made: Certificates, tmp_path: Path
) -> None:
    taken = str(tls_endpoint(tls_server).port)
    done = run_serve(tmp_path / "data", "--port", "0", *tls_arguments(made), "--tls-port", taken)
    assert done.returncode == 2
    assert "hutch: --tls-port: cannot listen on" in done.stderr


def test_files_that_cannot_be_used_stop_the_start(made: Certificates, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    no_pem = tmp_path / "no.pem"
    no_pem.write_text("no certificate\n")
    for flag, path, words in (
        ("--tls-cert", missing, "--tls-cert: cannot read"),
        ("--tls-key", made.client.key, "is not the key of"),
        ("--tls-ca", no_pem, "--tls-ca"),
        ("--tls-cert", no_pem, "--tls-cert"),
    ):
        done = run_serve(tmp_path / "data", "--port", "0", *tls_arguments(made), flag, str(path))
        assert done.returncode == 2, done
        assert words in done.stderr
        assert "Traceback" not in done.stderr
