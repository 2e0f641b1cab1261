"""Frame of a program on a Python client: arguments, requests, results."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias

LIMIT_S: Final = 20.0
# A whole scenario, with the time in which the harness restarts a server.
SCENARIO_S: Final = 300.0
# How long to look for messages that should not come.
QUIET_S: Final = 0.3
POLL_S: Final = 0.005

Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One run of a scenario.

    Attributes:
        where: The program's options: the server and the certificates.
        stream: A name never used before.
        values: What the scenario is told besides.
    """

    where: argparse.Namespace
    stream: str
    values: Mapping[str, str]


Scenario: TypeAlias = Callable[[Request], Awaitable[Result]]


def say(what: Mapping[str, object]) -> None:
    """Print a line of JSON, at once."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def eventually(
    is_so: Callable[[], bool],
    what: Callable[[], str] = lambda: "nothing",
    limit_s: float = LIMIT_S,
) -> None:
    """Wait until it is so.

    Raises:
        TimeoutError: It was not so within the limit; the text says what was there instead.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while not is_so():
        if loop.time() > deadline:
            raise TimeoutError(f"not within {limit_s:.0f} s; there was {what()}")
        await asyncio.sleep(POLL_S)


async def arrived(records: Sequence[object], count: int) -> None:
    """Wait for as many records, and then a little for more that should not come."""
    await eventually(lambda: len(records) >= count, lambda: f"{len(records)} of {count}")
    await asyncio.sleep(QUIET_S)


async def harness(what: str) -> None:
    """Let the harness do something, and wait until it has."""
    say({"wait": what})
    answer = await asyncio.to_thread(sys.stdin.readline)
    if answer.strip() != "go":
        raise EOFError(f"the harness answered {answer!r}")


def main(client: str, scenarios: Mapping[str, Scenario]) -> None:
    """Run the scenario of the command line, or those of standard input until its end."""
    parser = argparse.ArgumentParser(description=f"Scenarios by the client {client}.")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tls-port", type=int)
    for name in ("ca", "other-ca", "cert", "key"):
        parser.add_argument(f"--{name}")
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("words", nargs="*", metavar="STREAM name=value")
    where = parser.parse_args()
    if where.scenario:
        run(scenarios, where, [where.scenario, *where.words])
        return
    say({"ready": {"client": client, "version": version(client), "scenarios": list(scenarios)}})
    for line in iter(sys.stdin.readline, ""):
        run(scenarios, where, line.split())


def run(scenarios: Mapping[str, Scenario], where: argparse.Namespace, words: Sequence[str]) -> None:
    """Run one scenario and say how it ended."""
    name, stream, *pairs = words
    values = dict(pair.split("=", 1) for pair in pairs)
    try:
        found = asyncio.run(within_limit(scenarios[name](Request(where, stream, values))))
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the result
        traceback.print_exc()
        say({"error": f"{type(error).__name__}: {error}"})
    else:
        say({"ok": found})


async def within_limit(scenario: Awaitable[Result]) -> Result:
    """Run a scenario, and end it where it waits for something that does not come."""
    return await asyncio.wait_for(scenario, SCENARIO_S)
