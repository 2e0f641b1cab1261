"""Log lines about refused logins and refused connections: some of them, however many there are.

A stranger chooses how often it is refused and what its name is, so one limit holds for the lines of
all protocols. The counts of `AttemptLedger` have every attempt.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from gateway.network.addresses import source_of

PERIOD_S: Final = 10.0
LINES_OF_ONE: Final = 10
"""The most lines in a period about one address."""
LINES_MAX: Final = 100
"""The most lines in a period about all addresses."""
NAME_BYTES_MAX: Final = 255
"""The most bytes of a name, or of another text that a client chose, in a line."""


def cut(text: str) -> str:
    """Return a text with at most `NAME_BYTES_MAX` bytes of UTF-8; dots show the cut."""
    if len(text) <= NAME_BYTES_MAX // 4:
        return text
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) <= NAME_BYTES_MAX:
        return text
    return raw[:NAME_BYTES_MAX].decode("utf-8", "ignore") + "…"


class Refusals:
    """The limit of all lines about refusals in one server."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        """Begin with a fresh period; `clock_s` is a clock that never goes back."""
        self._clock_s = clock_s
        self._begun_s = clock_s()
        self._said: Counter[str] = Counter()
        self._unsaid = 0

    def say(self, write: Callable[..., object], address: str, message: str, *args: object) -> None:
        """Write a line, or count it as one that was kept back.

        Where lines were kept back before it, it ends with their count, `unsaid=`.

        Args:
            write: Writes it, as `log.warning`.
            address: Of the client, without the port.
            message: As of a log line.
            args: The same; texts are cut.
        """
        now_s = self._clock_s()
        if now_s - self._begun_s >= PERIOD_S:
            self._begun_s = now_s
            self._said.clear()
        source = source_of(address)
        if self._said[source] >= LINES_OF_ONE or self._said.total() >= LINES_MAX:
            if not self._said[source]:
                del self._said[source]
            self._unsaid += 1
            return
        self._said[source] += 1
        values = [cut(each) if isinstance(each, str) else each for each in args]
        if self._unsaid:
            message += " unsaid=%d"
            values.append(self._unsaid)
            self._unsaid = 0
        write(message, *values)
