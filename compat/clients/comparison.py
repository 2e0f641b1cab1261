"""Runs the programs and keeps what came of it."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from compat.clients.expected import CODECS, EXPECTED, expected
from compat.clients.messages import bodies, summary
from compat.clients.not_offered import NOT_OFFERED, VERSIONS
from compat.clients.programs import Program, Unavailable
from compat.clients.running import NoAnswer, Outcome, RunningProgram
from compat.clients.servers import SERVERS, Server, ServerName

logger = logging.getLogger(__name__)

# All programs at once, on both servers, and each in two processes: they mostly wait.
AT_ONCE: Final = 12
PROCESSES: Final = 2
RESTARTING: Final = "reconnect"
WRITTEN: Final = 50
PLAIN: Final = "plain"
RESTART_S: Final = 180.0
# On a machine that keeps a server waiting, some clients give up or lose their way. What came to no
# result is tried once more; a wrong result is one.
TRIES: Final = 2
# A mark of its own for each writer, so that none can be taken for another.
MARKS: Final = "abcdefghijkl"


class Run(NamedTuple):
    """A scenario, by a client, against a server."""

    client: str
    scenario: str
    server: ServerName


class Crossing(NamedTuple):
    """Reader, writer, codec and server of an exchange between clients."""

    writer: str
    codec: str
    reader: str
    server: ServerName


@dataclass(slots=True)
class Comparison:
    """All outcomes.

    Attributes:
        unavailable: Clients whose program cannot be had here, with the reason.
        broken: Clients whose program did not start against some server, with its output.
        versions: The version of each client that ran.
        offered: What each client's program says that it offers.
        runs: The scenarios.
        written: What writing for other clients came to; the reader is empty.
        crossings: What was read of it.
    """

    unavailable: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    offered: dict[str, Sequence[str]] = field(default_factory=dict)
    runs: dict[Run, Outcome] = field(default_factory=dict)
    written: dict[Crossing, Outcome] = field(default_factory=dict)
    crossings: dict[Crossing, Outcome] = field(default_factory=dict)

    def faults(self, client: str) -> list[str]:
        """Return what is wrong with a client's runs; empty if nothing is."""
        if client in self.broken:
            return [self.broken[client]]
        return [
            fault
            for scenario in EXPECTED
            if scenario in self.offered[client]
            for fault in self.scenario_faults(client, scenario)
        ]

    def scenario_faults(self, client: str, scenario: str) -> list[str]:
        """Return what is wrong with one scenario."""
        found = {name: self.runs[Run(client, scenario, name)] for name in SERVERS}
        faults = [
            f"{client} {scenario} on {name}: {outcome.error}"
            for name, outcome in found.items()
            if not outcome.is_ok
        ]
        if faults:
            return faults
        wanted = expected(client, scenario)
        if wanted is None:
            wanted = found["RabbitMQ"].result
        return [
            f"{client} {scenario} on {name}: {outcome.result} instead of {wanted}"
            for name, outcome in found.items()
            if outcome.result != wanted
        ]

    def offer_faults(self, client: str) -> list[str]:
        """Return where a client's program and the list of what is not offered disagree."""
        if client in self.broken:
            return [self.broken[client]]
        missing = NOT_OFFERED.get(client, {})
        offered = self.offered[client]
        faults = [
            f"{client} has neither {scenario} nor a reason why not"
            for scenario in EXPECTED
            if scenario not in offered and scenario not in missing
        ]
        faults += [f"{client} offers {one}, listed as missing" for one in missing if one in offered]
        if self.versions[client].removeprefix("v") != VERSIONS[client]:
            faults.append(f"{client} is {self.versions[client]}, not {VERSIONS[client]}")
        return faults

    def crossing_faults(self) -> list[str]:
        """Return what is wrong between clients."""
        faults = []
        for crossing, outcome in {**self.written, **self.crossings}.items():
            if not outcome.is_ok:
                faults.append(f"{crossing}: {outcome.error}")
        for crossing, outcome in self.written.items():
            if outcome.is_ok and outcome.result != {"confirmed": WRITTEN, "refused": 0}:
                faults.append(f"{crossing}: {outcome.result}")
        for crossing, outcome in self.crossings.items():
            wanted = {"read": summary(bodies(0, WRITTEN - 1, mark_of(crossing.writer)))}
            if outcome.is_ok and outcome.result != wanted:
                faults.append(f"{crossing}: {outcome.result} instead of {wanted}")
        return faults


def mark_of(client: str) -> str:
    """Return the mark of what a client writes."""
    return MARKS[list(VERSIONS).index(client)]


def codecs_of(offered: Iterable[str]) -> list[str]:
    """Return the codecs of a program, from the scenarios that it offers."""
    return [PLAIN, *(codec for codec in CODECS if f"sub-{codec}" in offered)]


def fresh(word: str) -> str:
    """Return a stream's name never used before."""
    return f"{word}-{secrets.token_hex(4)}"


def tried(attempt: Callable[[], Outcome]) -> Outcome:
    """Return what an attempt comes to, the last one if all fail."""
    for _ in range(TRIES - 1):
        if (outcome := attempt()).is_ok:
            return outcome
        logger.warning("no result, trying again error=%r", outcome.error)
    return attempt()


class Campaign:
    """One comparison under way."""

    def __init__(
        self, programs: Sequence[Program], servers: Sequence[Server], folder: Path
    ) -> None:
        """Prepare it.

        Args:
            programs: Which clients.
            servers: Both.
            folder: Where the programs' logs go.
        """
        self._programs = programs
        self._servers = servers
        self._folder = folder
        self._commands: dict[str, list[str]] = {}
        self.found = Comparison()

    def run(self) -> Comparison:
        """Build, run everything, and return what came of it."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            jobs: list[Future[None]] = []
            for program in self._programs:  # the first ones run while the last ones are built
                jobs.append(pool.submit(self._program, program, pool, jobs))
            for job in jobs:  # grows meanwhile
                job.result()
        self._restart_and_cross()
        return self.found

    def _program(
        self, program: Program, pool: ThreadPoolExecutor, jobs: list[Future[None]]
    ) -> None:
        try:
            self._commands[program.client] = program.command()
        except Unavailable as error:
            self.found.unavailable[program.client] = str(error)
            return
        jobs += [pool.submit(self._scenarios, program.client, server) for server in self._servers]

    def _start(self, client: str, server: Server) -> RunningProgram:
        log = self._folder / f"{client}-{server.name}.log"
        return RunningProgram([*self._commands[client], *server.options], log)

    def _scenarios(self, client: str, server: Server) -> None:
        """Run a program on a server; its processes take the next scenario in turn."""
        waiting = iter([scenario for scenario in EXPECTED if scenario != RESTARTING])
        with ThreadPoolExecutor(PROCESSES) as pool:
            jobs = [pool.submit(self._take, client, server, waiting) for _ in range(PROCESSES)]
            for job in jobs:
                job.result()

    def _take(self, client: str, server: Server, waiting: Iterator[str]) -> None:
        """Run the scenarios that are waiting, in one process."""
        try:
            running = self._start(client, server)
        except NoAnswer as error:
            self.found.broken[client] = f"{client} on {server.name} did not start: {error}"
            return
        with running:
            logger.info("program runs client=%s server=%s", client, server.name)
            self.found.versions[client] = running.about.version
            self.found.offered[client] = running.about.scenarios
            for scenario in waiting:  # a list's iterator gives each to one thread only
                if scenario in running.about.scenarios:
                    outcome = tried(partial(self._scenario, running, client, scenario))
                    self._note(Run(client, scenario, server.name), outcome)

    def _scenario(self, running: RunningProgram, client: str, scenario: str) -> Outcome:
        return running.run(scenario, fresh(f"{client}-{scenario}"))

    @property
    def _able(self) -> list[str]:
        return [one for one in self.found.offered if one not in self.found.broken]

    def _restart_and_cross(self) -> None:
        """Restart the servers; while some clients look for theirs, the others exchange messages."""
        clients = [one for one in self._able if RESTARTING in self.found.offered[one]]
        restarts = [Restart(server, clients) for server in self._servers]
        count = len(clients) * len(restarts)
        with ThreadPoolExecutor(max(1, count)) as pool:  # each waits for all others
            jobs = self._restart_all(restarts, pool)
            for restart in restarts:
                restart.wait()
            self._cross()
            for job in jobs:
                job.result()
            again = [Restart(server, self._lost(server, clients)) for server in self._servers]
            for job in self._restart_all(again, pool):
                job.result()

    def _lost(self, server: Server, clients: Iterable[str]) -> list[str]:
        """Return those of the clients that came to no result when the server was restarted."""
        runs = self.found.runs
        return [one for one in clients if not runs[Run(one, RESTARTING, server.name)].is_ok]

    def _restart_all(
        self, restarts: Sequence[Restart], pool: ThreadPoolExecutor
    ) -> list[Future[None]]:
        return [
            pool.submit(self._restart, client, restart)
            for restart in restarts
            for client in restart.clients
        ]

    def _restart(self, client: str, restart: Restart) -> None:
        server = restart.server
        try:
            with self._start(client, server) as running:
                stream = fresh(f"{client}-{RESTARTING}")
                outcome = running.run(RESTARTING, stream, on_wait=lambda _: restart.arrive(client))
        except NoAnswer as error:
            outcome = Outcome(error=str(error))
        finally:
            restart.leave(client)
        self._note(Run(client, RESTARTING, server.name), outcome)

    def _note(self, run: Run, outcome: Outcome) -> None:
        self.found.runs[run] = outcome
        logger.info(
            "scenario ended client=%s server=%s scenario=%s error=%r",
            run.client,
            run.server,
            run.scenario,
            outcome.error,
        )

    def _cross(self) -> None:
        with ThreadPoolExecutor(len(self._servers)) as pool:
            for _ in pool.map(self._cross_on, self._servers):
                pass

    def _cross_on(self, server: Server) -> None:
        running = {client: self._start(client, server) for client in self._able}
        try:
            for writer in running:
                for codec in codecs_of(self.found.offered[writer]):
                    self._crossing(running, writer, codec, server.name)
        finally:
            for one in running.values():
                one.close()

    def _crossing(
        self, running: dict[str, RunningProgram], writer: str, codec: str, server: ServerName
    ) -> None:
        stream = ""
        values = {"count": WRITTEN, "mark": mark_of(writer)}

        def write() -> Outcome:
            nonlocal stream
            stream = fresh(f"{writer}-{codec}")
            return running[writer].run("write", stream, {"codec": codec, **values})

        outcome = tried(write)
        self.found.written[Crossing(writer, codec, "", server)] = outcome
        logger.info("written client=%s server=%s codec=%s", writer, server, codec)
        if not outcome.is_ok:
            return

        def read(reader: str) -> None:
            outcome = tried(partial(running[reader].run, "read", stream, values))
            self.found.crossings[Crossing(writer, codec, reader, server)] = outcome

        readers = [one for one in running if codec in codecs_of(self.found.offered[one])]
        with ThreadPoolExecutor(len(readers)) as pool:
            for _ in pool.map(read, readers):
                pass


class Restart:
    """One restart of a server for all programs that want one: it comes when all wait for it.

    Attributes:
        server: The server.
        clients: The clients of the programs.
    """

    def __init__(self, server: Server, clients: Sequence[str]) -> None:
        """Prepare it for those clients."""
        self.server: Final = server
        self.clients: Final = clients
        self._missing = set(clients)
        self._lock = threading.Lock()
        self._is_begun = False
        self._error: Exception | None = None
        self._is_over = threading.Event()

    def wait(self) -> None:
        """Wait until it is over; with no client there is none."""
        if self.clients:
            self._is_over.wait(RESTART_S)

    def arrive(self, client: str) -> None:
        """Wait for the restart; the last to come does it."""
        self.leave(client)
        if not self._is_over.wait(RESTART_S):
            raise NoAnswer("some program never waited for the restart")
        if self._error is not None:
            raise NoAnswer(f"the server was not restarted: {self._error}")

    def leave(self, client: str) -> None:
        """Be waited for no longer."""
        with self._lock:
            self._missing.discard(client)
            is_last = not self._missing and not self._is_begun
            self._is_begun |= is_last
        if is_last:
            try:
                self.server.restart()
            except Exception as error:  # noqa: BLE001 - all programs are told
                self._error = error
            self._is_over.set()
