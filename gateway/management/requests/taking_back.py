"""What there was before an import, written down so that another process can take the import back.

JSON: `new` has the names of what there was not, `old` what there was and is written over, each by
kind. What goes with something else that is new, as streams with their virtual host, is left out.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from gateway.broker.access.errors import (
    AccessError,
    NoSuchPermission,
    NoSuchUser,
    NoSuchVirtualHost,
)
from gateway.broker.access.model import Permission, User
from gateway.broker.errors import BrokerError, ExchangeDoesNotExist, StreamDoesNotExist
from gateway.broker.exchanges import Binding
from gateway.broker.policies import NoSuchPolicy, Policy, PolicyTable
from gateway.broker.virtual_host import VirtualHost
from gateway.management.administration import Administration
from gateway.management.definitions.objects import HostObject
from gateway.management.definitions.planning import Plan
from gateway.management.errors import NotFound
from gateway.management.requests.applying import Step, Stopped, describe, in_parallel
from gateway.management.requests.state import host_object
from store.errors import StoreError

log = logging.getLogger(__name__)

Before: TypeAlias = Mapping[str, Mapping[str, list[Any]]]
"""`new` and `old`: kind → what JSON can hold."""
Found: TypeAlias = tuple[Any, Any]

_NEW: Final = (
    *("hosts", "bindings", "exchanges", "streams"),
    *("policies", "operator_policies", "permissions", "users"),
)
"""The order in which things go; with a virtual host all that is in it."""
_NEVER_CAME: Final = (
    *(NotFound, NoSuchPermission, NoSuchPolicy, NoSuchUser, NoSuchVirtualHost),
    *(ExchangeDoesNotExist, StreamDoesNotExist),
)
_OLD: Final = ("hosts", "users", "permissions", "policies", "operator_policies")
_IN_HOSTS: Final = (
    *("permissions", "policies", "operator_policies"),
    *("streams", "exchanges", "bindings"),
)


def remember(administration: Administration, plan: Plan) -> Before:
    """Return what there is of all that a plan changes."""
    new: dict[str, list[Any]] = {kind: [] for kind in _NEW}
    old: dict[str, list[Any]] = {kind: [] for kind in _OLD}
    for kind, find in _FIND.items():
        for thing in plan.changes[kind]:
            name, known = find(administration, thing)
            if known is None:
                new[kind].append(name)
            else:
                old[kind].append(known)
    gone = set(new["hosts"])
    for kind in _IN_HOSTS:
        new[kind] = [name for name in new[kind] if name[0] not in gone]
    made = {(host, exchange) for host, exchange in new["exchanges"]}
    new["bindings"] = [name for name in new["bindings"] if (name[0], name[1]) not in made]
    return {"new": new, "old": old}


def _host(administration: Administration, one: Any) -> Found:  # noqa: ANN401  # of its kind
    if administration.virtual_hosts.find(one.name) is None:
        return one.name, None
    known = host_object(administration, one.name)
    return one.name, [
        *(known.name, known.description, list(known.tags)),
        *(known.default_queue_type, dict(known.limits)),
    ]


def _user(administration: Administration, one: Any) -> Found:  # noqa: ANN401
    known = administration.access.user(one.name)
    return one.name, None if known is None else known.pack().decode()


def _permission(administration: Administration, one: Any) -> Found:  # noqa: ANN401
    known = administration.access.permission(one.user, one.virtual_host)
    return [one.virtual_host, one.user], None if known is None else known.pack().decode()


def _policy(administration: Administration, one: Any) -> Found:  # noqa: ANN401
    host = administration.virtual_hosts.find(one.virtual_host)
    return _ruling(None if host is None else host.policies, one)


def _operator_policy(administration: Administration, one: Any) -> Found:  # noqa: ANN401
    host = administration.virtual_hosts.find(one.virtual_host)
    return _ruling(None if host is None else host.policies.operators, one)


def _ruling(table: PolicyTable | None, one: Any) -> Found:  # noqa: ANN401
    name = [one.virtual_host, one.name]
    for known in () if table is None else table.all():
        if known.name == one.name:
            return name, [one.virtual_host, known.pack().decode()]
    return name, None


def _made(_: Administration, one: Any) -> Found:  # noqa: ANN401
    """Of streams and exchanges only those are made that there are not."""
    return [one.virtual_host, one.name], None


def _bound(_: Administration, one: Any) -> Found:  # noqa: ANN401
    arguments = dict(one.arguments)
    return [one.virtual_host, one.source, one.destination, one.routing_key, arguments], None


_FIND: Final[Mapping[str, Callable[[Administration, Any], Found]]] = {
    "hosts": _host,
    "users": _user,
    "permissions": _permission,
    "policies": _policy,
    "operator_policies": _operator_policy,
    "streams": _made,
    "exchanges": _made,
    "bindings": _bound,
}
"""How to find what there is of a kind: its name, and itself if there is one."""


def pack(before: Before) -> bytes:
    """Encode what there was."""
    return json.dumps(before).encode()


def unpack(packed: bytes) -> Before:
    """Undo `pack`; nothing is nothing."""
    before: Before = json.loads(packed or b"{}")
    return before


async def take_back(administration: Administration, before: Before) -> bool:
    """Make all be as it was before an import that was done in part.

    Returns:
        False if something could not be; the log says what.
    """
    new, old = before.get("new", {}), before.get("old", {})
    undo = _TakingBack(administration)
    for kind in _NEW:
        remove: Callable[..., Step] = getattr(undo, f"remove_{kind}")
        await undo.do(remove(of_kind) for of_kind in new.get(kind, ()))
    for kind in _OLD:
        restore: Callable[..., Step] = getattr(undo, f"restore_{kind}")
        await undo.do(restore(of_kind) for of_kind in old.get(kind, ()))
    return undo.is_done


class _TakingBack:
    """Takes things back one by one; what an import never came to is left alone."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self.is_done = True

    async def do(self, steps: Iterable[Step]) -> None:
        """Do all steps, whatever becomes of each."""
        turn = self._administration.importing
        try:
            await in_parallel((self._told(step) for step in steps), is_over=lambda: turn.is_over)
        except Stopped:
            self.is_done = False

    async def _told(self, step: Step) -> None:
        try:
            with suppress(*_NEVER_CAME):
                await step
        except (AccessError, BrokerError, StoreError) as error:
            log.error("part of an import could not be taken back error=%s", error)  # noqa: TRY400  # what failed first is told
            self.is_done = False

    def _host(self, name: str) -> VirtualHost:
        return self._administration.host(name)

    async def remove_hosts(self, name: str) -> None:
        await self._administration.virtual_hosts.delete(name)

    async def remove_bindings(self, parts: Sequence[Any]) -> None:
        host, *binding = parts
        await self._host(host).exchanges.unbind(Binding(*binding))

    async def remove_exchanges(self, parts: Sequence[str]) -> None:
        host, name = parts
        await self._host(host).exchanges.delete(name)

    async def remove_streams(self, parts: Sequence[str]) -> None:
        host, name = parts
        streams = self._host(host).streams
        await streams.delete(name, streams.logs.tell_watchers)

    async def remove_policies(self, parts: Sequence[str]) -> None:
        host, name = parts
        await self._host(host).policies.delete(name)

    async def remove_operator_policies(self, parts: Sequence[str]) -> None:
        host, name = parts
        await self._host(host).policies.operators.delete(name)

    async def remove_permissions(self, parts: Sequence[str]) -> None:
        host, user = parts
        await self._administration.access.delete_permission(user, host)

    async def remove_users(self, name: str) -> None:
        await self._administration.access.delete_user(name)

    async def restore_hosts(self, parts: Sequence[Any]) -> None:
        name, description, tags, queue_type, limits = parts
        await describe(
            self._administration, HostObject(name, description, tuple(tags), queue_type, limits)
        )

    async def restore_users(self, packed: str) -> None:
        await self._administration.access.put_user(User.unpack(packed.encode()))

    async def restore_permissions(self, packed: str) -> None:
        await self._administration.access.put_permission(Permission.unpack(packed.encode()))

    async def restore_policies(self, parts: Sequence[str]) -> None:
        host, packed = parts
        await self._host(host).policies.put(Policy.unpack(packed.encode()))

    async def restore_operator_policies(self, parts: Sequence[str]) -> None:
        host, packed = parts
        await self._host(host).policies.operators.put(Policy.unpack(packed.encode()))
