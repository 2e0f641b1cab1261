"""Changes carried out on the server: all of them, or what was done is taken back.

The order of kinds is that in which things need each other. A process that dies on the way leaves
what it had done; its next start finishes the rest, or takes back all (`importing.finish_import`).

The state before is written down as JSON: `new` has the names of objects that the import creates,
`old` the objects that it overwrites, each by kind. Objects that go with another new one, as streams
with their virtual host, are left out.
"""

import json
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gateway.broker.errors import (
    AccessError,
    BrokerError,
    ExchangeDoesNotExist,
    NoSuchPermission,
    NoSuchUser,
    NoSuchVirtualHost,
    StreamDoesNotExist,
)
from gateway.broker.rules.policies import NoSuchPolicy
from gateway.management.administration import Administration, RequestTurns
from gateway.management.errors import Failed
from gateway.management.kinds import table
from gateway.management.kinds.kind import AT_ONCE, Definitions, Key, ObjectKind
from gateway.pending import Pending, start
from store.errors import StoreError

log = logging.getLogger(__name__)

MANY: Final = 500
"""Most users, permissions or bindings in one update: each takes up to 20 µs in one turn."""
_NEVER_CAME: Final = (
    *(NoSuchPermission, NoSuchPolicy, NoSuchUser, NoSuchVirtualHost),
    *(ExchangeDoesNotExist, StreamDoesNotExist),
)


Step: TypeAlias = Coroutine[Pending[Any], None, Any]
Give: TypeAlias = Callable[[], Coroutine[Pending[Any], None, None]]
"""Lets others have their turn if it is time."""


class ImportStopped(Exception):
    """The server stops; what was done stays, since its next start finishes it."""


class StepFailed(Exception):
    """One object could not be written; the message names it."""


FAILURES: Final = (StepFailed, AccessError, BrokerError, StoreError)
"""Errors that a step may raise."""


async def _keep() -> None:
    """Let others have no turn, where there are few steps."""


async def in_parallel(
    steps: Iterable[Step],
    *,
    give: Give = _keep,
    is_over: Callable[[], bool] = lambda: False,
    at_once: int = AT_ONCE,
) -> None:
    """Do steps, some of them at a time.

    Args:
        steps: What to do.
        give: Awaited before each: a store that is quick ends those before at once.
        is_over: Tells whether to begin no more of them.
        at_once: How many may be under way.

    Raises:
        ImportStopped: Not all were begun.
        StepFailed, AccessError, BrokerError, StoreError: What a step raised first. In each case
            all that were begun have ended.
    """
    running: deque[Pending[Any]] = deque()
    failure: Exception | None = None
    for step in steps:
        await give()
        if failure is not None or is_over():
            step.close()
            failure = failure or ImportStopped("the server is stopping")
            break
        running.append(start(step))
        if len(running) >= at_once:
            failure = await _outcome(running.popleft())
    while running:
        outcome = await _outcome(running.popleft())
        failure = failure or outcome
    if failure is not None:
        raise failure


async def _outcome(pending: Pending[Any]) -> Exception | None:
    try:
        await pending
    except FAILURES as error:
        return error
    return None


def _as_they_go() -> list[ObjectKind[Any]]:
    """Return the kinds in the order in which their objects are removed."""
    return sorted(table.KINDS, key=lambda kind: kind.removal)


def _replaced() -> list[ObjectKind[Any]]:
    return [kind for kind in table.KINDS if kind.is_replaced]


@dataclass(slots=True)
class Before:
    """State before an import of all that it changes.

    Attributes:
        new: The keys of objects that did not exist, by the names of kinds.
        old: The objects that did.
    """

    new: dict[str, list[Key]] = field(
        default_factory=lambda: {kind.name: [] for kind in _as_they_go()}
    )
    old: Definitions = field(default_factory=Definitions)

    def pack(self) -> bytes:
        """Encode for the table."""
        new = {
            kind.name: [kind.packed_key(key) for key in self.new[kind.name]]
            for kind in _as_they_go()
        }
        old = {
            kind.name: [kind.packed(key, thing) for key, thing in self.old.of(kind).items()]
            for kind in _replaced()
        }
        return json.dumps({"new": new, "old": old}).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> "Before":
        """Undo `pack`; nothing is nothing."""
        content: Mapping[str, Mapping[str, list[Any]]] = json.loads(packed or b"{}")
        new, old = content.get("new", {}), content.get("old", {})
        before = cls()
        for kind in table.KINDS:
            before.new[kind.name] = [kind.unpacked_key(key) for key in new.get(kind.name, ())]
            before.old.of(kind).update(kind.unpacked(thing) for thing in old.get(kind.name, ()))
        return before


async def remember(administration: Administration, changes: Definitions) -> Before:
    """Return what there is of all that is to be changed."""
    before = Before()
    turns = RequestTurns(administration)
    for kind in table.KINDS:
        for key in changes.of(kind):
            await turns.give()
            known = kind.find(administration, key)
            if known is None:
                before.new[kind.name].append(key)
            else:
                before.old.of(kind)[key] = known
    new = {(kind.name, key) for kind in table.KINDS for key in before.new[kind.name]}
    for kind in table.KINDS:
        before.new[kind.name] = [
            key
            for key in before.new[kind.name]
            if not any((owner.name, place) in new for owner, place in kind.goes_with(key))
        ]
    return before


async def take_back(
    administration: Administration,
    before: Before,
    made: Mapping[str, Collection[Key]] | None = None,
) -> bool:
    """Make all be as it was before an import that was done in part.

    What was made is given by kind; None if that is not known.

    Returns:
        False if something could not be; the log says what.
    """
    failures: list[Exception] = []
    for kind in _as_they_go():
        keys = [key for key in before.new[kind.name] if made is None or key in made[kind.name]]
        steps: Iterable[Step] = (kind.remove(administration, key) for key in keys)
        await _do_all(administration, steps, failures)
    for kind in _replaced():
        steps = (
            kind.put(administration, {key: thing}, set())
            for key, thing in before.old.of(kind).items()
            if (made is None or key in made[kind.name])
            and kind.find(administration, key) is not None
        )
        await _do_all(administration, steps, failures)
    return not failures


async def _do_all(
    administration: Administration, steps: Iterable[Step], failures: list[Exception]
) -> None:
    """Do all steps, whatever becomes of each; what an import never came to is left alone."""

    async def told(step: Step) -> None:
        try:
            with suppress(*_NEVER_CAME):
                await step
        except FAILURES as error:
            log.error("part of an import could not be taken back error=%s", error)  # noqa: TRY400  # what failed first is told
            failures.append(error)

    try:
        await in_parallel(
            map(told, steps),
            give=RequestTurns(administration).give,
            is_over=lambda: administration.importing.is_over,
        )
    except ImportStopped as stopped:
        failures.append(stopped)


async def apply_changes(
    administration: Administration, changes: Definitions, before: Before
) -> None:
    """Carry out changes, for which `remember` returned what there was before.

    Raises:
        ImportStopped: The server stops; what was done stays, since its next start finishes it.
        Failed: Something failed; everything was taken back, if that was possible.
    """
    made = {
        kind.name: set(before.old.of(kind)) if kind.is_in_steps else set() for kind in table.KINDS
    }
    turns = RequestTurns(administration)
    try:
        for kind in table.KINDS:
            await in_parallel(
                _steps(administration, kind, changes.of(kind), made[kind.name]),
                give=turns.give,
                is_over=lambda: administration.importing.is_over,
                at_once=kind.at_once,
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


def _steps(
    administration: Administration, kind: ObjectKind[Any], things: Mapping[Key, Any], made: set[Key]
) -> Iterator[Step]:
    groups: dict[Hashable, list[Key]] = {}
    for key in things:
        groups.setdefault(kind.group(key), []).append(key)
    for keys in groups.values():
        for begin in range(0, len(keys), MANY):
            together = {key: things[key] for key in keys[begin : begin + MANY]}
            yield _put(administration, kind, together, made)


async def _put(
    administration: Administration, kind: ObjectKind[Any], things: Mapping[Key, Any], made: set[Key]
) -> None:
    """Write a group; what goes wrong is told with the first object's name."""
    whole = {key: kind.over(thing, kind.find(administration, key)) for key, thing in things.items()}
    try:
        await kind.put(administration, whole, made)
    except FAILURES as error:
        others = f" and {len(things) - 1} more" if len(things) > 1 else ""
        raise StepFailed(f"{kind.named(next(iter(things)))}{others}: {error}") from error
