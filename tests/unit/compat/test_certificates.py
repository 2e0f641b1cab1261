"""The certificates that TLS is tried with: whom they name, and who believes them."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from compat.certificates import CLIENT_NAME, Authority, Certificates, Pair, main, make


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("made") / "certificates")


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """Let the two greet each other in memory; return the server's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return answering


def server_context(pair: Pair, ca: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    if ca is not None:
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(ca: Path, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def test_a_server_may_be_called_by_names_and_by_addresses(tmp_path: Path) -> None:
    authority = Authority()
    pair = authority.server(tmp_path, names=["10.0.0.2", "::1", "hutch.example"])
    ca = authority.write(tmp_path / "ca.pem")

    for name in ("10.0.0.2", "::1", "hutch.example"):
        handshake(server_context(pair), client_context(ca), name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server_context(pair), client_context(ca), "10.0.0.3")


def test_client_and_server_believe_each_other(made: Certificates) -> None:
    server = server_context(made.server, made.ca)
    handshake(server, client_context(made.ca, made.client), "localhost")


def test_the_server_is_not_called_by_its_address(made: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"127\.0\.0\.1"):
        handshake(server_context(made.server), client_context(made.ca), "127.0.0.1")


def test_the_client_is_called_what_users_are_named(made: Certificates) -> None:
    found = x509.load_pem_x509_certificate(made.client.certificate.read_bytes())
    assert found.subject.rfc4514_string() == CLIENT_NAME


def test_a_stranger_s_client_is_not_believed(made: Certificates, tmp_path: Path) -> None:
    stranger = Authority("somebody else").client(tmp_path)
    server = server_context(made.server, made.ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client_context(made.ca, stranger), "localhost")


def test_a_certificate_can_have_run_out(tmp_path: Path) -> None:
    pair = Authority().client(tmp_path, life=dt.timedelta(hours=-1))
    found = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    assert found.not_valid_before_utc < found.not_valid_after_utc < dt.datetime.now(dt.UTC)


def test_the_command_fills_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'new'}\n"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "ca-key.pem",
        "ca.pem",
        "client-key.pem",
        "client.pem",
        "server-key.pem",
        "server.pem",
    ]
