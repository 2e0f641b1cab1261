"""What is said of connections over TLS; RabbitMQ's words for the same are in tests/compat."""

import pytest

from gateway.management.http.views.tls import Suite, suite_of, tls_fields
from gateway.network.transport import TlsDetails


@pytest.mark.parametrize(
    ("name", "suite"),
    [
        ("TLS_AES_256_GCM_SHA384", Suite("any", "aes_256_gcm", "aead")),
        ("TLS_CHACHA20_POLY1305_SHA256", Suite("any", "chacha20_poly1305", "aead")),
        ("TLS_AES_128_CCM_8_SHA256", Suite("any", "aes_128_ccm_8", "aead")),
        ("ECDHE-RSA-AES256-GCM-SHA384", Suite("ecdhe_rsa", "aes_256_gcm", "aead")),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", Suite("ecdhe_ecdsa", "chacha20_poly1305", "aead")),
        ("ECDHE-ECDSA-AES128-SHA256", Suite("ecdhe_ecdsa", "aes_128_cbc", "sha256")),
        ("DHE-RSA-AES128-GCM-SHA256", Suite("dhe_rsa", "aes_128_gcm", "aead")),
        ("DHE-RSA-AES256-CCM", Suite("dhe_rsa", "aes_256_ccm", "aead")),
        ("AES128-SHA", Suite("rsa", "aes_128_cbc", "sha")),
        ("AES256-GCM-SHA384", Suite("rsa", "aes_256_gcm", "aead")),
        ("ECDHE-ECDSA-CAMELLIA128-SHA256", Suite("ecdhe_ecdsa", "camellia_128_cbc", "sha256")),
        ("", Suite("rsa", "", "")),
    ],
)
def test_a_suite_is_taken_apart(name: str, suite: Suite) -> None:
    assert suite_of(name) == suite


def test_plain_connections_have_the_same_fields_as_those_over_tls() -> None:
    plain = tls_fields(None)
    over_tls = tls_fields(TlsDetails("TLSv1.3", "TLS_AES_256_GCM_SHA384", None))
    assert plain.keys() == over_tls.keys()
    assert (plain["ssl"], over_tls["ssl"]) == (False, True)
    assert over_tls["ssl_protocol"] == "tlsv1.3"
    assert over_tls["peer_cert_subject"] is None


def test_what_is_no_certificate_is_not_shown() -> None:
    shown = tls_fields(TlsDetails("TLSv1.2", "AES128-SHA", b"\x30\x03abc"))
    assert shown["ssl"] is True
    assert shown["peer_cert_subject"] is None
