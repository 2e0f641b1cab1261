"""Commands of pipelines: the second table, which a client gets by asking for it.

A client whose peer properties hold `hutch.pipeline`, with any value, speaks these commands beside
those of RabbitMQ. The server's properties in the answer then have the version of the table. No
other client sees a trace of them: to it their keys are unknown.

All are correlated. Their answers begin with a code and a reason.
"""

from collections.abc import Mapping
from typing import Final

from hutch.stream import pipeline_messages as p
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
    Table,
)

PROPERTY: Final = "hutch.pipeline"
PROPERTIES: Final = {PROPERTY: "1"}
"""The version of the table, as both sides say it."""
STARTED: Final = "hutch.started"
"""The property in which the server says when it was started, in milliseconds since 1970."""

# fmt: off
PIPELINE: Final = (
    #       key     name                sent by corr. request, one a version  reply                steps permission
    Command(0x4800, "describe_streams", CLIENT, YES,  (p.DescribeStreams,),   p.StreamsDescribed,  OPEN, READ),
    Command(0x4801, "plan_streams",     CLIENT, YES,  (p.PlanStreams,),       p.StreamsPlanned,    OPEN, READ),
    Command(0x4802, "open_stage",       CLIENT, YES,  (p.OpenStage,),         p.StageOpened,       OPEN, WRITE),
    Command(0x4803, "stage",            CLIENT, YES,  (p.StageRecords,),      p.StageFilled,       OPEN, NONE),
    Command(0x4804, "close_stage",      CLIENT, YES,  (p.CloseStage,),        p.StageClosed,       OPEN, NONE),
    Command(0x4805, "commit_stages",    CLIENT, YES,  (p.CommitStages,),      p.StagesCommitted,   OPEN, WRITE),
    Command(0x4806, "discard_stages",   CLIENT, YES,  (p.DiscardStages,),     p.Outcome,           OPEN, NONE),
    Command(0x4807, "sink_state",       CLIENT, YES,  (p.SinkState,),         p.SinkStateReply,    OPEN, NONE),
)
# fmt: on

TABLE: Final = Table(COMMANDS + PIPELINE)
"""All commands: what a client speaks that has asked for those of pipelines."""


def table_of(properties: Mapping[str, str]) -> Table:
    """Return the table that the peer properties of a client or a server lead to."""
    return TABLE if PROPERTY in properties else STANDARD
