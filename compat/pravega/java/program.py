"""The program on Pravega's Java client: built for two versions of it, and run on a server."""

from __future__ import annotations

import contextlib
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from compat.clients.programs import Program
from compat.comparison import Played
from compat.pravega.servers import Address

READERS: Final = Program(
    "Pravega's Java client", "readers", ("java", "javac", "mvn"), parent=Path(__file__).parent
)
NEWEST: Final = "0.13.0"
OLDEST: Final = "0.8.0"
RUN_S: Final = 500.0
"""Time limit of a run; a scenario that hangs ends after 90 s by itself, beside others."""
NOT_ENDED: Final = "not ended"
_LINE: Final = re.compile(r"(?P<scenario>\S+) (?P<key>[^=]+)=(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Scenario of the program.

    Attributes:
        name: Its name, and that of its scope, which a play adds some letters to.
    """

    name: str


Values = dict[str, dict[str, str]]
"""The values that each scenario gives, by their names, in order."""


def scenarios(version: str, pattern: str = "*") -> list[Scenario]:
    """Return the scenarios that a version of the client has, and that are called so.

    Raises:
        Unavailable: The program cannot be built here.
    """
    done = subprocess.run(
        [*READERS.command(), version, "list"],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=True,
    )
    return [Scenario(name) for name in done.stdout.split() if fnmatchcase(name, pattern)]


def run(
    chosen: Sequence[Scenario], version: str, controller: Address, seconds: dict[str, float]
) -> Values:
    """Run scenarios in one process, in scopes of their own; return what each gives.

    Args:
        chosen: Which ones.
        version: That of the client.
        controller: Where the controller of the server listens.
        seconds: Gets how long each took.

    Raises:
        Unavailable: The program cannot be built here.
    """
    names = [one.name for one in chosen]
    uri = "tcp://{}:{}".format(*controller)
    command = [*READERS.command(), version, uri, f"-{secrets.token_hex(3)}", *names]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=RUN_S,
                check=False,
            )
        output.seek(0)
        found = parsed(output)
    values = {name: found.get(name, {}) for name in names}
    for name, given in values.items():
        seconds[name] = float(given.pop("seconds", "nan"))
        given.setdefault("end", NOT_ENDED)
    return values


def parsed(lines: Iterable[str]) -> Values:
    """Return the values of lines SCENARIO KEY=VALUE; what is no such line is left out."""
    found: Values = {}
    for line in lines:
        if match := _LINE.fullmatch(line.rstrip("\n")):
            found.setdefault(match["scenario"], {})[match["key"]] = match["value"]
    return found


def played(values: Values) -> dict[str, list[Played]]:
    """Return values as the steps of scripts, which can be compared."""
    return {
        name: [Played(1, key, key, (value,)) for key, value in given.items()]
        for name, given in values.items()
    }
