"""Changes carried out on the server: all of them, or what was done is taken back.

The order of kinds is that in which things need each other. A process that dies on the way leaves
what it had done; its next start finishes the rest, or takes back all (`definitions.finish_import`).
"""

import logging
from collections.abc import Hashable, Iterator
from typing import Final

from gateway.management.administration import Administration, Turns
from gateway.management.definitions.objects import KINDS, Definitions, Key, named
from gateway.management.definitions.planning import with_own
from gateway.management.errors import Failed
from gateway.management.requests.parallel import FAILURES, Step, StepFailed, in_parallel
from gateway.management.requests.rollback import Before, take_back
from gateway.management.requests.state import KEPT, Kept, Things

log = logging.getLogger(__name__)

MANY: Final = 500
"""Most users, permissions or bindings in one update: each takes up to 20 µs in one turn."""


async def apply_changes(
    administration: Administration, changes: Definitions, before: Before
) -> None:
    """Carry out changes.

    Args:
        administration: Where.
        changes: What to write.
        before: What `remember` returned for them.

    Raises:
        Stopped: The server stops; what was done stays, since its next start finishes it.
        Failed: Something failed; everything was taken back, if that was possible.
    """
    made: dict[str, set[Key]] = {kind: set() for kind in KINDS}
    made["hosts"].update(before.old.hosts)  # written in two steps, either of which may fail
    turns = Turns(administration)
    try:
        for kind in KINDS:
            kept = KEPT[kind](administration)
            await in_parallel(
                _steps(kind, kept, changes.of(kind), made[kind]),
                give=turns.give,
                is_over=lambda: administration.importing.is_over,
                at_once=kept.at_once,
            )
    except FAILURES as error:
        is_undone = await take_back(administration, before, made)
        log.warning("definitions not imported is_undone=%s reason=%s", is_undone, error)
        if is_undone:
            raise Failed(f"nothing was imported: {error}") from error
        raise Failed(
            f"not all was imported, and not all of it could be undone: {error}; the same import"
            " again finishes it"
        ) from error


def _steps(kind: str, kept: Kept, things: Things, made: set[Key]) -> Iterator[Step]:
    groups: dict[Hashable, list[Key]] = {}
    for key in things:
        groups.setdefault(kept.group(key), []).append(key)
    for keys in groups.values():
        for begin in range(0, len(keys), MANY):
            together = {key: things[key] for key in keys[begin : begin + MANY]}
            yield _put(kind, kept, together, made)


async def _put(kind: str, kept: Kept, things: Things, made: set[Key]) -> None:
    """Write a group; what goes wrong is told with the first object's name."""
    if kind == "users":
        things = {key: with_own(user, kept.find(key)) for key, user in things.items()}
    try:
        await kept.put(things, made)
    except FAILURES as error:
        others = f" and {len(things) - 1} more" if len(things) > 1 else ""
        raise StepFailed(f"{named(kind, next(iter(things)))}{others}: {error}") from error
