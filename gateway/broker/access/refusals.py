"""Log lines about refused logins and refused connections: some of them, however many there are.

A client chooses how often it is refused, and by which name, so one limit holds for the lines of
all protocols. The counts of `AttemptLedger` have every attempt.
"""

import logging
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.network.addresses import source_of

log = logging.getLogger(__name__)

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


def in_command(user: str) -> str:
    """Return a user's name as a command of a log line has it; USER where it cannot be typed."""
    return shlex.quote(user) if user.isprintable() else "USER"


class Refusals:
    """The limit of all lines about refusals in one server."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        """Begin with a fresh period; `clock_s` is a clock that never goes back."""
        self._clock_s = clock_s
        self._begun_s = clock_s()
        self._said: Counter[str] = Counter()
        self._said_once: set[tuple[str, str]] = set()
        self._unsaid = 0

    def say(
        self,
        write: Callable[..., object],
        address: str,
        message: str,
        *args: object,
        once: str = "",
    ) -> None:
        """Write a line, or count it as one that was kept back.

        Where lines were kept back before it, it ends with their count, `unsaid=`.

        Args:
            write: Writes it, as `log.warning`.
            address: Of the client, without the port.
            message: As of a log line.
            args: The same; texts are cut.
            once: Subject of which there is one line in a period about an address; empty: any
                number.
        """
        now_s = self._clock_s()
        if now_s - self._begun_s >= PERIOD_S:
            self._begun_s = now_s
            self._said.clear()
            self._said_once.clear()
        source = source_of(address)
        is_said = bool(once) and (source, once) in self._said_once
        is_too_much = self._said.get(source, 0) >= LINES_OF_ONE or self._said.total() >= LINES_MAX
        if is_said or is_too_much:
            self._unsaid += 1
            return
        self._said[source] += 1
        if once:
            self._said_once.add((source, once))
        values = [cut(each) if isinstance(each, str) else each for each in args]
        if self._unsaid:
            message += " unsaid=%d"
            values.append(self._unsaid)
            self._unsaid = 0
        write(message, *values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLogin:
    """A login that was refused, or did not come, at any port.

    Attributes:
        address: Of the client, without the port.
        protocol: Word of the port.
        reason: Text for the administrator.
        helps: The setting or the command that lets such a login pass.
        user: As the client named it; empty if it did not.
        mechanism: The same.
        peer: Address and port, where they are known.
    """

    address: str
    protocol: str
    reason: str
    helps: str
    user: str = ""
    mechanism: str = ""
    peer: str = ""

    def tell(self, say: Callable[..., object]) -> None:
        """Write one line about the address and the protocol in a period; `say` is of Refusals."""
        say(
            log.warning,
            self.address,
            "login refused peer=%s protocol=%s user=%r mechanism=%r reason=%s helps=%s",
            self.peer or self.address,
            self.protocol,
            self.user,
            self.mechanism,
            self.reason,
            self.helps,
            once=f"login {self.protocol}",
        )
