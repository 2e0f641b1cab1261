"""Fields of a TLS connection, in RabbitMQ's terms, which are Erlang's.

Source: RFC 5246 and RFC 8446 for the names of suites; RabbitMQ 4.3 as observed.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.network.certificate import described
from gateway.network.transport import TlsDetails

_NO_CERTIFICATE: Final = dict.fromkeys(
    (
        "peer_cert_issuer",
        "peer_cert_serial_number",
        "peer_cert_subject",
        "peer_cert_validity",
    )
)
_NO_TLS: Final[Mapping[str, object]] = {
    "ssl": False,
    "ssl_protocol": None,
    "ssl_key_exchange": None,
    "ssl_cipher": None,
    "ssl_hash": None,
    **_NO_CERTIFICATE,
}

_ANY: Final = "any"
"""The key exchange of TLS 1.3, where suites do not name it."""
_AEAD: Final = "aead"
_BLOCK: Final = re.compile(r"^(aes|camellia|aria)_?(\d+)")
_HASH: Final = re.compile(r"_(sha\d*|md5)$")
_EXCHANGE: Final = re.compile(
    r"^((?:ecdhe|dhe|ecdh|dh|rsa|psk|srp)(?:_(?:rsa|ecdsa|dss|psk|anon))?)_"
)


class Suite(NamedTuple):
    """The parts of a cipher suite."""

    key_exchange: str
    cipher: str
    hash: str


def suite_of(name: str) -> Suite:
    """Take OpenSSL's name of a suite apart, as `ECDHE-RSA-AES256-GCM-SHA384`."""
    text = name.lower().replace("-", "_")
    if text.startswith("tls_"):
        text, exchange = text.removeprefix("tls_"), _ANY
    else:
        found = _EXCHANGE.match(text)
        exchange = found[1] if found else "rsa"
        text = text[found.end() :] if found else text
    found = _HASH.search(text)
    digest = found[1] if found else ""
    text = text[: found.start()] if found else text
    cipher = _BLOCK.sub(r"\1_\2", text)
    if cipher.endswith(("gcm", "ccm", "ccm_8", "ccm8", "poly1305")):
        digest = _AEAD
    elif _BLOCK.match(cipher) and not cipher.endswith("cbc"):
        cipher += "_cbc"
    return Suite(exchange, cipher, digest)


def tls_fields(tls: TlsDetails | None) -> Mapping[str, object]:
    """Show how a connection is protected, and its client's certificate."""
    if tls is None:
        return _NO_TLS
    suite = suite_of(tls.cipher)
    return {
        "ssl": True,
        "ssl_protocol": tls.version.lower(),
        "ssl_key_exchange": suite.key_exchange,
        "ssl_cipher": suite.cipher,
        "ssl_hash": suite.hash,
        **_certificate_fields(tls.certificate),
    }


def _certificate_fields(certificate: bytes | None) -> Mapping[str, object]:
    if certificate is None:
        return _NO_CERTIFICATE
    try:
        shown = described(certificate)
    except ValueError:  # Unreadable is one
        return _NO_CERTIFICATE
    return {
        "peer_cert_issuer": shown.issuer,
        "peer_cert_serial_number": shown.serial_number,
        "peer_cert_subject": shown.subject,
        "peer_cert_validity": shown.validity,
    }
