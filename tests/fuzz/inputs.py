"""The inputs that fuzzing begins with, small enough to be kept in the repository.

    python -m tests.fuzz.inputs     writes those that are made here anew

A finding becomes a file here as well, named for what it found, and is replayed by every test run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hutch.pravega import messages as mp
from hutch.pravega.codec import decode, encode
from hutch.pravega.commands import COMMANDS
from hutch.pravega.table_messages import TableKeysRead
from hutch.pravega.wire_types import TableKey
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import encode_command, encode_reply
from hutch.stream.commands import STANDARD, CommandTable
from hutch.stream.offsets import FIRST, at_offset
from tests.chunks import SubBatch, filtered_body, publish_body
from tests.fake_server import chunks
from tests.fuzz.answers import BOUNDS_ID, SUBSCRIBE_ID
from tests.golden import golden
from tests.golden.early_exchanges import EXCHANGES
from tests.golden.pravega_frames import FRAMES, WRITER
from tests.mewbase_client import frame
from tests.property.gateway.chunk_model import SEED, Stored
from tests.property.gateway.conversations import frame_of

FOLDER: Final = Path(__file__).parent / "corpus"
DEFINITIONS_FOLDER: Final = Path(__file__).parents[1] / "unit/gateway/management/definitions"
_ZEROS: Final = 64
"""More zero bytes than any command of Pravega's needs."""
_WORDS: Final = (b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff", b"\x80")


def kept(target: str) -> list[tuple[str, bytes]]:
    """Return the checked-in inputs of a target with their names, in order."""
    return [(path.name, path.read_bytes()) for path in sorted((FOLDER / target).iterdir())]


def mutated(inputs: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield damaged inputs without end: the same ones for the same seed."""
    chance = random.Random(seed)
    while True:
        data = bytearray(chance.choice(inputs))
        for _ in range(chance.choice((1, 1, 2, 4, 8))):
            _damage(data, chance, inputs)
        yield bytes(data[:8192])


def _damage(data: bytearray, chance: random.Random, inputs: Sequence[bytes]) -> None:
    place = chance.randint(0, len(data))
    kind = chance.randrange(6)
    if kind == 0 and place < len(data):
        data[place] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del data[place : place + chance.randint(1, 8)]
    elif kind == 2:
        data[place:place] = chance.randbytes(chance.randint(1, 8))
    elif kind == 3:
        word = chance.choice(_WORDS)
        data[place : place + len(word)] = word
    elif kind == 4:
        size = chance.randint(1, 32)
        data[place:place] = data[place : place + size]
    else:
        other = chance.choice(inputs)
        data[place:] = other[chance.randint(0, len(other)) :]


def _frames(table: CommandTable) -> dict[str, bytes]:
    frames = [each for each in golden.load() if each.table is table]
    return {
        f"{number:02}-{each.command}": each.frame
        for number, each in enumerate(frames)
        if each.origin != "captured" and len(each.frame) <= 400
    }


def _publish(*entries: tuple[int, bytes | SubBatch], version: int = 1) -> bytes:
    body = b"\0\2" + version.to_bytes(2) + publish_body(0, entries)
    return len(body).to_bytes(4) + body


def _publishes() -> dict[str, bytes]:
    plain, named = bytes(10), b"\6\0" + (7).to_bytes(8)
    batch = SubBatch.of([b"a", b"bc"])
    filtered = b"\0\2\0\2" + filtered_body(0, [(1, "pear", b"x"), (2, None, b"y"), (3, "", b"")])
    high = [(2**63 - 1, b"a"), (2**63, b"b"), (2**64 - 1, b"c"), (0, b"d")]
    return {
        "empty": plain,
        "two-entries": plain + _publish((1, b"one"), (2, b"")),
        "two-frames": plain + _publish((1, b"one")) + _publish((2, b"two")),
        "sub-batch": plain + _publish((1, batch), (2, b"x")),
        "duplicates": named + _publish((6, b"again"), (7, b"again"), (8, b"new")),
        "high-ids": b"\2\0" + bytes(8) + _publish(*high),
        "small-chunk": b"\0\1" + bytes(8) + _publish(*((i, b"x" * 40) for i in range(5))),
        "filtered": b"\1\0" + bytes(8) + len(filtered).to_bytes(4) + filtered,
        "other-command": plain + bytes.fromhex("00000004 00170001"),
    }


def _chunks() -> dict[str, bytes]:
    first = Stored(b"\0\0\0\3one\0\0\0\3two", 2, 2, 0, 1_000, 1, seed=SEED).event()
    second = Stored(b"\0\0\0\5three", 1, 1, 2, 1_001, 1, seed=SEED).event()
    batch = Stored(SubBatch.of([b"a", b"bc"]).encoded(), 1, 2, 3, 1_002, 1, seed=SEED)
    behind = b"\0\3ref" + bytes(8)
    trailer = Stored(b"\0\0\0\0", 1, 1, 5, trailer=behind, rest=b"filters", seed=SEED)
    return {
        "empty": b"\3",
        "two": b"\3" + first + second,
        "no-room": b"\1" + first + second,
        "sub-batch": b"\3" + first + second + batch.event(),
        "trailer": b"\3" + trailer.event(),
        "cut": b"\3" + first + second[:-3],
        "bad-checksum": b"\3" + Stored(b"\0\0\0\1x", 1, 1, 0, crc=1, seed=SEED).event(),
    }


def _definitions() -> dict[str, bytes]:
    pages = {
        "broker": (DEFINITIONS_FOLDER / "rabbitmq-4.3.json").read_bytes(),
        "one-host": (DEFINITIONS_FOLDER / "rabbitmq-4.3-one-host.json").read_bytes(),
        "empty": b"{}",
        "doubled-key": b'{"vhosts":[{"name":"/","name":"x"}]}',
        "huge-number": b'{"vhosts":[{"name":"/","metadata":{"a":' + b"9" * 60 + b"}}]}",
        "half-a-pair": b'{"vhosts":[{"name":"\\ud800"}]}',
        "nested": b'{"vhosts":[{"name":"/","metadata":' + b"[" * 50 + b"]" * 50 + b"}]}",
        "names": b'{"vhosts":[{"name":"../__proto__"},{"name":"a\\u0000b"},{"name":"%2f"}]}',
    }
    return {name: page for name, page in pages.items() if len(page) <= 16_000}


def _requests() -> dict[str, bytes]:
    return {
        "list": b'{"request":"list-users"}',
        "body": b'{"request":"import","arguments":{"dry_run":true},"body_bytes":10}',
        "wrong-size": b'{"request":"import","body_bytes":-1}',
        "nested": b"[" * 3_000,
    }


def _conversations() -> dict[str, bytes]:
    declare = frame_of("declare_publisher", m.DeclarePublisher(0, "a", "s"))
    subscribe = frame_of("subscribe", m.Subscribe(1, "s", FIRST, 3, {"filter.0": "pear"}))
    group = {"single-active-consumer": "true", "name": "app"}
    return {
        "publish-and-read": b"\1" + declare + _publish((1, b"one"), (2, b"two")) + subscribe,
        "byte-by-byte": b"\3" + declare + _publish((1, b"one")),
        "group": b"\1" + frame_of("subscribe", m.Subscribe(1, "s", at_offset(0), 3, group)),
        "offsets": b"\1"
        + frame_of("store_offset", m.StoreOffset("app", "s", 7))
        + frame_of("query_offset", m.QueryOffset("app", "s")),
        "streams": b"\1"
        + frame_of("create_stream", m.CreateStream("t", {"max-age": "1h"}))
        + frame_of("metadata", m.Metadata(("s", "t", "none")))
        + frame_of("delete_stream", m.DeleteStream("t")),
        "super-stream": b"\1"
        + frame_of("create_super_stream", m.CreateSuperStream("p", ("a", "b"), ("0", "1"), {}))
        + frame_of("route", m.Route("0", "p"))
        + frame_of("partitions", m.Partitions("p"))
        + frame_of("delete_super_stream", m.DeleteSuperStream("p")),
        "stranger": b"\0" + frame_of("peer_properties", m.PeerProperties({"a": "b"})),
        "stranger-http": b"\0GET / HTTP/1.1\r\n\r\n",
        "close": b"\1" + frame_of("close", m.Close(1, "done")),
        "size-lie": b"\1\xff\xff\xff\xff",
    }


def _answers() -> dict[str, bytes]:
    stats = m.StreamStatsReply(1, {"committed_offset": 99, "first_chunk_id": 0})
    begun = b"".join(
        (
            encode_reply("stream_stats", BOUNDS_ID, stats),
            encode_reply("subscribe", SUBSCRIBE_ID, m.Status(1)),
        )
    )
    delivers = b"".join(
        (len(one.data) + 5).to_bytes(4) + b"\0\x08\0\1\1" + one.data for one in chunks(40, 60)
    )
    update = encode_command("metadata_update", m.MetadataUpdate(6, "s"))
    close = encode_command("close", m.Close(13, "bye"), correlation_id=1)
    unsubscribed = encode_reply("unsubscribe", SUBSCRIBE_ID + 1, m.Status(1))
    return {
        "whole": b"\0" + begun + delivers + unsubscribed,
        "in-pieces": b"\x0e" + begun + delivers + unsubscribed,
        "filtered": b"\1" + begun + delivers,
        "gap": b"\2" + begun + delivers[len(delivers) // 2 :],
        "gone": b"\0" + begun + update,
        "closed": b"\0" + begun + close,
        "size-lie": b"\0" + begun + b"\xff\xff\xff\xff",
        "short-chunk": b"\0" + begun + b"\0\0\0\x08\0\x08\0\1\1abc",
        "no-such-stream": b"\0"
        + encode_reply("stream_stats", BOUNDS_ID, m.StreamStatsReply(2, {})),
    }


def _pravega() -> dict[str, bytes]:
    frames = {name: bytes.fromhex(text) for name, text, _ in FRAMES}
    zeros = {row.name: decode(row.code, bytes(_ZEROS)) for row in COMMANDS}
    key = TableKey(b"k", 3)
    update = mp.AttributeUpdate(WRITER, 4, 1, 2)
    merged = mp.MergedSource("a", 1), mp.MergedSource("😀\0", 2)
    partial = frames["block_with_partial_event"] + frames["end_of_partial_event"]
    return {
        **{f"zero-{name}": encode(message) for name, message in zeros.items()},
        **frames,
        "append-padding": frames["block_with_padding"] + frames["end_of_padding"],
        "append-partial": partial,
        "keys": encode(TableKeysRead(1, "s", (key, TableKey(b"")), b"next")),
        "attributes": encode(mp.MergeSegments(1, "a", "b", "", (update,))),
        "sources": encode(mp.MergeSegmentsBatch(1, "t", ("a", ""), "")),
        "merged": encode(mp.SegmentsBatchMerged(1, "t", merged)),
        "length-lie": bytes.fromhex("00000003 01000000"),
    }


def _pravega_early() -> dict[str, bytes]:
    sent = {
        f"exchange-{number:02}": b"".join(step.frame for step in each.steps if step.kind == ">")
        for number, each in enumerate(EXCHANGES)
    }
    return {**sent, "length-lie": bytes.fromhex("00000000 01000000")}


def _mewbase() -> dict[str, bytes]:
    event = {"a": 1, "o": {"x": [1.5, None, True, "größer"]}, "b": b"\0\1"}
    where = {"channel": "c", "rID": 1}
    sent = {
        "connect": frame("CONNECT", {"version": "0.1", "authInfo": {"username": "u"}}),
        "publish": frame("PUB", {**where, "event": event, "sessID": -1}),
        "subscribe": frame("SUBSCRIBE", {**where, "matcher": event, "startPos": 7.0}),
        "acknowledge": frame("ACKEV", {"subID": 1, "pos": 2**40, "bytes": 3}),
        "query": frame("QUERY", {"queryID": 1, "binder": "b", "matcher": {"a.b": 1}}),
        "unknown": frame("NOSUCH", {"rID": 5}),
    }
    return {**sent, "all": b"".join(sent.values()), "length-lie": bytes.fromhex("ffffff7f")}


def main() -> None:
    """Write the inputs that are made here."""
    for target, inputs in {
        "frame": _frames(STANDARD),
        "pipeline": _frames(pipeline.TABLE),
        "publish": _publishes(),
        "chunk": _chunks(),
        "definitions": _definitions(),
        "request": _requests(),
        "connection": _conversations(),
        "answers": _answers(),
        "pravega": _pravega(),
        "pravega-early": _pravega_early(),
        "mewbase": _mewbase(),
    }.items():
        (FOLDER / target).mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (FOLDER / target / name).write_bytes(content)
        sys.stdout.write(f"{target}: {len(inputs)}\n")


if __name__ == "__main__":
    main()
