"""Mending a super stream that has lost partitions, because their streams were deleted."""

import logging
from collections.abc import Mapping, Sequence

from gateway.broker.errors import ExchangeExists
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.locks import Check, unchecked
from gateway.broker.topology.exchanges import PARTITION_ORDER, Binding
from gateway.logs import NameInHost

log = logging.getLogger(__name__)


async def mend_super_stream(
    virtual_host: VirtualHost,
    name: str,
    partitions: Sequence[str],
    binding_keys: Sequence[str],
    arguments: Mapping[str, str],
    *,
    check: Check = unchecked,
) -> None:
    """Make and bind the partitions that a super stream lacks, one after the other.

    Args:
        virtual_host: Where.
        name: The super stream, which exists.
        partitions: All that it should have, in order; a stream of the name is taken as it is.
        binding_keys: The n-th leads to the n-th partition.
        arguments: Those of streams that are made; if there are none, the first partition's.
        check: Called in each turn.

    Raises:
        ExchangeExists: It is no super stream, or lacks none of these.
        BrokerError: As for creating a stream and for binding it.
    """
    exchanges, streams = virtual_host.exchanges, virtual_host.streams
    declared = exchanges.declared(name)
    existing = declared.partitions
    lacking = [
        (order, partition, key)
        for order, (partition, key) in enumerate(zip(partitions, binding_keys, strict=True))
        if partition not in existing
    ]
    if not declared.exchange.is_super_stream or not lacking:
        raise ExchangeExists(name)
    if not arguments and existing:
        arguments = dict(streams.find(existing[0]).entry.arguments)
    for order, partition, key in lacking:
        if partition not in streams:
            await streams.create(partition, arguments, check=check)
        binding = Binding(
            source=name, destination=partition, routing_key=key, arguments={PARTITION_ORDER: order}
        )
        await exchanges.bind(binding, check=check)
    shown = NameInHost(name, virtual_host.name)
    log.info("super stream mended super_stream=%s partitions=%d", shown, len(lacking))


def super_streams_of(virtual_host: VirtualHost, stream: str) -> list[str]:
    """Return the super streams that a stream is a partition of."""
    exchanges = virtual_host.exchanges
    return [
        exchange.name
        for exchange in exchanges.all()
        if exchange.is_super_stream and stream in exchanges.partitions(exchange.name)
    ]
