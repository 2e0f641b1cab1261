"""Payloads of older versions, which lack their last fields."""

import pytest

from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import decode, encode
from hutch.pravega.commands import BY_CLASS, COMMANDS, CommandCode
from hutch.pravega.layout import WireMessage, layout_of
from hutch.pravega.wire_types import KeyAndValue, TableKey
from tests.golden.pravega_frames import WRITER

ENTRIES = (KeyAndValue(TableKey(b"k", 3), b"v"),)
NEWER = {
    "AppendBlockEnd": {"request_id": -1},
    "ConditionalAppend": {"request_id": -1},
    "DataAppended": {"request_id": -1, "current_segment_write_offset": -1},
    "ConditionalCheckFailed": {"request_id": -1},
    "ReadSegment": {"request_id": -1},
    "SegmentRead": {"request_id": -1},
    "CreateSegment": {"rollover_size": 0},
    "MergeSegments": {"attribute_updates": ()},
    "SegmentsMerged": {"new_target_write_offset": -1},
    "WrongHost": {"stack_trace": ""},
    "SegmentIsSealed": {"stack_trace": "", "offset": -1},
    "SegmentAlreadyExists": {"stack_trace": ""},
    "NoSuchSegment": {"stack_trace": "", "offset": -1},
    "InvalidEventNumber": {"stack_trace": "", "event_number": -1},
    "SegmentIsTruncated": {"stack_trace": "", "offset": -1},
    "OperationUnsupported": {"stack_trace": ""},
    "AuthTokenCheckFailed": {"stack_trace": "", "error_code": -1},
    "CreateTableSegment": {"sorted_deprecated": False, "key_length": 0, "rollover_size": 0},
    "UpdateTableEntries": {"table_segment_offset": -1},
    "RemoveTableKeys": {"table_segment_offset": -1},
    "ReadTableKeys": {"prefix_deprecated": b"", "from_key": b"", "to_key": b""},
    "ReadTableEntries": {"prefix_deprecated": b"", "from_key": b"", "to_key": b""},
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda row: row.name)
def test_a_command_may_lack_the_fields_that_older_versions_lack(command: CommandCode) -> None:
    assert layout_of(command.message).defaults == NEWER.get(command.name, {})


@pytest.mark.parametrize(
    ("message", "lacking"),
    [
        (m.AppendBlockEnd(WRITER, 0, b"abc", 1, 7), 8),
        (m.ConditionalAppend(WRITER, 1, 2, b"abc"), 8),
        (m.DataAppended(WRITER, 5, 4), 16),
        (m.DataAppended(WRITER, 5, 4, 9), 8),
        (m.ReadSegment("s", 1, 2, "token"), 8),
        (m.SegmentRead("s", 1, True, False, b"abc"), 8),  # noqa: FBT003
        (m.CreateSegment(1, "s", 2, 1, "token"), 8),
        (m.MergeSegments(1, "a", "b", ""), 4),
        (m.SegmentsMerged(1, "a", "b"), 8),
        (e.WrongHost(1, "s", ""), 2),
        (e.SegmentIsSealed(1, "s"), 10),
        (e.NoSuchSegment(1, "s", "at Foo.java"), 8),
        (e.SegmentIsTruncated(1, "s", 100), 10),
        (e.InvalidEventNumber(WRITER, 6), 10),
        (e.AuthTokenCheckFailed(1), 6),
        (t.CreateTableSegment(1, "s", ""), 13),
        (t.CreateTableSegment(1, "s", "", True, 16), 8),  # noqa: FBT003
        (t.UpdateTableEntries(1, "s", "", ENTRIES), 8),
        (t.RemoveTableKeys(1, "s", "", (TableKey(b"k", 3),)), 8),
        (t.ReadTableKeys(1, "s", "", 10, b"next"), 12),
        (t.ReadTableEntries(1, "s", "", 10, b"next", b"p"), 8),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, WireMessage) else None,
)
def test_an_older_payload_is_read_with_defaults(message: WireMessage, lacking: int) -> None:
    code, payload = BY_CLASS[type(message)].code, encode(message)[8:]

    assert decode(code, payload[:-lacking]) == message
    assert decode(code, payload) == message


def test_the_number_of_an_older_refusal_is_read_where_the_request_id_is_now() -> None:
    older = WRITER.bytes + (42).to_bytes(8) + b"\0\5stack"

    assert decode(55, older) == e.InvalidEventNumber(WRITER, 42, "stack")
    newer = e.InvalidEventNumber(WRITER, 1, "stack", 42)
    assert encode(newer)[8:] == WRITER.bytes + (1).to_bytes(8) + b"\0\5stack" + (42).to_bytes(8)
