"""Frames of the stream protocol, built by hand, right and wrong ones alike.

Every function returns a whole frame without its size. Nothing is checked, so that a script can
say anything, but for the two requests that would wreck a real broker.

Source: RabbitMQ stream protocol, Commands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

# Longer names send RabbitMQ 4.3 into an endless loop: the directory name it derives is too long.
NAME_BYTES_MAX = 230
# Stands for what tells this run and this script from others; the runner puts it in. It has a
# fixed length, so a frame's sizes are right before and after.
RUN = b"<a-run->"
# The correlation id of requests that do not choose one.
CORRELATION_ID = 7
NULL = -1

FIRST = struct.pack(">H", 1)
LAST = struct.pack(">H", 2)
NEXT = struct.pack(">H", 3)
# Legal in the answer to a ConsumerUpdate only.
NONE = struct.pack(">H", 0)


def at_offset(offset: int) -> bytes:
    """Return an offset specification of type 4."""
    return struct.pack(">HQ", 4, offset)


def at_timestamp(timestamp_ms: int) -> bytes:
    """Return an offset specification of type 5."""
    return struct.pack(">Hq", 5, timestamp_ms)


def mark(letter: str) -> bytes:
    """Return what the runner replaces by the 8 bytes of the instant that a script has marked."""
    return f"<mark:{letter}>".encode()


def at_mark(letter: str) -> bytes:
    """Return an offset specification of type 5 for an instant that the script has marked."""
    return struct.pack(">H", 5) + mark(letter)


def text(value: str | bytes | None) -> bytes:
    """Return a string with its u16 length; None gives the null string. `~` stands for the run."""
    if value is None:
        return struct.pack(">h", NULL)
    data = (value.encode() if isinstance(value, str) else value).replace(b"~", RUN)
    return struct.pack(">H", len(data)) + data


def properties(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> bytes:
    """Return a map with its count."""
    items = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    return struct.pack(">I", len(items)) + b"".join(text(k) + text(v) for k, v in items)


def texts(values: Sequence[str]) -> bytes:
    """Return an array of strings with its count."""
    return struct.pack(">I", len(values)) + b"".join(map(text, values))


def command(key: int, body: bytes = b"", *, version: int = 1) -> bytes:
    """Return a command that has no correlation id."""
    return struct.pack(">HH", key, version) + body


def request(key: int, body: bytes = b"", *, version: int = 1, corr: int = CORRELATION_ID) -> bytes:
    """Return a command that has a correlation id."""
    return struct.pack(">HHI", key, version, corr) + body


# ------------------------------------------------------------------------------------- handshake


def peer_properties(pairs: Mapping[str, str] | None = None, *, corr: int = CORRELATION_ID) -> bytes:
    """0x11."""
    return request(0x11, properties(pairs or {}), corr=corr)


def sasl_handshake(*, corr: int = CORRELATION_ID) -> bytes:
    """0x12."""
    return request(0x12, corr=corr)


def sasl_authenticate(mechanism: str, data: bytes | None, *, corr: int = CORRELATION_ID) -> bytes:
    """0x13; None as data gives the null bytes."""
    size = NULL if data is None else len(data)
    return request(0x13, text(mechanism) + struct.pack(">i", size) + (data or b""), corr=corr)


def plain(user: str = "guest", password: str = "guest", *, corr: int = CORRELATION_ID) -> bytes:  # noqa: S107 - the default user
    """0x13 with PLAIN; `~` stands for the run."""
    data = f"\0{user}\0{password}".encode().replace(b"~", RUN)
    return sasl_authenticate("PLAIN", data, corr=corr)


def tune(frame_bytes_max: int = 1 << 20, heartbeat_s: int = 0, *, key: int = 0x14) -> bytes:
    """0x14."""
    return command(key, struct.pack(">II", frame_bytes_max, heartbeat_s))


def open_host(virtual_host: str = "/", *, corr: int = CORRELATION_ID) -> bytes:
    """0x15."""
    return request(0x15, text(virtual_host), corr=corr)


def close(code: int = 1, reason: str = "bye", *, corr: int = CORRELATION_ID) -> bytes:
    """0x16."""
    return request(0x16, struct.pack(">H", code) + text(reason), corr=corr)


def close_answer(code: int = 1, *, corr: int = 1) -> bytes:
    """0x8016, by which a client answers the server's Close."""
    return request(0x8016, struct.pack(">H", code), corr=corr)


def heartbeat() -> bytes:
    """0x17."""
    return command(0x17)


# ------------------------------------------------------------------------------------ publishing


def declare(
    publisher_id: int, stream: str, reference: str | None = "", *, corr: int = CORRELATION_ID
) -> bytes:
    """0x01."""
    body = struct.pack(">B", publisher_id) + text(reference) + text(stream)
    return request(0x01, body, corr=corr)


def entry(publishing_id: int, body: bytes) -> bytes:
    """Return one simple entry of a Publish v1."""
    return struct.pack(">QI", publishing_id, len(body)) + body


def filtered_entry(publishing_id: int, value: str | None, body: bytes) -> bytes:
    """Return one entry of a Publish v2."""
    head = struct.pack(">Q", publishing_id) + text(value)
    return head + struct.pack(">I", len(body)) + body


def sub_batch(
    publishing_id: int,
    body: bytes,
    *,
    records: int,
    compression: int = 0,
    uncompressed: int | None = None,
    reserved: int = 0,
) -> bytes:
    """Return one sub-batch of a Publish v1; the uncompressed size defaults to the body's."""
    flags = 0x80 | compression << 4 | reserved
    size = len(body) if uncompressed is None else uncompressed
    return struct.pack(">QBHII", publishing_id, flags, records, size, len(body)) + body


def inner(*bodies: bytes) -> bytes:
    """Return the body of an uncompressed sub-batch."""
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def publish(
    publisher_id: int, *entries: bytes, count: int | None = None, version: int = 1
) -> bytes:
    """0x02; the count defaults to the true one."""
    number = len(entries) if count is None else count
    body = struct.pack(">BI", publisher_id, number) + b"".join(entries)
    return command(0x02, body, version=version)


def messages(publisher_id: int, first: int, *bodies: bytes) -> bytes:
    """0x02 with simple entries whose ids count up from `first`."""
    return publish(publisher_id, *(entry(first + at, body) for at, body in enumerate(bodies)))


def query_sequence(reference: str, stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x05."""
    return request(0x05, text(reference) + text(stream), corr=corr)


def delete_publisher(publisher_id: int, *, corr: int = CORRELATION_ID) -> bytes:
    """0x06."""
    return request(0x06, struct.pack(">B", publisher_id), corr=corr)


# --------------------------------------------------------------------------------------- reading


def subscribe(
    subscription_id: int,
    stream: str,
    offset: bytes = FIRST,
    credit: int = 10,
    pairs: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    *,
    corr: int = CORRELATION_ID,
) -> bytes:
    """0x07; without properties the map is left out."""
    body = struct.pack(">B", subscription_id) + text(stream) + offset + struct.pack(">H", credit)
    return request(0x07, body + (b"" if pairs is None else properties(pairs)), corr=corr)


def credit(subscription_id: int, chunks: int) -> bytes:
    """0x09."""
    return command(0x09, struct.pack(">Bh", subscription_id, chunks))


def store_offset(reference: str, stream: str, offset: int) -> bytes:
    """0x0a."""
    return command(0x0A, text(reference) + text(stream) + struct.pack(">Q", offset))


def query_offset(reference: str, stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x0b."""
    return request(0x0B, text(reference) + text(stream), corr=corr)


def unsubscribe(subscription_id: int, *, corr: int = CORRELATION_ID) -> bytes:
    """0x0c."""
    return request(0x0C, struct.pack(">B", subscription_id), corr=corr)


def consumer_update_answer(corr: int, offset: bytes, code: int = 1) -> bytes:
    """0x801a, by which a client answers the server's ConsumerUpdate."""
    return request(0x801A, struct.pack(">H", code) + offset, corr=corr)


def stream_stats(stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x1c."""
    return request(0x1C, text(stream), corr=corr)


def resolve(
    stream: str,
    offset: bytes,
    pairs: Mapping[str, str] | None = None,
    *,
    corr: int = CORRELATION_ID,
) -> bytes:
    """0x1f; without properties the map is left out."""
    tail = b"" if pairs is None else properties(pairs)
    return request(0x1F, text(stream) + offset + tail, corr=corr)


# --------------------------------------------------------------------------------------- streams


def create(
    stream: str,
    arguments: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    *,
    corr: int = CORRELATION_ID,
) -> bytes:
    """0x0d."""
    assert len(text(stream)) - 2 <= NAME_BYTES_MAX, "such a name would wreck a real broker"
    return request(0x0D, text(stream) + properties(arguments or {}), corr=corr)


def delete(stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x0e."""
    assert len(text(stream)) - 2 <= NAME_BYTES_MAX, "such a name would wreck a real broker"
    return request(0x0E, text(stream), corr=corr)


def metadata(*streams: str, corr: int = CORRELATION_ID) -> bytes:
    """0x0f."""
    return request(0x0F, texts(streams), corr=corr)


def route(key: str, super_stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x18."""
    return request(0x18, text(key) + text(super_stream), corr=corr)


def partitions(super_stream: str, *, corr: int = CORRELATION_ID) -> bytes:
    """0x19."""
    return request(0x19, text(super_stream), corr=corr)


def versions(*ranges: tuple[int, int, int], corr: int = CORRELATION_ID) -> bytes:
    """0x1b."""
    rows = b"".join(struct.pack(">HHH", *row) for row in ranges)
    return request(0x1B, struct.pack(">I", len(ranges)) + rows, corr=corr)


def create_super(
    name: str,
    streams: Sequence[str],
    keys: Sequence[str],
    arguments: Mapping[str, str] | None = None,
) -> bytes:
    """0x1d."""
    assert all(len(text(part)) - 2 <= NAME_BYTES_MAX for part in (name, *streams))
    return request(0x1D, text(name) + texts(streams) + texts(keys) + properties(arguments or {}))


def delete_super(name: str) -> bytes:
    """0x1e."""
    assert name, "the empty name deletes every stream of a real broker's virtual host"
    return request(0x1E, text(name))
