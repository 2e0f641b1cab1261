"""The client in the box sees the same of RabbitMQ as of Hutch."""

from __future__ import annotations

import uuid
from itertools import islice
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from hutch.client import FIRST, Client, ClientError, ServerGone, ServerSilent, at_offset
from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from tests.chunks import GZIP, SubBatch, publish_body
from tests.integration.server import HutchServer
from tests.integration.tls_rig import context_of

RECORDS = [b"%d" % number + bytes(number * 37 % 3_000) for number in range(3_000)]


def seen(client: Client, stream: str) -> list[object]:
    """Go through everything that the client offers; give what it came to."""
    found: list[object] = []
    client.create_stream(stream, {"max-age": "1h"})
    found.append(refused(lambda: client.create_stream(stream, {"max-age": "2h"})))
    publisher = client.publisher(stream, "writer")
    publisher.send(RECORDS)
    publisher.flush()
    found.append(publisher.next_id)
    body = publish_body(publisher.publisher_id, [(5_000, SubBatch.of([b"x", b"y"], GZIP))])
    client.connection.send_bytes(encode_request("publish", m.KernelBody(body)))
    publisher.close()
    found.append(client.publisher(stream, "writer").next_id)
    found += islice(client.subscribe(stream, FIRST, credit=2), len(RECORDS) + 2)
    middle = client.subscribe(stream, at_offset(1_501))
    found.append(next(middle))
    middle.close()
    client.store_offset("clerk", stream, 7)
    found += [client.query_offset("clerk", stream), client.query_offset("nobody", stream)]
    group = {"single-active-consumer": "true", "name": "group"}
    found.append(next(client.subscribe(stream, FIRST, properties=group)))
    client.publish(stream, [b"the last"])
    quiet = client.subscribe(stream)
    try:
        found.append(quiet.next(timeout_s=0.3))
    except ServerSilent:
        found.append("silent")
    client.delete_stream(stream)
    try:
        next(quiet)
    except ServerGone as error:
        found.append(str(error))
    found.append(refused(lambda: client.publish(stream, [b"x"])))
    return found


def refused(call: object) -> str:
    """Call something; give the error without the server's address."""
    assert callable(call)
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value).partition(": ")[2]


def test_the_client_in_the_box_sees_the_same_of_both(
    rabbitmq: RunningBroker, tmp_path: Path
) -> None:
    stream = f"box-{uuid.uuid4().hex[:8]}"
    with Client(*rabbitmq.stream_address, timeout_s=20) as client:
        theirs = seen(client, stream)
    with HutchServer(tmp_path / "data") as hutch:
        with Client(hutch.host, hutch.port, timeout_s=20) as client:
            ours = seen(client, stream)
        hutch.terminate()

    assert ours == theirs
    assert ours[3 : 3 + len(RECORDS)] == list(enumerate(RECORDS))


def test_rabbitmq_is_spoken_to_over_tls(rabbitmq: RunningBroker) -> None:
    if rabbitmq.certificates is None:
        pytest.skip("this broker is not known to serve TLS")
    tls = context_of(rabbitmq.certificates.ca)
    stream = f"box-{uuid.uuid4().hex[:8]}"
    with Client("localhost", rabbitmq.ports.tls, tls=tls, timeout_s=20) as client:
        client.create_stream(stream)
        client.publish(stream, RECORDS)
        assert list(islice(client.subscribe(stream, FIRST), 3_000)) == list(enumerate(RECORDS))
        client.delete_stream(stream)
