"""Pravega's wire protocol as one table: the only place that says which commands there are.

Decoding, encoding, the page `docs/pravega-wire.md` and the property tests are derived from it, and
the layouts from the message classes that it names. It has the commands of versions 5 to 17, but for
those of the administrator's port.
"""

from collections.abc import Mapping
from enum import Flag
from types import MappingProxyType
from typing import Final, NamedTuple

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.layout import Message


class Sender(Flag):
    """The side that sends a command."""

    CLIENT = 1
    SERVER = 2
    BOTH = CLIENT | SERVER


class Command(NamedTuple):
    """One row.

    Attributes:
        code: The first number of its frames.
        sender: The side that sends it.
        message: The class of its messages, whose fields are its payload.
    """

    code: int
    sender: Sender
    message: type[Message]

    @property
    def name(self) -> str:
        """Its name, which is that of its class."""
        return self.message.__name__


CLIENT: Final = Sender.CLIENT
SERVER: Final = Sender.SERVER
BOTH: Final = Sender.BOTH

# fmt: off
COMMANDS: Final = (
    #       code  from    message
    Command(-127, BOTH,   m.Hello),
    Command(-2,   CLIENT, m.PartialEvent),
    Command(-1,   CLIENT, m.Padding),
    Command(0,    CLIENT, m.Event),
    Command(1,    CLIENT, m.SetupAppend),
    Command(2,    SERVER, m.AppendSetup),
    Command(3,    CLIENT, m.AppendBlock),
    Command(4,    CLIENT, m.AppendBlockEnd),
    Command(5,    CLIENT, m.ConditionalAppend),
    Command(7,    SERVER, m.DataAppended),
    Command(8,    SERVER, m.ConditionalCheckFailed),
    Command(9,    CLIENT, m.ReadSegment),
    Command(10,   SERVER, m.SegmentRead),
    Command(11,   CLIENT, m.GetStreamSegmentInfo),
    Command(12,   SERVER, m.StreamSegmentInfo),
    Command(20,   CLIENT, m.CreateSegment),
    Command(21,   SERVER, m.SegmentCreated),
    Command(28,   CLIENT, m.SealSegment),
    Command(29,   SERVER, m.SegmentSealed),
    Command(30,   CLIENT, m.DeleteSegment),
    Command(31,   SERVER, m.SegmentDeleted),
    Command(32,   CLIENT, m.UpdateSegmentPolicy),
    Command(33,   SERVER, m.SegmentPolicyUpdated),
    Command(34,   CLIENT, m.GetSegmentAttribute),
    Command(35,   SERVER, m.SegmentAttribute),
    Command(36,   CLIENT, m.UpdateSegmentAttribute),
    Command(37,   SERVER, m.SegmentAttributeUpdated),
    Command(38,   CLIENT, m.TruncateSegment),
    Command(39,   SERVER, m.SegmentTruncated),
    Command(40,   CLIENT, m.CreateTransientSegment),
    Command(41,   CLIENT, m.LocateOffset),
    Command(42,   SERVER, m.OffsetLocated),
    Command(50,   SERVER, e.WrongHost),
    Command(51,   SERVER, e.SegmentIsSealed),
    Command(52,   SERVER, e.SegmentAlreadyExists),
    Command(53,   SERVER, e.NoSuchSegment),
    Command(55,   SERVER, e.InvalidEventNumber),
    Command(56,   SERVER, e.SegmentIsTruncated),
    Command(57,   SERVER, e.OperationUnsupported),
    Command(58,   CLIENT, m.MergeSegments),
    Command(59,   SERVER, m.SegmentsMerged),
    Command(60,   SERVER, e.AuthTokenCheckFailed),
    Command(61,   SERVER, e.ErrorMessage),
    Command(68,   CLIENT, t.GetTableSegmentInfo),
    Command(69,   SERVER, t.TableSegmentInfo),
    Command(70,   CLIENT, t.CreateTableSegment),
    Command(71,   CLIENT, t.DeleteTableSegment),
    Command(72,   CLIENT, t.MergeTableSegments),
    Command(73,   CLIENT, t.SealTableSegment),
    Command(74,   CLIENT, t.UpdateTableEntries),
    Command(75,   SERVER, t.TableEntriesUpdated),
    Command(76,   CLIENT, t.RemoveTableKeys),
    Command(77,   SERVER, t.TableKeysRemoved),
    Command(78,   CLIENT, t.ReadTable),
    Command(79,   SERVER, t.TableRead),
    Command(80,   SERVER, e.TableSegmentNotEmpty),
    Command(81,   SERVER, e.TableKeyDoesNotExist),
    Command(82,   SERVER, e.TableKeyBadVersion),
    Command(83,   CLIENT, t.ReadTableKeys),
    Command(84,   SERVER, t.TableKeysRead),
    Command(85,   CLIENT, t.ReadTableEntries),
    Command(86,   SERVER, t.TableEntriesRead),
    Command(87,   SERVER, t.TableEntriesDeltaRead),
    Command(88,   CLIENT, t.ReadTableEntriesDelta),
    Command(89,   CLIENT, m.ConditionalBlockEnd),
    Command(90,   CLIENT, m.MergeSegmentsBatch),
    Command(91,   SERVER, m.SegmentsBatchMerged),
    Command(100,  BOTH,   m.KeepAlive),
)
# fmt: on

BY_CODE: Final[Mapping[int, Command]] = MappingProxyType({row.code: row for row in COMMANDS})
BY_CLASS: Final[Mapping[type[Message], Command]] = MappingProxyType(
    {row.message: row for row in COMMANDS}
)
