"""A virtual host: a world of its own of names, for the connections that opened it."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from gateway.broker.commits.commits import Commits
from gateway.broker.commits.opening import open_commits
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.groups import ConsumerGroups, partition_index
from gateway.broker.rules.policies import Policies
from gateway.broker.streams.streams import Streams, StreamsPorts, open_streams
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.broker.topology.exchange_loading import open_exchanges
from gateway.broker.topology.exchanges import DEFAULT_EXCHANGE, Exchanges
from gateway.log import names
from gateway.pending import Pending, asked, nothing
from store.api import SegmentStore
from store.errors import NoSuchSegment

_TABLES = (
    names.meta_table,
    names.tracking_table,
    names.policy_table,
    names.operator_policy_table,
    names.commits_table,
)
"""All tables of a virtual host; they go with it."""

PARTITIONS_MAX_DEFAULT: Final = 1_000


@dataclass(slots=True, eq=False)
class VirtualHost:
    """State that the connections of one virtual host share.

    Attributes:
        name: As clients say it.
        streams: Its streams.
        exchanges: Its exchanges and their bindings.
        commits: Its commits, with their stages and sinks.
        groups: Its groups of single active consumers.
        partitions_max: How many partitions a super stream may have.
        more_tables: Tables that fronts made, which go with it.
        has_user: Returns whether there is a user; set by the owner of the virtual hosts.
    """

    name: str
    streams: Streams
    exchanges: Exchanges
    commits: Commits
    groups: ConsumerGroups = field(default_factory=ConsumerGroups)
    partitions_max: int = PARTITIONS_MAX_DEFAULT
    more_tables: set[str] = field(default_factory=set)
    has_user: Callable[[str], bool] = lambda _name: True

    @property
    def policies(self) -> Policies:
        """Its policies."""
        return self.streams.logs.policies

    async def route(self, exchange: str, routing_key: str) -> list[str]:
        """Return the streams that a routing key leads to, each once.

        What leads nowhere goes by the alternate exchange, if there is one, and by that one's; each
        is asked once. The default exchange is no alternate one: as such it leads nowhere.
        Others have turns while policies are looked for.

        Raises:
            ExchangeDoesNotExist: No such exchange.
        """
        found = self.exchanges.route(exchange, routing_key)
        tried = {exchange, DEFAULT_EXCHANGE}
        while not found:
            other = await self._alternate_of(exchange)
            if other is None or other in tried or other not in self.exchanges:
                break
            exchange = other
            tried.add(exchange)
            found = self.exchanges.route(exchange, routing_key)
        return found

    async def _alternate_of(self, exchange: str) -> str | None:
        """Return where an exchange sends unroutable messages: by its arguments, or a policy."""
        if exchange == DEFAULT_EXCHANGE:
            return None
        declared = self.exchanges.declared(exchange)
        defined = declared.exchange.arguments
        if ALTERNATE_EXCHANGE not in defined:
            await self.policies.look_for_exchange(declared.governed)
            defined = declared.governed.definition
        named = defined.get(ALTERNATE_EXCHANGE)
        return named if isinstance(named, str) else None

    def partition_index(self, super_stream: str, stream: str) -> int:
        """Return which partition of a super stream a stream is for its groups, -1 if none."""
        return partition_index(self.exchanges.orders_of(super_stream, stream), stream)

    async def drop_strangers(self, among: Collection[str] | None = None) -> None:
        """Drop stages and sinks of users that are not there; logs those the store does not take.

        Done when a user was deleted, which `among` names. An opening does it for all, since a crash
        may come between, and so does a timer, since the store may have refused.
        """
        sinks, stages = self.commits.sinks, self.commits.stages
        if among is not None:
            among = [each for each in among if sinks.may_be_of(each) or stages.are_of(each)]
            if not among:  # as in most virtual hosts
                return
        await sinks.drop_strangers(self.has_user, among)
        await stages.drop_strangers(self.has_user, among)

    async def close(self) -> None:
        """Wait until all that was accepted is stored."""
        await self.commits.close()
        await self.streams.logs.close()

    async def delete_content(self, store: SegmentStore) -> None:
        """Delete every stream, tell their clients, then remove the tables.

        Raises:
            InternalError: The store refused, of a stream.
            StoreError: The same, of a table.
        """
        await self.commits.close()
        await self.streams.delete_all()
        await self.commits.delete_content()
        for table in (*(table_of(self.name) for table_of in _TABLES), *self.more_tables):
            with suppress(NoSuchSegment):
                await _deletion(store, table)

    def let_go(self) -> None:
        """Break the rings of its objects, so that they go with the last use: it is deleted."""
        self.streams.when_gone = nothing
        self.streams.logs.let_go()


def _deletion(store: SegmentStore, table: str) -> Pending[None]:
    return asked(lambda done: store.delete_table(table, done=done))


async def open_virtual_host(
    name: str, ports: StreamsPorts, *, partitions_max: int = PARTITIONS_MAX_DEFAULT
) -> VirtualHost:
    """Open everything of a virtual host, creating all that is missing. Raises StoreError."""
    streams = await open_streams(name, ports)
    exchanges = await open_exchanges(streams)
    commits = await open_commits(
        CommitsPorts(
            store=ports.store,
            streams=streams,
            clock_ms=ports.clock_ms,
            now_for_age_ms=ports.earliest_ms,
            wait=ports.wait,
            usage=ports.usage,
            refused=ports.refused,
        )
    )
    return VirtualHost(name, streams, exchanges, commits, partitions_max=partitions_max)
