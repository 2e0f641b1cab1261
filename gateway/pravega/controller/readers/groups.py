"""Changes of groups of readers, which the caller makes one after the other in each scope.

A group has a stream of its own, `_RG<group>`, in which its readers agree. It is made before the
group's record is written; the record is marked before the stream is deleted, and removed after it.
So what was cut short is finished by the same call, or by `finish` at the next start.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from gateway.pravega.controller.errors import (
    BadName,
    InvalidRequest,
    NoSuchGroup,
    NoSuchStream,
    OldGeneration,
    OtherGroup,
    StreamExists,
)
from gateway.pravega.controller.readers.group import BYTES_MAX, Cut, ReaderGroup
from gateway.pravega.controller.records.history import READ_OFF, is_cut, precedes
from gateway.pravega.controller.records.model import StreamPolicy
from gateway.pravega.controller.records.registry import Registry
from gateway.pravega.controller.streams import StreamChanges
from gateway.pravega.names import GROUP, is_group_name

CUTS_MAX: Final = 10_000
"""Segments in all cuts of a group: its record has to fit into a row."""
STREAMS_MAX: Final = 1_000


class GroupChanges:
    """Changes of groups of readers."""

    def __init__(self, registry: Registry, streams: StreamChanges) -> None:
        self._registry = registry
        self._streams = streams

    def find(self, scope: str, name: str) -> ReaderGroup:
        """Return a group. Raises NoSuchScope, NoSuchGroup."""
        self._registry.streams(scope)
        found = self._registry.groups.get((scope, name))
        if found is None or found.is_ending:
            raise NoSuchGroup(f"no such group of readers: {scope}/{name}")
        return found

    async def create(self, wanted: ReaderGroup) -> ReaderGroup:
        """Make a group and its stream; return it, or the one that is there.

        Raises BadName, NoSuchScope, InvalidRequest.
        """
        scope, name = wanted.scope, wanted.name
        if not is_group_name(name):
            raise BadName(f"no group of readers may be called {name!r}")
        self._registry.streams(scope)
        there = self._registry.groups.get((scope, name))
        if there is not None and there.is_ending:
            await self.finish(there)
        elif there is not None:
            return there
        _check_size(wanted)
        with suppress(StreamExists):
            policy = StreamPolicy(rollover_bytes=wanted.rollover_bytes)
            await self._streams.create(scope, GROUP + name, policy)
        return await self._registry.save_group(replace(wanted, generation=0))

    async def update(self, wanted: ReaderGroup) -> ReaderGroup:
        """Configure a group anew, from the generation that it has now; return it.

        Raises NoSuchScope, NoSuchGroup, OtherGroup, OldGeneration, InvalidRequest.
        """
        there = self.find(wanted.scope, wanted.name)
        if there.generation != wanted.generation:
            raise OldGeneration(f"the generation of {_named(there)} is {there.generation}")
        _check_identity(there, wanted.identity)
        _check_size(wanted)
        subscribed = wanted.subscribed
        cuts = {stream: cut for stream, cut in there.cuts.items() if stream in subscribed}
        changed = replace(wanted, generation=there.generation + 1, cuts=cuts)
        return await self._registry.save_group(changed)

    async def delete(self, scope: str, name: str, identity: str) -> None:
        """Delete a group and its stream. Raises NoSuchScope, NoSuchGroup, OtherGroup."""
        there = self.find(scope, name)
        _check_identity(there, identity)
        await self.end(there)

    async def end(self, group: ReaderGroup) -> None:
        """Delete a group and its stream, whatever its identity."""
        await self.finish(await self._registry.save_group(replace(group, is_ending=True)))

    async def finish(self, group: ReaderGroup) -> None:
        """Finish a group's deletion."""
        stream = GROUP + group.name
        with suppress(NoSuchStream):
            await self._streams.seal(group.scope, stream)
            await self._streams.delete(group.scope, stream)
        await self._registry.forget_group(group)

    async def give_up(
        self, group: ReaderGroup, identity: str, generation: int, stream: str, cut: Cut
    ) -> None:
        """Note that a group will not read again before a cut of a stream.

        Raises NoSuchStream, NoSuchGroup: the stream does not wait for it. OtherGroup,
        OldGeneration, InvalidRequest: it is no cut, or lies before the last one.
        """
        scope, _, name = stream.partition("/")
        there = self._registry.stream(scope, name)
        if stream not in group.subscribed:
            raise NoSuchGroup(f"{stream} does not wait for {_named(group)}")
        _check_identity(group, identity)
        if group.generation != generation:
            raise OldGeneration(f"the generation of {_named(group)} is {group.generation}")
        # A segment that is written still is read off by none.
        is_open = any(cut.get(each.identity) == READ_OFF for each in there.history.open)
        if is_open or not is_cut(there.history, cut, least=READ_OFF):
            raise InvalidRequest(f"no cut of {stream}, of {len(cut)} segments")
        before = group.cuts.get(stream, {})
        if not precedes(there.history, before, cut):
            raise InvalidRequest(f"the cut of {stream} lies before that of {_named(group)}")
        changed = replace(group, cuts={**group.cuts, stream: dict(cut)})
        _check_size(changed)
        await self._registry.save_group(changed)


def _check_identity(there: ReaderGroup, identity: str) -> None:
    if there.identity != identity:
        raise OtherGroup(f"{_named(there)} is {there.identity}, and not {identity}")


def _check_size(group: ReaderGroup) -> None:
    """Raise InvalidRequest if a group has too much for its record."""
    if len(group.starts) > STREAMS_MAX:
        raise InvalidRequest(f"{len(group.starts)} streams of {_named(group)}, above {STREAMS_MAX}")
    maps: tuple[Mapping[str, Cut], ...] = (group.starts, group.ends, group.cuts)
    count = sum(len(cut) for each in maps for cut in each.values())
    if count > CUTS_MAX:
        raise InvalidRequest(f"{count} segments in the cuts of {_named(group)}, above {CUTS_MAX}")
    if (size := len(group.to_bytes())) > BYTES_MAX:
        raise InvalidRequest(f"{size} bytes of {_named(group)}, above {BYTES_MAX}")


def _named(group: ReaderGroup) -> str:
    return f"the group of readers {group.scope}/{group.name}"
