"""What clients cost a server: CPU of its loop's longest turn, how that grows, and memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from types import TracebackType
from typing import Final, Self

from tests.integration.server import HutchServer
from tests.integration.turns import Seen, Turns
from tests.machine import is_within
from tests.waiting import wait_until

MIB: Final = 1 << 20
TURN_S_MAX: Final = 0.05
"""The most that the server may compute in one turn, whatever one client sends."""
GROWTH_BYTES_MAX: Final = 200 * MIB
"""The most that it may keep of what one client made it take."""
GROWTH_MAX: Final = 2.3
"""The most that twice as many items may cost of what the items cost."""
_TRIES: Final = 3
"""Both costs are measured so often, in turn: the machine is not always as fast."""
_ROUNDS: Final = 5
"""So often more is measured where it seems to grow too much; what grows by n² always does."""
_LITTLE_S: Final = 0.01
"""What costs so little cannot be measured to the half, and may grow."""
_GIVEN_BACK_S: Final = 10.0
IS_WHOLE: Final = float(os.environ.get("HUTCH_TEST_FACTOR") or 1) > 1
"""Whether the largest amounts are tried; else some that take little time."""
_LOOK_S: Final = 0.002


class Costs:
    """The costs of a block.

        with Costs(server) as costs:
            …something hostile…

    Leaving the block checks that no turn of the loop took more than `TURN_S_MAX` of CPU, unless
    it is not to be judged.

    Attributes:
        peak_bytes: How much memory the server took on at most.
        seen: What it computed.
    """

    def __init__(self, server: HutchServer, *, is_judged: bool = True) -> None:
        self._server = server
        self._is_judged = is_judged
        self.seen = Seen(0.0, 0.0, 0.0, 0.0)
        self._turns = Turns(server)
        self._before_bytes = 0
        self.peak_bytes = 0
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._before_bytes = self._server.rss_bytes()
        self._turns.__enter__()
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._watch.join()
        try:
            if kind is None:
                self.seen = self._turns.seen()
        finally:
            self._turns.__exit__(kind, error, trace)
        if self._is_judged:
            turn_s = self.seen.turn_s
            within = is_within(turn_s, TURN_S_MAX)
            assert within, f"the server computed for {turn_s:.3f} s in one turn"

    @property
    def growth_bytes(self) -> int:
        """How much more memory the server has now than before the block."""
        return self._server.rss_bytes() - self._before_bytes

    def wait_until_given_back(self) -> None:
        """Check that the server gives back what clients that are gone made it take."""
        try:
            wait_until(lambda: self.growth_bytes <= GROWTH_BYTES_MAX, _GIVEN_BACK_S)
        except AssertionError:
            growth = self.growth_bytes / MIB
            raise AssertionError(f"{growth:.1f} MiB are kept") from None

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self.peak_bytes = max(self.peak_bytes, self.growth_bytes)


@contextmanager
def given_back(server: HutchServer) -> Iterator[Costs]:
    """Check that the server gives back what the block makes it take; clients leave in the block."""
    costs = Costs(server, is_judged=False)
    with costs:
        yield costs
    costs.wait_until_given_back()


def amount(whole: int, quick: int) -> int:
    """Return the largest amount there may be, or one that takes little time."""
    return whole if IS_WHOLE else quick


def check_growth(cost: Callable[[int], Costs], most: int) -> None:
    """Check that `most` items cost about twice as much as half of them, and that no turn is long.

    What else the machine does only adds to a cost, and adds more where much memory is touched: the
    least of all costs so far is judged. Where a smaller one was lucky, the middle ones of a round
    are. A thread that holds Python's lock is as bad as a turn of the loop.

    Args:
        cost: Gives the costs of a number of items, which it has not judged.
        most: The larger number.
    """
    halves: list[Seen] = []
    wholes: list[Seen] = []
    for _ in range(_ROUNDS):
        for _ in range(_TRIES):
            halves.append(cost(most // 2).seen)
            wholes.append(cost(most).seen)
        if _is_even(min, halves, wholes) or _is_even(median, halves[-_TRIES:], wholes[-_TRIES:]):
            return
    said = (
        f"{half.all_s:.3f} s and {whole.all_s:.3f} s, {whole.held_s:.3f} s of it in one piece"
        for half, whole in zip(halves, wholes, strict=True)
    )
    raise AssertionError(f"{most // 2} and {most} items took {'; '.join(said)}")


def _is_even(
    judged: Callable[[Iterable[float]], float], halves: Sequence[Seen], wholes: Sequence[Seen]
) -> bool:
    """Return whether twice as many items took about twice as long, in no long turn."""
    half_s, whole_s = (judged([each.all_s for each in seen]) for seen in (halves, wholes))
    is_short = is_within(judged([each.held_s for each in wholes]), TURN_S_MAX)
    return is_short and whole_s <= max(GROWTH_MAX * half_s, _LITTLE_S)
