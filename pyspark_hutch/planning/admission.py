"""Decides how much of the backlog one batch of a streaming query takes."""

from collections.abc import Mapping
from typing import Final

WHOLE: Final = 0.9
"""Least part of a share that a batch takes, so that it may end at a border of chunks."""


def share(
    backlog: Mapping[str, int],
    budget: int,
    sizes: Mapping[str, float] | None = None,
    passed: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Spread a budget over streams, in proportion to the rows that wait in each.

    Args:
        backlog: Rows that wait, by stream; none is negative.
        budget: Rows or bytes in all, at least 1.
        sizes: Bytes of a row of each stream, above 0; None: the budget is one of rows.
        passed: Batches in which a stream that waits has got nothing, by stream.

    Returns:
        Rows of each stream: all that wait, or together the budget, to a row. A stream gets no more
        than waits in it, and at least 1 as long as the budget has one for each. If it has not,
        those that waited longest get one, the first of them though it be larger than the budget.
    """
    size = dict.fromkeys(backlog, 1) if sizes is None else sizes
    weights = {stream: count * size[stream] for stream, count in backlog.items()}
    if sum(weights.values()) <= budget:
        return dict(backlog)
    shares = dict.fromkeys(backlog, 0)
    left: float = budget
    # A few rows beside a large backlog that never ends would wait for ever.
    for stream in sorted(
        (stream for stream, count in backlog.items() if count),
        key=lambda stream: (-(passed or {}).get(stream, 0), -weights[stream], stream),
    ):
        if left == budget or size[stream] <= left:
            shares[stream] = 1
            left -= size[stream]
    over = {stream: weights[stream] - size[stream] for stream, count in shares.items() if count}
    total = sum(over.values())
    if left <= 0 or not total:
        return shares
    spread = left
    lost = {}
    for stream, weight in over.items():
        rows, lost[stream] = divmod(weight * spread, total * size[stream])
        added = min(int(rows), backlog[stream] - 1)
        shares[stream] += added
        left -= added * size[stream]
    # What rounding left over goes to those that lost most by it.
    for stream in sorted(lost, key=lambda stream: (-lost[stream], stream)):
        if size[stream] <= left and shares[stream] < backlog[stream]:
            shares[stream] += 1
            left -= size[stream]
    return shares


class Patience:
    """Waits for enough rows, but not for ever."""

    def __init__(self, rows_min: int | None, delay_s: float, now: float) -> None:
        """Begin to wait.

        Args:
            rows_min: Fewer rows make no batch; None: any do.
            delay_s: Time without a batch after which fewer will do.
            now: Seconds of a clock that never goes back, here and in `is_due`.
        """
        self._rows_min = rows_min
        self._delay_s = delay_s
        self._since = now

    def is_due(self, rows: int, now: float) -> bool:
        """Return whether a number of rows makes a batch; if it does, the wait begins anew."""
        is_enough = self._rows_min is None or rows >= self._rows_min
        if rows == 0 or not (is_enough or now - self._since >= self._delay_s):
            return False
        self._since = now
        return True
