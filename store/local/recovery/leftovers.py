"""Data files that no segment has: leftovers of a process that died, or damage.

The expected ones are known: the checkpoint names those that were neither committed nor unlinked
yet, later ones have higher numbers, and the journal's frames give up files that segments had. Any
other file has lost its owner to damage, or was put there. After a good stop there is none with a
higher number. If there is damage, a file may hold the bytes that another one has lost.
"""

from collections.abc import Collection

from store.files import Files
from store.local.damage import Damage, Findings
from store.local.recovery.checkpoint_file import CheckpointHead
from store.local.recovery.journal_damage import SET_ASIDE, Evidence
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import DATA_DIRECTORY


def leftovers(files: Files, catalogue: Catalogue) -> list[str]:
    """Return the names of the data files that no segment has."""
    living = {
        str(file.number)
        for segment in catalogue.segments.values()
        for _, file in segment.committed.extents
    }
    names = files.names(DATA_DIRECTORY)
    return [name for name in names if name.isdecimal() and name not in living]


def set_ownerless_aside(
    files: Files,
    catalogue: Catalogue,
    head: CheckpointHead,
    given_up: Collection[int],
    findings: Findings,
    *,
    is_clean: bool,
) -> None:
    """Move unexpected files away.

    Args:
        files: The data directory.
        catalogue: What was recovered.
        head: The checkpoint's.
        given_up: Numbers of all files that checkpoint and frames speak of.
        findings: Takes what is found.
        is_clean: No opening has followed the good stop of the one before.
    """
    known = {str(number) for number in (*head.loose, *given_up)}
    may_be_later = not findings.found and not is_clean
    ownerless = [
        f"{DATA_DIRECTORY}/{name}"
        for name in leftovers(files, catalogue)
        if name not in known
        and not (may_be_later and int(name) >= head.next_file and name == str(int(name)))
    ]
    if ownerless:
        for path in ownerless:
            findings.add(Damage(f"data file without an owner is moved to {SET_ASIDE}/", path))
        Evidence(files, head.salt).move(ownerless)


def remove_leftovers(files: Files, catalogue: Catalogue) -> None:
    """Remove data files that no segment has. Only once the new checkpoint is durable."""
    for name in leftovers(files, catalogue):
        files.remove(f"{DATA_DIRECTORY}/{name}")
        catalogue.loose.discard(int(name))
