"""Connections to real servers: TLS, users, heartbeats, and peers that misbehave on real sockets."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.certificates import CLIENT_NAME, Certificates
from hutch.client import channel as channel_module
from hutch.client.errors import ClientError, Refused, ServerGone
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from pyspark_hutch.client import pool as pool_module
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import POOL, Name
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.faults import DamagedChunk
from pyspark_hutch.options.connection_settings import BrokerSettings, BrokerTls
from pyspark_hutch.options.passwords import Password
from tests.client import Client
from tests.fake_server import FakeServer, Talk, chunk, chunks
from tests.integration.administrator import IMPATIENT, ctl
from tests.integration.conftest import external_endpoint
from tests.integration.server import HutchServer
from tests.integration.tls_rig import certified_server, context_of, tls_endpoint
from tests.reading_rig import NAME, range_of, reader_of, records_of
from tests.waiting import HANG_S


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    """A server with TLS that has a stream of 500 records."""
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    data = tmp_path_factory.mktemp("secured") / "data"
    with certified_server(data, made, environment=IMPATIENT) as server:
        with Client.opened(*tls_endpoint(server), tls=context_of(made.ca)) as client:
            client.create("s")
            client.declare(1, "s")
            client.publish(1, [(n, b"row %d" % n) for n in range(500)])
            client.confirmed_ids(500)
        yield server


def tls_settings(server: HutchServer, tls: BrokerTls, **more: object) -> BrokerSettings:
    endpoint = Endpoint("localhost", tls_endpoint(server).port)
    return BrokerSettings(
        (endpoint,),
        tls=tls,
        **({"advertised": False} | more),  # type: ignore[arg-type]  # as a test says
    )


def offsets_over(settings: BrokerSettings) -> list[int]:
    cluster = Cluster(settings, NAME)
    leader = cluster.leaders(["s"])["s"]
    reader = RangeReader(cluster, Range("s", leader, 0, 500), 5_000)
    return [offset for offset, _ in records_of(reader, 500)]


def test_a_range_is_read_over_tls(secured: HutchServer, made: Certificates) -> None:
    assert offsets_over(tls_settings(secured, BrokerTls(ca=str(made.ca)))) == list(range(500))


def test_a_certificate_of_ours_is_shown(secured: HutchServer, made: Certificates) -> None:
    shown = BrokerTls(str(made.ca), str(made.client.certificate), str(made.client.key))
    settings = tls_settings(
        secured, shown, username=CLIENT_NAME, password=Password("password", "secret")
    )

    assert offsets_over(settings) == list(range(500))


def test_a_server_that_no_authority_vouches_for_is_refused_in_one_line(
    secured: HutchServer,
) -> None:
    with pytest.raises(ClientError, match=r"no TLS with localhost:.*certificate") as caught:
        offsets_over(tls_settings(secured, BrokerTls()))

    assert not isinstance(caught.value, ServerGone), "another try would not help"
    assert "\n" not in str(caught.value)


def test_a_server_of_another_name_is_refused_unless_names_do_not_matter(
    secured: HutchServer, made: Certificates
) -> None:
    wrong = BrokerTls(ca=str(made.ca), server_name="elsewhere.example")
    with pytest.raises(ClientError, match=r"elsewhere\.example"):
        offsets_over(tls_settings(secured, wrong))

    lenient = BrokerTls(str(made.ca), verify_hostname=False, server_name="elsewhere.example")
    assert offsets_over(tls_settings(secured, lenient)) == list(range(500))


@pytest.mark.parametrize("option", ["ca", "cert"])
def test_a_file_that_is_not_there_is_told_with_its_option(
    secured: HutchServer, made: Certificates, tmp_path: Path, option: str
) -> None:
    missing = str(tmp_path / "none.pem")
    files = {"ca": str(made.ca)} | {option: missing}

    with pytest.raises(ClientError, match=rf"option tls\.{option}=.*none.pem.*No such file"):
        offsets_over(tls_settings(secured, BrokerTls(**files)))  # type: ignore[arg-type]


def test_plain_tcp_to_a_port_of_tls_is_an_error_in_time(secured: HutchServer) -> None:
    endpoint = Endpoint(*tls_endpoint(secured))
    begun = time.monotonic()

    with pytest.raises(ClientError):
        Cluster(BrokerSettings((endpoint,), request_timeout_ms=3_000), NAME).leaders(["s"])

    assert time.monotonic() - begun < 60


def test_tls_to_a_plain_port_is_an_error_in_time(secured: HutchServer, made: Certificates) -> None:
    settings = BrokerSettings(
        (Endpoint(secured.host, secured.port),),
        tls=BrokerTls(ca=str(made.ca)),
        connect_timeout_ms=3_000,
    )
    begun = time.monotonic()

    with pytest.raises(ClientError, match="no TLS with"):
        Cluster(settings, NAME).leaders(["s"])

    assert time.monotonic() - begun < 60


def test_wrong_users_and_hosts_are_refused_by_name(secured: HutchServer) -> None:
    endpoint = Endpoint(secured.host, secured.port)
    wrong_user = BrokerSettings(
        (endpoint,), username="nobody", password=Password("password", "secret")
    )
    wrong_host = BrokerSettings((endpoint,), vhost="elsewhere")

    with pytest.raises(Refused, match="refused user 'nobody': user name or password is wrong"):
        Cluster(wrong_user, NAME).leaders(["s"])
    with pytest.raises(Refused, match="virtual host 'elsewhere' does not exist"):
        Cluster(wrong_host, NAME).leaders(["s"])


def test_a_user_without_the_right_to_read_is_told_so(secured: HutchServer) -> None:
    ctl(secured, "add_user", "blind", stdin=b"secret\n")
    ctl(secured, "set_permissions", "blind", "", ".*", "")
    endpoint = Endpoint(secured.host, secured.port)
    settings = BrokerSettings(
        (endpoint,), username="blind", password=Password("password", "secret")
    )
    cluster = Cluster(settings, NAME)

    with pytest.raises(Refused, match="stream 's' may not be used by this user"):
        cluster.bounds(cluster.leaders(["s"]))


def test_connections_are_listed_by_their_name_and_go_after_their_time(
    secured: HutchServer,
) -> None:
    settings = BrokerSettings((Endpoint(secured.host, secured.port),), pool_idle_timeout_ms=1_500)
    name = Name("application/query", "task 7")
    Cluster(settings, name).leaders(["s"])

    def is_listed() -> bool:
        listed = ctl(secured, "list_stream_connections", "conn_name", "client_properties")
        return str(name) in str(listed)

    assert is_listed()
    end = time.monotonic() + HANG_S
    while is_listed():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize("transport", ["plain", "tls"])
def test_a_connection_whose_user_is_busy_outlives_heartbeats(
    made: Certificates, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "BEATS", 60 / 0.05)
    monkeypatch.setattr(pool_module, "_LOOK_S", 0.02)
    context = None
    if transport == "tls":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(made.server.certificate, made.server.key)
    with FakeServer(context) as server:
        server.streams["s"] = chunks(*[50] * 60, body_bytes=1_000)
        lenient = BrokerTls(ca=str(made.ca), verify_hostname=False)
        tls = lenient if transport == "tls" else None
        wanted = range_of(server, "s", 0, 3_000)
        reader = reader_of(server, wanted, tls=tls, advertised=False)
        found = []
        for offset, body in records_of(reader, 3_000):
            found.append((offset, body.strip()))
            if offset % 600 == 0:
                time.sleep(0.2)

        assert found == [(n, b"%d" % n) for n in range(3_000)]
        assert sum(talk.heartbeats for talk in server.talks) >= 5
        assert len(server.talks) == 1
        POOL.close()


# ---- peers that misbehave ----------------------------------------------------------------------


def test_a_chunk_with_a_wrong_checksum_is_told_with_stream_and_offset() -> None:
    with FakeServer() as server:
        server.streams["s"] = [*chunks(5), chunk(5, [b"a", b"b"], crc=1)]
        wanted = WantedColumns(("offset",), "s", None, 0, "raw", False, ())  # noqa: FBT003
        decoder = Decoder(wanted)
        pieces = reader_of(server, range_of(server, "s", 0, 7)).pieces()

        for batch in decoder.add(next(pieces).chunk, 0, 7):
            assert batch.num_rows == 5
        damaged = next(pieces)
        with pytest.raises(DamagedChunk, match="stream 's' is damaged at offset 5"):
            list(decoder.add(damaged.chunk, damaged.low, 7))
        pieces.close()


def test_frames_that_lie_in_size_or_come_late_end_a_read_in_time() -> None:
    def late(talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.Credit)
        for byte in b"\0\0\x40\0\0\x08\0\1" * 100:
            talk.send(bytes([byte]))
            time.sleep(0.02)

    with FakeServer() as server:
        server.streams["s"] = chunks(5)
        server.ends["s"] = 50
        server.handlers["credit"] = late
        reader = reader_of(
            server, range_of(server, "s", 0, 50), poll_timeout_ms=500, planner_retries=1
        )
        begun = time.monotonic()

        with pytest.raises(ClientError, match=r"stream 's': .* offsets 5 to 49 were not") as caught:
            list(records_of(reader, 50))

        assert "\n" not in str(caught.value)
        assert time.monotonic() - begun < 15
        server.errors.clear()
