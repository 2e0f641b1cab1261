"""Streams that were deleted: a new one of a deleted one's name goes on behind it.

Clients keep places, which name segments by number. A number that is given again would apply an old
place to new data. So the numbers go on, also when the scope was deleted meanwhile; and the segments
that such a stream had last are followed by the first ones of the new stream, so that a group of
readers goes on with it from its beginning.

Source: Pravega, where the numbers of a stream go on behind those of the deleted one.
"""

from collections.abc import Iterable
from typing import Final

from gateway.pravega.controller.records.epochs import StreamSegment
from gateway.pravega.controller.records.model import Ended

KEPT: Final = 10_000
"""Streams of which it is known. Beyond, new streams begin behind the numbers of the forgotten."""
LAST_MAX: Final = 32
"""A stream that had more segments at its end is remembered without them."""

Name = tuple[str, str]
"""Scope and stream."""
_FLOOR: Final = ("", "")
"""Stands for the streams that were forgotten."""


class EndedStreams:
    """The last segments of deleted streams, and the numbers behind them."""

    def __init__(self) -> None:
        self._known: dict[Name, Ended] = {}
        self._floor = Ended(scope="", name="", next_number=0)

    def load(self, rows: Iterable[Ended]) -> None:
        """Take in the streams that `add` returned before."""
        for ended in rows:
            self._keep(ended)

    def first_number(self, scope: str, name: str) -> int:
        """Return the number of the first segment of a new stream."""
        return self._known.get((scope, name), self._floor).next_number

    def last_segments(self, scope: str, name: str) -> tuple[StreamSegment, ...]:
        """Return the segments that the last stream of this name had at its end, if known."""
        return self._known.get((scope, name), self._floor).last

    def add(self, ended: Ended) -> tuple[list[Ended], list[Ended]]:
        """Note that a stream ends; return the rows to store, and the rows to remove."""
        if len(ended.last) > LAST_MAX:
            ended = Ended(scope=ended.scope, name=ended.name, next_number=ended.next_number)
        self._keep(ended)
        if len(self._known) <= KEPT:
            return [ended], []
        oldest = self._known.pop(next(iter(self._known)))
        number = max(self._floor.next_number, oldest.next_number)
        self._floor = Ended(scope="", name="", next_number=number)
        return [ended, self._floor], [oldest]

    def _keep(self, ended: Ended) -> None:
        name = (ended.scope, ended.name)
        if name == _FLOOR:
            self._floor = ended
            return
        self._known.pop(name, None)
        self._known[name] = ended
