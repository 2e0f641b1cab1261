"""A plan carried out on the server: all of it, or what was done is undone.

The order of kinds is that in which things need each other. A process that dies on the way leaves
what it had done; its next start finishes the rest, or takes back all (`definitions.finish_import`).
"""

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from gateway.broker.access.errors import AccessError
from gateway.broker.access.model import Permission, User
from gateway.broker.access.passwords import Algorithm, PasswordHash
from gateway.broker.errors import (
    BrokerError,
    ExchangeDoesNotExist,
    StreamDoesNotExist,
    StreamExists,
)
from gateway.broker.exchanges import Binding, Exchange
from gateway.broker.policies import Policy, PolicyTable
from gateway.management.administration import Administration
from gateway.management.definitions.errors import shown
from gateway.management.definitions.objects import (
    BindingObject,
    DefinedObject,
    ExchangeObject,
    HostObject,
    PermissionObject,
    PolicyObject,
    StreamObject,
    UserObject,
    place_of,
)
from gateway.management.definitions.planning import Plan
from gateway.management.definitions.reading import KIND_OF
from gateway.management.requests.state import host_object
from gateway.pending import Pending, start
from store.errors import StoreError

log = logging.getLogger(__name__)

AT_ONCE: Final = 256
"""So many things are on their way to the store together: they share its syncs."""
MANY: Final = 2_000
"""So many users, permissions or bindings go in one update, which may have 16 MiB."""

Step: TypeAlias = Coroutine[Pending[Any], None, Any]
Undo: TypeAlias = Callable[[], Step]


class ApplyFailed(Exception):
    """The plan could not be carried out.

    Attributes:
        reason: Why, from the first thing that failed.
        is_undone: Whether the server is as it was before.
    """

    def __init__(self, reason: Exception, *, is_undone: bool) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.is_undone = is_undone


async def apply_plan(administration: Administration, plan: Plan) -> None:
    """Carry out a plan.

    Raises:
        ApplyFailed: Something failed; everything was undone, if that was possible.
    """
    applier = Applier(administration)
    try:
        await applier.apply(plan)
    except Stopped as stopped:
        raise ApplyFailed(stopped, is_undone=False) from stopped
    except (StepFailed, AccessError, BrokerError, StoreError) as error:
        is_undone = await applier.undo()
        raise ApplyFailed(error, is_undone=is_undone) from error


class Stopped(Exception):
    """The server stops; what was done stays, since its next start finishes it."""


class StepFailed(Exception):
    """One object could not be written; the message names it."""


async def _told(kind: str, thing: DefinedObject, step: Callable[[], Step]) -> None:
    """Do a step; what goes wrong is told with the object's name."""
    try:
        await step()
    except (AccessError, BrokerError, StoreError) as error:
        host, name = place_of(thing)
        where = f"{KIND_OF[kind]} {shown(name)} in virtual host {shown(host)}"
        raise StepFailed(f"{where}: {error}") from error


class Applier:
    """Carries out changes and remembers how to undo each."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self._undo: list[Undo] = []

    async def apply(self, plan: Plan) -> None:
        """Carry out all changes. Raises what the broker raises."""
        changes: Mapping[str, list[Any]] = plan.changes
        for host in changes["hosts"]:
            await self._in_parallel([self._put_host(host)])
        for users in _slices(changes["users"]):
            await self._in_parallel([self._put_users(users)])
        for permissions in _slices(changes["permissions"]):
            await self._in_parallel([self._put_permissions(permissions)])
        for kind, put in (
            ("policies", self._put_policy),
            ("operator_policies", self._put_operator_policy),
            ("streams", self._put_stream),
            ("exchanges", self._put_exchange),
        ):
            await self._in_parallel(
                _told(kind, thing, partial(put, thing)) for thing in changes[kind]
            )
        await self._in_parallel(
            _told("bindings", together[0], partial(self._put_bindings, together))
            for together in _by_exchange(changes["bindings"])
        )

    async def _in_parallel(self, steps: Iterable[Step]) -> None:
        await in_parallel(steps, is_over=lambda: self._administration.importing.is_over)

    async def undo(self) -> bool:
        """Undo all that was done, the latest first; False if something could not be."""
        is_undone = True
        for undo in reversed(self._undo):
            if self._administration.importing.is_over:
                return False
            try:
                await undo()
            except (AccessError, BrokerError, StoreError) as error:
                log.error("part of an import could not be undone error=%s", error)  # noqa: TRY400  # what failed first is told
                is_undone = False
        return is_undone

    async def _put_host(self, wanted: HostObject) -> None:
        administration, hosts = self._administration, self._administration.virtual_hosts
        if hosts.find(wanted.name) is None:
            await hosts.create(
                wanted.name,
                description=wanted.description,
                tags=wanted.tags,
                default_queue_type=wanted.default_queue_type,
            )
            self._undo.append(partial(hosts.delete, wanted.name))
        else:
            before = host_object(administration, wanted.name)
            self._undo.append(partial(describe, administration, before))
            await describe(administration, wanted)
        if wanted.limits:
            await administration.access.set_virtual_host_limits(wanted.name, wanted.limits)

    async def _put_users(self, wanted: Sequence[UserObject]) -> None:
        access = self._administration.access
        before = [access.user(user.name) for user in wanted]
        users = [_user(user, known) for user, known in zip(wanted, before, strict=True)]

        async def undo() -> None:
            for user, known in zip(users, before, strict=True):
                if known is None:
                    await access.delete_user(user.name)
            await access.put_many([known for known in before if known is not None], [])

        await access.put_many(users, [])
        self._undo.append(undo)

    async def _put_permissions(self, wanted: Sequence[PermissionObject]) -> None:
        access = self._administration.access
        before = [access.permission(one.user, one.virtual_host) for one in wanted]
        permissions = [
            Permission(one.user, one.virtual_host, one.configure, one.write, one.read)
            for one in wanted
        ]

        async def undo() -> None:
            for one, known in zip(permissions, before, strict=True):
                if known is None:
                    with suppress(AccessError):  # its user is gone, or it never came so far
                        await access.delete_permission(one.user, one.virtual_host)
            await access.put_many([], [known for known in before if known is not None])

        await access.put_many([], permissions)
        self._undo.append(undo)

    async def _put_stream(self, wanted: StreamObject) -> None:
        streams = self._administration.host(wanted.virtual_host).streams
        try:
            await streams.create(wanted.name, wanted.arguments)
        except StreamExists:  # since the plan was made
            return

        async def undo() -> None:
            with suppress(StreamDoesNotExist):
                await streams.delete(wanted.name, streams.logs.tell_watchers)

        self._undo.append(undo)

    async def _put_policy(self, wanted: PolicyObject) -> None:
        await self._put_into(self._administration.host(wanted.virtual_host).policies, wanted)

    async def _put_operator_policy(self, wanted: PolicyObject) -> None:
        policies = self._administration.host(wanted.virtual_host).policies.operators
        await self._put_into(policies, wanted)

    async def _put_into(self, policies: PolicyTable, wanted: PolicyObject) -> None:
        before = next((one for one in policies.all() if one.name == wanted.name), None)
        await policies.put(
            Policy(wanted.name, wanted.pattern, wanted.apply_to, wanted.definition, wanted.priority)
        )
        if before is None:
            self._undo.append(partial(policies.delete, wanted.name))
        else:
            self._undo.append(partial(policies.put, before))

    async def _put_exchange(self, wanted: ExchangeObject) -> None:
        exchanges = self._administration.host(wanted.virtual_host).exchanges
        await exchanges.declare(
            Exchange(
                wanted.name,
                wanted.type,
                wanted.durable,
                wanted.auto_delete,
                wanted.internal,
                wanted.arguments,
            )
        )

        async def undo() -> None:
            with suppress(ExchangeDoesNotExist):
                await exchanges.delete(wanted.name)

        self._undo.append(undo)

    async def _put_bindings(self, wanted: Sequence[BindingObject]) -> None:
        exchanges = self._administration.host(wanted[0].virtual_host).exchanges
        bindings = [
            Binding(one.source, one.destination, one.routing_key, one.arguments) for one in wanted
        ]
        await exchanges.bind(*bindings)

        async def undo() -> None:
            for binding in bindings:
                with suppress(ExchangeDoesNotExist, StreamDoesNotExist):
                    await exchanges.unbind(binding)

        self._undo.append(undo)


async def describe(administration: Administration, wanted: HostObject) -> None:
    """Let a virtual host that is there be as wanted. Raises AccessError, StoreError."""
    hosts, access = administration.virtual_hosts, administration.access
    await hosts.describe(
        wanted.name,
        description=wanted.description,
        tags=wanted.tags,
        default_queue_type=wanted.default_queue_type,
        metadata=hosts.entry(wanted.name).metadata,
    )
    if wanted.limits != access.virtual_host_limits(wanted.name):
        await access.set_virtual_host_limits(wanted.name, wanted.limits)


def _user(wanted: UserObject, before: User | None) -> User:
    hashed: PasswordHash | None = None
    if wanted.has_foreign_hash:
        hashed = None if before is None else before.password_hash
    elif wanted.password_hash:
        algorithm = None if wanted.algorithm is None else Algorithm(wanted.algorithm)
        hashed = PasswordHash.parse(wanted.password_hash, algorithm)
    user = User(wanted.name, hashed, wanted.tags, dict(wanted.limits))
    return user if before is None else replace(user, loopback_only=before.loopback_only)


def _slices(things: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(things), MANY):
        yield things[begin : begin + MANY]


def _by_exchange(bindings: Iterable[BindingObject]) -> Iterator[Sequence[BindingObject]]:
    """Give the bindings of each exchange together, but not too many."""
    together: dict[tuple[str, str], list[BindingObject]] = {}
    for binding in bindings:
        together.setdefault((binding.virtual_host, binding.source), []).append(binding)
    for of_exchange in together.values():
        yield from _slices(of_exchange)


async def in_parallel(
    steps: Iterable[Step], *, is_over: Callable[[], bool] = lambda: False
) -> None:
    """Do steps, `AT_ONCE` of them at a time.

    Args:
        steps: What to do.
        is_over: Tells whether to begin no more of them.

    Raises:
        Stopped: Not all were begun.
        StepFailed, AccessError, BrokerError, StoreError: What a step raised first. In each case
            all that were begun have ended.
    """
    running: deque[Pending[Any]] = deque()
    failure: Exception | None = None
    for step in steps:
        if failure is not None or is_over():
            step.close()
            failure = failure or Stopped("the server is stopping")
            break
        running.append(start(step))
        if len(running) >= AT_ONCE:
            failure = await _outcome(running.popleft())
    while running:
        outcome = await _outcome(running.popleft())
        failure = failure or outcome
    if failure is not None:
        raise failure


async def _outcome(pending: Pending[Any]) -> Exception | None:
    try:
        await pending
    except (StepFailed, AccessError, BrokerError, StoreError) as error:
        return error
    return None
