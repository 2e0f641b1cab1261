"""Decides how much of the backlog one batch of a streaming query takes."""

from collections.abc import Mapping


def share(backlog: Mapping[str, int], budget: int) -> dict[str, int]:
    """Spread a budget of rows over streams, in proportion to what waits in each.

    Args:
        backlog: Rows that wait, by stream; none is negative.
        budget: Rows in all, at least 1.

    Returns:
        Rows of each stream: all that wait, or together the budget. A stream gets no more than waits
        in it, and at least 1 if the budget has one for each.
    """
    if sum(backlog.values()) <= budget:
        return dict(backlog)
    waiting = [stream for stream, count in backlog.items() if count]
    # A few rows beside a large backlog that never ends would wait for ever.
    least = 1 if budget >= len(waiting) else 0
    over = {stream: backlog[stream] - least for stream in waiting}
    total, spread = sum(over.values()), budget - least * len(waiting)
    shares = dict.fromkeys(backlog, 0)
    for stream in waiting:
        shares[stream] = least + over[stream] * spread // total
    left = budget - sum(shares.values())
    # What rounding left over goes to those that lost most by it.
    waiting.sort(key=lambda stream: (-(over[stream] * spread % total), stream))
    for stream in waiting[:left]:
        shares[stream] += 1
    return shares


def rows_for_bytes(backlog: Mapping[str, int], row_bytes: Mapping[str, float], budget: int) -> int:
    """Return how many rows of a backlog, taken in proportion, have so many bytes; at least 1.

    Args:
        backlog: Rows that wait, by stream.
        row_bytes: The estimated size of a row of each stream.
        budget: Bytes, at least 1.
    """
    rows = sum(backlog.values())
    size = sum(count * row_bytes[stream] for stream, count in backlog.items())
    if size <= budget:
        return max(1, rows)
    return max(1, int(rows * budget / size))


class Patience:
    """Waits for enough rows, but not for ever."""

    def __init__(self, rows_min: int | None, delay_s: float, now: float) -> None:
        """Begin to wait.

        Args:
            rows_min: Fewer rows make no batch; None: any do.
            delay_s: After so long without a batch fewer will do.
            now: Seconds of a clock that never goes back, here and in `is_due`.
        """
        self._rows_min = rows_min
        self._delay_s = delay_s
        self._since = now

    def is_due(self, rows: int, now: float) -> bool:
        """Tell whether so many rows make a batch; if they do, the wait begins anew."""
        is_enough = self._rows_min is None or rows >= self._rows_min
        if rows == 0 or not (is_enough or now - self._since >= self._delay_s):
            return False
        self._since = now
        return True
