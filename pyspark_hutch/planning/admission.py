"""How much of the backlog one batch of a streaming query takes."""

from collections.abc import Mapping


def share(backlog: Mapping[str, int], budget: int) -> dict[str, int]:
    """Spread a budget of rows over streams, in proportion to what waits in each.

    Args:
        backlog: Rows that wait, by stream; none is negative.
        budget: Rows in all, at least 1.

    Returns:
        Rows of each stream, together at most the budget, and at least 1 in all if any row waits.
        A stream gets no more than waits in it.
    """
    total = sum(backlog.values())
    if total <= budget:
        return dict(backlog)
    shares = {stream: count * budget // total for stream, count in backlog.items()}
    left = budget - sum(shares.values())
    # What rounding left over goes to those that lost most by it, so that none starves.
    by_loss = sorted(backlog, key=lambda stream: (-(backlog[stream] * budget % total), stream))
    for stream in by_loss[:left]:
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
