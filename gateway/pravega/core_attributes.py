"""Pravega's core attributes of a segment. Its count of events, the second, is not kept.

Source: io.pravega.segmentstore.contracts.Attributes.
"""

from typing import Final
from uuid import UUID

_CORE: Final = 0x8000_0000_0000_0000 << 64
CREATED_AT: Final = UUID(int=_CORE)
"""Milliseconds since the epoch."""
SCALE_TYPE: Final = UUID(int=_CORE + 2)
SCALE_RATE: Final = UUID(int=_CORE + 3)
ROLLOVER_SIZE: Final = UUID(int=_CORE + 4)
"""Bytes."""
