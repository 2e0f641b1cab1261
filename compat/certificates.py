"""Certificates to try TLS with: an authority, and what it signs. Never trust them.

`python -m compat.certificates FOLDER` makes what a server and a client need:

    <folder>/ca.pem          the authority
             ca-key.pem      with which more can be signed, see `Authority.of`
             server.pem      for `localhost` and this machine's name, on purpose not for 127.0.0.1
             server-key.pem  RSA, PKCS #8, without a password
             client.pem      the subject that SASL EXTERNAL logs in, see `CLIENT_NAME`
             client-key.pem
"""

from __future__ import annotations

import argparse
import datetime as dt
import ipaddress
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

KEY_BITS: Final = 2048
ONE_DAY: Final = dt.timedelta(days=1)
LIFE: Final = dt.timedelta(days=3650)
CLIENT_NAME: Final = "CN=hutch-client,O=client"
"""The client's subject as RabbitMQ writes it, and so the user's name: the last part comes first."""


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """Return a subject of the parts given, in the order in which the certificate holds them."""
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in parts])


CLIENT_SUBJECT: Final = name(
    (NameOID.ORGANIZATION_NAME, "client"), (NameOID.COMMON_NAME, "hutch-client")
)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """A folder as `make` fills it."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate of the authority that signed the others."""
        return self.folder / "ca.pem"

    @property
    def ca_key(self) -> Path:
        """The key of that authority."""
        return self.folder / "ca-key.pem"

    @property
    def server(self) -> Pair:
        """Certificate of a server."""
        return Pair(self.folder / "server.pem", self.folder / "server-key.pem")

    @property
    def client(self) -> Pair:
        """Certificate of a client."""
        return Pair(self.folder / "client.pem", self.folder / "client-key.pem")


class Authority:
    """Signs certificates."""

    def __init__(
        self,
        common_name: str = "Hutch test authority",
        key: rsa.RSAPrivateKey | None = None,
        signed_by: Authority | None = None,
    ) -> None:
        """Make a key, if there is none, and a certificate for it, signed by itself or another."""
        self._key = key or new_key()
        subject = name((NameOID.COMMON_NAME, common_name))
        signer = signed_by or self
        issuer = subject if signed_by is None else signed_by.certificate.subject
        builder = (
            signer._begun(subject, issuer, self._key, x509.random_serial_number())  # noqa: SLF001
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(key_usage(signs_certificates=True), critical=True)
        )
        self.certificate: x509.Certificate = builder.sign(signer._key, hashes.SHA256())  # noqa: SLF001

    @classmethod
    def of(cls, made: Certificates) -> Self:
        """Return the authority of certificates that were made before, also by another process."""
        key = serialization.load_pem_private_key(made.ca_key.read_bytes(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return cls(key=key)

    def write(self, path: Path) -> Path:
        """Write the authority's own certificate."""
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def write_key(self, path: Path) -> Path:
        """Write the authority's key."""
        path.write_bytes(pem_of(self._key))
        return path

    def revoke(self, path: Path, *pairs: Pair | Path) -> Path:
        """Write the list of certificates that are not to be believed any more.

        Args:
            path: Where to.
            pairs: The certificates, or the files of those of authorities.
        """
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now - ONE_DAY)
            .next_update(now + LIFE)
        )
        for pair in pairs:
            certificate = pair.certificate if isinstance(pair, Pair) else pair
            number = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number
            revoked = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now)
            builder = builder.add_revoked_certificate(revoked.build())
        written = builder.sign(self._key, hashes.SHA256())
        path.write_bytes(written.public_bytes(serialization.Encoding.PEM))
        return path

    def server(self, folder: Path, file_name: str = "server", names: Sequence[str] = ()) -> Pair:
        """Make a server's certificate.

        Args:
            folder: Where it is written.
            file_name: What its files are called, before `.pem` and `-key.pem`.
            names: The server's names and addresses; none: `localhost` and this machine's name.
        """
        wanted = tuple(names) or tuple(dict.fromkeys(("localhost", socket.gethostname())))
        subject = name((NameOID.ORGANIZATION_NAME, "server"), (NameOID.COMMON_NAME, wanted[0]))
        alternatives = [alternative_of(each) for each in wanted]
        use = ExtendedKeyUsageOID.SERVER_AUTH
        return self._issue(folder, file_name, subject, use, alternatives, LIFE)

    def client(  # each is a thing that a test wants to be otherwise
        self,
        folder: Path,
        file_name: str = "client",
        subject: x509.Name = CLIENT_SUBJECT,
        alternatives: Sequence[x509.GeneralName] = (),
        life: dt.timedelta = LIFE,
        serial: int | None = None,
    ) -> Pair:
        """Make a client's certificate.

        Args:
            folder: Where it is written.
            file_name: What its files are called, before `.pem` and `-key.pem`.
            subject: The name in it.
            alternatives: Its subject's alternative names.
            life: How long it is valid from now on; below zero: it ran out so long ago.
            serial: Its number, None for one of its own.
        """
        use = ExtendedKeyUsageOID.CLIENT_AUTH
        return self._issue(folder, file_name, subject, use, alternatives, life, serial)

    def _issue(  # what a certificate says
        self,
        folder: Path,
        file_name: str,
        subject: x509.Name,
        use: x509.ObjectIdentifier,
        alternatives: Sequence[x509.GeneralName],
        life: dt.timedelta,
        serial: int | None = None,
    ) -> Pair:
        key = new_key()
        number = x509.random_serial_number() if serial is None else serial
        builder = (
            self._begun(subject, self.certificate.subject, key, number, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        )
        if alternatives:
            extension = x509.SubjectAlternativeName(alternatives)
            builder = builder.add_extension(extension, critical=False)
        pair = Pair(folder / f"{file_name}.pem", folder / f"{file_name}-key.pem")
        certificate = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(pem_of(key))
        return pair

    def _begun(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: rsa.RSAPrivateKey,
        serial: int,
        life: dt.timedelta = LIFE,
    ) -> x509.CertificateBuilder:
        """Return a certificate with what all of them have."""
        now = dt.datetime.now(dt.UTC)
        begin = now - ONE_DAY + min(life, dt.timedelta())
        public = key.public_key()
        signer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(serial)
            .not_valid_before(begin)
            .not_valid_after(now + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False
            )
        )


def alternative_of(name_or_address: str) -> x509.GeneralName:
    """Return a server's name, or its address, as a certificate holds it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name_or_address))
    except ValueError:
        return x509.DNSName(name_or_address)


def new_key() -> rsa.RSAPrivateKey:
    """Return a fresh key; RSA, which every client's library reads."""
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


def pem_of(key: rsa.RSAPrivateKey) -> bytes:
    """Return a key as PKCS #8, without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Return what a key may be used for."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def make(folder: Path) -> Certificates:
    """Make an authority, a server's and a client's certificate; see the top for the files.

    Args:
        folder: Where to; made if it is not there. What lies in the way is overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder)
    authority = Authority()
    authority.write(made.ca)
    authority.write_key(made.ca_key)
    authority.server(folder)
    authority.client(folder)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the certificates that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m compat.certificates",
        description="Make an authority with a server's and a client's certificate, to try TLS.",
    )
    parser.add_argument("folder", type=Path, help="where to write them")
    print(make(parser.parse_args(arguments).folder).folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
