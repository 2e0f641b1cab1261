"""Publishing over TLS, to a server that goes on only when what it says is read."""

from __future__ import annotations

import ssl

from compat.certificates import Certificates
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, encode_command
from pyspark_hutch.options.connection_settings import BrokerTls
from tests.fake_server import Talk
from tests.sink_rig import FakeSink, Publisher, bodies_of, published


def test_rows_reach_a_server_that_writes_before_it_reads(made: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.server.certificate, made.server.key)
    with FakeSink("s", tls=context) as server:

        def flood(talk: Talk, asked: Decoded) -> None:
            publisher_id, entries = published(asked)
            server.store(talk, publisher_id, entries)
            noise = encode_command("metadata_update", m.MetadataUpdate(6, "x" * 30_000))
            for _ in range(1_000 if server.count("publish") == 1 else 0):
                talk.send(noise)
            ids = tuple(publishing_id for publishing_id, _ in entries)
            talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

        server.handlers["publish"] = flood
        tls = BrokerTls(ca=str(made.ca), verify_hostname=False)
        publisher = Publisher(server, confirm_timeout_ms=20_000, tls=tls, advertised=False)

        publisher.write("s", bodies_of(20, size=1_000_000))

        assert server.stored["s"] == bodies_of(20, size=1_000_000)
        assert server.count("declare_publisher") == 1
