"""Bytes and TLS of one connection, as its socket knows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TlsDetails:
    """The TLS protection of a connection.

    Attributes:
        version: The TLS version, as OpenSSL calls it: `TLSv1.3`.
        cipher: As OpenSSL calls it: `ECDHE-RSA-AES256-GCM-SHA384`.
        certificate: The client's certificate, DER; None if it showed none.
    """

    version: str
    cipher: str
    certificate: bytes | None


@dataclass(frozen=True, slots=True)
class Transport:
    """Facts that the socket knows of its connection: bytes received and sent so far, and TLS."""

    received_bytes: int
    sent_bytes: int
    tls: TlsDetails | None = None
