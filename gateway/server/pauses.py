"""Reasons for which connections are not read."""

from typing import Final


class Pause:
    """Reasons not to read a connection, as bits: a Flag costs a microsecond at each look."""

    NONE: Final = 0
    HANDLER: Final = 1
    UNCONFIRMED: Final = 2
    LOG: Final = 4
    BACKLOG: Final = 8
    STOPPING: Final = 16
    TURN: Final = 32
    ALARM: Final = 64


OUR_PAUSES: Final = ~Pause.BACKLOG
"""All but the one that the peer ends by reading: in these it cannot show that it lives."""
