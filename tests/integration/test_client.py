"""The client in the box against a running server: plain and over TLS."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import islice

import pytest

from compat.certificates import CLIENT_NAME, Certificates
from hutch.client import (
    FIRST,
    Client,
    ClientError,
    ClosedByServer,
    Login,
    Refused,
    ServerGone,
    ServerSilent,
    at_offset,
)
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.integration.administrator import IMPATIENT, ctl
from tests.integration.conftest import StartServer, external_endpoint
from tests.integration.server import HutchServer
from tests.integration.tls_rig import certified_server, context_of, tls_endpoint


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    """A server with TLS and a user of a certificate."""
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    data = tmp_path_factory.mktemp("box") / "data"
    with certified_server(data, made, environment=IMPATIENT) as running:
        yield running


@pytest.fixture
def stream() -> str:
    return f"box-{uuid.uuid4().hex[:8]}"


def go_round(client: Client, stream: str) -> None:
    """Create, publish, read and delete a stream, with frames of all sizes."""
    records = [b"%d" % n + bytes(n * 61 % 5_000) for n in range(2_000)]
    client.create_stream(stream)
    client.publish(stream, records)
    assert client.statistics(stream)["committed_offset"] == len(records) - 1

    assert list(islice(client.subscribe(stream, FIRST, credit=1), 2_000)) == [*enumerate(records)]
    late = client.subscribe(stream, at_offset(1_997))
    assert list(islice(late, 3)) == [*enumerate(records)][1_997:]
    with pytest.raises(ServerSilent):
        late.next(timeout_s=0.1)
    late.close()

    assert client.query_offset("clerk", stream) is None
    client.store_offset("clerk", stream, 1_234)
    assert client.query_offset("clerk", stream) == 1_234
    found = client.metadata(stream, "none").streams
    assert {one.stream: one.code for one in found} == {stream: 1, "none": 2}
    client.delete_stream(stream)
    with pytest.raises(Refused) as caught:
        client.delete_stream(stream)
    assert caught.value.code == ResponseCode.STREAM_DOES_NOT_EXIST


def test_a_round_trip_over_a_plain_connection(server: HutchServer, stream: str) -> None:
    with Client(server.host, server.port) as client:
        assert client.connection.heartbeat_s == 60
        go_round(client, stream)


def test_a_round_trip_over_tls(server: HutchServer, made: Certificates, stream: str) -> None:
    url = f"rabbitmq-stream+tls://guest:guest@localhost:{tls_endpoint(server).port}"
    with Client.connect(url, tls=context_of(made.ca)) as client:
        go_round(client, stream)


def test_a_server_that_no_authority_vouches_for_is_not_spoken_to(server: HutchServer) -> None:
    with pytest.raises(ClientError, match=r"no TLS with localhost:.*certificate"):
        Client.connect(f"rabbitmq-stream+tls://localhost:{tls_endpoint(server).port}")


def test_a_certificate_logs_in(server: HutchServer, made: Certificates, stream: str) -> None:
    tls = context_of(made.ca, made.client)
    port, login = tls_endpoint(server).port, Login(mechanism="EXTERNAL")
    with Client("localhost", port, login=login, tls=tls) as client:
        go_round(client, stream)
        assert CLIENT_NAME in str(ctl(server, "list_stream_connections", "user"))


@pytest.mark.parametrize(
    ("login", "words", "code"),
    [
        (Login("guest", "wrong"), "refused user 'guest': user name or password is wrong", 8),
        (Login(virtual_host="elsewhere"), "virtual host 'elsewhere' does not exist", 12),
    ],
)
def test_a_log_in_that_is_refused_says_why(
    server: HutchServer, login: Login, words: str, code: int
) -> None:
    with pytest.raises(Refused, match=words) as caught:
        Client(server.host, server.port, login=login)

    assert caught.value.code == code


def test_a_named_publisher_of_a_later_connection_goes_on(server: HutchServer, stream: str) -> None:
    for records in ([b"a", b"b"], [b"c"]):
        with Client(server.host, server.port) as client:
            if records == [b"a", b"b"]:
                client.create_stream(stream)
            publisher = client.publisher(stream, "writer")
            publisher.send(records)
            publisher.close()
    with Client(server.host, server.port) as client:
        assert client.publisher(stream, "writer").next_id == 4
        found = list(islice(client.subscribe(stream, FIRST), 3))

    assert found == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_stream_that_is_deleted_ends_what_uses_it_and_may_be_made_again(
    server: HutchServer, stream: str
) -> None:
    with Client(server.host, server.port) as client:
        client.create_stream(stream)
        client.publish(stream, [b"before"])
        reading = client.subscribe(stream, FIRST)
        with Client(server.host, server.port) as other:
            other.delete_stream(stream)
            other.create_stream(stream)

        assert next(reading) == (0, b"before")
        with pytest.raises(ServerGone, match="is not available now"):
            next(reading)
        client.publish(stream, [b"after"])
        assert next(client.subscribe(stream, FIRST)) == (0, b"after")


def test_a_group_reads_through_its_active_member(server: HutchServer, stream: str) -> None:
    group = {"single-active-consumer": "true", "name": "group"}
    with Client(server.host, server.port) as client:
        client.create_stream(stream)
        client.publish(stream, [b"a", b"b"])

        active = client.subscribe(stream, FIRST, properties=group)

        assert [next(active), next(active)] == [(0, b"a"), (1, b"b")]


def test_a_close_of_the_server_has_its_code_and_its_reason(server: HutchServer) -> None:
    with Client(server.host, server.port) as client:
        client.connection.send_bytes(b"\0\0\0\4\0\x63\0\1")

        with pytest.raises(ClosedByServer, match="unknown frame") as caught:
            client.query_offset("clerk", "none")

    assert caught.value.code == ResponseCode.UNKNOWN_FRAME
    assert caught.value.reason == "unknown frame"


def test_a_server_that_stops_is_gone_and_not_silent(start_server: StartServer, stream: str) -> None:
    server = start_server()
    with Client(server.host, server.port) as client:
        client.create_stream(stream)
        reading = client.subscribe(stream, FIRST)
        server.terminate()

        with pytest.raises(ServerGone):
            next(reading)
        with pytest.raises(ClientError):
            client.statistics(stream)
    with pytest.raises(ServerGone, match="cannot connect to"):
        Client(server.host, server.port)


def test_what_the_client_has_no_word_for_is_asked_of_its_connection(
    server: HutchServer, stream: str
) -> None:
    with Client(server.host, server.port) as client:
        parts, keys = (f"{stream}-0", f"{stream}-1"), ("0", "1")
        made = client.connection.ask(
            m.Status, "create_super_stream", m.CreateSuperStream(stream, parts, keys, {})
        )
        found = client.connection.ask(m.StreamsReply, "partitions", m.Partitions(stream))

    assert (made.code, found.streams) == (ResponseCode.OK, parts)
