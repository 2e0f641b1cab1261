"""Forms an append from the messages that bring it.

    AppendBlockEnd alone                         its data
    block                      AppendBlockEnd    the block, where all of it is whole events
    whole events | Padding     AppendBlockEnd    the whole events
    whole events | PartialEvent AppendBlockEnd   the whole events, the partial one, the End's data

A client opens a block before it knows how much it will write. The heads of Padding and
PartialEvent take the last bytes of the block and are not stored; the head of the event that a
PartialEvent begins is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.commands import BY_CLASS
from hutch.pravega.errors import WireError
from hutch.pravega.messages import AppendBlockEnd, Padding, PartialEvent

if TYPE_CHECKING:
    from typing_extensions import Buffer


def append_pieces(block: Buffer | None, end: AppendBlockEnd) -> tuple[Buffer, ...]:
    """Return the pieces that are stored, in order, as one append.

    Args:
        block: The data of the AppendBlock before the End; None if there was none. The pieces are
            views of it.
        end: The End; its writer is the block's.

    Raises:
        WireError: Block and End are none of the legal shapes.
    """
    if end.event_count <= 0:
        raise WireError(f"an append of {end.event_count} events")
    if block is None:
        return (end.data,)
    view, whole = memoryview(block).cast("B"), end.whole_events_size
    if not 0 <= whole <= len(view):
        raise WireError(f"{whole} bytes of whole events in a block of {len(view)}")
    if whole < len(view) and _behind(view, whole) == BY_CLASS[PartialEvent].code:
        return view[:whole], view[whole + HEAD_BYTES :], end.data
    if end.data:
        raise WireError(f"{len(end.data)} bytes of data behind a block without a partial event")
    return (view[:whole],)


def _behind(view: memoryview, whole: int) -> int:
    """Return the code behind the whole events; its message fills the block."""
    left = len(view) - whole - HEAD_BYTES
    if left < 0:
        raise WireError(f"{left + HEAD_BYTES} bytes behind the whole events are no command")
    code, length = HEAD.unpack_from(view, whole)
    if code not in {BY_CLASS[PartialEvent].code, BY_CLASS[Padding].code}:
        raise WireError(f"command {code} behind the whole events of a block")
    if length != left:
        raise WireError(f"a length of {length} where {left} bytes are left of a block")
    return int(code)
