"""Damaged frames over many connections of a running server, which must not mind them.

    python -m tests.integration.network_fuzz [--frames 10000000] [--connections 64] [--state FILE]

A neighbour's traffic goes on all the time, and the server's memory and the CPU of its turns are
watched. With a state file the count goes on where the last run was stopped (by Ctrl-C, for
instance), with other damage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import assert_no_traceback
from tests.integration.damage import VALID_FRAMES, damage
from tests.integration.neighbour import MIB, Neighbour, refuse_logins
from tests.integration.server import HutchServer
from tests.machine import is_within
from tests.waiting import HANG_S

FRAMES: Final = 10_000_000
CONNECTIONS: Final = 64
GROWTH_BYTES_MAX: Final = 20 * MIB
STREAMS_MAX: Final = 30
TURN_S_MAX: Final = 0.05
"""CPU of one turn, for which all other clients wait."""
_BATCH: Final = 5
_SLICE: Final = 100_000
_CLOSE: Final = bytes.fromhex("0016 0001 00000001 00")
"""How a Close of the server begins."""
# Damaged names make streams, which cost memory by right: a limit keeps them few.
_DEFINITIONS: Final = {
    "vhosts": [{"name": "/"}],
    "users": [],
    "vhost_limits": [{"vhost": "/", "limits": {"max-queues": STREAMS_MAX}}],
}


@dataclass(slots=True)
class Count:
    """How far it came.

    Attributes:
        rounds: The seed of what comes next.
        frames: Frames sent.
        ended: Connections that the server ended because of one of them.
        longest_turn_s: CPU of the server's longest turn, in seconds.
    """

    rounds: int = 0
    frames: int = 0
    ended: int = 0
    longest_turn_s: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether no turn kept the neighbour waiting."""
        return is_within(self.longest_turn_s, TURN_S_MAX)


@contextlib.contextmanager
def victim(directory: Path) -> Iterator[HutchServer]:
    """A server with one stream, that makes no more than some streams."""
    definitions = directory / "definitions.json"
    definitions.write_text(json.dumps(_DEFINITIONS))
    settings = {
        "HUTCH_DEFINITIONS__FILE": str(definitions),
        "HUTCH_STREAM__CLOSE_TIMEOUT_MS": "1000",
        "HUTCH_STREAM__REFUSAL_DELAY_MS": "100",
        # All come from one address, and the neighbour too.
        "HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "0",
    }
    with HutchServer(directory / "data", "--durability", "os", environment=settings) as server:
        with Client.opened(*server.endpoint) as client:
            client.create("orders")
        refuse_logins(server)
        yield server
        server.terminate()
        assert_no_traceback(server)


class Attack:
    """Connections that send what is damaged, and are made anew when the server ends them."""

    def __init__(
        self, server: HutchServer, count: Count, connections: int, *, batch: int = _BATCH
    ) -> None:
        self._server = server
        self._batch = batch
        self._count = count
        self._clients: list[Client | None] = [None] * connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            if client is not None:
                client.disconnect()

    def send(self, frames: int) -> Iterator[None]:
        """Send so many frames, in rounds over the connections; stops after some frames each."""
        end = self._count.frames + frames
        while self._count.frames < end:
            chance = random.Random(self._count.rounds)
            self._count.rounds += 1
            for number in range(len(self._clients)):
                self._send_batch(number, chance)
                yield

    def _send_batch(self, number: int, chance: random.Random) -> None:
        client = self._clients[number]
        if client is None:
            client = self._clients[number] = self._opened(chance)
        frames: list[bytes] = []
        while len(frames) < self._batch and not _is_unfinished(frames):
            frames.append(self._frame(chance))
        self._count.frames += len(frames)
        is_alive = _exchange(client, b"".join(frames))
        self._count.ended += not is_alive
        # What came after half a large frame would be taken for the rest of it.
        if not is_alive or _is_unfinished(frames):
            client.disconnect()
            self._clients[number] = None

    def _opened(self, chance: random.Random) -> Client:
        if chance.randrange(8) == 0:
            return Client(*self._server.endpoint)  # a stranger
        client = Client.opened(*self._server.endpoint)
        client.declare(
            1, "orders", f"damaged-{chance.randrange(5)}" if chance.random() < 0.5 else ""
        )
        client.subscribe(1, "orders", FIRST, credit=2)
        return client

    def _frame(self, chance: random.Random) -> bytes:
        kind = chance.randrange(20)
        if kind == 0:
            return chance.randbytes(chance.randint(0, 30))
        frame = bytearray(chance.choice(VALID_FRAMES))
        if kind == 1:
            frame[4:] = chance.randbytes(chance.randint(0, 60))
        elif kind > 15:
            damage(frame, chance)
        size = len(frame) if chance.randrange(50) else chance.choice((0, 3, 1 << 20, 0xFFFFFFFF))
        return struct.pack(">I", size) + bytes(frame)


def _is_unfinished(frames: list[bytes]) -> bool:
    """Whether the last of some frames announces more than there is of it."""
    return bool(frames) and len(frames[-1]) - 4 < int.from_bytes(frames[-1][:4])


def _exchange(client: Client, data: bytes) -> bool:
    """Send, and throw away what has come so far; False if the server has ended the connection."""
    received = b""
    try:
        client.socket.settimeout(HANG_S)
        client.socket.sendall(data)
        client.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while piece := client.socket.recv(1 << 18):
                received += piece
            return False
    except ConnectionError:
        return False
    return _CLOSE not in received


def fuzz(server: HutchServer, count: Count, *, frames: int, connections: int) -> Iterator[None]:
    """Send frames beside a neighbour; asserts that it and the server's memory are unharmed."""
    with (
        Neighbour(server, growth_bytes_max=GROWTH_BYTES_MAX) as neighbour,
        Attack(server, count, connections) as attack,
    ):
        yield from attack.send(frames)
        count.longest_turn_s = max(count.longest_turn_s, neighbour.longest_turn_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Send what is left; exit status 0 if the server stood it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--state", type=Path, help="where to go on, and to note how far it came")
    options = parser.parse_args(arguments)
    state: Path | None = options.state
    count = Count()
    if state is not None and state.exists():
        count = Count(**json.loads(state.read_text()))

    def save() -> None:
        if state is not None:
            state.parent.mkdir(parents=True, exist_ok=True)
            new = state.with_suffix(".new")
            new.write_text(json.dumps(asdict(count)))
            new.replace(state)
        sys.stdout.write(
            f"{count.frames} frames, {count.ended} connections ended, "
            f"the longest turn {count.longest_turn_s * 1e3:.0f} ms\n"
        )
        sys.stdout.flush()

    try:
        with tempfile.TemporaryDirectory() as folder, victim(Path(folder)) as server:
            # The first frames fill pools and caches, which is no growth.
            warm = Attack(server, Count(), options.connections)
            with warm:
                for _ in warm.send(_SLICE // 10):
                    pass
            while count.frames < options.frames:
                left = min(_SLICE, options.frames - count.frames)
                for _ in fuzz(server, count, frames=left, connections=options.connections):
                    pass
                save()
    except KeyboardInterrupt:
        sys.stdout.write("stopped; the same command goes on from here\n")
    save()
    return 0 if count.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
