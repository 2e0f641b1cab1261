"""Bounds of staging: the settings, and the use that all virtual hosts make of them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.broker.errors import PreconditionFailed
from gateway.pending import Pending

INLINE_BYTES_MAX: Final = 256 * 1024
"""Largest stage, in bytes, that lies in its row; a larger one has a segment of its own."""
WAY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of one stage on their way to the store; the client that sends more has to wait."""
ALL_WAY_BYTES_MAX: Final = 64 * 1024 * 1024
"""The same for all stages together."""
MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of small stages that are kept in memory; beyond that even small ones get a segment."""
STAGES_MAX: Final = 20_000
"""Stages of one user in one virtual host: two commits of the largest size."""
COMMIT_STAGES_MAX: Final = 10_000
"""Stages of one commit. If each is for a stream of its own, with a name of 255 bytes, their rows
have 3 MB of the 16 MiB of one update. If all are for one stream, its row has 80 KB of 1 MiB."""
CHUNKS_MAX: Final = 100_000
"""Chunks of one stage, and of a commit's part for one stream: while the part enters, each has some
130 bytes in memory, and all become visible in one turn."""
APPEND_ROOM_BYTES: Final = 64 * 1024 * 1024
"""Bytes of parts that enter their streams at a time, in all virtual hosts."""
LAST_STAGES_MAX: Final = 100_000
"""Stages of commits without a sink that are remembered, 10 commits of the largest size."""
SINKS_MAX: Final = 100_000
"""Sinks of a virtual host that have a row."""
USER_SINKS_MAX: Final = 1_000
"""Those of one user: no user takes the room of all others."""
SINK_BYTES_MAX: Final = 1_024
"""The longest name of a sink."""

_HOUR_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class StagingLimits:
    """The settings of staging.

    Attributes:
        staged_bytes_max: Bytes that one user may have staged, in all virtual hosts.
        stage_expiry_s: Seconds after its last use in which a stage is kept.
        sink_expiry_s: Seconds after its last commit in which a sink is remembered.
    """

    staged_bytes_max: int = 10 * 1024**3
    stage_expiry_s: int = 24 * _HOUR_S
    sink_expiry_s: int = 90 * 24 * _HOUR_S


class StagingRoom:
    """Room for a number of bytes, given in the order in which it is asked for."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._is_giving = False
        self._waiting: deque[tuple[int, Pending[None]]] = deque()

    async def take(self, size: int) -> None:
        """Wait for room; alone, any size has it."""
        if self._waiting or not self._has(size):
            pending: Pending[None] = Pending()
            self._waiting.append((size, pending))
            await pending
        else:
            self._taken += size

    def give(self, size: int) -> None:
        """Release room."""
        self._taken -= size
        if self._is_giving:  # one that gives back at once; a great many would nest too deep
            return
        self._is_giving = True
        while self._waiting and self._has(self._waiting[0][0]):
            next_size, pending = self._waiting.popleft()
            self._taken += next_size
            pending.settle(None)
        self._is_giving = False

    def _has(self, size: int) -> bool:
        return not self._taken or self._taken + size <= self._bytes_max


class Usage:
    """Bytes that are staged now, in all virtual hosts.

    Attributes:
        limits: The settings.
        memory_bytes: Bytes of stages that are held in memory.
        append_room: Room for parts that are read to be appended to their streams.
    """

    def __init__(self, limits: StagingLimits | None = None) -> None:
        self.limits = limits or StagingLimits()
        self.memory_bytes = 0
        self.append_room = StagingRoom(APPEND_ROOM_BYTES)
        self._scratch = bytearray()
        self._staged: dict[str, int] = {}
        self._way_bytes = 0
        self._waiting: list[tuple[Callable[[], bool], Pending[None]]] = []

    def scratch(self, size: int) -> bytearray:
        """Return a buffer for one turn, used again and again: fresh memory costs more than a copy.

        It has `size` bytes or more, with whatever is in them.
        """
        if len(self._scratch) < size:
            self._scratch = bytearray(size)
        return self._scratch

    def of(self, user: str) -> int:
        """Return the bytes that a user has staged."""
        return self._staged.get(user, 0)

    def require(self, user: str, size: int) -> None:
        """Demand room for more bytes of a user. Raises PreconditionFailed."""
        if self.of(user) + size > self.limits.staged_bytes_max:
            raise PreconditionFailed(
                f"user {user!r} has {self.of(user)} bytes staged and "
                f"pipeline.staged_bytes_max is {self.limits.staged_bytes_max}"
            )

    def add(self, user: str, size: int) -> None:
        """Count bytes of a user; `size` is below 0 for bytes that are gone."""
        left = self.of(user) + size
        if left:
            self._staged[user] = left
        else:
            self._staged.pop(user, None)

    def sent(self, size: int) -> None:
        """Count bytes that go to the store; `size` is below 0 for bytes that have come there."""
        self._way_bytes += size
        if size < 0 and self._waiting:
            self.look_again()

    def look_again(self) -> None:
        """Let go on those for which there is room now."""
        waiting, self._waiting = self._waiting, []
        for has_room, pending in waiting:
            if has_room() and self._way_bytes <= ALL_WAY_BYTES_MAX:
                pending.settle(None)
            else:
                self._waiting.append((has_room, pending))

    async def room(self, has_room: Callable[[], bool]) -> None:
        """Wait until `has_room`, and until all stages together have room."""
        if not has_room() or self._way_bytes > ALL_WAY_BYTES_MAX:
            pending: Pending[None] = Pending()
            self._waiting.append((has_room, pending))
            await pending
