"""Clients that break Pravega's wire protocol, at a steady pace, in a process of their own.

python -m compat.bench.bad_clients HOST PORT    until its input ends
"""

import itertools
import select
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import UUID

from compat.bench.connection import Address
from hutch.pravega.codec import HEAD, encode
from hutch.pravega.messages import AppendBlockEnd, Hello, ReadSegment

PAUSE_S: Final = 0.002
HELD: Final = 200
"""Connections that are open at a time."""
_SEGMENT: Final = "bench/none/0.#epoch.0"
_BAD: Final = (
    HEAD.pack(5, 0x7FFF_FFFF),
    HEAD.pack(1, -1),
    HEAD.pack(4711, 8) + bytes(8),
    encode(AppendBlockEnd(UUID(int=7), 8, bytes(8), 1, 1, 1)),
    encode(Hello(17, 5)) + HEAD.pack(2, 1 << 20) + bytes(100),
    encode(Hello(17, 5))[:9],
    b"".join(encode(ReadSegment(_SEGMENT, 0, 8, "", number)) for number in range(20)),
    bytes(range(256)),
)


@contextmanager
def bad_clients(address: Address) -> Iterator[None]:
    """Let bad clients come to a server while the block lasts."""
    command = [sys.executable, "-m", __name__, address.host, str(address.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # they have begun
        try:
            yield
        finally:
            process.communicate(timeout=10)


def main() -> None:
    """Come again and again until standard input ends."""
    host, port = sys.argv[1:]
    held: deque[socket.socket] = deque()
    for number, bad in enumerate(itertools.cycle(_BAD)):
        with suppress(OSError):
            client = socket.create_connection((host, int(port)), timeout=5)
            held.append(client)
            client.sendall(bad)
        if number == HELD:
            sys.stdout.write("all have come\n")
            sys.stdout.flush()
        if len(held) > HELD:
            held.popleft().close()
        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
            return


if __name__ == "__main__":
    main()
