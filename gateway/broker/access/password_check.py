"""Checking passwords: off the event loop, a few at a time, and not again for a minute.

A wrong password, a user without one and an unknown user cost the same: what takes the time is one
argon2id, which is done for nothing where no hash asks for it. Success is remembered for a while,
under a key that only this process can make, so that clients that come back at once after a restart
of theirs cost one check a password.
"""

import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from gateway.broker.access.model import User
from gateway.broker.access.passwords import Algorithm, PasswordHash, decoy
from gateway.pending import Pending, start

log = logging.getLogger(__name__)

WAITING_MAX: Final = 256
"""Checks that run or wait; further ones are refused. Two threads do some fifty a second, and who
is not through a step of the handshake within its time limit is cut off."""
REMEMBERED_MAX: Final = 4096
REMEMBERED_S: Final = 60.0

_DECOY: Final = decoy()

RunInThread = Callable[[Callable[[], bool]], Pending[bool]]
"""Runs a function on a thread, at most two at a time; settles on the thread of the caller."""


class PasswordCheck:
    """Compares passwords with the hashes of users."""

    def __init__(self, run_in_thread: RunInThread, clock_s: Callable[[], float]) -> None:
        self._run_in_thread = run_in_thread
        self._clock_s = clock_s
        self._secret = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        self._running: dict[bytes, Pending[bool]] = {}
        self._generation = 0

    async def check(self, find: Callable[[], User | None], name: str, password: bytes) -> bool:
        """Tell whether a password is that of a user; False also where too many are asking.

        Args:
            find: Gives the user as it is now, None if there is none.
            name: The name that was given.
            password: Not empty.
        """
        key = self._key_of(name, password)
        if self._is_remembered(key):
            return True
        running = self._running.get(key)
        if running is None:
            if len(self._running) >= WAITING_MAX:
                log.warning("login refused, too many passwords wait to be checked user=%r", name)
                return False
            running = start(self._check(find, key, password))
            if not running.is_settled:
                self._running[key] = running
                running.when_settled(lambda: self._running.pop(key, None))
        return await running

    async def _check(self, find: Callable[[], User | None], key: bytes, password: bytes) -> bool:
        while True:
            user, generation = find(), self._generation
            hashed = None if user is None else user.password_hash
            is_right = await self._run_in_thread(partial(compare, hashed, password))
            if generation == self._generation:
                break
            # Users have changed meanwhile, and perhaps this one.
        if is_right:
            self._remembered[key] = self._clock_s() + REMEMBERED_S
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return is_right

    def forget(self) -> None:
        """Remember no success, and check again what is being checked: users have changed."""
        self._generation += 1
        self._remembered.clear()

    def _key_of(self, name: str, password: bytes) -> bytes:
        raw = name.encode("utf-8", "surrogateescape")
        content = len(raw).to_bytes(4) + raw + password
        return hmac.digest(self._secret, content, hashlib.sha256)

    def _is_remembered(self, key: bytes) -> bool:
        until_s = self._remembered.get(key)
        if until_s is None:
            return False
        if until_s <= self._clock_s():
            del self._remembered[key]
            return False
        return True


def compare(hashed: PasswordHash | None, password: bytes) -> bool:
    """Compare, on a thread; what is refused has cost one argon2id in any case."""
    if hashed is not None:
        is_right = hashed.matches(password)
        if is_right or hashed.algorithm is Algorithm.ARGON2ID:
            return is_right
    _DECOY.matches(password)
    return False
