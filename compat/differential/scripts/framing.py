"""Frames that are no frames: wrong keys, versions, lengths, and what other protocols send."""

from __future__ import annotations

import struct

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Wait,
    ask,
    connected,
    ending,
    opened,
    raw,
    reached,
    refused,
    script,
    timed,
)

TO_THE_END = Wait(fin=True, timeout_s=2.0)
STRANGE = (
    ("key 0", f.command(0x00)),
    ("key 0x20", f.request(0x20)),
    ("key 0x7fff", f.request(0x7FFF)),
    ("version 0", f.request(0x0F, f.texts(()), version=0)),
    ("version 2", f.request(0x0F, f.texts(()), version=2)),
    ("no bytes", b""),
    ("one byte", b"\0"),
    ("two bytes", b"\0\x0f"),
    ("three bytes", b"\0\x0f\0"),
    ("no correlation id", f.command(0x0F)),
)

BEFORE = tuple(
    script(f"strange before open: {name}", reached("A", Reached.PROPERTIES), ending("A", body))
    for name, body in STRANGE
)
AFTER = tuple(
    script(f"strange once open: {name}", opened("A"), refused("A", body)) for name, body in STRANGE
)

# A whole request of every fixed layout, which then gets one byte more or less.
FIXED = (
    ("declare_publisher", f.declare(1, "~s", "ref")),
    ("query_publisher_sequence", f.query_sequence("ref", "~s")),
    ("delete_publisher", f.delete_publisher(1)),
    ("credit", f.credit(1, 1)),
    ("store_offset", f.store_offset("ref", "~s", 1)),
    ("query_offset", f.query_offset("ref", "~s")),
    ("unsubscribe", f.unsubscribe(1)),
    ("delete_stream", f.delete("~s")),
    ("close", f.close()),
    ("heartbeat", f.heartbeat()),
    ("route", f.route("key", "~s")),
    ("partitions", f.partitions("~s")),
    ("stream_stats", f.stream_stats("~s")),
    ("delete_super_stream", f.delete_super("~s")),
)
ONE_MORE = tuple(
    script(f"one byte more: {name}", opened("A"), refused("A", body + b"\0"))
    for name, body in FIXED
)
ONE_LESS = tuple(
    script(f"one byte less: {name}", opened("A"), refused("A", body[:-1]))
    for name, body in FIXED
    if name != "heartbeat"
)
OTHER_VERSION = tuple(
    script(f"version 2 of {name}", opened("A"), refused("A", body[:2] + b"\0\2" + body[4:]))
    for name, body in (
        *FIXED,
        ("subscribe", f.subscribe(1, "~s")),
        ("create_stream", f.create("~s")),
        ("exchange_command_versions", f.versions((2, 1, 2))),
        ("resolve_offset_spec", f.resolve("~s", f.FIRST)),
    )
)

# Layouts that end in a list or a map, cut inside it or with something behind it.
TAILS = (
    ("create: an argument without its value", f.create("~s", {"a": "bc"})[:-4]),
    ("create: a value cut short", f.create("~s", {"a": "bc"})[:-1]),
    ("create: no map", f.request(0x0D, f.text("~s"))),
    ("create: half a count", f.request(0x0D, f.text("~s") + b"\0\0")),
    ("create: a byte behind the map", f.create("~s") + b"\0"),
    ("metadata: a name cut short", f.metadata("abc")[:-1]),
    ("metadata: no list", f.request(0x0F)),
    ("metadata: half a count", f.request(0x0F, b"\0\0")),
    ("metadata: a byte behind the list", f.metadata("abc") + b"\0"),
    ("subscribe: no credit", f.subscribe(1, "~s")[:-2]),
    ("subscribe: no offset", f.request(0x07, b"\1" + f.text("~s"))),
    ("subscribe: offset type 0", f.subscribe(1, "~s", struct.pack(">H", 0))),
    ("subscribe: offset type 6", f.subscribe(1, "~s", struct.pack(">H", 6))),
    ("subscribe: a property cut short", f.subscribe(1, "~s", pairs={"name": "x"})[:-1]),
    ("versions: a row cut short", f.versions((2, 1, 2))[:-1]),
    ("versions: no list", f.request(0x1B)),
    ("versions: a row more than counted",
     f.versions((2, 1, 2)) + struct.pack(">HHH", 8, 1, 2)),
    ("versions: a key that nobody knows", f.versions((0x20, 1, 1))),
    ("resolve: offset type 0", f.resolve("~s", struct.pack(">H", 0))),
    ("resolve: no offset", f.request(0x1F, f.text("~s"))),
    ("super stream: lists cut short", f.create_super("~x", ["~x-0"], ["0"])[:-7]),
    ("null reference", f.declare(1, "~s", None)),
    ("publish: an entry cut short", f.messages(1, 1, b"abc")[:-1]),
    ("publish: no count", f.command(0x02, b"\1")),
    ("publish: version 3", f.publish(1, f.entry(1, b"x"), version=3)),
)  # fmt: skip
MALFORMED = tuple(
    script(
        f"malformed: {name}",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        refused("A", body),
    )
    for name, body in TAILS
)

# Counts in front of the last list of a frame are not looked at.
LENIENT = (
    script(
        "lenient: metadata that counts too many",
        opened("A"),
        ask("A", f.request(0x0F, struct.pack(">I", 7) + f.text("~none"))),
    ),
    script(
        "lenient: metadata that counts none",
        opened("A"),
        ask("A", f.request(0x0F, struct.pack(">I", 0) + f.text("~none"))),
    ),
    script(
        "lenient: create that counts too many arguments",
        opened("A"),
        ask("A", f.request(0x0D, f.text("~s") + struct.pack(">I", 5))),
        ask("A", f.create("~s")),
    ),
    script(
        "lenient: the last of two equal keys counts",
        opened("A"),
        ask("A", f.create("~s", [("max-length-bytes", "5"), ("max-length-bytes", "6")])),
        ask("A", f.create("~s", {"max-length-bytes": "6"})),
        ask("A", f.create("~s", {"max-length-bytes": "5"})),
    ),
    script(
        "lenient: peer properties that count too many",
        connected("A"),
        ask("A", f.request(0x11, struct.pack(">I", 9) + f.text("k") + f.text("v"))),
        ask("A", f.sasl_handshake()),
    ),
    *(
        script(
            f"lenient: subscribe with {count} bytes in place of properties",
            opened("A"),
            ask("A", f.create("~s")),
            ask("A", f.subscribe(1, "~s") + bytes(count)),
        )
        for count in (1, 2, 3, 4)
    ),
    script(
        "lenient: subscribe whose properties count too many",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.subscribe(1, "~s") + struct.pack(">I", 4) + f.text("k") + f.text("v")),
    ),
)

FROM_THE_SERVER = tuple(
    script(f"what only a server says: {name}", opened("A"), refused("A", body))
    for name, body in (
        ("publish_confirm", f.command(0x03, struct.pack(">BIQ", 1, 1, 1))),
        ("publish_error", f.command(0x04, struct.pack(">BIQH", 1, 1, 1, 18))),
        ("publish_error of none", f.command(0x04, struct.pack(">BI", 1, 0))),
        ("deliver", f.command(0x08, bytes(60))),
        ("metadata_update", f.command(0x10, struct.pack(">H", 6) + f.text("~s"))),
        ("consumer_update", f.request(0x1A, b"\1\1")),
        ("the answer to declare_publisher", f.request(0x8001, b"\0\1")),
        ("the answer to open", f.request(0x8015, b"\0\1")),
        ("an answer to nothing", f.request(0x80FF, b"\0\1")),
        ("an answer to close", f.close_answer()),
        ("a credit error", f.command(0x8009, b"\0\4\1")),
    )
)

CONSUMER_UPDATES = (
    script(
        "an answer to no consumer update is ignored",
        opened("A"),
        ask("A", f.consumer_update_answer(99, f.FIRST), f.metadata(), wait=Wait(frames=1)),
    ),
    script(
        "an answer to no consumer update without an offset",
        opened("A"),
        refused("A", f.consumer_update_answer(99, b"")),
    ),
    script(
        "an answer to no consumer update with offset type 9",
        opened("A"),
        refused("A", f.consumer_update_answer(99, struct.pack(">H", 9))),
    ),
)

FOREIGN = tuple(
    script(f"another protocol: {name}", connected("A"), raw("A", data, wait=TO_THE_END))
    for name, data in (
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("AMQP 0-9-1", b"AMQP\0\0\x09\x01"),
        ("TLS", bytes.fromhex("1603010200010001fc0303") + bytes(64)),
        ("MQTT", bytes.fromhex("101000044d51545404020 03c000461626364".replace(" ", ""))),
    )
)

SIZES_BEFORE = (
    script(
        "size before open: 8193 ends it by the length alone",
        connected("A"),
        raw("A", struct.pack(">I", 8193), wait=TO_THE_END),
    ),
    script(
        "size before open: 8192 is accepted",
        connected("A"),
        ask("A", f.peer_properties({"k": "v" * (8192 - 17)})),
        ask("A", f.sasl_handshake()),
    ),
    script(
        "size before open: the largest number",
        connected("A"),
        raw("A", b"\xff\xff\xff\xff", wait=TO_THE_END),
    ),
    script(
        "size before open: 8193 after authentication",
        reached("A", Reached.TUNED),
        raw("A", struct.pack(">I", 8193), wait=TO_THE_END),
    ),
)
CLOSED = (
    script(
        "the server's close is answered, and the connection ends",
        opened("A"),
        refused("A", f.command(0x7F)),
        timed("A", f.close_answer(), wait=TO_THE_END),
    ),
    script(
        "after the server's close everything but its answer is ignored",
        opened("A"),
        refused("A", f.command(0x7F)),
        ask("A", f.metadata(), f.close(), f.create("~s"), wait=Wait(frames=1, timeout_s=0.5)),
        timed("A", f.close_answer(), wait=TO_THE_END),
    ),
    script(
        "the server's close without an answer ends in 10 s",
        opened("A"),
        timed("A", f.command(0x7F), wait=Wait(fin=True, timeout_s=14.0)),
    ),
    *(
        script(
            f"close with the code {code} and {name}",
            opened("A"),
            timed("A", f.close(code, reason, corr=77), wait=TO_THE_END),
        )
        for code, name, reason in (
            (1, "a reason", "done"),
            (0, "no reason", ""),
            (65535, "a long reason", "r" * 5000),
        )
    ),
)

SCRIPTS: tuple[Script, ...] = (
    *BEFORE, *AFTER, *ONE_MORE, *ONE_LESS, *OTHER_VERSION, *MALFORMED, *LENIENT, *FROM_THE_SERVER,
    *CONSUMER_UPDATES, *FOREIGN, *SIZES_BEFORE, *CLOSED,
)  # fmt: skip
