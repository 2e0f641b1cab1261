"""List of the methods of Pravega's Java client that the programs here call, and of all others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from compat import pravega
from compat.clients.programs import Program
from compat.pravega.java.methods import Client, Method, called
from compat.pravega.java.program import NEWEST, READERS

TOOLS: Final = ("java", "javac", "mvn")
OTHERS: Final = tuple(
    Program("Pravega's Java client", folder, TOOLS, parent=Path(pravega.__file__).parent)
    for folder in ("java-client", "java-tables", "java-flow")
)
REASONS: Final[Mapping[str, str]] = {
    r"\.<init>": "the client makes these and gives them to its user",
    r"\.asImpl$": "gives the client's own class, of which users know nothing",
    r"IdempotentEventStreamWriter\.": "no factory of the client gives such a writer",
    r"\.(applyTo|create|onNotification)$": "the program implements it, and the client calls it",
    r"Revisioned\.": "the program implements it, and the client calls it",
    r"(ReaderSegmentDistribution|SegmentNotification)(Builder|\$|\.)": "made by the client alone",
    r"ClientConfigBuilder\.(isDefaultMaxConnections|metricListener)": "no server sees it",
    r"ReaderGroup\.initiateCheckpoint": "called with threads of the program's to wait in",
    r"RevisionedStreamClient\.close": "closed as what it is to the program, an AutoCloseable",
}
"""Reasons for which a method is not called, by a part of its name."""


class Coverage(NamedTuple):
    """Methods that programs call, and others."""

    called: list[Method]
    uncalled: list[Method]

    def lines(self) -> Iterator[str]:
        """Yield a line for each method, with the reason if none calls it, and one in all."""
        for each in self.called:
            yield f"called    {each}"
        for each in self.uncalled:
            yield f"uncalled  {each}: {reason(each) or 'NO REASON'}"
        count = len(self.called) + len(self.uncalled)
        share = 100 * len(self.uncalled) / count
        yield f"{count} methods, {len(self.uncalled)} of them uncalled ({share:.1f} %)"


def coverage() -> Coverage:
    """Return what the programs call of the newest client. Raises Unavailable: none can be built."""
    folder = Path(READERS.command()[0]).parent / NEWEST
    classes = list((folder / "classes").glob("*.class"))
    for program in OTHERS:
        built = Path(program.command()[0]).parent
        classes += (built / "classes").glob("*.class")
    client = Client.of(folder / "lib" / f"pravega-client-{NEWEST}.jar")
    uncalled = client.uncalled(called(classes))
    return Coverage(sorted(client.methods.difference(uncalled)), uncalled)


def reason(method: Method) -> str:
    """Return why a method is not called; empty if nothing is said of it."""
    name = str(method).partition("(")[0]
    return next((why for part, why in REASONS.items() if re.search(part, name)), "")
