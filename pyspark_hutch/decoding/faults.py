"""Faults in deliveries of a server: damaged chunks, and sub-batches that cannot be opened."""

import logging
from typing import Final

from hutch.formats.sub_batches import BadSubBatch
from pyspark_hutch.options.read_settings import Fate

LOG: Final = logging.getLogger(__name__)


class _Fault(ValueError):
    def __init__(self, stream: str, offset: int, reason: str) -> None:
        super().__init__(stream, offset, reason)
        self.stream = stream
        self.offset = offset
        self.reason = reason


class DamagedChunk(_Fault):
    """A chunk that no server can have stored.

    Attributes:
        stream: The stream it came from.
        offset: The record at which it is damaged, as far as that can be told.
        reason: The damage, in a few words.
    """

    def __str__(self) -> str:
        return f"stream {self.stream!r} is damaged at offset {self.offset}: {self.reason}"


class UnopenedSubBatch(_Fault):
    """A sub-batch that does not agree with its head, in a chunk that is as it was stored.

    Attributes:
        stream: The stream it came from.
        offset: The offset of its first record.
        reason: The fault: a clause about the bytes that a publisher sent.
    """

    def __str__(self) -> str:
        return (
            f"stream {self.stream!r}: at offset {self.offset} {self.reason}. "
            "Set badSubBatches to skip or raw to go on."
        )


_BECAME: Final[dict[Fate, str]] = {
    "skip": "were left out",
    "raw": "became rows of what was sent, one for each sub-batch",
}


class UnopenedSubBatches:
    """The sub-batches of one range of a stream that cannot be opened."""

    def __init__(self, stream: str, fate: Fate) -> None:
        self._stream = stream
        self._fate = fate
        self._begin()

    def _begin(self) -> None:
        self._sub_batches = self._offsets = 0
        self._first: tuple[int, str] = 0, ""

    @property
    def is_raw(self) -> bool:
        """True if each becomes a row."""
        return self._fate == "raw"

    def meet(self, bad: BadSubBatch, offset: int, wanted: int) -> None:
        """Count one. Raises UnopenedSubBatch where it is to end the read.

        Args:
            bad: The sub-batch.
            offset: Of its first record.
            wanted: The number of its offsets that lie in the range.
        """
        if self._fate == "fail":
            raise UnopenedSubBatch(self._stream, offset, str(bad)) from None
        if not self._sub_batches:
            self._first = offset, str(bad)
        self._sub_batches += 1
        self._offsets += wanted

    def tell(self) -> None:
        """Log them in one line, once."""
        if self._sub_batches:
            offset, reason = self._first
            LOG.warning(
                "stream %r: %d offsets of %d bad sub-batches %s; the first: at offset %d %s",
                self._stream,
                self._offsets,
                self._sub_batches,
                _BECAME[self._fate],
                offset,
                reason,
            )
        self._begin()
