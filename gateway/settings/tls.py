"""The settings of connections over TLS."""

import enum
from typing import Final, Self

from pydantic import model_validator

from gateway.settings.fields import (
    HOST_IN_WORDS,
    Host,
    Integer,
    Needs,
    SettingsSection,
    SomePath,
    setting,
)


class LoginFrom(enum.Enum):
    """Part of a client's certificate that names the user."""

    DISTINGUISHED_NAME = "distinguished_name"
    COMMON_NAME = "common_name"
    SUBJECT_ALTERNATIVE_NAME = "subject_alternative_name"


class LoginSanType(enum.Enum):
    """Kinds of alternative names of a subject."""

    DNS = "dns"
    EMAIL = "email"
    URI = "uri"
    IP = "ip"


_NEEDED: Final = {
    "port": "certificate",
    "certificate": "key",
    "key": "certificate",
    "ca": "certificate",
    "require_client_certificate": "ca",
    "login_from": "ca",
}


class PortTlsSettings(SettingsSection):
    """The listener for the stream protocol over TLS; docs/tls.md tells how to set it up."""

    port: Integer = setting(
        5551,
        "Port for clients over TLS, if a certificate is given; 0 lets the system pick one. The "
        "address is that of stream.host.",
        ge=0,
        le=65_535,
    )
    certificate: SomePath | None = setting(
        None,
        "PEM file with the server's certificate, followed by those between it and its authority. "
        "With it the server listens for clients over TLS, version 1.2 or later.",
        unset="no TLS",
    )
    key: SomePath | None = setting(
        None, "PEM file with the key of the certificate, not encrypted.", unset="no TLS"
    )
    ca: SomePath | None = setting(
        None,
        "PEM file with the authorities that are trusted to sign certificates of clients. With it "
        "clients are asked for one, and may log in with it by EXTERNAL. Lists of revoked "
        "certificates in the file are heeded, and then there must be one of each authority.",
        unset="clients are not asked for certificates",
    )
    advertised_host: Host | None = setting(
        None,
        "Host name that clients over TLS are told to connect to; the certificate must be for it.",
        unset="stream.advertised_host",
        takes=HOST_IN_WORDS,
    )
    advertised_port: Integer | None = setting(
        None,
        "Port that clients over TLS are told to connect to.",
        ge=1,
        le=65_535,
        unset="the port listened on",
    )
    require_client_certificate: bool = setting(
        False,  # noqa: FBT003 (it is the default of a field)
        "Refuse clients that show no certificate.",
    )
    login_from: LoginFrom = setting(
        LoginFrom.DISTINGUISHED_NAME,
        "Part of a client's certificate that names the user for EXTERNAL. distinguished_name: "
        'the whole subject, its last part first, as "CN=app,O=acme". common_name: its CN. '
        "subject_alternative_name: one of the alternative names.",
    )
    login_san_type: LoginSanType = setting(
        LoginSanType.DNS, "Kind of the alternative name that names the user."
    )
    login_san_index: Integer = setting(
        0, "Index of the alternative name of that kind that names the user.", ge=0, le=1_000
    )
    handshake_timeout_ms: Integer = setting(
        5_000,
        "Longest time that a client may take to set up TLS.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )
    handshakes_max: Integer = setting(
        1_000,
        "Clients that may be setting up TLS at a time. One more ends the one that has been silent "
        "for longest.",
        ge=1,
        le=100_000,
    )
    reload_interval_s: Integer = setting(
        10,
        "How often the files are looked at, to take changed ones for new connections; the others "
        "go on. 0: only when the server gets SIGHUP.",
        unit="seconds",
        ge=0,
        le=86_400,
    )

    @model_validator(mode="after")
    def _check_needs(self) -> Self:
        for name, needed in _NEEDED.items():
            is_given = getattr(self, name) != type(self).model_fields[name].default
            if is_given and getattr(self, needed) is None:
                raise Needs(name, needed)
        return self
