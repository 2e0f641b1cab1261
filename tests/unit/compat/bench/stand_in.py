"""A stream server of a few lines that can be told to err, so that checks can be seen to fail.

It keeps streams in memory, makes every Publish frame a chunk, filters nothing, and runs in threads
of the test, or by itself, with Hutch's flags: `python -m tests.unit.compat.bench.stand_in`.
"""

import contextlib
import socket
import struct
import sys
import threading
import zlib
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Self

from compat.bench.connection import Address

Fault = Literal[
    "",
    "loses a confirm",
    "confirms twice",
    "confirms for another publisher",
    "refuses messages",
    "loses a message",
    "skips an offset",
    "damages data",
    "announces a wrong crc",
    "joins stored chunks",
    "hangs up",
]
CHUNK_HEAD = struct.Struct(">BBHIqQQIIIB3x")
OK = 1
NO_STREAM = 2


@dataclass
class Stream:
    """Chunks as (first offset, records, data)."""

    chunks: list[tuple[int, int, bytes]] = field(default_factory=list)
    next_offset: int = 0


def text_at(body: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">H", body, position)
    return body[position + 2 : position + 2 + size].decode(), position + 2 + size


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


class StandIn:
    """The server; a context manager."""

    def __init__(self, fault: Fault = "", port: int = 0) -> None:
        self.fault = fault
        self.streams: dict[str, Stream] = {}
        self.partitions: dict[str, list[str]] = {}
        self.lock = threading.Condition()
        self.connection_count = 0
        self.heartbeat_count = 0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._sockets:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self.connection_count += 1
            self._sockets.append(link)
            thread = threading.Thread(target=self._serve, args=(link,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link, link.makefile("rb") as source:
            Peer(self, link).run(source)


class Peer:
    """One connection of the stand-in."""

    def __init__(self, server: StandIn, link: socket.socket) -> None:
        self.server = server
        self.link = link
        self.publishers: dict[int, str] = {}
        self.subscribed = ""
        self.next_chunk = 0
        self.credit = 0
        self.confirms = 0
        self.is_open = True

    def run(self, source: BinaryIO) -> None:
        feeder = threading.Thread(target=self.feed)
        feeder.start()
        try:
            while head := source.read(4):
                body = source.read(struct.unpack(">I", head)[0])
                key, version = struct.unpack_from(">HH", body)
                self.take(key, version, body[4:])
        finally:
            with self.server.lock:
                self.is_open = False
                self.server.lock.notify_all()
            feeder.join(5)

    def send(self, key: int, payload: bytes) -> None:
        self.link.sendall(struct.pack(">IHH", 4 + len(payload), key, 1) + payload)

    def take(self, key: int, version: int, body: bytes) -> None:
        if key == 0x02:
            self.publish(body, has_values=version > 1)
        elif key == 0x09:
            with self.server.lock:
                self.credit += struct.unpack_from(">H", body, 1)[0]
                self.server.lock.notify_all()
        elif key == 0x17:
            self.server.heartbeat_count += 1
        elif key != 0x14:
            (correlation,) = struct.unpack_from(">I", body)
            answer = self.answer(key, body[4:])
            self.send(key | 0x8000, struct.pack(">I", correlation) + answer)
            if key == 0x13:
                self.send(0x14, struct.pack(">II", 1 << 20, 60))

    def answer(self, key: int, body: bytes) -> bytes:
        code, rest = OK, b""
        streams = self.server.streams
        if key == 0x01:
            _reference, position = text_at(body, 1)
            self.publishers[body[0]] = text_at(body, position)[0]
        elif key == 0x07:
            self.subscribed, position = text_at(body, 1)
            (offset_type,) = struct.unpack_from(">H", body, position)
            at_end = len(streams[self.subscribed].chunks)
            self.next_chunk = 0 if offset_type == 1 else at_end
        elif key == 0x0D:
            streams[text_at(body, 0)[0]] = Stream()
        elif key in {0x1D, 0x1E}:
            code = self.make_or_remove_partitions(key, *text_at(body, 0), body)
        elif key == 0x0E:
            code = OK if streams.pop(text_at(body, 0)[0], None) else NO_STREAM
        elif key == 0x11:
            pairs = text("product") + text("Stand-in") + text("version") + text("1.0.0")
            rest = struct.pack(">I", 2) + pairs
        elif key in {0x1C, 0x1F}:
            rest = self.look_up(key, *text_at(body, 0), body)
        return struct.pack(">H", code) + rest

    def make_or_remove_partitions(self, key: int, name: str, position: int, body: bytes) -> int:
        streams, partitions = self.server.streams, self.server.partitions
        if key == 0x1E:
            for partition in partitions.get(name, []):
                del streams[partition]
            return OK if partitions.pop(name, []) else NO_STREAM
        (count,) = struct.unpack_from(">I", body, position)
        position += 4
        for _ in range(count):
            partition, position = text_at(body, position)
            streams[partition] = Stream()
            partitions.setdefault(name, []).append(partition)
        return OK

    def look_up(self, key: int, name: str, position: int, body: bytes) -> bytes:
        stream = self.server.streams[name]
        if key == 0x1C:
            last = stream.next_offset - 1
            return struct.pack(">I", 1) + text("committed_offset") + struct.pack(">q", last)
        (offset,) = struct.unpack_from(">Q", body, position + 2)
        chunk_id = next(c for c, n, _ in stream.chunks if c <= offset < c + n)
        return struct.pack(">HQ", 4, 0 if self.server.fault == "joins stored chunks" else chunk_id)

    def publish(self, body: bytes, *, has_values: bool) -> None:
        publisher, count = struct.unpack_from(">BI", body)
        ids, entries, position = [], [], 5
        for _ in range(count):
            (number,) = struct.unpack_from(">Q", body, position)
            if has_values:
                position += 2 + struct.unpack_from(">H", body, position + 8)[0]
            (size,) = struct.unpack_from(">I", body, position + 8)
            ids.append(number)
            entries.append(body[position + 8 : position + 12 + size])
            position += 12 + size
        fault = self.server.fault
        if fault == "loses a message":
            entries = entries[1:]
        with self.server.lock:
            stream = self.server.streams[self.publishers[publisher]]
            stream.chunks.append((stream.next_offset, len(entries), b"".join(entries)))
            stream.next_offset += len(entries)
            self.server.lock.notify_all()
        self.confirm(publisher, ids, fault)

    def confirm(self, publisher: int, ids: list[int], fault: Fault) -> None:
        if fault == "refuses messages":
            self.send(0x04, struct.pack(">BIQH", publisher, 1, ids[0], 18))
            return
        if self.confirms == 1:
            # The count stays right, so that only a look at the ids can tell.
            if fault == "loses a confirm":
                ids[0] = 1 << 40
            if fault == "confirms twice":
                ids[0] = 0
            if fault == "confirms for another publisher":
                publisher = 0
        self.confirms += 1
        self.send(0x03, struct.pack(f">BI{len(ids)}Q", publisher, len(ids), *ids))

    def feed(self) -> None:
        while True:
            with self.server.lock:
                if not self.is_open:
                    return
                stream = self.server.streams.get(self.subscribed)
                ready = stream is not None and self.next_chunk < len(stream.chunks)
                if stream is None or not ready or not self.credit:
                    self.server.lock.wait(1)
                    continue
                chunk = stream.chunks[self.next_chunk]
                self.next_chunk += 1
                self.credit -= 1
            with contextlib.suppress(OSError):
                self.deliver(*chunk)

    def deliver(self, chunk_id: int, records: int, data: bytes) -> None:
        fault = self.server.fault
        if fault == "hangs up":
            self.link.shutdown(socket.SHUT_RDWR)
            return
        crc = zlib.crc32(data)
        if fault == "announces a wrong crc":
            crc ^= 1
        if fault == "damages data":
            data = data[:-1] + b"\0"
        if fault == "skips an offset" and chunk_id:
            chunk_id += 1
        head = CHUNK_HEAD.pack(0x50, 0, records, records, 0, 1, chunk_id, crc, len(data), 0, 0)
        self.send(0x08, b"\0" + head + data)


def main() -> None:
    port = int(sys.argv[sys.argv.index("--port") + 1])
    with StandIn(port=port):
        print("hutch ready stream 127.0.0.1", flush=True)  # noqa: T201 - its ready line
        threading.Event().wait()


if __name__ == "__main__":
    main()
