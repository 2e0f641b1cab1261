"""The user that a client's certificate names, by the settings."""

from gateway.network import certificate
from gateway.network.certificate import Naming
from gateway.settings.tls import LoginFrom, TlsSettings


def naming_of(settings: TlsSettings) -> Naming:
    """Return what finds the user in a client's certificate."""
    match settings.login_from:
        case LoginFrom.DISTINGUISHED_NAME:
            return certificate.distinguished_name
        case LoginFrom.COMMON_NAME:
            return certificate.common_name
        case LoginFrom.SUBJECT_ALTERNATIVE_NAME:
            kind = certificate.AlternativeName[settings.login_san_type.name]
            return certificate.alternative_name(kind, settings.login_san_index)
