"""Frames of Pravega's wire protocol that Pravega itself wrote or took, and what they say.

A pair is a name and the frames of one exchange, each with its message.
"""

from typing import Final
from uuid import UUID

from hutch.pravega import messages as m
from hutch.pravega.layout import WireMessage
from hutch.pravega.table_messages import UpdateTableEntries
from hutch.pravega.wire_types import KeyAndValue, TableKey

WRITER: Final = UUID(bytes=bytes(range(16)))
SEGMENT: Final = "s/t/0.#epoch.0"
EVENT: Final = b"\0\0\0\0\0\0\0\3abc"
FIVE: Final = b"\0\0\0\0\0\0\0\5abcde"
U: Final = "000102030405060708090a0b0c0d0e0f"

FRAMES: Final[tuple[tuple[str, str, WireMessage], ...]] = (
    ("hello", "ffffff81 00000008 00000011 00000005", m.Hello(17, 5)),
    ("keep_alive", "00000064 00000000", m.KeepAlive()),
    (
        "create_segment",
        (
            "00000014000000270000000000000001000e732f742f302e2365706f63682e30"
            "000000000000000000000000000000"
        ),
        m.CreateSegment(1, SEGMENT, 0, 0, "", 0),
    ),
    (
        "setup_append",
        f"000000010000002a0000000000000002{U}000e732f742f302e2365706f63682e300000",
        m.SetupAppend(2, WRITER, SEGMENT, ""),
    ),
    (
        "append_block_end_alone",
        (
            f"0000000400000037{U}0000000b0000000b00000000000000036162630000000100000000000000070000"
            "000000000003"
        ),
        m.AppendBlockEnd(WRITER, 11, EVENT, 1, 7, 3),
    ),
    (
        "block_with_padding",
        f"000000030000002b{U}0000000000000003616263ffffffff000000080000000000000000",
        m.AppendBlock(WRITER, EVENT + bytes.fromhex("ffffffff000000080000000000000000")),
    ),
    (
        "end_of_padding",
        f"000000040000002c{U}0000000b000000000000000100000000000000080000000000000003",
        m.AppendBlockEnd(WRITER, 11, b"", 1, 8, 3),
    ),
    (
        "block_with_partial_event",
        f"0000000300000028{U}0000000000000003616263fffffffe000000050000000000",
        m.AppendBlock(WRITER, EVENT + bytes.fromhex("fffffffe00000005") + bytes(5)),
    ),
    (
        "end_of_partial_event",
        f"0000000400000032{U}0000000b0000000600000361626300000002000000000000000a0000000000000003",
        m.AppendBlockEnd(WRITER, 11, b"\0\0\3abc", 2, 10, 3),
    ),
    (
        "block_of_three_events",
        f"0000000300000040{U}{FIVE.hex() * 3}fffffffe0000000100",
        m.AppendBlock(WRITER, FIVE * 3 + bytes.fromhex("fffffffe0000000100")),
    ),
    (
        "end_of_three_events",
        (
            f"0000000400000038{U}000000270000000c{FIVE[1:].hex()}"
            "0000000400000000000000040000000000000002"
        ),
        m.AppendBlockEnd(WRITER, 39, FIVE[1:], 4, 4, 2),
    ),
    (
        "read_segment",
        "0000000900000026000e732f742f302e2365706f63682e30"
        "000000000000000000000400" + "0000000000000000" + "0005",
        m.ReadSegment(SEGMENT, 0, 1024, "", 5),
    ),
    (
        "conditional_block_end",
        f"000000590000002f{U}000000000000000b00000000000000210000000378797a0000000000000004",
        m.ConditionalBlockEnd(WRITER, 11, 33, b"xyz", 4),
    ),
    (
        "update_table_entries",
        (
            "0000004a0000003d0000000000000006000b732f5f7461626c65732f740000000000010000000d00000001"
            "6b8000000000000000000000050000000176ffffffffffffffff"
        ),
        UpdateTableEntries(6, "s/_tables/t", "", (KeyAndValue(TableKey(b"k"), b"v"),), -1),
    ),
)
