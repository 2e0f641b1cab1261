"""What a data directory was told to hold, and by which part of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

Stream = tuple[str, str]
"""Virtual host and name."""

Key = tuple[str, ...]
"""What is answered: its kind, and which one of it."""


class Stored(NamedTuple):
    """A record: when it was published, what it says, its filter value, and in which step."""

    timestamp_ms: int
    body: bytes
    value: bytes
    step: int


class Span(NamedTuple):
    """Bytes of a journal file that one step wrote."""

    file: str
    begin: int
    end: int


@dataclass
class Ledger:
    """Everything that was acknowledged, step by step; a step is one change, awaited.

    Attributes:
        records: By stream and offset, also those that were removed later.
        firsts: Steps and the first offset of a stream from then on.
        values: Steps and what was the answer from then on; None: there was none.
        spans: What each step wrote to the journal.
        checkpoint_step: The last step at which a checkpoint was written; what is before it does
            not need the journal.
    """

    records: dict[Stream, dict[int, Stored]] = field(default_factory=dict)
    firsts: dict[Stream, list[tuple[int, int]]] = field(default_factory=dict)
    values: dict[Key, list[tuple[int, object]]] = field(default_factory=dict)
    spans: list[tuple[int, Span]] = field(default_factory=list)
    checkpoint_step: int = 0
    step: int = 0
    unclean_count: int = 0
    """Openings that follow an unclean end, with the next one."""
    files: dict[str, str] = field(default_factory=dict)
    """Which segment a data file belongs to, if it was ever seen."""
    file_steps: dict[str, int] = field(default_factory=dict)
    """The step in which a data file was first seen."""

    def note(self, key: Key, value: object) -> None:
        """Note what is answered from now on."""
        history = self.values.setdefault(key, [])
        if (history[-1][1] if history else None) != value:
            history.append((self.step, value))

    def note_rows(self, rows: Mapping[Key, object]) -> None:
        """Note all that administrators are told now."""
        gone = [key for key in self.values if key[0] in ROW_KINDS and key not in rows]
        for key in gone:
            self.note(key, None)
        for key, value in rows.items():
            self.note(key, value)

    def now(self, key: Key) -> object:
        """Return the last answer."""
        history = self.values.get(key)
        return history[-1][1] if history else None

    def since(self, key: Key, step: int) -> list[object]:
        """Return the answers from the end of a step on; all there ever were for step -1."""
        found: list[object] = [None] if step < 0 else []
        before: object = None
        for at, value in self.values.get(key, []):
            if at <= step:
                before = value
            else:
                found.append(value)
        return found if step < 0 else [before, *found]

    def first_of(self, stream: Stream) -> int:
        """Return the offset before which all was removed."""
        return self.firsts.get(stream, [(0, 0)])[-1][1]


ROW_KINDS = frozenset(
    {
        *("host", "user", "permission", "limits", "policy", "operator-policy"),
        *("stream", "exchange", "binding"),
    }
)


@dataclass(frozen=True)
class Built:
    """A data directory and what it holds.

    Attributes:
        name: For people.
        directory: Never changed: cases work on copies.
        older: Copies of the directory from earlier.
        ledger: What was acknowledged.
        kinds: Its files by what they hold.
    """

    name: str
    directory: Path
    older: list[Path]
    ledger: Ledger
    kinds: dict[str, list[str]]
