"""Records golden frames from a running RabbitMQ: `python -m tests.golden.capture HOST PORT`.

It holds every conversation of the protocol with the broker, keeps the bytes of both sides, and
writes them to `captured/`, with the meaning that our codec gives them. Streams are named
`golden-…` and deleted in the end; still, don't point it at a broker that matters.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hutch.client.login import Login
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, decode_reply, decode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import (
    FIRST,
    LAST,
    NEXT,
    NONE,
    at_offset,
    at_timestamp,
)
from tests.chunks import GZIP, SubBatch
from tests.client import Client, ClosedByServer, PeerGone, plain
from tests.golden.golden import CAPTURED_FOLDER, in_words

STREAM = "golden-orders"
SUPER_STREAM = "golden-invoices"
PARTITIONS = ("golden-invoices-0", "golden-invoices-1")
GROUP = {"single-active-consumer": "true", "name": "golden-group"}
TIMESTAMP_MS = 1_700_000_000_000

Entry = tuple[Decoded, dict[str, Any]]


class Recorder(Client):
    """A client that keeps every frame, under the label of the moment."""

    entries: list[Entry]
    label = ""

    def record_to(self, entries: list[Entry]) -> None:
        """Keep frames here from now on."""
        self.entries = entries

    def send(self, data: bytes) -> None:
        self._keep("client", decode_request(data[4:]), data[4:])
        super().send(data)

    def receive_frame(self, timeout_s: float | None = None) -> bytes:
        frame = super().receive_frame(timeout_s)
        self._keep("server", decode_reply(frame), frame)
        return frame

    def _keep(self, sender: str, decoded: Decoded, frame: bytes) -> None:
        entry = {
            "name": self.label,
            "sender": sender,
            "origin": "captured",
            "version": decoded.version,
            "is_response": decoded.is_response,
            "correlation_id": decoded.correlation_id,
            "hex": frame.hex(),
            "fields": in_words(decoded.message),
        }
        self.entries.append((decoded, entry))


class Capture:
    """The conversations, each under its label."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.entries: list[Entry] = []

    def connect(self) -> Recorder:
        """Open a connection whose frames are kept, with its handshake under one label."""
        client = Recorder(self.host, self.port)
        client.record_to(self.entries)
        client.label = "handshake"
        return client

    @contextmanager
    def opened(self) -> Iterator[Recorder]:
        """Give an open connection and close it in order."""
        with self.connect() as client:
            client.handshake()
            yield client
            client.label = "goodbye"
            client.close()

    def run(self) -> None:
        """Hold all conversations."""
        with self.opened() as client:
            self.remove_what_is_there(client)
            self.streams(client)
            self.publishing(client)
            self.reading(client)
            self.offsets(client)
        self.groups()
        with self.opened() as client:
            self.super_streams(client)
            client.label = "the end"
            client.request("delete_stream", m.DeleteStream(STREAM))
            client.next_of("metadata_update")
        self.endings()

    def remove_what_is_there(self, client: Recorder) -> None:
        """Delete what an earlier run may have left."""
        client.label = "not there"
        client.request("delete_super_stream", m.DeleteSuperStream(SUPER_STREAM))
        client.request("delete_stream", m.DeleteStream(STREAM))

    def streams(self, client: Recorder) -> None:
        """Create a stream and ask about it."""
        client.label = "with arguments"
        arguments = {"max-age": "1h", "max-length-bytes": "5000000"}
        client.request("create_stream", m.CreateStream(STREAM, arguments))
        client.label = "with other arguments"
        client.request("create_stream", m.CreateStream(STREAM, {}))
        client.label = "an empty name"
        client.request("create_stream", m.CreateStream("", {}))
        client.label = "one known, one unknown"
        client.request("metadata", m.Metadata((STREAM, "golden-unknown")))
        client.label = "nothing"
        client.request("metadata", m.Metadata(()))
        client.label = "empty"
        client.request("stream_stats", m.StreamStats(STREAM))
        client.label = "unknown"
        client.request("stream_stats", m.StreamStats("golden-unknown"))

    def publishing(self, client: Recorder) -> None:
        """Publish in every way."""
        client.label = "named"
        client.request("declare_publisher", m.DeclarePublisher(1, "golden-é", STREAM))
        client.label = "unnamed"
        client.request("declare_publisher", m.DeclarePublisher(2, "", STREAM))
        client.label = "taken"
        client.request("declare_publisher", m.DeclarePublisher(2, "", STREAM))
        client.label = "unknown stream"
        client.request("declare_publisher", m.DeclarePublisher(3, "", "golden-unknown"))
        client.label = "two entries"
        client.publish(1, {1: b"a", 2: b"b"})
        client.confirmed_ids(2)
        client.label = "sub-batches"
        batches = (SubBatch.of([b"aa", b"bb"]), SubBatch.of([b"cc", b"dd"], GZIP))
        client.publish(2, enumerate(batches, start=1))
        client.confirmed_ids(2)
        client.label = "filter values"
        client.publish_filtered(2, [(3, "f1", b"x"), (4, None, b"y")])
        client.confirmed_ids(2)
        client.label = "unknown publisher"
        client.publish(77, {1: b"a"})
        client.publish_refused()
        client.label = "of a named publisher"
        client.request("query_publisher_sequence", m.QueryPublisherSequence("golden-é", STREAM))
        client.label = "unknown"
        client.request("query_publisher_sequence", m.QueryPublisherSequence("golden-no", STREAM))
        client.request("delete_publisher", m.DeletePublisher(99))
        client.label = "known"
        client.request("delete_publisher", m.DeletePublisher(2))

    def reading(self, client: Recorder) -> None:
        """Subscribe at every kind of place."""
        places = (FIRST, LAST, NEXT, at_offset(1), at_timestamp(TIMESTAMP_MS))
        for subscription_id, place in enumerate(places):
            client.label = f"at {place.type.name.lower()}"
            client.request("resolve_offset_spec", m.ResolveOffsetSpec(STREAM, place, {}))
            properties = {"name": "golden"} if place is FIRST else {}
            client.subscribe(subscription_id, STREAM, place, credit=1, properties=properties)
            if place is not NEXT:
                client.delivery()
            client.request("unsubscribe", m.Unsubscribe(subscription_id))
        client.label = "unknown"
        client.request("subscribe", m.Subscribe(9, "golden-unknown", NEXT, 1, {}))
        client.request("unsubscribe", m.Unsubscribe(9))
        client.request("resolve_offset_spec", m.ResolveOffsetSpec("golden-unknown", NEXT, {}))
        client.credit(9, 1)
        client.next_of("credit")
        client.label = "deliver up to version 2"
        client.speak_deliver_2()
        client.subscribe(1, STREAM, FIRST, credit=1)
        client.delivery()
        client.label = "one more chunk"
        client.credit(1, 1)
        client.delivery()

    def offsets(self, client: Recorder) -> None:
        """Store and query an offset."""
        client.label = "nothing stored"
        client.request("query_offset", m.QueryOffset("golden-r", STREAM))
        client.label = "stored"
        client.send_request("store_offset", m.StoreOffset("golden-r", STREAM, 3))
        client.request("query_offset", m.QueryOffset("golden-r", STREAM))
        client.label = "unknown stream"
        client.request("query_offset", m.QueryOffset("golden-r", "golden-unknown"))
        client.label = "filled"
        client.request("stream_stats", m.StreamStats(STREAM))

    def groups(self) -> None:
        """Answer ConsumerUpdate in every way."""
        for answer in (NONE, FIRST, LAST, NEXT, at_offset(1), at_timestamp(TIMESTAMP_MS)):
            with self.opened() as client:
                client.label = f"answered with {answer.type.name.lower()}"
                client.subscribe(1, STREAM, FIRST, credit=1, properties=GROUP)
                client.answer_consumer_update(answer)
                if answer != NEXT:
                    client.delivery()

    def super_streams(self, client: Recorder) -> None:
        """Create, ask about and delete a super stream; hand a partition over in a group."""
        client.label = "two partitions"
        create = m.CreateSuperStream(SUPER_STREAM, PARTITIONS, ("k0", "k1"), {"max-age": "1h"})
        client.request("create_super_stream", create)
        client.request("partitions", m.Partitions(SUPER_STREAM))
        client.label = "already there"
        client.request("create_super_stream", create)
        client.label = "by key"
        client.request("route", m.Route("k1", SUPER_STREAM))
        client.label = "no match"
        client.request("route", m.Route("k9", SUPER_STREAM))
        client.label = "unknown"
        client.request("route", m.Route("k1", "golden-unknown"))
        client.request("partitions", m.Partitions("golden-unknown"))
        client.request("delete_super_stream", m.DeleteSuperStream("golden-unknown"))
        client.label = "hand-over in a group"
        properties = GROUP | {"super-stream": SUPER_STREAM}
        client.subscribe(1, PARTITIONS[1], FIRST, credit=1, properties=properties)
        client.answer_consumer_update()
        client.subscribe(2, PARTITIONS[1], FIRST, credit=1, properties=properties)
        client.answer_consumer_update()
        client.answer_consumer_update()
        client.request("unsubscribe", m.Unsubscribe(1))
        client.request("unsubscribe", m.Unsubscribe(2))
        client.label = "known"
        client.declare(5, STREAM)
        client.request("delete_super_stream", m.DeleteSuperStream(SUPER_STREAM))

    def endings(self) -> None:
        """Be refused, idle, and closed by the server."""
        with self.connect() as client:
            client.label = "unknown mechanism"
            client.request("peer_properties", m.PeerProperties({}))
            client.request("sasl_handshake", m.SaslHandshake())
            client.request("sasl_authenticate", m.SaslAuthenticate("GOLDEN", None))
        with self.connect() as client:
            client.authenticate(Login())
            client.label = "refused"
            client.send_request("tune", m.Tune(0, 0))
            client.request("open", m.Open("golden-unknown"))
        with self.connect() as client:
            client.handshake(heartbeat_s=1)
            client.label = "renewed"
            client.request("sasl_authenticate", plain("guest", "guest"))
            client.label = "idle"
            client.receive_frame()
            client.send_request("heartbeat", m.Heartbeat())
        for label, frame in (("unknown frame", "7fff0001"), ("frame too large", "")):
            with self.connect() as client:
                client.handshake(frame_bytes_max=100)
                client.label = label
                client.socket.sendall((len(frame) // 2 or 101).to_bytes(4) + bytes.fromhex(frame))
                try:
                    client.receive()
                except ClosedByServer as closed:
                    assert ResponseCode(closed.code).phrase == closed.reason  # noqa: PT017

    def write(self) -> None:
        """Write a file for each command, without repetitions, and with names made unique."""
        CAPTURED_FOLDER.mkdir(exist_ok=True)
        files: dict[str, dict[str, dict[str, Any]]] = {}
        for decoded, entry in self.entries:
            if isinstance(decoded.message, m.PeerPropertiesReply):
                continue  # the broker's makers and their terms; one by hand says as much
            frames = files.setdefault(f"{decoded.command.key:02x}_{decoded.command.name}.json", {})
            seen = {(known["sender"], str(known["fields"])) for known in frames.values()}
            if (entry["sender"], str(entry["fields"])) in seen:
                continue
            kind = "answer" if entry["is_response"] else "command"
            name = f"captured {entry['sender']} {kind}, {entry['name']}"
            while name in frames:
                name += ", again"
            frames[name] = entry | {"name": name}
        for file_name, frames in files.items():
            text = json.dumps(list(frames.values()), indent=2) + "\n"
            (CAPTURED_FOLDER / file_name).write_text(text, encoding="utf-8")


def main() -> None:
    """Capture from the broker that the arguments name."""
    host, port = sys.argv[1:]
    capture = Capture(host, int(port))
    try:
        capture.run()
    except PeerGone:
        sys.stderr.write(f"the broker hung up after {capture.entries[-1]}\n")
        raise
    capture.write()
    sys.stdout.write(f"{len(capture.entries)} frames\n")


if __name__ == "__main__":
    main()
