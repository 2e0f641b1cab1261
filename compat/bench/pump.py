"""Publishing at full speed over one or several connections, with a bounded window.

Nothing is done for a single message: blocks of ready frames go out in sends of up to a
megabyte, and confirms are counted by their headers.
"""

import select
import ssl
from collections.abc import Sequence
from typing import Final

from compat.bench.confirms import ConfirmArena
from compat.bench.connection import Connection
from compat.bench.errors import BenchError
from compat.bench.frames import PublishBlock

# A server that confirms nothing for so long has lost something.
STALL_LIMIT_S: Final = 60.0
# Sending only when this part of the window is free keeps sends large.
SEND_WHEN_FREE: Final = 4
# No send is longer than a block.
SEND_BYTES_MAX: Final = 1 << 30


class Pump:
    """One connection's share of the publishing.

    Attributes:
        arena: The confirms that have come in.
    """

    def __init__(
        self,
        connection: Connection,
        block: PublishBlock,
        *,
        block_count: int,
        window: int,
        as_they_come: bool = False,
        send_bytes_max: int = SEND_BYTES_MAX,
    ) -> None:
        """Make a pump for so many sendings of a block.

        Args:
            connection: Open, its publishers declared; it becomes non-blocking.
            block: What is sent; not shared with another pump.
            block_count: Sendings in all.
            window: Messages that may be unconfirmed, rounded down to whole frames, at
                least one.
            as_they_come: Whether each confirm lets a message out at once, however few they are.
            send_bytes_max: The longest send.
        """
        self._socket = connection.socket
        self._socket.settimeout(0.0)
        self._block = block
        self.arena = ConfirmArena(block_count * block.message_count)
        self._window_frames = max(1, window // block.messages_per_frame)
        worth_it = max(1, self._window_frames // SEND_WHEN_FREE) * block.frame_bytes
        self._send_from = 1 if as_they_come else worth_it
        self._send_bytes_max = send_bytes_max
        # Sendings that `step` works towards, and the one that is under way.
        self._blocks_wanted = 0
        self._block_number = -1
        self._position = len(block.view)
        self._bytes_sent = 0

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def begin(self, block_count: int) -> None:
        """Let `step` go on for so many more sendings."""
        self._blocks_wanted += block_count

    @property
    def is_done(self) -> bool:
        """Return whether every message of the sendings begun is confirmed."""
        return self.arena.confirmed >= self._blocks_wanted * self._block.message_count

    def step(self) -> bool:
        """Send and receive once, without waiting; return whether anything moved."""
        allowed = self.sendable()
        sent = self._send(allowed) if allowed else 0
        return self.arena.receive(self._socket) or sent > 0

    def sendable(self) -> int:
        """Return how many bytes the window lets through now: 0, or enough to be worth it."""
        block = self._block
        confirmed_frames = self.arena.confirmed // block.messages_per_frame
        left = self._blocks_wanted * len(block.view) - self._bytes_sent
        free = (confirmed_frames + self._window_frames) * block.frame_bytes - self._bytes_sent
        allowed = min(free, left)
        return min(allowed, self._send_bytes_max) if allowed >= min(self._send_from, left) else 0

    def _send(self, allowed: int) -> int:
        block = self._block
        if self._position == len(block.view):
            self._block_number += 1
            block.stamp(self._block_number)
            self._position = 0
        try:
            sent = self._socket.send(block.view[self._position : self._position + allowed])
        except (BlockingIOError, ssl.SSLWantWriteError):
            return 0
        self._position += sent
        self._bytes_sent += sent
        return sent


def run(pumps: Sequence[Pump]) -> None:
    """Turn the pumps until each is done.

    Raises:
        BenchError: A server confirmed nothing for a minute, or refused messages.
        OSError: A connection broke.
    """
    poller = select.poll()
    for pump in pumps:
        poller.register(pump, select.POLLIN)
    active = [pump for pump in pumps if not pump.is_done]
    while active:
        moved = False
        for pump in active:
            moved |= pump.step()
        active = [pump for pump in active if not pump.is_done]
        if moved or not active:
            continue
        for pump in active:
            waits_for_room = select.POLLOUT if pump.sendable() else 0
            poller.modify(pump, select.POLLIN | waits_for_room)
        if not poller.poll(STALL_LIMIT_S * 1000):
            raise BenchError(f"nothing was confirmed for {STALL_LIMIT_S:.0f} s")
