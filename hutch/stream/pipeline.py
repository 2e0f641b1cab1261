"""Commands of pipelines with their messages: the second table, which a client gets by asking for it.

A client whose peer properties hold `hutch.pipeline`, with any value, speaks these commands beside
those of RabbitMQ. The server's properties in the answer then have the version of the table. No
other client sees a trace of them: to it their keys are unknown.

All are correlated. Every answer begins with a code and a reason, which may be null: one line that
names the stream, stage or sink. The messages have the form of those in `messages.py`: requests
come first, in the order of their keys, then answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from hutch.stream import wire_types
from hutch.stream.commands import (
    CLIENT,
    COMMANDS,
    NONE,
    OPEN,
    READ,
    STANDARD,
    WRITE,
    YES,
    Command,
    CommandTable,
)
from hutch.stream.layout import FrameLayout
from hutch.stream.messages import Code, Message, String, Truth
from hutch.stream.wire_types import STRING_TYPE

PROPERTY: Final = "hutch.pipeline"
PROPERTIES: Final = {PROPERTY: "1"}
"""The version of the table, as both sides say it."""
STARTED: Final = "hutch.started"
"""The property in which the server says when it was started, in milliseconds since 1970."""

STREAMS_MAX: Final = 10_000
"""Most streams of one request, and most that a pattern may match: an answer then has some 3 MB."""
BORDERS_MAX: Final = 100_000
"""Most borders of one plan: 1.6 MB. With a span of 64 MiB that is a plan of 6 TiB."""

U16 = Annotated[int, wire_types.U16_TYPE]
U32 = Annotated[int, wire_types.U32_TYPE]
U64 = Annotated[int, wire_types.U64_TYPE]
I64 = Annotated[int, wire_types.I64_TYPE]
Data = Annotated[bytes | memoryview, wire_types.Bytes()]
Reason = Annotated[str | None, wire_types.NullableString()]
NullableString = Annotated[str | None, wire_types.NullableString()]
Names = Annotated[tuple[str, ...], wire_types.Counted(STRING_TYPE, STREAMS_MAX)]
Numbers = Annotated[tuple[int, ...], wire_types.Counted(wire_types.U64_TYPE)]


# ---- requests ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeStreams(Message):
    """Asks for places and sizes of streams: those named, or all that a pattern matches.

    With a pattern the names must be empty. A pattern that matches no stream has an empty answer.
    """

    names: Names
    pattern: NullableString


@dataclass(frozen=True, slots=True)
class RangeToPlan(Message):
    """A range of a stream, inside a PlanStreams; `to_offset` is the first offset behind it."""

    name: String
    generation: U64
    from_offset: U64
    to_offset: U64
    span_bytes: U32


@dataclass(frozen=True, slots=True)
class PlanStreams(Message):
    """Asks where ranges can be split, and keeps them from retention for a while."""

    ranges: Annotated[
        tuple[RangeToPlan, ...], wire_types.Counted(FrameLayout(RangeToPlan), STREAMS_MAX)
    ]


@dataclass(frozen=True, slots=True)
class OpenStage(Message):
    """Opens a stage: records for a stream that no reader sees before they are committed."""

    sink: String
    batch: U64
    stream: String


@dataclass(frozen=True, slots=True)
class StageRecords(Message):
    """Adds records to a stage, in their stored form; `sequence` counts from 0 in each stage."""

    stage: U64
    sequence: U32
    entries: U16
    records: U32
    data: Data = field(repr=False)


@dataclass(frozen=True, slots=True)
class CloseStage(Message):
    """Ends a stage, which can be committed then."""

    stage: U64


@dataclass(frozen=True, slots=True)
class CommitStages(Message):
    """Publishes stages, all or none, unless the sink has committed this batch before."""

    sink: String
    batch: U64
    stages: Numbers


@dataclass(frozen=True, slots=True)
class DiscardStages(Message):
    """Drops stages; those that are not there are passed over."""

    stages: Numbers


@dataclass(frozen=True, slots=True)
class SinkState(Message):
    """Asks for the last batch that a sink has committed."""

    sink: String


# ---- answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome(Message):
    """The answer that is nothing but code and reason."""

    code: Code
    reason: Reason


@dataclass(frozen=True, slots=True)
class StreamDescription(Message):
    """A stream inside a StreamsDescribed; with any code but OK all numbers are 0.

    `super_stream` is null for a stream that is no partition of one.
    """

    name: String
    code: Code
    generation: U64
    first_offset: U64
    next_offset: U64
    size_bytes: U64
    super_stream: NullableString
    partition: U32


@dataclass(frozen=True, slots=True)
class StreamsDescribed(Message):
    """Streams in the order of the request, or in the order of their names; each has a code."""

    code: Code
    reason: Reason
    streams: Annotated[
        tuple[StreamDescription, ...], wire_types.Counted(FrameLayout(StreamDescription))
    ]


@dataclass(frozen=True, slots=True)
class RangeBorder(Message):
    """The first offset of a chunk, and the bytes from the plan's first chunk to it."""

    offset: U64
    size_bytes: U64


@dataclass(frozen=True, slots=True)
class StreamPlan(Message):
    """Borders of a range, inside a StreamsPlanned; none with any code but OK."""

    name: String
    code: Code
    borders: Annotated[tuple[RangeBorder, ...], wire_types.Counted(FrameLayout(RangeBorder))]


@dataclass(frozen=True, slots=True)
class StreamsPlanned(Message):
    """Plans in the order of the request; each has a code."""

    code: Code
    reason: Reason
    streams: Annotated[tuple[StreamPlan, ...], wire_types.Counted(FrameLayout(StreamPlan))]


@dataclass(frozen=True, slots=True)
class StageOpened(Message):
    """The number of a stage, under which its owner adds to it."""

    code: Code
    reason: Reason
    stage: U64


@dataclass(frozen=True, slots=True)
class StageFilled(Message):
    """Number of frames of a stage, from the first on, that the client need not keep any more."""

    code: Code
    reason: Reason
    stored: U32


@dataclass(frozen=True, slots=True)
class StageClosed(Message):
    """Counts of a stage that is as durable as the server's setting says."""

    code: Code
    reason: Reason
    records: U64
    size_bytes: U64


@dataclass(frozen=True, slots=True)
class StagesCommitted(Message):
    """The number of the commit, that of the first time for a batch that is repeated.

    `dropped` names streams that were deleted meanwhile, and `waiting` those that get their part
    later, since they cannot be written now.
    """

    code: Code
    reason: Reason
    number: U64
    is_repeat: Truth
    dropped: Names
    waiting: Names


@dataclass(frozen=True, slots=True)
class SinkStateReply(Message):
    """The last batch of a sink, -1 if there is none, and the number of its commit."""

    code: Code
    reason: Reason
    last_batch: I64
    number: U64


# fmt: off
PIPELINE: Final = (
    #       key     name                sent by corr. request, one a version reply              steps permission
    Command(0x4800, "describe_streams", CLIENT, YES,  (DescribeStreams,),   StreamsDescribed,   OPEN, READ),
    Command(0x4801, "plan_streams",     CLIENT, YES,  (PlanStreams,),       StreamsPlanned,     OPEN, READ),
    Command(0x4802, "open_stage",       CLIENT, YES,  (OpenStage,),         StageOpened,        OPEN, WRITE),
    Command(0x4803, "stage",            CLIENT, YES,  (StageRecords,),      StageFilled,        OPEN, NONE),
    Command(0x4804, "close_stage",      CLIENT, YES,  (CloseStage,),        StageClosed,        OPEN, NONE),
    Command(0x4805, "commit_stages",    CLIENT, YES,  (CommitStages,),      StagesCommitted,    OPEN, WRITE),
    Command(0x4806, "discard_stages",   CLIENT, YES,  (DiscardStages,),     Outcome,            OPEN, NONE),
    Command(0x4807, "sink_state",       CLIENT, YES,  (SinkState,),         SinkStateReply,     OPEN, NONE),
)
# fmt: on

TABLE: Final = CommandTable(COMMANDS + PIPELINE)
"""All commands: what a client speaks that has asked for those of pipelines."""


def table_of(properties: Mapping[str, str]) -> CommandTable:
    """Return the table that the peer properties of a client or a server lead to."""
    return TABLE if PROPERTY in properties else STANDARD
