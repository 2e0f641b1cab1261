"""The exchanges of docs/pravega-early.md: the golden frames of the early dialect."""

import re
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parents[2] / "docs" / "pravega-early.md"
_FENCED: Final = re.compile(r"^```exchange ?(.*)\n((?:.+\n)+)```$", re.MULTILINE)


class Step(NamedTuple):
    """A line: `>` or `<` with a frame and the name of its message, or a word that stands alone."""

    kind: str
    name: str = ""
    frame: bytes = b""


class Exchange(NamedTuple):
    """The lines, and the settings of the server, as `part_bytes_max=64`."""

    title: str
    settings: dict[str, str]
    steps: tuple[Step, ...]


def _step(line: str) -> Step:
    if line[0] not in "<>":
        assert line in {"closed", "disconnect", "other", "first"}, line
        return Step(line)
    kind, name, *text = line.split()
    return Step(kind, name, bytes.fromhex("".join(text)))


def _exchanges() -> tuple[Exchange, ...]:
    page = PAGE.read_text(encoding="utf-8")
    found = []
    for match in _FENCED.finditer(page):
        settings = dict(word.split("=") for word in match[1].split())
        line = page.count("\n", 0, match.start()) + 1
        steps = tuple(map(_step, match[2].splitlines()))
        found.append(Exchange(f"line {line}", settings, steps))
    return tuple(found)


EXCHANGES: Final = _exchanges()
FRAMES: Final = tuple(
    step for exchange in EXCHANGES for step in exchange.steps if step.kind in "<>"
)
