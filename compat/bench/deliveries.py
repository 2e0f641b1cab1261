"""Chunks as they arrive: every header is judged, of the data a CRC now and then or always.

    Deliver | u32 size | u16 8 | u16 1 | u8 subscription | chunk header (48) | data

Because every message of a stream has the same body, the length and the CRC of a chunk's
data follow from its record count; so a chunk whose CRC is the expected one has the
expected content too.
"""

import socket
import ssl
import struct
from collections.abc import Callable
from typing import Final, NoReturn

from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import CREDIT, DELIVER, HEARTBEAT, RESPONSE_BIT, credit_frame, entry_of

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

# Size, key, version, subscription id; magic and version, type, entries, records,
# timestamp, epoch, chunk id, CRC, data length. Trailer and bloom lengths don't matter.
DELIVER_HEAD: Final = struct.Struct(">IHHB BBHIqQQII8x")
FRAME_HEAD: Final = struct.Struct(">IHH")
CHUNK_MAGIC: Final = 0x50
USER_CHUNK: Final = 0
# What a Deliver's size says beyond the chunk's data: key, version, subscription, header.
DELIVER_OVERHEAD_BYTES: Final = DELIVER_HEAD.size - 4
RECEIVE_BYTES: Final = 1 << 20
# A CRC costs about a fifth of receiving the bytes, so a timed run checks a sample.
SAMPLE_EVERY: Final = 16
# Unread data of a large chunk is dropped by the kernel without a copy; with the
# copy a reader is slower than a server that sends from the page cache.
DISCARD_FROM_BYTES: Final = 1 << 16
DISCARD: Final = socket.MSG_TRUNC | socket.MSG_WAITALL


class DeliveryReader:
    """Reads the chunks of one subscription from a socket, and grants credit for more.

    Attributes:
        records: Records received so far; the next one must have this offset.
        chunks: Chunks received so far.
    """

    def __init__(
        self,
        source: socket.socket,
        *,
        body_bytes: int,
        credit: int,
        sample_every: int = SAMPLE_EVERY,
        sample_first: int = 0,
        send: Callable[[bytes], object] | None = None,
    ) -> None:
        """Prepare for a subscription from `first` whose stream begins at offset 0.

        Args:
            source: The socket, without credit granted so far.
            body_bytes: Size of every record's body.
            credit: Chunks that may be on their way; half is granted anew each time
                that half was used.
            sample_every: Compare the CRC of one chunk in so many; 1: of all.
            sample_first: The first chunk whose CRC is compared, counted from 0.
            send: Takes the requests for credit, where others send on this socket too.
        """
        self._source = source
        self._send = source.sendall if send is None else send
        self._may_discard = not isinstance(source, ssl.SSLSocket)  # all has to be opened there
        self._entry = entry_of(body_bytes)
        self._credit = credit
        self._to_grant = 0
        self._sample_every = sample_every
        self._sample_next = sample_first
        self._data = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._data)
        self._filled = 0
        # Bytes still to come of the chunk whose header was read last.
        self._data_left = 0
        self._is_sampled = False
        self._is_next_a_header = False
        self._crc = 0
        self._crc_wanted = 0
        self._crc_of_records: dict[int, int] = {}
        self.records = 0
        self.chunks = 0

    def grant(self) -> None:
        """Grant the first credit: the server may begin."""
        self._send(credit_frame(subscription_id=0, credit=self._credit))

    def read_until(self, record_count: int) -> None:
        """Read until so many records have arrived in all.

        Raises:
            CheckFailed: A chunk is not the one that must come next.
            BenchError: The server hung up or sent something else than chunks.
        """
        while not self.has(record_count):
            self.step()

    def has(self, record_count: int) -> bool:
        """Return whether so many records have arrived in all."""
        return self.records >= record_count and not self._data_left

    def step(self) -> None:
        """Receive once, waiting if nothing is there; raises as `read_until` does."""
        if self._may_discard and self._data_left >= DISCARD_FROM_BYTES and not self._is_sampled:
            self._discard()
        else:
            self._receive()
        if self._to_grant >= self._credit // 2:
            self._send(credit_frame(subscription_id=0, credit=self._to_grant))
            self._to_grant = 0

    def take_place(self, chunk_id: int, records: int) -> None:
        """Demand that a chunk begins where the one before it ended, and count its records."""
        if chunk_id != self.records:
            raise CheckFailed(f"chunk {chunk_id} came where {self.records} was next")
        self.records += records

    def _discard(self) -> None:
        # Nothing is left in the buffer while data of a chunk is still to come.
        self._data_left -= (
            self._source.recv_into(self._view, min(self._data_left, RECEIVE_BYTES), DISCARD)
            or _hung_up()
        )
        self._is_next_a_header = not self._data_left

    def _receive(self) -> None:
        # Just the header after a chunk that was discarded: what comes with it could not be.
        limit = DELIVER_HEAD.size if self._is_next_a_header else RECEIVE_BYTES
        received = self._source.recv_into(self._view[self._filled : limit]) or _hung_up()
        self._walk(self._filled + received)
        self._is_next_a_header = self._is_next_a_header and not self._data_left

    def _walk(self, filled: int) -> None:
        position = 0
        while True:
            if self._data_left:
                position = self._pass_data(position, filled)
                if self._data_left:
                    break
            if filled - position < DELIVER_HEAD.size:
                skipped = self._pass_other_frame(position, filled)
                if not skipped:
                    break
                position += skipped
                continue
            head = DELIVER_HEAD.unpack_from(self._data, position)
            if head[1] == DELIVER:
                self._open_chunk(head)
                position += DELIVER_HEAD.size
                continue
            skipped = self._pass_other_frame(position, filled)
            if not skipped:
                break
            position += skipped
        # Less than a header is left, so the move costs nothing.
        self._filled = filled - position
        self._data[: self._filled] = self._data[position:filled]

    def _open_chunk(self, head: tuple[int, ...]) -> None:
        (size, _key, _version, _sub, magic, kind, entries, records) = head[:8]
        chunk_id, crc, data_bytes = head[10:]
        if magic != CHUNK_MAGIC or kind != USER_CHUNK:
            raise CheckFailed(f"a chunk begins with {magic:#04x}, type {kind}")
        if size != DELIVER_OVERHEAD_BYTES + data_bytes:
            raise CheckFailed(f"a chunk of {data_bytes} bytes came in a frame of {size}")
        if entries != records or data_bytes != records * len(self._entry):
            raise CheckFailed(f"{records} records in {entries} entries and {data_bytes} bytes")
        if self.chunks == self._sample_next:
            self._sample_next += self._sample_every
            if crc != self._crc_of(records):
                raise CheckFailed(f"chunk {chunk_id} announces another CRC than its content's")
            self._is_sampled = True
            self._crc = 0
            self._crc_wanted = crc
        self._data_left = data_bytes
        self.take_place(chunk_id, records)
        self.chunks += 1
        self._to_grant += 1

    def _pass_data(self, position: int, filled: int) -> int:
        taken = min(self._data_left, filled - position)
        self._data_left -= taken
        if self._is_sampled:
            self._crc = crc32(self._view[position : position + taken], self._crc)
            if not self._data_left:
                self._is_sampled = False
                if self._crc != self._crc_wanted:
                    raise CheckFailed(f"the chunk before offset {self.records} is damaged")
        return position + taken

    def _pass_other_frame(self, position: int, filled: int) -> int:
        if filled - position < FRAME_HEAD.size:
            return 0
        size, key, _version = FRAME_HEAD.unpack_from(self._data, position)
        if key == DELIVER:
            return 0
        if key != HEARTBEAT or size != FRAME_HEAD.size - 4:
            reason = "credit refused" if key == RESPONSE_BIT | CREDIT else f"command {key:#06x}"
            raise BenchError(f"{reason} while chunks were awaited")
        return FRAME_HEAD.size

    def _crc_of(self, records: int) -> int:
        crc = self._crc_of_records.get(records)
        if crc is None:
            crc = self._crc_of_records[records] = crc32(self._entry * records)
        return crc


def _hung_up() -> NoReturn:
    raise BenchError("server hung up while chunks were awaited")
