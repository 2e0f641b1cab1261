"""Checking passwords: off the event loop, a few at a time, and not again for a minute.

A wrong password, a user without one and an unknown user cost the same: what takes the time is one
argon2id, which is done for nothing where no hash asks for it. Success is remembered for a while,
under a key that only this process can make, so that clients that come back at once after a restart
of theirs cost one check a password. What waits is served by where it comes from and for which user,
in turn: one peer with many passwords does not keep others from logging in.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.broker.access.fair_queue import FairQueue
from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash, decoy
from gateway.pending import Pending, run

AT_ONCE: Final = 2
"""Checks that run at a time: each takes a thread and 19 MiB."""
WAITING_MAX: Final = 256
"""Most checks that wait; beyond, the source with the most waiting is refused. Two threads do some
fifty a second, and a client that misses the handshake's time limit is cut off."""
REMEMBERED_MAX: Final = 4096
REMEMBERED_S: Final = 60.0

_DECOY: Final = decoy()

RunInThread = Callable[[Callable[[], bool]], Pending[bool]]
"""Runs a function on a thread; settles on the thread of the caller."""


@dataclass(slots=True, eq=False)
class _Check:
    """A password that is compared, or waits for that."""

    find: Callable[[], User | None]
    password: bytes = field(repr=False)
    is_right: Pending[bool] = field(default_factory=Pending)


class TooManyWait(Exception):
    """A password was not compared: too many wait for that."""


class _Memory:
    """Keys that are remembered for a while: the latest so many."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._until_s: OrderedDict[bytes, float] = OrderedDict()

    def add(self, key: bytes) -> None:
        self._until_s[key] = self._clock_s() + REMEMBERED_S
        self._until_s.move_to_end(key)
        if len(self._until_s) > REMEMBERED_MAX:
            self._until_s.popitem(last=False)

    def has(self, key: bytes) -> bool:
        until_s = self._until_s.get(key)
        if until_s is not None and until_s <= self._clock_s():
            del self._until_s[key]
            return False
        return until_s is not None

    def clear(self) -> None:
        self._until_s.clear()


class PasswordCheck:
    """Compares passwords with the hashes of users."""

    def __init__(self, run_in_thread: RunInThread, clock_s: Callable[[], float]) -> None:
        self._run_in_thread = run_in_thread
        self._secret = secrets.token_bytes(32)
        self._right = _Memory(clock_s)
        self._right_from_there = _Memory(clock_s)
        self._checks: dict[bytes, _Check] = {}
        self._waiting: FairQueue[bytes] = FairQueue(WAITING_MAX)
        self._running = 0
        self._generation = 0

    def is_known(self, name: str, password: bytes, source: str) -> bool:
        """Tell whether a password was found right of late, and for this very source."""
        return self._right_from_there.has(self._key_of(name, password, source))

    async def check(
        self, find: Callable[[], User | None], name: str, password: bytes, source: str = ""
    ) -> bool:
        """Tell whether a password is that of a user.

        Args:
            find: Gives the user as it is now, None if there is none.
            name: The name that was given.
            password: Not empty.
            source: Where the question comes from; each has its turn.

        Raises:
            TooManyWait: It was not compared.
        """
        generation = self._generation
        is_right = await self._look(find, name, password, source)
        if is_right and generation == self._generation:
            self._right_from_there.add(self._key_of(name, password, source))
        return is_right

    async def _look(
        self, find: Callable[[], User | None], name: str, password: bytes, source: str
    ) -> bool:
        key = self._key_of(name, password)
        if self._right.has(key):
            return True
        check = self._checks.get(key)
        if check is not None:
            self._waiting.join(key, source, name)
            return await check.is_right
        check = self._checks[key] = _Check(find, password)
        crowded_out = self._waiting.add(key, source, name)
        if crowded_out is not None:
            self._checks.pop(crowded_out).is_right.settle(TooManyWait())
        self._begin()
        return await check.is_right

    def _begin(self) -> None:
        while self._running < AT_ONCE and (key := self._waiting.take()) is not None:
            self._running += 1
            run(self._compare(self._checks[key], key), partial(self._done, key))

    async def _compare(self, check: _Check, key: bytes) -> bool:
        while True:
            user, generation = check.find(), self._generation
            hashed = None if user is None else user.password_hash
            is_right = await self._run_in_thread(partial(compare, hashed, check.password))
            if generation == self._generation:
                break
            # Users have changed meanwhile, and perhaps this one.
        if is_right:
            self._right.add(key)
        return is_right

    def _done(self, key: bytes, outcome: bool | BaseException) -> None:  # noqa: FBT001
        self._running -= 1
        check = self._checks.pop(key)
        self._begin()
        check.is_right.settle(outcome)

    def forget(self) -> None:
        """Remember no success, and check again what is being checked: users have changed."""
        self._generation += 1
        self._right.clear()
        self._right_from_there.clear()

    def _key_of(self, name: str, password: bytes, source: str = "") -> bytes:
        parts = (name.encode("utf-8", "surrogateescape"), source.encode())
        content = b"".join(len(part).to_bytes(4) + part for part in parts) + password
        return hmac.digest(self._secret, content, hashlib.sha256)


def compare(hashed: PasswordHash | None, password: bytes) -> bool:
    """Compare, on a thread; what is refused has cost one argon2id in any case."""
    if hashed is not None:
        is_right = hashed.matches(password)
        if is_right or hashed.algorithm is Algorithm.ARGON2ID:
            return is_right
    _DECOY.matches(password)
    return False
