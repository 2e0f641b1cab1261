"""The fate of sub-batches that cannot be opened: an error, no rows, or one row of their bytes."""

import logging
from typing import Final

from hutch.formats.sub_batches import BadSubBatch
from pyspark_hutch.decoding.errors import UnopenedSubBatch
from pyspark_hutch.options.read_settings import Fate

LOG: Final = logging.getLogger(__name__)

_BECAME: Final[dict[Fate, str]] = {
    "skip": "were left out",
    "raw": "became rows of what was sent, one for each sub-batch",
}


class BadSubBatches:
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
