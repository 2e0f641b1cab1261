"""Official clients go on through a takeover as through a restart: the same results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from compat.broker.ports import free_ports
from compat.clients.comparison import RESTARTING, Restart
from compat.clients.expected import expected
from compat.clients.programs import PROGRAMS, Unavailable
from compat.clients.running import NoAnswer, Outcome, RunningProgram
from compat.clients.servers import ServerName
from tests.integration.cluster.front_door import FrontDoor
from tests.integration.cluster.members import Cluster
from tests.integration.server import Endpoint, HutchServer
from tests.nats_servers import NatsServers
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(900)  # the first test waits for the builds and for all runs

CLIENTS: Final = [each.client for each in PROGRAMS]


class TwoMembers:
    """A cluster behind one name; its restart is the end of the active member. A `Server`."""

    name: ServerName = "Hutch"

    def __init__(self, cluster: Cluster, door: FrontDoor, ports: list[int]) -> None:
        port = str(door.endpoint.port)
        advertised = ("--advertised-host", "localhost", "--advertised-port", port)
        self._port = port
        self._active, self._follower = (
            cluster.start(name, "--port", str(each), *advertised)
            for name, each in zip("ab", ports, strict=True)
        )
        wait_until(lambda: any(map(is_ready, (self._active, self._follower))))
        if is_ready(self._follower):
            self._active, self._follower = self._follower, self._active
        self._follower.wait_for_log("following the log")

    @property
    def options(self) -> list[str]:
        """The options of a program that say where it is."""
        return ["--host", "localhost", "--port", self._port]

    def restart(self) -> None:
        """Kill the active member, and wait until the other one serves."""
        self._active.kill()
        self._follower.wait_until_ready()


def is_ready(server: HutchServer) -> bool:
    """Return whether a member serves."""
    return "hutch ready" in server.stdout


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The result of each client, all of which wait for one takeover."""
    folder: Path = tmp_path_factory.mktemp("takeover")
    commands: dict[str, list[str]] = {}
    found: dict[str, Outcome] = {}
    for program in PROGRAMS:
        try:
            commands[program.client] = program.command()
        except Unavailable as error:
            found[program.client] = Outcome(error=f"unavailable: {error}")
    ports = free_ports(2)
    with NatsServers(folder / "nats", 3) as nats, FrontDoor(members_at(ports)) as door:
        cluster = Cluster(folder, nats, "takeover")
        try:
            server = TwoMembers(cluster, door, ports)
            takeover = Restart(server, list(commands))

            def run(client: str) -> Outcome:
                try:
                    command = [*commands[client], *server.options]
                    with RunningProgram(command, folder / f"{client}.log") as running:
                        stream = f"{client}-takeover"
                        wait = lambda _: takeover.arrive(client)  # noqa: E731  # a program's
                        return running.run(RESTARTING, stream, on_wait=wait)
                except NoAnswer as error:
                    return Outcome(error=str(error))
                finally:
                    takeover.leave(client)

            with ThreadPoolExecutor(len(commands)) as pool:
                found |= dict(zip(commands, pool.map(run, commands), strict=True))
        finally:
            cluster.close()
    return found


def members_at(ports: list[int]) -> list[Endpoint]:
    """Return the addresses of members."""
    return [Endpoint("127.0.0.1", port) for port in ports]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_goes_on_through_a_takeover(outcomes: dict[str, Outcome], client: str) -> None:
    outcome = outcomes[client]
    if outcome.error.startswith("unavailable"):
        pytest.skip(outcome.error)
    wanted: Any = expected(client, RESTARTING)
    assert (outcome.error, outcome.result) == ("", wanted)
