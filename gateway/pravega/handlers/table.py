"""The dispatch: the handler of each message that a client may send, but for appends."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.pravega.connection import SegmentConnection
from gateway.pravega.handlers import merging, reads, segments, set_ups, tables
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.layout import WireMessage

Handler = Callable[[SegmentConnection, Any], None]

HANDLERS: Final[Mapping[type[WireMessage], Handler]] = MappingProxyType(
    {
        m.Hello: set_ups.hello,
        m.KeepAlive: set_ups.keep_alive,
        m.Padding: set_ups.padding,
        m.SetupAppend: set_ups.setup_append,
        m.ReadSegment: reads.read_segment,
        m.LocateOffset: reads.locate_offset,
        m.GetStreamSegmentInfo: segments.get_info,
        m.CreateSegment: segments.create_segment,
        m.CreateTransientSegment: segments.create_transient_segment,
        m.SealSegment: segments.seal_segment,
        m.DeleteSegment: segments.delete_segment,
        m.TruncateSegment: segments.truncate_segment,
        m.UpdateSegmentPolicy: segments.update_segment_policy,
        m.MergeSegments: merging.merge_segments,
        m.MergeSegmentsBatch: merging.merge_in_batch,
        m.GetSegmentAttribute: segments.get_attribute,
        m.UpdateSegmentAttribute: segments.update_attribute,
        t.CreateTableSegment: tables.create_table,
        t.DeleteTableSegment: tables.delete_table,
        t.GetTableSegmentInfo: tables.get_table_info,
        t.MergeTableSegments: merging.merge_tables,
        t.SealTableSegment: tables.seal_table,
        t.UpdateTableEntries: tables.update_entries,
        t.RemoveTableKeys: tables.remove_keys,
        t.ReadTable: tables.read_table,
        t.ReadTableKeys: tables.read_keys,
        t.ReadTableEntries: tables.read_entries,
        t.ReadTableEntriesDelta: tables.read_delta,
    }
)
