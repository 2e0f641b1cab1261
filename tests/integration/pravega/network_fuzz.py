"""Damaged requests at all ports of a store that serves, beside a client that behaves.

    python -m tests.integration.pravega.network_fuzz [--seconds 600] [--seed 1]

The client's events are all there at the end, once and in order, through kills of the server on the
way; the server's memory stays within a bound, its log has no traceback, and its store is whole.
"""

from __future__ import annotations

import argparse
import random
import re
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import grpc

from gateway.pravega.controller.rpc import controller_pb2 as pb
from tests.controller_client import SERVICE
from tests.fuzz.inputs import kept, mutated
from tests.integration.administrator import hutch
from tests.integration.conftest import assert_no_traceback
from tests.integration.server import StoreProcess
from tests.pravega_client import WireClient, event
from tests.waiting import HANG_S

SECONDS: Final = 600.0
GROWTH_BYTES_MAX: Final = 96 << 20
GOOD: Final = "good/stream/0.#epoch.0"
_OPEN: Final = 60
"""Hostile connections that are held open, whatever they wait for."""
_GOOD_EACH: Final = 5
_KILL_EACH: Final = 20_000
_SETTLED: Final = 500
"""Rounds after which memory is looked at first."""
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PORTS: Final = re.compile(r"\b(store|early|controller)=\S+?:(\d+)")


class WellBehaved:
    """A client that appends numbered events, one at a time."""

    def __init__(self, server: StoreProcess) -> None:
        self._server = server
        self.count = 0
        self._client = WireClient(*server.store)
        self._client.create(GOOD)
        self._client.set_up(GOOD)

    def append(self) -> None:
        """Append the next event; it is stored then."""
        self._client.append(self.count + 1, _event(self.count))
        self.count += 1

    def come_back(self) -> None:
        """Go on after the server was killed. Nothing that was acknowledged is missing."""
        self._client.close()
        self._client = WireClient(*self._server.store)
        assert self._client.set_up(GOOD).last_event_number == self.count
        self.check()

    def check(self) -> None:
        """Compare everything that is stored with what was acknowledged."""
        wanted = b"".join(map(_event, range(self.count)))
        assert self._client.content(GOOD) == wanted

    def close(self) -> None:
        self._client.close()


def _event(number: int) -> bytes:
    return event(b"%d" % number)


class Attack:
    """Connections that send what is damaged; the same for the same seed."""

    def __init__(self, server: StoreProcess, seed: int) -> None:
        self._ports = {name: int(port) for name, port in _PORTS.findall(server.ready_line)}
        self._chance = random.Random(seed)
        self._open: deque[socket.socket] = deque()
        self._damaged = {
            "store": mutated([data for _, data in kept("pravega")], seed),
            "early": mutated([data for _, data in kept("pravega-early")], seed),
            "controller": _damaged_http(seed),
        }
        self._requests = mutated(_requests(), seed)
        self._channel: grpc.Channel | None = None

    def strike(self) -> None:
        """Send one more damaged thing somewhere."""
        if self._chance.random() < 0.1:
            self._call()
            return
        name = self._chance.choice(("store", "store", "store", "early", "early", "controller"))
        hostile = socket.create_connection(("127.0.0.1", self._ports[name]), timeout=HANG_S)
        self._open.append(hostile)
        with suppress(ConnectionError):
            hostile.sendall(next(self._damaged[name]))
        if self._chance.random() < 0.5:
            self._close(hostile)
            self._open.pop()
        elif len(self._open) > _OPEN:
            self._close(self._open.popleft())

    def _call(self) -> None:
        """Make a call with a damaged request; any status will do, as long as one comes."""
        if self._channel is None:
            self._channel = grpc.insecure_channel(f"127.0.0.1:{self._ports['controller']}")
        path = f"/{SERVICE.full_name}/{self._chance.choice(SERVICE.methods).name}"
        method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        call = method.future(next(self._requests), timeout=HANG_S)
        assert call.code() is not grpc.StatusCode.DEADLINE_EXCEEDED

    @staticmethod
    def _close(hostile: socket.socket) -> None:
        hostile.setblocking(False)  # noqa: FBT003  # the name of the call says it
        with suppress(OSError):
            hostile.recv(1 << 16)
        hostile.close()

    def close(self) -> None:
        while self._open:
            self._close(self._open.popleft())
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _requests() -> list[bytes]:
    """Return whole requests of the controller's calls, to be damaged."""
    stream = pb.StreamInfo(scope="scope", stream="stream")
    scaling = pb.ScalingPolicy(minNumSegments=2)
    keys = [pb.ScaleRequest.KeyRangeEntry(start=0.0, end=1.0)]
    requests = (
        pb.ScopeInfo(scope="scope"),
        stream,
        pb.StreamConfig(streamInfo=stream, scalingPolicy=scaling),
        pb.SegmentId(streamInfo=stream, segmentId=1),
        pb.StreamCut(streamInfo=stream, cut={0: 8}),
        pb.ScaleRequest(streamInfo=stream, sealedSegments=[0, 1], newKeyRanges=keys),
        pb.CreateTxnRequest(streamInfo=stream, lease=10_000),
    )
    return [each.SerializeToString() for each in requests]


def _damaged_http(seed: int) -> Iterator[bytes]:
    settings = bytes.fromhex("000000 04 00 00000000")
    headers = bytes.fromhex("00000a 01 04 00000001") + bytes(10)
    ping = bytes.fromhex("000008 06 00 00000000") + bytes(8)
    whole = [_PREFACE + settings + headers, _PREFACE + settings + ping, b"GET / HTTP/1.1\r\n\r\n"]
    return mutated(whole, seed)


def fuzz(folder: Path, seed: int, *, rounds: int | None = None, seconds: float = SECONDS) -> int:
    """Attack a server; return how many rounds there were.

    Args:
        folder: For its data.
        seed: What is sent depends on it.
        rounds: Stop after so many; None: after the seconds.
        seconds: Stop after these.
    """
    given = ("--early-port", "0", "--controller-port", "0", "--durability", "os")
    done, until = 0, time.monotonic() + seconds
    first_rss = 0
    with StoreProcess(folder / "data", *given) as server, ExitStack() as stack:
        good = WellBehaved(server)
        attack = Attack(server, seed)
        while (done < rounds) if rounds is not None else (time.monotonic() < until):
            attack.strike()
            done += 1
            if done % _GOOD_EACH == 0:
                good.append()
            if done == _SETTLED:
                first_rss = server.rss_bytes()
            if done % _KILL_EACH == 0:
                _report(done, good, server)
                attack.close()
                server.restart()
                good.come_back()
                attack = Attack(server, seed + done)
        stack.callback(good.close)
        attack.close()
        good.check()
        grown = server.rss_bytes() - first_rss
        assert grown < GROWTH_BYTES_MAX, f"{grown} bytes more than after {_SETTLED} rounds"
        server.restart()
        good.come_back()
        server.terminate()
        assert_no_traceback(server)
    hutch(folder / "data", "store", "check")
    return done


def _report(done: int, good: WellBehaved, server: StoreProcess) -> None:
    rss = server.rss_bytes() >> 20
    sys.stdout.write(f"{done} damaged, {good.count} events stored beside them, {rss} MiB\n")
    sys.stdout.flush()


def main() -> None:
    """Run it for as long as it is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    with tempfile.TemporaryDirectory(prefix="network-fuzz-") as name:
        done = fuzz(Path(name), options.seed, seconds=options.seconds)
    sys.stdout.write(f"{done} damaged requests, nothing lost\n")


if __name__ == "__main__":
    main()
