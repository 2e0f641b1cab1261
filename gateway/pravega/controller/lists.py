"""Lists of scopes, streams, groups and tables, for administrators."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from gateway.pravega.access.callers import StreamRights
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.readers.group import ReaderGroup
from gateway.pravega.controller.readers.packed import UnreadableValue
from gateway.pravega.controller.readers.state import Agreed
from gateway.pravega.controller.readers.states import NOTHING
from gateway.pravega.controller.records.directory import Directory, Looks, wanted
from gateway.pravega.controller.records.key_value_tables import KeyValueTable
from gateway.pravega.controller.records.model import StreamPolicy, StreamRecord
from gateway.pravega.controller.rights import Sight
from store.errors import StoreError

Listing: TypeAlias = tuple[Sequence[Any], Callable[[Any], dict[str, object]]]
"""Things in the order of their names, and what shows one of them."""

_SCALING: Final = ("fixed", "kbytes_per_second", "events_per_second")
_RETENTION: Final = ("none", "time", "size")
_RELEASE: Final = ("none", "manual_at_stream_cut", "automatic_at_last_checkpoint")
"""Pravega's names for its numbers."""


class ScopeLists:
    """Lists for administrators, each as far as a caller may see.

    Its methods are coroutines on `gateway.pending`. None: there is no scope of this name, or the
    caller may see nothing of it.
    """

    def __init__(
        self, controller: Controller, say_unreadable: Callable[[str, Exception], object]
    ) -> None:
        """Show the records of a controller.

        `say_unreadable` logs the name of a group whose state cannot be read, and the reason.
        """
        self._controller = controller
        self._say_unreadable = say_unreadable
        self._registry = controller.registry

    async def scopes(self, caller: StreamRights) -> Listing:
        """Return the scopes, each with counts of the things in it that the caller sees."""
        sight = Sight(self._registry, caller)
        groups = Counter(
            each.scope for each in await _groups(sight, self._registry.groups.values())
        )
        rows = []
        for scope in await wanted(self._registry.scopes, lambda _: True):
            if await sight.streams(scope) is None:
                continue
            rows.append(
                {
                    "name": scope,
                    "streams": len(await self._streams(sight, scope)),
                    "reader_groups": groups[scope],
                    "tables": len(await self._tables(sight, scope)),
                }
            )
        return rows, dict

    async def streams(self, caller: StreamRights, scope: str) -> Listing | None:
        """Return the streams of a scope that the caller may read, without the streams of marks."""
        sight = Sight(self._registry, caller)
        if await sight.streams(scope) is None:
            return None
        return await self._streams(sight, scope), stream_row

    async def reader_groups(self, caller: StreamRights, scope: str) -> Listing | None:
        """Return the groups of readers of a scope, each with its members and its unread bytes.

        Both are unknown to a caller that may neither read nor write the stream of the group, and
        the bytes without any right on one of the streams that it reads.
        """
        sight = Sight(self._registry, caller)
        if await sight.streams(scope) is None:
            return None
        found = []
        groups = await _groups(sight, self._registry.groups_of(scope))
        for group in sorted(groups, key=lambda each: each.name):
            agreed = None
            if sight.may_read_group(scope, group.name):
                agreed = await self._agreed(group)
            unread = None if agreed is None else await self._unread(sight, agreed)
            found.append((group, None if agreed is None else agreed.members, unread))
        return found, lambda each: group_row(*each)

    async def _agreed(self, group: ReaderGroup) -> Agreed | None:
        """Return the state of a group of readers; None if that cannot be read."""
        try:
            return await self._controller.states.of(group)
        except (UnreadableValue, StoreError) as error:
            self._say_unreadable(f"{group.scope}/{group.name}", error)
            return None

    async def _unread(self, sight: Sight, agreed: Agreed) -> int | None:
        """Return the unread bytes of a group, of streams that clients have written into its state.

        None while there is no state.
        """
        if agreed is NOTHING or not await _has_right_on_all(sight, agreed.reached):
            return None
        return await self._controller.behind.unread(agreed)

    async def tables(self, caller: StreamRights, scope: str) -> Listing | None:
        """Return the tables of a scope that the caller may read."""
        sight = Sight(self._registry, caller)
        if await sight.streams(scope) is None:
            return None
        return await self._tables(sight, scope), table_row

    async def _streams(self, sight: Sight, scope: str) -> list[StreamRecord]:
        streams = self._registry.scopes.get(scope, Directory[StreamRecord]())
        names = await wanted(streams, lambda name: sight.may_read(scope, name))
        return [streams[name] for name in names if name in streams]

    async def _tables(self, sight: Sight, scope: str) -> list[KeyValueTable]:
        tables = self._registry.tables.of(scope)
        names = await wanted(tables, lambda name: sight.may_read_table(scope, name))
        return [tables[name] for name in names if name in tables]


async def _groups(sight: Sight, groups: Iterable[ReaderGroup]) -> list[ReaderGroup]:
    """Return the groups of readers that a caller sees, without those that are being deleted."""
    found = []
    looks = Looks()
    for each in list(groups):
        if not each.is_ending and sight.may_see_group(each.scope, each.name):
            found.append(each)
        await looks.give()
    return found


async def _has_right_on_all(sight: Sight, places: Iterable[tuple[str, str]]) -> bool:
    """Return whether a caller has some right on each of some streams, by scope and name."""
    looks = Looks()
    for place in sorted(places):
        if not sight.has_right(*place):
            return False
        await looks.give()
    return True


def stream_row(stream: StreamRecord) -> dict[str, object]:
    """Show a stream."""
    return {
        "name": stream.name,
        "state": stream.state.value,
        "segments": len(stream.history.open),
        "epoch": stream.history.last.number,
        "scaling": _scaling(stream.policy),
        "retention": _retention(stream.policy),
        "tags": list(stream.policy.tags),
    }


def _scaling(policy: StreamPolicy) -> dict[str, object]:
    rates: dict[str, object] = {}
    if policy.scale_type:
        rates = {"target_rate": policy.rate, "scale_factor": policy.factor}
    return {"type": _named(_SCALING, policy.scale_type), **rates, "min_segments": policy.segments}


def _retention(policy: StreamPolicy) -> dict[str, object]:
    kept: dict[str, object] = {}
    if policy.retention_type:
        kept = {"min": policy.retention, "max": policy.retention_max}
    return {"type": _named(_RETENTION, policy.retention_type), **kept}


def _named(names: Sequence[str], number: int) -> str:
    """Return the name of a number; clients may send some that Pravega has no name for."""
    return names[number] if 0 <= number < len(names) else str(number)


def group_row(
    group: ReaderGroup, members: Sequence[str] | None, unread_bytes: int | None
) -> dict[str, object]:
    """Show a group of readers."""
    return {
        "name": group.name,
        "streams": sorted(group.starts),
        "retention": _RELEASE[group.retention],
        "members": None if members is None else list(members),
        "unread_bytes": unread_bytes,
    }


def table_row(table: KeyValueTable) -> dict[str, object]:
    """Show a table."""
    return {
        "name": table.name,
        "state": table.state.value,
        "partitions": table.config.partitions,
        "primary_key_bytes": table.config.primary,
        "secondary_key_bytes": table.config.secondary,
    }
