"""Checking passwords: off the event loop, a few at a time, and not again for an hour.

A wrong password, a user without one and an unknown user cost the same: what takes the time is one
argon2id, which is done for nothing where no hash asks for it. Success is remembered for an hour
after its last use, under a key that only this process can make, and with the hash that the password
fits: it counts while that is still the user's hash. So a client that was let in of late never
waits. What waits is served by where it comes from and for which user, in turn: one peer with many
passwords does not keep others from logging in.
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
REMEMBERED_S: Final = 3600.0

_DECOY: Final = decoy()

RunInThread = Callable[[Callable[[], bool]], Pending[bool]]
"""Runs a function on a thread; settles on the thread of the caller."""


@dataclass(slots=True, eq=False)
class _Check:
    """A password that is compared, or waits for that."""

    find: Callable[[], User | None]
    password: bytes = field(repr=False)
    fits: Pending[PasswordHash | None] = field(default_factory=Pending)
    """The user's hash that the password is right for; None if it is wrong."""


class TooManyWait(Exception):
    """A password was not compared: too many wait for that."""


class _Memory:
    """Keys of passwords that were right, each with its hash: those that were used last."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._known: OrderedDict[bytes, tuple[PasswordHash, float]] = OrderedDict()

    def add(self, key: bytes, hashed: PasswordHash) -> None:
        self._known[key] = hashed, self._clock_s() + REMEMBERED_S
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    def has(self, key: bytes, hashed: PasswordHash | None) -> bool:
        """Return whether a password fits the hash that its user has now; its hour begins anew."""
        fits, until_s = self._known.get(key, (None, 0.0))
        if fits is None:
            return False
        if fits != hashed or until_s <= self._clock_s():
            del self._known[key]
            return False
        self.add(key, fits)
        return True


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

    def is_known(
        self, find: Callable[[], User | None], name: str, password: bytes, source: str
    ) -> bool:
        """Return whether a password was right for this very source of late, and still is."""
        return self._right_from_there.has(self._key_of(name, password, source), _hash_of(find()))

    async def check(
        self, find: Callable[[], User | None], name: str, password: bytes, source: str = ""
    ) -> bool:
        """Return whether a password is that of a user.

        Args:
            find: Returns the user as it is now, None if there is none.
            name: The name that was given.
            password: Not empty.
            source: Where the question comes from; each has its turn.

        Raises:
            TooManyWait: It was not compared.
        """
        fits = await self._look(find, name, password, source)
        if fits is None:
            return False
        self._right_from_there.add(self._key_of(name, password, source), fits)
        return True

    async def _look(
        self, find: Callable[[], User | None], name: str, password: bytes, source: str
    ) -> PasswordHash | None:
        key, hashed = self._key_of(name, password), _hash_of(find())
        if self._right.has(key, hashed):
            return hashed
        check = self._checks.get(key)
        if check is not None:
            self._waiting.join(key, source, name)
            return await check.fits
        check = self._checks[key] = _Check(find, password)
        crowded_out = self._waiting.add(key, source, name)
        if crowded_out is not None:
            self._checks.pop(crowded_out).fits.settle(TooManyWait())
        self._begin()
        return await check.fits

    def _begin(self) -> None:
        while self._running < AT_ONCE and (key := self._waiting.take()) is not None:
            self._running += 1
            run(self._compare(self._checks[key], key), partial(self._done, key))

    async def _compare(self, check: _Check, key: bytes) -> PasswordHash | None:
        while True:
            hashed = _hash_of(check.find())
            is_right = await self._run_in_thread(partial(compare, hashed, check.password))
            if hashed == _hash_of(check.find()):
                break
            # The user has another password since then.
        if hashed is None or not is_right:
            return None
        self._right.add(key, hashed)
        return hashed

    def _done(self, key: bytes, outcome: PasswordHash | BaseException | None) -> None:
        self._running -= 1
        check = self._checks.pop(key)
        self._begin()
        check.fits.settle(outcome)

    def _key_of(self, name: str, password: bytes, source: str = "") -> bytes:
        parts = (name.encode("utf-8", "surrogateescape"), source.encode())
        content = b"".join(len(part).to_bytes(4) + part for part in parts) + password
        return hmac.digest(self._secret, content, hashlib.sha256)


def _hash_of(user: User | None) -> PasswordHash | None:
    return None if user is None else user.password_hash


def compare(hashed: PasswordHash | None, password: bytes) -> bool:
    """Compare, on a thread; a refusal has cost one argon2id in any case."""
    if hashed is not None:
        is_right = hashed.matches(password)
        if is_right or hashed.algorithm is Algorithm.ARGON2ID:
            return is_right
    _DECOY.matches(password)
    return False
