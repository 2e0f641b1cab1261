"""The early dialect of Pravega's wire protocol as one table.

The fields are those of the draft. It fixes no codes: these are of the first servers, from 2016.
"""

from typing import Final

from hutch.pravega import early_messages as m
from hutch.pravega.commands import BOTH, CLIENT, SERVER, Command
from hutch.pravega.messages import Event

# fmt: off
EARLY_COMMANDS: Final = (
    #       code  from    message
    Command(-2,   BOTH,   m.PartialMessage),
    Command(0,    CLIENT, Event),
    Command(1,    CLIENT, m.SetupAppend),
    Command(2,    SERVER, m.AppendSetup),
    Command(3,    CLIENT, m.BeginAppendBlock),
    Command(4,    CLIENT, m.EndAppendBlock),
    Command(5,    SERVER, m.DataAppended),
    Command(8,    CLIENT, m.ReadSegment),
    Command(9,    SERVER, m.SegmentRead),
    Command(100,  BOTH,   m.KeepAlive),
)
# fmt: on
