"""The steps of a graceful stop, and how long each may take."""

from typing import Final

STORED_BY_S: Final = 5.0
SENT_BY_S: Final = 6.0
CLOSED_BY_S: Final = 9.0
"""Times after which a graceful stop gives up a step and begins the next: below 10 s in all."""
