"""Attempts to log in: counted by where they come from, and limited where too many guesses fail.

From one address so many passwords of one user may be wrong in a second; then none that comes from
there for that user is compared until the second is over, not even the right one: an answer would be
what the guessing is for. A password that found no room to be compared counts as wrong. An address
of IPv6 stands for its network of 64 bits, all of which one peer has.

Source: rabbit_core_metrics.erl, auth_attempt_succeeded/failed, for what is counted.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SOURCES_MAX: Final = 4096
"""Addresses that are remembered, each with a protocol; those longest silent are forgotten."""
USERS_MAX: Final = 4096
"""Users of addresses whose wrong passwords are remembered; those longest without one are forgotten,
and so may be guessed at afresh."""
FAILED_A_SECOND_MAX: Final = 100

_NAME_CHARACTERS: Final = 255


@dataclass(slots=True, kw_only=True)
class Attempts:
    """Counts of attempts to log in.

    Attributes:
        succeeded: Logged in.
        failed: Refused, for whatever reason.
        unread: Of those that failed: the password was not compared, since too many had failed
            before or too many wait.
    """

    succeeded: int = 0
    failed: int = 0
    unread: int = 0


@dataclass(slots=True)
class _Allowance:
    """Return how many more guesses may fail: full again within a second, below 0 if overdrawn.

    Passwords are compared for many at once, so more may fail than were left.
    """

    left: float
    at_s: float


class AttemptLedger:
    """Counts attempts and says when there were too many; bounded, however many try."""

    def __init__(
        self,
        clock_s: Callable[[], float],
        *,
        failed_a_second_max: int = FAILED_A_SECOND_MAX,
        sources_max: int = SOURCES_MAX,
    ) -> None:
        """Begin with no attempts.

        Args:
            clock_s: A clock that never goes back.
            failed_a_second_max: How many passwords of one user may be wrong in a second from one
                source; 0 sets no limit.
            sources_max: How many sources are remembered.
        """
        self._clock_s = clock_s
        self._most = failed_a_second_max
        self._sources_max = sources_max
        self._allowances: OrderedDict[tuple[str, str], _Allowance] = OrderedDict()
        self._by_source: OrderedDict[tuple[str, str], Attempts] = OrderedDict()
        self._by_protocol: dict[str, Attempts] = {}

    def is_over(self, source: str, user: str) -> bool:
        """Return whether too many passwords of a user, there or not, were wrong of late."""
        allowance = self._allowances.get(_key(source, user))
        return allowance is not None and self._filled(allowance).left < 1

    def succeeded(self, source: str, protocol: str) -> None:
        """Count a login."""
        for attempts in self._counters(source, protocol):
            attempts.succeeded += 1

    def failed(self, source: str, protocol: str, *, is_unread: bool = False) -> None:
        """Count a refusal; it does not count towards any limit."""
        for attempts in self._counters(source, protocol):
            attempts.failed += 1
            attempts.unread += is_unread

    def guessed_wrong(self, source: str, user: str) -> None:
        """Let a password that is wrong, or not known, count towards the limit of its user."""
        if not self._most:
            return
        key = _key(source, user)
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = self._allowances[key] = _Allowance(self._most, self._clock_s())
            if len(self._allowances) > USERS_MAX:
                self._allowances.popitem(last=False)
        else:
            self._allowances.move_to_end(key)
        allowance = self._filled(allowance)
        allowance.left = max(allowance.left - 1, -self._most)

    def by_source(self) -> list[tuple[str, str, Attempts]]:
        """Return source, protocol and attempts, those that tried last at the end."""
        return [(*key, attempts) for key, attempts in self._by_source.items()]

    def by_protocol(self) -> list[tuple[str, Attempts]]:
        """Return protocol and attempts, with those of sources that are forgotten."""
        return list(self._by_protocol.items())

    def reset(self) -> None:
        """Count from 0 again; limits that are reached stay so."""
        self._by_source.clear()
        self._by_protocol.clear()

    def _counters(self, source: str, protocol: str) -> tuple[Attempts, Attempts]:
        key = source, protocol
        attempts = self._by_source.get(key)
        if attempts is None:
            attempts = self._by_source[key] = Attempts()
            if len(self._by_source) > self._sources_max:
                self._by_source.popitem(last=False)
        else:
            self._by_source.move_to_end(key)
        return attempts, self._by_protocol.setdefault(protocol, Attempts())

    def _filled(self, allowance: _Allowance) -> _Allowance:
        now_s = self._clock_s()
        more = (now_s - allowance.at_s) * self._most
        allowance.left = min(allowance.left + more, float(self._most))
        allowance.at_s = now_s
        return allowance


def _key(source: str, user: str) -> tuple[str, str]:
    return source, user[:_NAME_CHARACTERS]
