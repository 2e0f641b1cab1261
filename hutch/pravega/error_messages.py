"""Replies that refuse a request; see `messages.py`.

The server's stack trace is text for people, and may be empty.
"""

from dataclasses import dataclass, field

from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import UNKNOWN, SegmentReply
from hutch.pravega.wire_types import Id, Int, Long, Text


@dataclass(frozen=True, slots=True)
class WrongHost(SegmentReply):
    """Says that another server has the segment."""

    correct_host: Text
    stack_trace: Text = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SegmentIsSealed(SegmentReply):
    """Says that the segment is sealed."""

    stack_trace: Text = field(default="", repr=False)
    offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class SegmentAlreadyExists(SegmentReply):
    """Says that the name is taken."""

    stack_trace: Text = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NoSuchSegment(SegmentReply):
    """Says that there is no segment of this name."""

    stack_trace: Text = field(default="", repr=False)
    offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class InvalidEventNumber(WireMessage):
    """Says that the writer's number is not the stored one, and ends the writer."""

    writer_id: Id
    request_id: Long
    stack_trace: Text = field(default="", repr=False)
    event_number: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class SegmentIsTruncated(SegmentReply):
    """Says that the segment begins behind the offset."""

    start_offset: Long
    stack_trace: Text = field(default="", repr=False)
    offset: Long = UNKNOWN


@dataclass(frozen=True, slots=True)
class OperationUnsupported(WireMessage):
    """Says that the server does not do this."""

    request_id: Long
    operation: Text
    stack_trace: Text = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AuthTokenCheckFailed(WireMessage):
    """Says that the token does not allow it: code 0 refused, 1 expired, -1 unspecified."""

    request_id: Long
    stack_trace: Text = field(default="", repr=False)
    error_code: Int = UNKNOWN


@dataclass(frozen=True, slots=True)
class ErrorMessage(SegmentReply):
    """Says what is wrong: code 0 is an illegal argument, -1 anything else."""

    message: Text
    error_code: Int


@dataclass(frozen=True, slots=True)
class TableError(SegmentReply):
    """A refusal that names a table."""

    stack_trace: Text = field(repr=False)


@dataclass(frozen=True, slots=True)
class TableSegmentNotEmpty(TableError):
    """Says that the table still has keys."""


@dataclass(frozen=True, slots=True)
class TableKeyDoesNotExist(TableError):
    """Says that a key with an expected version is not in the table."""


@dataclass(frozen=True, slots=True)
class TableKeyBadVersion(TableError):
    """Says that a key does not have the expected version."""
