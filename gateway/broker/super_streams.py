"""Super streams: a direct exchange whose bindings lead to streams, the partitions, in an order.

A super stream is made in one write: its exchange, its bindings, and the life of its streams, whose
segments are there by then. What a dying process leaves before this write is no stream yet, and is
removed by the next opening. It is deleted in one write too, which the rest follows.

Source: RabbitMQ, "Super Streams"; order of checks and codes as observed on RabbitMQ 4.3.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from gateway.broker.arguments import InvalidArgument, StreamArguments
from gateway.broker.catalogue import DELETING
from gateway.broker.errors import (
    ExchangeDoesNotExist,
    ExchangeExists,
    InternalError,
    PreconditionFailed,
    StreamExists,
)
from gateway.broker.exchanges import (
    DIRECT,
    PARTITION_ORDER,
    Binding,
    Declared,
    Exchange,
    is_predeclared,
)
from gateway.broker.naming import clean_name
from gateway.broker.streams import Stream
from gateway.broker.virtual_host import VirtualHost
from gateway.logs import InHost
from gateway.pending import Pending
from store.api import TableEntry

log = logging.getLogger(__name__)

SUPER_STREAM: Final = "x-super-stream"
"""Argument of an exchange that is a super stream."""

_LOCATOR: Final = "queue-leader-locator"
_SUPER_STREAM_LOCATOR: Final = "balanced"


def _ignore(_: object) -> None:
    return None


async def create_super_stream(
    virtual_host: VirtualHost,
    name: str,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
    arguments: Mapping[str, str],
    *,
    check: Callable[[], Coroutine[Pending[Any], None, None]] | None = None,
) -> None:
    """Create a super stream with all its partitions, or nothing.

    Args:
        virtual_host: Where.
        name: Loses CR and LF, as do the names of the partitions.
        partitions: The streams to create, in order.
        binding_keys: The n-th leads to the n-th partition; may repeat.
        arguments: Those of each stream.
        check: Called in the turn; may take its time, or raise to prevent it.

    Raises:
        PreconditionFailed: A bad name, too many partitions, one twice, or not a key for each; or
            the virtual host would have more streams than its limit allows.
        ExchangeExists: The name is an exchange's already, of whatever kind.
        StreamExists: A partition's name is a stream's already.
        InternalError: A bad argument, or the store refused; nothing is left.
    """
    name = clean_name(name)
    partitions = _checked(partitions, binding_keys, virtual_host.partitions_max)
    exchanges = virtual_host.exchanges
    async with exchanges.locks.hold(name):
        if check is not None:
            await check()
        if not virtual_host.streams.room.is_there(len(partitions)):
            raise PreconditionFailed("the virtual host has no room for so many streams")
        if name in exchanges:
            raise ExchangeExists(name)
        declared = exchanges.draft(Exchange(name, DIRECT, arguments={SUPER_STREAM: True}))
        await _create_partitions(
            virtual_host, declared, partitions, binding_keys, arguments, first_order=0
        )
    shown = InHost(name, virtual_host.name)
    log.info("super stream created super_stream=%s partitions=%d", shown, len(partitions))


async def add_partitions(
    virtual_host: VirtualHost,
    name: str,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
) -> None:
    """Add partitions to a super stream, behind those that it has; all or none.

    Whoever uses one of its partitions is told that it is gone, and so asks again. Clients that
    choose a partition by a key's hash send most keys elsewhere from then on.

    Args:
        virtual_host: Where.
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
        if not is_super_stream(declared.exchange):
            raise PreconditionFailed(f"exchange {name!r} is no super stream")
        existing = declared.partitions
        room = max(0, virtual_host.partitions_max - len(set(existing)))
        partitions = _checked(partitions, binding_keys, room)
        arguments = dict(streams.find(existing[0]).entry.arguments) if existing else {}
        first_order = declared.last_order + 1
        await _create_partitions(
            virtual_host, declared, partitions, binding_keys, arguments, first_order=first_order
        )
    shown = InHost(name, virtual_host.name)
    log.info("partitions added super_stream=%s partitions=%d", shown, len(partitions))
    for partition in existing:
        if partition in streams:
            streams.logs.tell_watchers(streams.find(partition))


def _checked(partitions: Sequence[str], keys: Sequence[str], room: int) -> list[str]:
    """Return the clean names of partitions to create. Raises PreconditionFailed."""
    if len(partitions) > room:
        raise PreconditionFailed(f"{len(partitions)} partitions are too many, {room} are allowed")
    if len(partitions) != len(keys):
        raise PreconditionFailed(f"{len(partitions)} partitions with {len(keys)} binding keys")
    clean = [clean_name(partition) for partition in partitions]
    if len(set(clean)) != len(clean):
        raise PreconditionFailed("a partition is named twice")
    return clean


async def _create_partitions(
    virtual_host: VirtualHost,
    declared: Declared,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
    arguments: Mapping[str, str],
    *,
    first_order: int,
) -> None:
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    for partition in partitions:
        if partition in streams:
            raise StreamExists(partition)
    given = {_LOCATOR: _SUPER_STREAM_LOCATOR, **arguments} if partitions else {}
    try:
        parsed = StreamArguments.parse(given)
    except InvalidArgument as error:
        raise InternalError(str(error)) from error
    bindings = [
        Binding(declared.exchange.name, partition, key, {PARTITION_ORDER: order})
        for order, (partition, key) in enumerate(
            zip(partitions, binding_keys, strict=True), start=first_order
        )
    ]

    def rows(created: Sequence[Stream]) -> list[TableEntry]:
        return [
            declared.binding_row(binding, stream.entry.generation)
            for binding, stream in zip(bindings, created, strict=True)
        ]

    def born(created: Sequence[Stream]) -> None:
        exchanges.adopt(declared)
        for row, binding, stream in zip(rows(created), bindings, created, strict=True):
            exchanges.join(declared, row.key, binding, stream)

    exchanges.keep(declared)
    try:
        await streams.create_together(
            partitions,
            parsed,
            topology=lambda created: [declared.row(), *rows(created)],
            born=born,
        )
    finally:
        await exchanges.let_go(declared)


async def delete_super_stream(
    virtual_host: VirtualHost,
    name: str,
    *,
    check: Callable[[Sequence[str]], Coroutine[Pending[Any], None, None]] | None = None,
    gone: Callable[[Stream], object] = _ignore,
) -> None:
    """Delete an exchange, of whatever kind, and every stream that is bound to it.

    Args:
        virtual_host: Where.
        name: The super stream; those that are always there are not found.
        check: Given the streams that will go; may take its time, or raise to prevent it.
        gone: Told of each stream, as by `Streams.delete`.

    Raises:
        ExchangeDoesNotExist: No such exchange.
        InternalError: The store refused.
    """
    if is_predeclared(name):
        raise ExchangeDoesNotExist(name)
    exchanges = virtual_host.exchanges
    async with exchanges.locks.hold(name):
        checked: list[str] | None = None
        while True:
            declared = exchanges.declared(name)
            partitions = list(dict.fromkeys(declared.partitions))
            if check is None or partitions == checked:
                break
            await check(partitions)  # meanwhile a stream may have been deleted
            checked = partitions
        await virtual_host.streams.delete_together(
            partitions,
            gone,
            marks=[declared.row(DELETING)] if declared.is_stored else [],
            removed=[declared.key, *declared.bindings],
            done=lambda: exchanges.drop(declared),
        )
    shown = InHost(name, virtual_host.name)
    log.info("super stream deleted super_stream=%s partitions=%d", shown, len(partitions))


def partitions_of(virtual_host: VirtualHost, name: str) -> Sequence[str]:
    """Return a super stream's partitions in their order.

    Raises:
        ExchangeDoesNotExist: No such exchange.
    """
    return virtual_host.exchanges.partitions(name)


def is_super_stream(exchange: Exchange) -> bool:
    """Tell whether an exchange was declared as a super stream."""
    return exchange.type == DIRECT and exchange.arguments.get(SUPER_STREAM) is True
