# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Publish frames to a stream's open chunk, and confirms back: the hot path in.

The kernel does the work per message. This module does the work per run of frames: it looks up the
publisher, gives the kernel a chunk with room, and hands on the entries that the kernel took.
"""

import struct
import sys
from array import array
from typing import Final, Protocol

from gateway.broker.connections import PublisherDetails
from gateway.broker.streams.streams import Stream
from gateway.log.kernel.sealing import copy_of
from gateway.log.log import StreamLog
from gateway.log.open_chunk import OpenChunk
from gateway.server.front import Ports
from gateway.stream.context import StreamContext
from gateway.stream.kernel import publish as kernel
from gateway.stream.kernel.publish import State, confirm_of, take_filtered, take_publishes
from gateway.stream.session import Session
from hutch.formats.chunk import ENTRIES_MAX
from hutch.stream.codes import ResponseCode
from hutch.stream.errors import MalformedFrame

FRAME_HEAD_BYTES: Final = 13
_ERROR_HEAD: Final = struct.Struct(">IHHBI")
_ERROR_KEY: Final = 0x0004
_ERROR_BYTES: Final = 10
_DUPLICATES_MAX: Final = 8192
_APART_ENTRIES_MIN: Final = 16
"""Entries with filter values, or without, that are enough for a chunk without the other kind."""
_PUBLISHING_ID_BYTES: Final = 8
_NO_VALUE: Final = (b"\x00\x00", b"\xff\xff")

# One of each for the process: connections share them, but never across turns of the event loop.
_IDS: Final = bytearray(ENTRIES_MAX * 8)
_DUPLICATES: Final = bytearray(_DUPLICATES_MAX * 8)
_STATE: Final = State()

# The kernel's numbers under names of this module: C integers when it is compiled.
_BAD_SUB_BATCH: Final = kernel.BAD_SUB_BATCH
_CHUNK_FULL: Final = kernel.CHUNK_FULL
_MALFORMED: Final = kernel.MALFORMED


class Publisher:
    """A declared publisher; gets the confirms of its records."""

    __slots__ = (
        "_frame_bytes_max",
        "_is_closed",
        "_ports",
        "_uncompressed_max",
        "confirmed_count",
        "errored_count",
        "log",
        "publisher_id",
        "raw_reference",
        "reference",
        "stream",
        "unconfirmed_count",
    )

    def __init__(
        self,
        publisher_id: int,
        reference: str,
        stream: Stream,
        log: StreamLog,
        ports: Ports,
        *,
        frame_bytes_max: int,
        uncompressed_max: int,
    ) -> None:
        """Begin without entries.

        Args:
            publisher_id: The client's number for it.
            reference: Its name; empty if duplicates are not dropped.
            stream: The stream, as administrators see it.
            log: The stream's log, which gets the entries.
            ports: The connection.
            frame_bytes_max: A Publish frame with a larger size field is refused.
            uncompressed_max: Largest uncompressed size of a sub-batch, bytes.
        """
        self.publisher_id = publisher_id
        self.reference = reference
        self.raw_reference = reference.encode("utf-8", "surrogateescape")
        self.stream = stream
        self.log = log
        self.unconfirmed_count = 0
        self.confirmed_count = 0
        self.errored_count = 0
        self._ports = ports
        self._frame_bytes_max = frame_bytes_max
        self._uncompressed_max = uncompressed_max
        self._is_closed = False

    def confirm(self, publishing_ids: bytes) -> None:
        """Send a PublishConfirm, unless the publisher is gone."""
        if self._is_closed:
            return
        count = len(publishing_ids) // 8
        self.unconfirmed_count -= count
        self.confirmed_count += count
        self._ports.send(confirm_of(self.publisher_id, publishing_ids))
        self._ports.settled(count)

    def lost(self) -> None:
        """Send nothing for entries whose stream has failed: one MetadataUpdate tells the client."""

    def details(self) -> PublisherDetails:
        """Return the details that administrators see."""
        settled = self.confirmed_count + self.errored_count
        return PublisherDetails(
            number=self.publisher_id,
            reference=self.reference,
            stream=self.stream,
            published=settled + self.unconfirmed_count,
            confirmed=self.confirmed_count,
            errored=self.errored_count,
        )

    def close(self) -> None:
        """Send no more confirms."""
        if not self._is_closed:
            self._is_closed = True
            self._ports.settled(self.unconfirmed_count)


class Publishing(Protocol):
    """A connection's publishers, with the state that they share."""

    @property
    def publishers(self) -> dict[int, Publisher]:
        """The declared publishers, by their ids."""
        ...

    @property
    def session(self) -> Session: ...

    @property
    def host(self) -> StreamContext: ...

    @property
    def ports(self) -> Ports: ...


def _aim(publisher: Publisher, position: int, frame_end: int, limit: int) -> OpenChunk:
    """Return the kernel the place to read and the publisher's state; return the chunk."""
    log = publisher.log
    chunk = log.open_chunk(limit - position)
    _STATE.position = position
    _STATE.frame_end = frame_end
    _STATE.limit = limit
    reference = publisher.raw_reference
    if reference:
        last = log.last_publishing_id(reference)
        _STATE.has_last = last is not None
        _STATE.last = 0 if last is None else last
        _STATE.is_named = True
    else:
        _STATE.is_named = False
    _aim_at(chunk)
    return chunk


def _aim_at(chunk: OpenChunk) -> None:
    """Hand the kernel the state of the open chunk."""
    _STATE.written = chunk.written
    _STATE.capacity = chunk.capacity
    _STATE.entries_max = max(chunk.entries_max - chunk.entry_count, 0)


def _account(publisher: Publisher, chunk: OpenChunk) -> int:
    """Note the entries that one kernel call took; return how many wait for their confirm."""
    entries = _STATE.entries
    duplicates = _STATE.duplicates
    if entries:
        chunk.took(_STATE.written, entries, _STATE.records)
        chunk.add_confirm(publisher, copy_of(_IDS, 0, entries * 8))
        if publisher.raw_reference:
            chunk.note_sequence(publisher.raw_reference, _STATE.last)
    if duplicates:
        # Duplicates come last: the Rust client stops at an id that it knows as confirmed.
        ids = copy_of(_DUPLICATES, 0, duplicates * 8)
        if entries:
            chunk.add_confirm(publisher, ids)
        else:
            publisher.log.confirm_when_committed(publisher, ids)
    publisher.unconfirmed_count += entries + duplicates
    return entries + duplicates


def _next_chunk(publisher: Publisher, chunk: OpenChunk) -> OpenChunk:
    """Return the chunk to go on with after the kernel stopped because it was full."""
    if _STATE.duplicates < _DUPLICATES_MAX:
        chunk = publisher.log.make_room(_STATE.limit - _STATE.position)
    _aim_at(chunk)
    return chunk


def _apart(
    publisher: Publisher,
    chunk: OpenChunk,
    has_value: bool,  # noqa: FBT001 (a function in C)
) -> OpenChunk:
    """Return a chunk for entries with filter values, or without, that has none of the other kind.

    Readers with a filter can then skip whole chunks. Frames of alternating kinds still share a
    chunk until it has 16 entries.
    """
    if chunk.entry_count < _APART_ENTRIES_MIN or not chunk.is_all_of_kind(has_value=not has_value):
        return chunk
    chunk = publisher.log.begin_another(_STATE.limit - _STATE.position)
    _aim_at(chunk)
    return chunk


def take(link: Publishing, source: bytearray, position: int, limit: int) -> int:
    """Take a run of complete Publish v1 frames of one publisher, and tell the ports.

    Args:
        link: The connection's publishers.
        source: The receive buffer.
        position: Start of a complete Publish v1 frame.
        limit: End of what was received.

    Returns:
        The position behind the run.

    Raises:
        MalformedFrame: An entry does not fit its frame; entries before it are stored.
    """
    publishers = link.publishers
    publisher = publishers.get(source[position + 8])
    if publisher is None or publisher.log.failure is not None:
        return _refuse_frame(link, source, position, ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    chunk = _apart(publisher, _aim(publisher, position, 0, limit), has_value=False)
    _STATE.frame_bytes_max = publisher._frame_bytes_max  # noqa: SLF001 (of this module)
    _STATE.publisher = publisher.publisher_id
    _STATE.uncompressed_max = publisher._uncompressed_max  # noqa: SLF001
    waiting = 0
    while True:
        reason = take_publishes(source, chunk.buffer, _IDS, _DUPLICATES, _STATE)
        waiting += _account(publisher, chunk)
        if chunk.filters is not None and _STATE.entries:
            chunk.filters.add(b"")
        if reason != _CHUNK_FULL:
            break
        chunk = _next_chunk(publisher, chunk)
    position = _STATE.position
    if reason == _BAD_SUB_BATCH:
        frame_end = _STATE.frame_end
        ids, end = kernel.publishing_ids_of(source, position, frame_end, 1)
        publisher.errored_count += len(ids)
        _send_errors(link, publisher.publisher_id, ids, ResponseCode.PRECONDITION_FAILED)
        if end != frame_end:
            raise MalformedFrame("an entry ends past its frame", end)
        position = frame_end
    elif reason == _MALFORMED:
        raise MalformedFrame("an entry ends past its frame", position)
    publisher._ports.taken(waiting, publisher.log)  # noqa: SLF001
    return position


def take_with_filters(link: Publishing, source: bytearray, position: int, frame_end: int) -> int:
    """Take one complete Publish v2 frame; like `take`."""
    publisher = link.publishers.get(source[position + 8])
    if publisher is None or publisher.log.failure is not None:
        return _refuse_frame(link, source, position, ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    entry = position + FRAME_HEAD_BYTES
    chunk = _aim(publisher, entry, frame_end, frame_end)
    if entry < frame_end:
        # All are taken to be like the first: clients give a value to all entries, or to none.
        size = bytes(source[entry + _PUBLISHING_ID_BYTES : entry + _PUBLISHING_ID_BYTES + 2])
        chunk = _apart(publisher, chunk, has_value=size not in _NO_VALUE)
    waiting = 0
    while True:
        if chunk.filters is None:
            # The entries that are there already have no value.
            chunk.filters = {b""} if chunk.entry_count else set()
        reason = take_filtered(source, chunk.buffer, _IDS, _DUPLICATES, _STATE, chunk.filters)
        waiting += _account(publisher, chunk)
        if reason != _CHUNK_FULL:
            break
        chunk = _next_chunk(publisher, chunk)
    chunk.bound_filters(frame_end - position)
    if reason == _MALFORMED:
        raise MalformedFrame("an entry ends past its frame", _STATE.position)
    publisher._ports.taken(waiting, publisher.log)  # noqa: SLF001
    return frame_end


def _refuse_frame(link: Publishing, source: bytearray, position: int, code: ResponseCode) -> int:
    """Answer every publishing id of one complete frame with `code`."""
    frame_end = position + 4 + int.from_bytes(source[position : position + 4], "big")
    version = int.from_bytes(source[position + 6 : position + 8], "big")
    ids, end = kernel.publishing_ids_of(source, position + FRAME_HEAD_BYTES, frame_end, version)
    if end != frame_end:
        raise MalformedFrame("an entry ends past its frame", end)
    _send_errors(link, source[position + 8], ids, code)
    link.ports.taken(0, None)
    return frame_end


def _send_errors(link: Publishing, publisher_id: int, ids: list[int], code: ResponseCode) -> None:
    count = len(ids)
    numbers = array("Q", ids)
    if sys.byteorder == "little":
        numbers.byteswap()
    raw = bytearray(numbers)
    # A whole frame may be refused, so slices copy one byte of every id at a time: no loop by id.
    errors = bytearray(count * _ERROR_BYTES)
    for place in range(8):
        errors[place::_ERROR_BYTES] = raw[place::8]
    for place, byte in enumerate(code.to_bytes(2), start=8):
        errors[place::_ERROR_BYTES] = bytearray((byte,)) * count
    head = _ERROR_HEAD.pack(9 + len(errors), _ERROR_KEY, 1, publisher_id, count)
    link.ports.send(head + errors)
