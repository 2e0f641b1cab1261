"""`python -m tests.integration.cluster`: a cluster on this machine, to look at and to break.

Three servers of NATS, and two members, which are started again when they end. Ctrl-C ends all.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from tests.integration.cluster.faults import Supervised
from tests.integration.cluster.members import Cluster
from tests.nats_servers import NatsServers
from tests.waiting import wait_until

STREAMS: Final = (5552, 5553)
MANAGEMENT: Final = (15672, 15673)


def main() -> int:
    """Run the cluster until Ctrl-C; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="make cluster",
        description="Run three servers of NATS and two members of Hutch on this machine.",
    )
    parser.add_argument(
        "--folder", type=Path, help="for their data, kept afterwards (default: one that is not)"
    )
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory(prefix="hutch-cluster-") as passing:
        place = Path(passing) if folder is None else folder.absolute()
        with NatsServers(place / "nats", 3) as nats:
            serve(Cluster(place, nats, "hutch"))
    return 0


def serve(cluster: Cluster) -> None:
    """Run two members until Ctrl-C."""
    members = [
        Supervised(cluster, name, port, management)
        for name, port, management in zip("ab", STREAMS, MANAGEMENT, strict=True)
    ]
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    try:
        wait_until(lambda: any(each.is_active for each in members))
        say(cluster, members)
        is_over.wait()
    finally:
        for each in members:
            each.stop()


def say(cluster: Cluster, members: list[Supervised]) -> None:
    """Print where all is, and what to try."""
    lines = [f"log      {cluster.nats.url}"]
    for each, management in zip(members, MANAGEMENT, strict=True):
        server = each.server
        lines.append(
            f"member   stream 127.0.0.1:{each.endpoint.port}, management 127.0.0.1:{management},"
            f" pid {server.pid}, data {server.data_dir}"
        )
    lines += [
        "",
        f"hutch ctl members --data {members[0].server.data_dir}",
        f"hutch ctl takeover --data {members[1].server.data_dir}",
        f"kill -9 {members[0].server.pid}",
        "",
        "Ctrl-C ends all.",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
