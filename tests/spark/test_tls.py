"""Reads over TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.certificates import Certificates, make
from tests.integration.server import HutchServer
from tests.integration.tls_rig import tls_arguments, tls_endpoint
from tests.spark.conftest import Place, Read
from tests.spark.publishing import bodies_of, publish
from tests.spark.queries import refusal


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HutchServer]:
    data = tmp_path_factory.mktemp("tls") / "data"
    with HutchServer(data, *tls_arguments(certificates)) as started:
        yield started


@pytest.fixture
def secure(server: HutchServer) -> Place:
    return Place("hutch", "localhost", tls_endpoint(server).port)


@pytest.fixture
def rows(server: HutchServer, stream: str) -> str:
    with Place("hutch", server.host, server.port).client() as client:
        publish(client, stream, bodies_of(50))
    return stream


def test_a_read_over_tls_trusts_the_given_authority(
    secure: Place, certificates: Certificates, rows: str, read: Read
) -> None:
    shown = {"tls.cert": certificates.client.certificate, "tls.key": certificates.client.key}
    options = {"stream": rows, "tls": "true", "tls.ca": certificates.ca} | shown

    assert read(secure, **options).count() == 50


def test_an_authority_or_a_name_that_does_not_fit_is_told(
    secure: Place, server: HutchServer, certificates: Certificates, rows: str, read: Read
) -> None:
    soon = {"stream": rows, "tls": "true", "planner.retries": "0"}
    line = refusal(read(secure, **soon).count)
    assert line.startswith(f"no TLS with localhost:{secure.port}: ")
    assert "certificate" in line

    by_number = Place("hutch", "127.0.0.1", secure.port)
    trusted = soon | {"tls.ca": str(certificates.ca)}
    line = refusal(read(by_number, **trusted).count)
    assert line.startswith(f"no TLS with 127.0.0.1:{secure.port}: ")
    assert "127.0.0.1" in line.partition(": ")[2]
    assert read(by_number, **trusted, **{"tls.verifyHostname": "false"}).count() == 50
    assert read(by_number, **trusted, **{"tls.serverName": "localhost"}).count() == 50

    plain = Place("hutch", "localhost", server.port)
    line = refusal(read(plain, **trusted, requestTimeoutMs=2_000, connectTimeoutMs=2_000).count)
    assert line.startswith(f"no TLS with localhost:{server.port}: ")
