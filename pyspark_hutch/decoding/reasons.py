"""Result numbers of the compiled loops and of their counterparts."""

from typing import Final

DONE: Final = 0
"""Done: as many records as were asked for."""
SUB_BATCH: Final = 1
"""The entry at the place is a sub-batch."""
BEYOND: Final = 2
"""The entry at the place reaches past the limit."""
FULL: Final = 3
"""The message at the place is larger than what is left of the budget."""
ODD: Final = 4
"""The body of the message at the place must be put together first."""

DATA: Final = 0
VALUE: Final = 1
SEQUENCE: Final = 2
RAW: Final = 3
NOTHING: Final = 4
ODD_BODY: Final = 5

BAD_SUB_BATCH: Final = 6

BODY_TYPES: Final = ("data", "amqp-value", "amqp-sequence", "raw", None, None, "bad-sub-batch")
"""Names of kinds of bodies, by number; a message of sections without a body has none.

The last one is no message, but the bytes that a publisher sent as a sub-batch.
"""

EXTENTS: Final = 14
"""Numbers for each record: start and end of six sections, and two that the loops use."""
EXTENT_NAMES: Final = (
    "header",
    "delivery_annotations",
    "message_annotations",
    "properties",
    "application_properties",
    "footer",
)
