"""Good frames of every command that a client sends, and what can be done to them."""

from __future__ import annotations

import random
from typing import Final

from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from hutch.stream.commands import BY_NAME
from hutch.stream.offsets import at_offset
from tests.chunks import SubBatch, filtered_body, publish_body

SUB_BATCH: Final = SubBatch.of([b"a", b"bc"])
REQUESTS: Final[list[tuple[str, int, m.Message]]] = [
    ("declare_publisher", 1, m.DeclarePublisher(2, "ref", "orders")),
    ("publish", 1, m.KernelBody(publish_body(1, [(1, b"x"), (2, b"y" * 40)]))),
    ("publish", 1, m.KernelBody(publish_body(1, [(3, b"x"), (4, SUB_BATCH)]))),
    ("publish", 2, m.KernelBody(filtered_body(1, [(5, "v", b"x"), (6, None, b"")]))),
    ("query_publisher_sequence", 1, m.QueryPublisherSequence("ref", "orders")),
    ("delete_publisher", 1, m.DeletePublisher(1)),
    ("subscribe", 1, m.Subscribe(2, "orders", at_offset(3), 5, {"filter.0": "v", "name": "n"})),
    ("credit", 1, m.Credit(1, 5)),
    ("store_offset", 1, m.StoreOffset("ref", "orders", 7)),
    ("query_offset", 1, m.QueryOffset("ref", "orders")),
    ("unsubscribe", 1, m.Unsubscribe(1)),
    ("create_stream", 1, m.CreateStream("damaged", {"max-age": "1h", "max-length-bytes": "9"})),
    ("delete_stream", 1, m.DeleteStream("damaged")),
    ("metadata", 1, m.Metadata(("orders", "none"))),
    ("peer_properties", 1, m.PeerProperties({"a": "b"})),
    ("sasl_handshake", 1, m.SaslHandshake()),
    ("sasl_authenticate", 1, m.SaslAuthenticate("PLAIN", b"\0guest\0guest")),
    ("tune", 1, m.Tune(1 << 20, 60)),
    ("open", 1, m.Open("/")),
    ("close", 1, m.Close(1, "done")),
    ("heartbeat", 1, m.Heartbeat()),
    ("route", 1, m.Route("key", "super")),
    ("partitions", 1, m.Partitions("super")),
    ("exchange_command_versions", 1, m.ExchangeCommandVersions((m.CommandVersions(8, 1, 2),))),
    ("stream_stats", 1, m.StreamStats("orders")),
    ("create_super_stream", 1, m.CreateSuperStream("super", ("a", "b"), ("0", "1"), {})),
    ("delete_super_stream", 1, m.DeleteSuperStream("super")),
    ("resolve_offset_spec", 1, m.ResolveOffsetSpec("orders", at_offset(1), {})),
]
VALID_FRAMES: Final = [
    encode_request(
        name, message, version=version, correlation_id=9 if BY_NAME[name].is_correlated else None
    )[4:]
    for name, version, message in REQUESTS
]


def damage(frame: bytearray, chance: random.Random) -> None:
    """Change, drop or add a byte or some; mostly behind the command's key and version."""
    position = chance.randint(0 if chance.random() < 0.1 else min(4, len(frame)), len(frame))
    kind = chance.randrange(4)
    if kind == 0 and position < len(frame):
        frame[position] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    elif kind == 1:
        del frame[position:]
    elif kind == 2:
        frame[position:position] = chance.randbytes(chance.randint(1, 8))
    else:
        frame[position : position + 4] = b"\xff\xff\xff\xff"
