"""Nothing is unlinked: the bytes of faulty files are found again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from store.local.recovery.checkpoint import CHECKPOINT
from tests.damage.faults import Fault
from tests.damage.ledger import Built

DERIVED: Final = ("index", "filters")
"""Files of what is made again from the chunks."""


def find_removed(
    built: Built,
    damaged: Path,
    directory: Path,
    faults: Iterable[Fault],
    lines: Collection[str],
    *,
    lost_from: int | None,
    is_refused: bool,
) -> Iterator[str]:
    """Tell which bytes of the damaged directory are nowhere now.

    Of a journal file or checkpoint that was replaced after a start without a finding nothing is
    asked: the journal is used again, and the checkpoint is written anew.

    Args:
        built: The directory as it was before.
        damaged: As the faults left it.
        directory: As it is now.
        faults: What was done.
        lines: Of the log.
        lost_from: The first step of which the journal has nothing sound, where the store has found
            no damage. Files that were begun then look like those of a process that died.
        is_refused: The start was refused. Where the store was not opened, nothing has changed.
    """
    begun = built.ledger.file_steps
    begun_later = {name for name in begun if lost_from is not None and begun[name] >= lost_from}
    touched = {name for fault in faults for name in fault.files} - begun_later
    kept = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    aside = [path.read_bytes() for path in directory.glob("set-aside/**/*") if path.is_file()]
    is_as_it_was = is_refused and _content(directory, CHECKPOINT) == _content(damaged, CHECKPOINT)
    of_kind = {name: kind for kind, names in built.kinds.items() for name in names}
    for name in sorted(touched):
        kind = of_kind.get(name, "")
        segment = built.ledger.files.get(name, name)
        gone = f"segment was cut segment={segment}", "journal ends before frames"
        if any(line.startswith(gone) for line in lines):
            continue  # without a sync that is what a crash leaves
        if "table" in kind and not any(f"file={name} " in f"{line} " for line in lines):
            continue  # nothing in it was damaged, or nothing of it was needed: it was compacted
        if not (damaged / name).is_file() or kind in DERIVED or name == "lock":
            continue
        if not is_as_it_was and not name.startswith("data/"):
            continue
        content = _content(damaged, name)
        if not content or content in kept:
            continue
        then = _content(built.directory, name)
        if not any(_is_kept(content, then, each) for each in (_content(directory, name), *aside)):
            yield f"the bytes of {name} ({kind}) are nowhere"


def _content(directory: Path, name: str) -> bytes:
    path = directory / name
    return path.read_bytes() if path.is_file() else b""


def _is_kept(content: bytes, then: bytes, now: bytes) -> bool:
    """Tell whether a file has its bytes, or better ones: those from before the damage."""
    if then:
        content = content[: len(then)]  # what is behind that is behind the end of its segment
    if len(now) < len(content.rstrip(b"\0")):
        return False
    return all(
        byte in (now[at], 0) or (at < len(then) and now[at] == then[at])
        for at, byte in enumerate(content[: len(now)])
        if byte != now[at]
    )
