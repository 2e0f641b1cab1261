"""Rollback of an import, by the same process or by the next one.

The state before is written down as JSON: `new` has the names of objects that the import creates,
`old` the objects that it overwrites, each by kind. Objects that go with another new one, as streams
with their virtual host, are left out.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import Any, Final

from gateway.broker.access.errors import NoSuchPermission, NoSuchUser, NoSuchVirtualHost
from gateway.broker.access.model import Permission, User
from gateway.broker.errors import ExchangeDoesNotExist, StreamDoesNotExist
from gateway.broker.rules.policies import NoSuchPolicy, Policy
from gateway.management.administration import Administration, Turns
from gateway.management.definitions.objects import Definitions, Host, Key
from gateway.management.requests.parallel import FAILURES, Step, Stopped, in_parallel
from gateway.management.requests.state import KEPT

log = logging.getLogger(__name__)

_NEW: Final = (
    *("hosts", "bindings", "exchanges", "streams"),
    *("policies", "operator_policies", "permissions", "users"),
)
"""The order in which things go; with a virtual host all that is in it."""
_OLD: Final = ("hosts", "users", "permissions", "policies", "operator_policies")
_NEVER_CAME: Final = (
    *(NoSuchPermission, NoSuchPolicy, NoSuchUser, NoSuchVirtualHost),
    *(ExchangeDoesNotExist, StreamDoesNotExist),
)


@dataclass(slots=True)
class Before:
    """State before an import of all that it changes.

    Attributes:
        new: The keys of objects that did not exist, by kind.
        old: The objects that did.
    """

    new: dict[str, list[Key]] = field(default_factory=lambda: {kind: [] for kind in _NEW})
    old: Definitions = field(default_factory=Definitions)

    def pack(self) -> bytes:
        """Encode for the table."""
        new = {kind: [_packed_key(kind, key) for key in keys] for kind, keys in self.new.items()}
        old = {
            kind: [_packed(key, thing) for key, thing in self.old.of(kind).items()] for kind in _OLD
        }
        return json.dumps({"new": new, "old": old}).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> "Before":
        """Undo `pack`; nothing is nothing."""
        content: Mapping[str, Mapping[str, list[Any]]] = json.loads(packed or b"{}")
        before = cls()
        for kind, keys in content.get("new", {}).items():
            before.new[kind] = [_unpacked_key(kind, key) for key in keys]
        for kind, things in content.get("old", {}).items():
            before.old.of(kind).update(_unpacked(kind, thing) for thing in things)
        return before


def _packed_key(kind: str, key: Key) -> object:
    if kind in ("hosts", "users"):
        return key[1]
    return [*key[:-1], json.loads(key[-1])] if kind == "bindings" else key


def _unpacked_key(kind: str, packed: Any) -> Key:  # noqa: ANN401  # what JSON holds
    if kind in ("hosts", "users"):
        return "", packed
    if kind == "bindings":
        return *packed[:-1], json.dumps(packed[-1], sort_keys=True)
    return tuple(packed)


def _packed(key: Key, thing: Host | User | Permission | Policy) -> object:
    if isinstance(thing, Host):
        return astuple(thing)
    text = thing.pack().decode()
    return [key[0], text] if isinstance(thing, Policy) else text


def _unpacked(kind: str, packed: Any) -> tuple[Key, Any]:  # noqa: ANN401  # what JSON holds
    if kind == "hosts":
        name, description, tags, queue_type, limits = packed
        return ("", name), Host(name, description, tuple(tags), queue_type, limits)
    if kind == "users":
        user = User.unpack(packed.encode())
        return ("", user.name), user
    if kind == "permissions":
        permission = Permission.unpack(packed.encode())
        return (permission.virtual_host, permission.user), permission
    host, text = packed
    policy = Policy.unpack(text.encode())
    return (host, policy.name), policy


async def remember(administration: Administration, changes: Definitions) -> Before:
    """Return what there is of all that is to be changed."""
    before = Before()
    turns = Turns(administration)
    for kind, kept in KEPT.items():
        find = kept(administration).find
        for key in changes.of(kind):
            await turns.give()
            known = find(key)
            if known is None:
                before.new[kind].append(key)
            else:
                before.old.of(kind)[key] = known
    hosts = {name for _, name in before.new["hosts"]}
    for keys in before.new.values():
        keys[:] = [key for key in keys if key[0] not in hosts]
    made = set(before.new["exchanges"])
    bindings = before.new["bindings"]
    bindings[:] = [key for key in bindings if key[:2] not in made]
    return before


async def take_back(
    administration: Administration,
    before: Before,
    made: Mapping[str, Collection[Key]] | None = None,
) -> bool:
    """Make all be as it was before an import that was done in part.

    Args:
        administration: Where it was done.
        before: What there was.
        made: What was done, by kind; None if that is not known.

    Returns:
        False if something could not be; the log says what.
    """
    failures: list[Exception] = []
    for kind in _NEW:
        kept = KEPT[kind](administration)
        keys = (key for key in before.new[kind] if made is None or key in made[kind])
        await _do_all(administration, map(kept.remove, keys), failures)
    for kind in _OLD:
        kept = KEPT[kind](administration)
        steps = (
            kept.put({key: thing}, set())
            for key, thing in before.old.of(kind).items()
            if (made is None or key in made[kind]) and kept.find(key) is not None
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
            give=Turns(administration).give,
            is_over=lambda: administration.importing.is_over,
        )
    except Stopped as stopped:
        failures.append(stopped)
