"""Super streams: a direct exchange whose bindings lead to streams, the partitions, in an order.

One write creates a super stream: its exchange, its bindings, and the state LIVE of its streams,
whose segments exist by then. If the process dies before this write, the next opening removes what
was made so far. One write deletes a super stream too; its data goes after that.

Source: RabbitMQ, "Super Streams"; order of checks and codes as observed on RabbitMQ 4.3.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gateway.broker.access.access import Demand, to_configure, to_manage_super_stream
from gateway.broker.errors import (
    ExchangeDoesNotExist,
    ExchangeExists,
    InternalError,
    PreconditionFailed,
    StreamExists,
)
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.naming import check_name, clean_name, without_line_ends
from gateway.broker.rules.arguments import InvalidStreamArgument, StreamArguments, brief
from gateway.broker.streams.catalogue import DELETING
from gateway.broker.streams.streams import Stream, tell_doubts
from gateway.broker.topology.exchange import SUPER_STREAM, number_in
from gateway.broker.topology.exchanges import (
    DIRECT,
    PARTITION_ORDER,
    Binding,
    Declared,
    Exchange,
    is_predeclared,
)
from gateway.logs import NameInHost
from gateway.pending import Pending
from store.api import TableEntry

log = logging.getLogger(__name__)

_LOCATOR: Final = "queue-leader-locator"
_SUPER_STREAM_LOCATOR: Final = "balanced"


Require: TypeAlias = Callable[[Iterable[Demand]], Coroutine[Pending[Any], None, None]]
"""Raises unless the caller has the demanded rights."""


async def _allow(_: Iterable[Demand]) -> None:
    """Require nothing, for callers that may do everything."""


def _ignore(_: object) -> None:
    return None


async def create_super_stream(
    virtual_host: VirtualHost,
    name: str,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
    arguments: Mapping[str, str],
    *,
    require: Require = _allow,
) -> None:
    """Create a super stream with all its partitions, or nothing.

    Args:
        virtual_host: The virtual host.
        name: Loses CR and LF, as do the names of the partitions.
        partitions: The streams to create, in order.
        binding_keys: The n-th leads to the n-th partition; may repeat.
        arguments: The arguments of each stream.
        require: Checks rights before the first wait, and again while the locks are held.

    Raises:
        PreconditionFailed: A bad name, too many partitions, one twice, or not a key for each; or
            the virtual host would have more streams than its limit allows.
        ExchangeExists: There is an exchange of that name, of any kind.
        StreamExists: There is a stream with a partition's name.
        InternalError: A bad argument, or the store refused; nothing is left.
    """
    name = clean_name(name)
    await require(to_configure(name))
    # RabbitMQ counts them last; counting first bounds the number of permissions to check.
    _check_count(partitions, virtual_host.partitions_max)
    partitions = [without_line_ends(partition) for partition in partitions]
    demands = to_manage_super_stream(name, partitions)
    await require(demands)
    _check_partitions(partitions, binding_keys)
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    async with exchanges.locks.hold(name), streams.locks.hold(*partitions):
        await require(demands)
        with streams.room_for(len(partitions)):
            if name in exchanges:
                raise ExchangeExists(name)
            declared = exchanges.draft(Exchange(name, DIRECT, arguments={SUPER_STREAM: True}))
            await _create_partitions(virtual_host, declared, partitions, binding_keys, arguments)
    shown = NameInHost(name, virtual_host.name)
    log.info(
        "super stream created super_stream=%s partitions=%d arguments=%s",
        shown,
        len(partitions),
        brief(arguments),
    )
    tell_doubts(shown, arguments)


async def add_partitions(
    virtual_host: VirtualHost,
    name: str,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
) -> None:
    """Add partitions to a super stream, behind those that it has; all or none.

    Clients that use one of its partitions are told that it is gone, so that they ask again. Clients
    that choose a partition by a key's hash send most keys elsewhere from then on.

    Args:
        virtual_host: The virtual host.
        name: The super stream.
        partitions: The streams to create; they get the arguments of its first partition.
        binding_keys: The n-th leads to the n-th new partition.

    Raises:
        ExchangeDoesNotExist: No such super stream.
        PreconditionFailed: It is an exchange of another kind, or as for `create_super_stream`.
        StreamExists: As for `create_super_stream`.
        InternalError: The store refused; nothing is changed.
    """
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    async with exchanges.locks.hold(name):
        declared = exchanges.declared(name)
        if not declared.exchange.is_super_stream:
            raise PreconditionFailed(f"exchange {name!r} is no super stream")
        existing = declared.partitions
        _check_count(partitions, max(0, virtual_host.partitions_max - len(set(existing))))
        partitions = [without_line_ends(partition) for partition in partitions]
        _check_partitions(partitions, binding_keys)
        arguments = dict(streams.find(existing[0]).entry.arguments) if existing else {}
        async with exchanges.kept(declared), streams.locks.hold(*partitions):
            with streams.room_for(len(partitions)):
                await _create_partitions(
                    virtual_host, declared, partitions, binding_keys, arguments
                )
    shown = NameInHost(name, virtual_host.name)
    log.info("partitions added super_stream=%s partitions=%d", shown, len(partitions))
    for partition in existing:
        if partition in streams:
            streams.logs.tell_watchers(streams.find(partition))


def _check_count(partitions: Sequence[str], room: int) -> None:
    """Raise PreconditionFailed if there are too many partitions."""
    if len(partitions) > room:
        raise PreconditionFailed(f"{len(partitions)} partitions are too many, {room} are allowed")


def _check_partitions(partitions: Sequence[str], keys: Sequence[str]) -> None:
    """Raise PreconditionFailed if such partitions are not allowed."""
    if len(partitions) != len(keys):
        raise PreconditionFailed(
            f"{len(partitions)} partitions need as many binding keys, not {len(keys)}"
        )
    for partition in partitions:
        check_name(partition)
    if len(set(partitions)) != len(partitions):
        raise PreconditionFailed("a partition is named twice")


async def _create_partitions(
    virtual_host: VirtualHost,
    declared: Declared,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
    arguments: Mapping[str, str],
) -> None:
    """Create partitions behind those of an exchange, and the exchange if it is new.

    The caller holds the locks, and has reserved room for the streams.
    """
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    for partition in partitions:
        if partition in streams:
            raise StreamExists(partition)
    given = {_LOCATOR: _SUPER_STREAM_LOCATOR, **arguments} if partitions else {}
    try:
        parsed = StreamArguments.parse(given)
    except InvalidStreamArgument as error:
        raise InternalError(str(error)) from error
    drafts = streams.drafts(partitions, parsed)
    made = list[tuple[TableEntry, Binding, Stream]]()
    first_order = declared.last_order + 1
    for order, (stream, key) in enumerate(zip(drafts, binding_keys, strict=True), first_order):
        binding = Binding(
            source=declared.exchange.name,
            destination=stream.name,
            routing_key=key,
            arguments={PARTITION_ORDER: order},
        )
        made.append((declared.binding_row(binding, stream.entry.generation), binding, stream))
    await streams.create_together(drafts, [declared.row(), *(row for row, _, _ in made)])
    exchanges.adopt(declared)
    for row, binding, stream in made:
        exchanges.join(declared, row.key, binding, stream)


async def delete_super_stream(
    virtual_host: VirtualHost,
    name: str,
    *,
    require: Require = _allow,
    gone: Callable[[Stream], object] = _ignore,
) -> None:
    """Delete an exchange, of any kind, and every stream that is bound to it.

    Args:
        virtual_host: The virtual host.
        name: The super stream; predeclared exchanges are not found.
        require: As for `create_super_stream`.
        gone: Called with each stream, as by `Streams.delete`.

    Raises:
        ExchangeDoesNotExist: No such exchange.
        InternalError: The store refused.
    """
    await require(to_configure(name))
    if is_predeclared(name):
        raise ExchangeDoesNotExist(name)
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    async with exchanges.locks.hold(name):
        judged: list[str] | None = None
        while True:
            declared = exchanges.declared(name)
            partitions = list(dict.fromkeys(declared.partitions))
            if partitions == judged:
                break
            await require(to_manage_super_stream(name, partitions))
            judged = partitions  # a stream may have been deleted meanwhile
        async with streams.locks.hold(*partitions):
            marks = [declared.row(DELETING)] if declared.is_stored else []
            going = await streams.begin_deletion(partitions, marks)
            rows = [declared.key, *declared.bindings]
            exchanges.drop(declared)
            await streams.end_deletion(going, gone, rows)
    shown = NameInHost(name, virtual_host.name)
    log.info("super stream deleted super_stream=%s partitions=%d", shown, len(partitions))


def partitions_of(virtual_host: VirtualHost, name: str) -> Sequence[str]:
    """Return a super stream's partitions in their order.

    Raises:
        ExchangeDoesNotExist: No such exchange.
    """
    return virtual_host.exchanges.partitions(name)


class PartitionPlaces:
    """Finds the super streams of partitions; remembers their orders, so it is for one request."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._by_number = virtual_host.exchanges.by_number
        self._orders: dict[int, dict[str, int]] = {}

    def of(self, stream: Stream) -> tuple[str, int] | None:
        """Return a stream's super stream, and its place there from 0 on; None if it has none.

        Of several super streams it is the first one by name.
        """
        found = [
            (declared.exchange.name, self._order(declared).get(stream.name, 0))
            for declared in map(self._by_number.get, set(map(number_in, stream.bound_by)))
            if declared is not None and declared.exchange.is_super_stream
        ]
        return min(found, default=None)

    def _order(self, declared: Declared) -> dict[str, int]:
        order = self._orders.get(declared.number)
        if order is None:
            partitions = dict.fromkeys(declared.partitions)
            order = {name: place for place, name in enumerate(partitions)}
            self._orders[declared.number] = order
        return order
