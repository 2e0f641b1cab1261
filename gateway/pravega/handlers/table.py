"""The dispatch: the handler of each message that a client may send, but for appends."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.pravega.desk import Desk
from gateway.pravega.handlers import appends, connection, reads, segments
from store.wire import messages as m
from store.wire.layout import Message

Handler = Callable[[Desk, Any], None]

HANDLERS: Final[Mapping[type[Message], Handler]] = MappingProxyType(
    {
        m.Hello: connection.hello,
        m.KeepAlive: connection.keep_alive,
        m.Padding: connection.padding,
        m.SetupAppend: appends.setup_append,
        m.ReadSegment: reads.read_segment,
        m.LocateOffset: reads.locate_offset,
        m.GetStreamSegmentInfo: segments.get_info,
        m.CreateSegment: segments.create_segment,
        m.SealSegment: segments.seal_segment,
        m.DeleteSegment: segments.delete_segment,
        m.TruncateSegment: segments.truncate_segment,
        m.UpdateSegmentPolicy: segments.update_segment_policy,
    }
)
