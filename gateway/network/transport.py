"""Bytes and TLS of one connection, as its socket knows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TlsDetails:
    """How a connection is protected.

    Attributes:
        version: Of TLS, as OpenSSL calls it: `TLSv1.3`.
        cipher: As OpenSSL calls it: `ECDHE-RSA-AES256-GCM-SHA384`.
        certificate: What the client showed, DER; None if nothing.
    """

    version: str
    cipher: str
    certificate: bytes | None


@dataclass(frozen=True, slots=True)
class Transport:
    """What a connection's socket knows of it: bytes received and sent so far, and of TLS."""

    received_bytes: int
    sent_bytes: int
    tls: TlsDetails | None = None
