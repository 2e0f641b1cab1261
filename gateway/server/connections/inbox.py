# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Bytes that have come in and are not handled yet: between one read and the next; no I/O.

All connections are read into one shared buffer, in turn. A connection keeps only what is left over:
the beginning of a frame, or frames that must wait. A frame that fills half the shared buffer, or
of which one read brought nothing but a part, gets a buffer of its own, so that one that trickles in
is not copied again at every read. Frames
that must wait again and again stay where they were copied to the first time.
"""

from typing import Final

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_Resize

_ROOM_BYTES: Final = 64 * 1024
_COPIED_BYTES: Final = 8 * 1024  # so little may be copied at every read
_NOTHING: Final = bytearray()


class ConnectionInbox:
    """The unhandled bytes of one connection.

    Attributes:
        frames_taken: Counts what was taken from the front, by the connection.
    """

    __slots__ = (
        "_filled",
        "_large",
        "_large_bytes",
        "_rest",
        "_rest_position",
        "_shared",
        "_shared_view",
        "frames_taken",
    )

    def __init__(self, shared: bytearray) -> None:
        self._shared = shared
        self._shared_view = memoryview(shared)
        self._rest = _NOTHING
        self._rest_position = 0
        self._large: bytearray | None = None
        self._large_bytes = 0
        self._filled = 0
        self.frames_taken = 1  # 0 is for none that is begun

    def place(self) -> memoryview:
        """Return where the next bytes are to be read to. Never empty."""
        if self._large is not None:
            return memoryview(self._large)[self._filled :]
        rest = self._rest
        if not rest:
            return self._shared_view
        kept = len(rest) - self._rest_position
        self._shared[:kept] = memoryview(rest)[self._rest_position :]
        return self._shared_view[kept:]

    def is_empty(self) -> bool:
        """Return whether nothing is kept: the next bytes are read to the shared buffer's front."""
        return not self._rest and self._large is None

    def kept_bytes(self) -> int:
        """Return how many bytes are kept."""
        kept = len(self._rest) - self._rest_position
        return kept if self._large is None else kept + len(self._large)

    def received(self, size: int) -> tuple[bytearray, int]:
        """Note that `size` bytes were read to `place()`; return a buffer and its end to handle.

        The buffer holds from its front what was kept and what came; the end is 0 while a large
        frame is not complete.
        """
        if self._large is not None:
            self._filled += size
            if self._filled < self._large_bytes:
                self._grow()
                return self._large, 0
            large, self._large = self._large, None
            return large, len(large)
        end = size
        if self._rest:
            end += len(self._rest) - self._rest_position
            self._forget_rest()
        return self._shared, end

    def keep(self, buffer: bytearray, position: int, end: int, frame_bytes: int) -> None:
        """Keep [position, end) of the buffer, which is all that there is.

        Args:
            buffer: What `received` or `take_kept` gave.
            position: Start of a frame.
            end: End of what is there.
            frame_bytes: Size of the frame, with its head, where it may get a buffer of its own;
                0 where that is not known, or not judged.
        """
        left = end - position
        if left == 0:
            return
        is_large = frame_bytes > len(self._shared) // 2 or (position == 0 and left > _COPIED_BYTES)
        if is_large and left < frame_bytes:
            self._large = bytearray(memoryview(buffer)[position:end])
            self._large_bytes = frame_bytes
            self._filled = left
            self._grow()
            return
        if buffer is self._shared or left <= end // 2:
            self._rest = bytearray(memoryview(buffer)[position:end])
        else:
            self._rest, self._rest_position = buffer, position

    def _forget_rest(self) -> None:
        self._rest = _NOTHING
        self._rest_position = 0

    def _grow(self) -> None:
        """Make room for the large frame: as much again as came, not all that was announced."""
        assert self._large is not None
        if self._filled == len(self._large):
            room = min(max(self._filled, _ROOM_BYTES), self._large_bytes - self._filled)
            if cython.compiled:  # as below, without writing zeros that the next read writes over
                PyByteArray_Resize(self._large, self._filled + room)
            else:
                self._large += bytes(room)

    def take_kept(self) -> tuple[bytearray, int, int]:
        """Return the kept bytes, to be handled now (after a pause): a buffer, its start and end."""
        rest, position = self._rest, self._rest_position
        self._forget_rest()
        return rest, position, len(rest)
