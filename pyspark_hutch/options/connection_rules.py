"""Connection settings from options: a URI and the single options, merged."""

from typing import Final, Literal

from hutch.client.login import Endpoint
from pyspark_hutch.options.connection_settings import (
    GUEST,
    GUEST_PASSWORD,
    VHOST,
    BrokerSettings,
    BrokerTls,
)
from pyspark_hutch.options.endpoints import Uri
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import names_of
from pyspark_hutch.options.passwords import Password

_PASSWORDS: Final[tuple[Literal["password", "passwordFile", "passwordEnv"], ...]] = (
    "password",
    "passwordFile",
    "passwordEnv",
)


def connection_settings(given: Given) -> BrokerSettings:
    """Return the settings of connections; contradictions are noted in `given`."""
    uri = given.value("uri", Uri)
    username = _one(given, "username", None if uri is None else uri.username)
    tls = _tls(given, uri)
    return BrokerSettings(
        endpoints=_endpoints(given, uri, tls=tls is not None),
        username=username or GUEST,
        password=_password(given, uri, username),
        vhost=_one(given, "vhost", None if uri is None else uri.vhost) or VHOST,
        tls=tls,
        client_properties=given.client_properties,
        **given.fields(BrokerSettings),
    )


def _one(given: Given, name: str, in_uri: str | None) -> str | None:
    """Return the value of an option or of the URI; if both have one, they must agree."""
    alone = given.value(name, str)
    if alone is not None and in_uri is not None and alone != in_uri:
        given.clash(("uri", name), "they say different things")
    return in_uri if alone is None else alone


def _endpoints(given: Given, uri: Uri | None, *, tls: bool) -> tuple[Endpoint, ...]:
    listed = tuple(address.endpoint(tls=tls) for address in given.value("endpoints", tuple) or ())
    if uri is None:
        if not listed:
            given.problems.append(
                "option endpoints is missing: it or uri says where the servers are, "
                "as endpoints=localhost:5552"
            )
        return listed
    named = (uri.address.endpoint(tls=tls),)
    if listed and listed != named:
        given.clash(("uri", "endpoints"), "they name different servers")
    return named


def _tls(given: Given, uri: Uri | None) -> BrokerTls | None:
    wanted = given.value("tls", bool)
    if wanted is not None and uri is not None and wanted != uri.tls:
        given.clash(("uri", "tls"), "a URI with TLS begins with rabbitmq-stream+tls://")
    if wanted is None:
        wanted = uri is not None and uri.tls
    if not wanted:
        for name in given.given(*names_of(BrokerTls)):
            given.need(name, "tls=true")
        return None
    if given.has("tls.key") and not given.has("tls.cert"):
        given.need("tls.key", "tls.cert")
    return BrokerTls(**given.fields(BrokerTls))


def _password(given: Given, uri: Uri | None, username: str | None) -> Password:
    named = [name for name in _PASSWORDS if given.has(name)]
    if len(named) > 1:
        given.clash(named, "the password has one place")
    in_uri = None if uri is None else uri.password
    if in_uri is not None:
        if named and (named != ["password"] or given.value("password", str) != in_uri):
            given.clash(("uri", named[0]), "the URI has another password")
        return Password("password", in_uri)
    if named:
        return Password(named[0], given.certain(named[0], str))
    if username not in {None, GUEST}:
        name = "username" if given.has("username") else "uri"
        given.need(name, "a password: password, passwordFile or passwordEnv")
    return GUEST_PASSWORD
