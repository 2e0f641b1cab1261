"""Frames that cannot be taken, and the numbers of errors that clients are told."""

import enum
from collections.abc import Collection


class Code(enum.IntEnum):
    """Numbers of errors; the clients of 2016 know those below 100."""

    NOT_AUTHENTICATED = 1
    NOT_AUTHORISED = 2
    """No login yet, or no right."""
    NO_CHANNEL = 3
    NOT_STORED = 4
    """Too large, no room on the disk, or the store has failed."""
    SERVER = 100
    """The version of a client that is not served, a server that is busy, or a fault of it."""
    TRANSACTION_OPEN = 101
    NO_TRANSACTION = 102
    NO_BINDER = 103
    BAD_REQUEST = 104
    NO_SUBSCRIPTION = 105
    PAST_END = 106
    """The start of a subscription lies behind the channel's end."""


class UnreadableFrame(Exception):
    """Bytes that are no frame: the connection ends, since nothing behind them can be found."""


class BadRequest(Exception):
    """A frame whose fields are wrong: answered if it names a request, then the end.

    Attributes:
        frame_type: Its type.
        request_id: The request that it names; None if it names none.
        query_id: The query that it names; None if it names none.
        names: The names of all fields in it.
    """

    def __init__(
        self,
        reason: str,
        *,
        frame_type: str,
        request_id: int | None,
        query_id: int | None = None,
        names: Collection[bytes] = (),
    ) -> None:
        super().__init__(reason)
        self.frame_type = frame_type
        self.request_id = request_id
        self.query_id = query_id
        self.names = names
