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
from hutch.pravega.layout import WireMessage


class CommandSender(Flag):
    """The side that sends a command."""

    CLIENT = 1
    SERVER = 2
    BOTH = CLIENT | SERVER


class CommandCode(NamedTuple):
    """One row.

    Attributes:
        code: The first number of its frames.
        sender: The side that sends it.
        message: The class of its messages, whose fields are its payload.
    """

    code: int
    sender: CommandSender
    message: type[WireMessage]

    @property
    def name(self) -> str:
        """Its name, which is that of its class."""
        return self.message.__name__


CLIENT: Final = CommandSender.CLIENT
SERVER: Final = CommandSender.SERVER
BOTH: Final = CommandSender.BOTH

# fmt: off
COMMANDS: Final = (
    #       code  from    message
    CommandCode(-127, BOTH,   m.Hello),
    CommandCode(-2,   CLIENT, m.PartialEvent),
    CommandCode(-1,   CLIENT, m.Padding),
    CommandCode(0,    CLIENT, m.Event),
    CommandCode(1,    CLIENT, m.SetupAppend),
    CommandCode(2,    SERVER, m.AppendSetup),
    CommandCode(3,    CLIENT, m.AppendBlock),
    CommandCode(4,    CLIENT, m.AppendBlockEnd),
    CommandCode(5,    CLIENT, m.ConditionalAppend),
    CommandCode(7,    SERVER, m.DataAppended),
    CommandCode(8,    SERVER, m.ConditionalCheckFailed),
    CommandCode(9,    CLIENT, m.ReadSegment),
    CommandCode(10,   SERVER, m.SegmentRead),
    CommandCode(11,   CLIENT, m.GetStreamSegmentInfo),
    CommandCode(12,   SERVER, m.StreamSegmentInfo),
    CommandCode(20,   CLIENT, m.CreateSegment),
    CommandCode(21,   SERVER, m.SegmentCreated),
    CommandCode(28,   CLIENT, m.SealSegment),
    CommandCode(29,   SERVER, m.SegmentSealed),
    CommandCode(30,   CLIENT, m.DeleteSegment),
    CommandCode(31,   SERVER, m.SegmentDeleted),
    CommandCode(32,   CLIENT, m.UpdateSegmentPolicy),
    CommandCode(33,   SERVER, m.SegmentPolicyUpdated),
    CommandCode(34,   CLIENT, m.GetSegmentAttribute),
    CommandCode(35,   SERVER, m.SegmentAttribute),
    CommandCode(36,   CLIENT, m.UpdateSegmentAttribute),
    CommandCode(37,   SERVER, m.SegmentAttributeUpdated),
    CommandCode(38,   CLIENT, m.TruncateSegment),
    CommandCode(39,   SERVER, m.SegmentTruncated),
    CommandCode(40,   CLIENT, m.CreateTransientSegment),
    CommandCode(41,   CLIENT, m.LocateOffset),
    CommandCode(42,   SERVER, m.OffsetLocated),
    CommandCode(50,   SERVER, e.WrongHost),
    CommandCode(51,   SERVER, e.SegmentIsSealed),
    CommandCode(52,   SERVER, e.SegmentAlreadyExists),
    CommandCode(53,   SERVER, e.NoSuchSegment),
    CommandCode(55,   SERVER, e.InvalidEventNumber),
    CommandCode(56,   SERVER, e.SegmentIsTruncated),
    CommandCode(57,   SERVER, e.OperationUnsupported),
    CommandCode(58,   CLIENT, m.MergeSegments),
    CommandCode(59,   SERVER, m.SegmentsMerged),
    CommandCode(60,   SERVER, e.AuthTokenCheckFailed),
    CommandCode(61,   SERVER, e.ErrorMessage),
    CommandCode(68,   CLIENT, t.GetTableSegmentInfo),
    CommandCode(69,   SERVER, t.TableSegmentInfo),
    CommandCode(70,   CLIENT, t.CreateTableSegment),
    CommandCode(71,   CLIENT, t.DeleteTableSegment),
    CommandCode(72,   CLIENT, t.MergeTableSegments),
    CommandCode(73,   CLIENT, t.SealTableSegment),
    CommandCode(74,   CLIENT, t.UpdateTableEntries),
    CommandCode(75,   SERVER, t.TableEntriesUpdated),
    CommandCode(76,   CLIENT, t.RemoveTableKeys),
    CommandCode(77,   SERVER, t.TableKeysRemoved),
    CommandCode(78,   CLIENT, t.ReadTable),
    CommandCode(79,   SERVER, t.TableRead),
    CommandCode(80,   SERVER, e.TableSegmentNotEmpty),
    CommandCode(81,   SERVER, e.TableKeyDoesNotExist),
    CommandCode(82,   SERVER, e.TableKeyBadVersion),
    CommandCode(83,   CLIENT, t.ReadTableKeys),
    CommandCode(84,   SERVER, t.TableKeysRead),
    CommandCode(85,   CLIENT, t.ReadTableEntries),
    CommandCode(86,   SERVER, t.TableEntriesRead),
    CommandCode(87,   SERVER, t.TableEntriesDeltaRead),
    CommandCode(88,   CLIENT, t.ReadTableEntriesDelta),
    CommandCode(89,   CLIENT, m.ConditionalBlockEnd),
    CommandCode(90,   CLIENT, m.MergeSegmentsBatch),
    CommandCode(91,   SERVER, m.SegmentsBatchMerged),
    CommandCode(100,  BOTH,   m.KeepAlive),
)
# fmt: on

BY_CODE: Final[Mapping[int, CommandCode]] = MappingProxyType({row.code: row for row in COMMANDS})
BY_CLASS: Final[Mapping[type[WireMessage], CommandCode]] = MappingProxyType(
    {row.message: row for row in COMMANDS}
)
