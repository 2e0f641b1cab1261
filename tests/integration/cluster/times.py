"""`python -m tests.integration.cluster.times`: the time without service of each takeover.

A client asks both members ten times a second, on 1,000 streams of which 100 are written. The active
member is killed; then the log's leader is, and one of its servers stops for ten seconds: these must
lead to no takeover. Fails where a takeover takes too long, or one comes that was not needed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from compat.broker.ports import free_ports
from tests.client import Client
from tests.integration.cluster.faults import HOST, Supervised
from tests.integration.cluster.members import Cluster
from tests.integration.load import GONE
from tests.integration.server import Endpoint
from tests.nats_servers import NatsServers
from tests.waiting import HANG_S, wait_until

STREAMS: Final = 1_000
WRITTEN: Final = 100
ASK_S: Final = 0.1
STOP_S: Final = 10.0
MEDIAN_S: Final = 8.0
MOST_S: Final = 12.0


class Writing(threading.Thread):
    """Writes to some streams, at whichever member serves."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        super().__init__(daemon=True)
        self._endpoints = endpoints
        self.is_over = threading.Event()
        self.confirmed = 0

    def run(self) -> None:
        number = 0
        while not self.is_over.is_set():
            number += 1
            with (
                suppress(*GONE, TimeoutError),
                Client.opened(*self._endpoints[number % len(self._endpoints)]) as client,
            ):
                self._write(client)

    def _write(self, client: Client) -> None:
        for stream in range(WRITTEN):
            client.declare(stream, f"s{stream}")
        publishing_id = 0
        while not self.is_over.is_set():
            publishing_id += 1
            for stream in range(WRITTEN):
                client.publish(stream, {publishing_id: b"x" * 100})
            for _ in range(WRITTEN):
                _, ids = client.confirmed(3.0)
                self.confirmed += len(ids)
            time.sleep(ASK_S)


def answers(endpoint: Endpoint) -> bool:
    """Return whether a member serves a client."""
    with suppress(*GONE, TimeoutError, OSError), Client.opened(*endpoint):
        return True
    return False


def without_service_s(endpoints: Sequence[Endpoint]) -> float:
    """Return how long no member has answered from now on, in seconds."""
    begun = time.monotonic()
    while not any(map(answers, endpoints)):
        assert time.monotonic() - begun < HANG_S
        time.sleep(ASK_S)
    return time.monotonic() - begun


def terms(members: Sequence[Supervised]) -> int:
    """Return how many takeovers there were."""
    return sum(each.server.logs.count("taking over term=") for each in members)


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.cluster.times")
    parser.add_argument("--kills", type=int, default=20, help="of each kind (default: 20)")
    count = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as folder, NatsServers(Path(folder) / "nats", 3) as nats:
        cluster = Cluster(Path(folder), nats, "times")
        cluster.is_usual = True
        return measure(cluster, count)


def measure(cluster: Cluster, count: int) -> int:
    """Have so many faults of each kind; return the exit status."""
    names = zip("ab", free_ports(2), strict=True)
    members = [Supervised(cluster, name, port) for name, port in names]
    endpoints = [Endpoint(HOST, each.endpoint.port) for each in members]
    wait_until(lambda: any(map(answers, endpoints)))
    active = next(each for each in endpoints if answers(each))
    with Client.opened(*active) as client:
        for stream in range(STREAMS):
            client.create(f"s{stream}")
    writing = Writing(endpoints)
    writing.start()
    try:
        times = kills(members, endpoints, count)
        needless = elections(cluster, members, writing, count)
    finally:
        writing.is_over.set()
        for each in members:
            each.stop()
    median, most = statistics.median(times), max(times)
    sys.stdout.write(
        f"{count} kills: median {median:.1f} s, most {most:.1f} s;"
        f" {2 * count} faults of the log: {needless} takeovers\n"
    )
    return 1 if median > MEDIAN_S or most > MOST_S or needless else 0


def kills(members: Sequence[Supervised], endpoints: Sequence[Endpoint], count: int) -> list[float]:
    """Kill the active member; return the times without service."""
    times = []
    for _ in range(count):
        follower = next(each for each in members if not each.is_active)
        follower.server.wait_for_log("following the log")
        time.sleep(3)  # its beats are known
        next(each for each in members if each.is_active).server.kill()
        times.append(without_service_s(endpoints))
        sys.stdout.write(f"killed: {times[-1]:.1f} s\n")
        sys.stdout.flush()
    return times


def elections(cluster: Cluster, members: Sequence[Supervised], writing: Writing, count: int) -> int:
    """Take the log's leader away, and stop a server; return the takeovers that came of it."""
    before = terms(members)
    for number in range(count):
        leader = cluster.nats.leader_of(cluster.name)
        leader.kill()
        goes_on(writing)
        cluster.nats.start()
        stopped = cluster.nats.each[number % len(cluster.nats.each)]
        stopped.stop()
        time.sleep(STOP_S)
        stopped.wake()
        cluster.nats.wait_until_ready()
        goes_on(writing)
        sys.stdout.write(f"elections: {number + 1}, takeovers: {terms(members) - before}\n")
        sys.stdout.flush()
    return terms(members) - before


def goes_on(writing: Writing) -> None:
    """Wait until more is confirmed."""
    before = writing.confirmed
    wait_until(lambda: writing.confirmed > before + WRITTEN)


if __name__ == "__main__":
    sys.exit(main())
