"""Streams, which are queues to RabbitMQ."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.errors import StreamExists
from gateway.broker.naming import without_line_ends
from gateway.broker.rules.arguments import NAMES, InvalidStreamArgument, StreamArguments, number_of
from gateway.management.errors import shown
from gateway.management.kinds.entry import (
    Context,
    DefinitionEntry,
    Fault,
    Needless,
    Skip,
    require_type,
)
from gateway.management.kinds.kind import Comparison, Key
from gateway.management.kinds.virtual_hosts import HOSTS, HostedKind

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.broker.hosts.virtual_host import VirtualHost

RESERVED_PREFIX: Final = "amq."
STREAM_ARGUMENTS: Final[Mapping[str, str]] = {f"x-{name}": name for name in NAMES}
"""A stream's arguments as a queue declares them, and as a Create carries them."""
TEXT_ARGUMENTS: Final = frozenset({"x-max-age", "x-queue-leader-locator"})
"""The arguments of a queue that are texts; the others are whole numbers."""


@dataclass(frozen=True, slots=True)
class DeclaredStream:
    """A stream with its arguments as a Create carries them."""

    name: str
    arguments: Mapping[str, str]


class _Streams(HostedKind[DeclaredStream]):
    name, word, outer_word = "streams", "stream", "queue"
    thing = DeclaredStream
    section = "queues"
    removal = 3

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, DeclaredStream]:
        """Read a queue that is a stream."""
        virtual_host = context.host_of(entry)
        name = without_line_ends(entry.name())
        if name != entry.name():
            entry.notes.append("line ends in the name left out")
        given = entry.mapping("arguments")
        default = context.queue_types.get(virtual_host)
        kind = entry.given("type") or given.get("x-queue-type") or default
        if not isinstance(kind, str | None):
            raise Fault(f"type is {shown(kind)}, not text")
        if kind != "stream":
            raise Skip(f"is a {kind or 'classic'} queue, not a stream"[:200])
        if not name:
            raise Fault("name is empty")
        if name.startswith(RESERVED_PREFIX):
            raise Skip(f"names that begin with {RESERVED_PREFIX} are reserved")
        if entry.flag("auto_delete", default=False) or entry.flag("exclusive", default=False):
            raise Fault("is a stream that goes with its connection, which streams never do")
        if not entry.flag("durable", default=True):
            entry.notes.append("is durable here, as streams are")
        return (virtual_host, name), DeclaredStream(name, _arguments(entry, given))

    def written(self, thing: DeclaredStream) -> dict[str, Any]:
        return {
            "name": thing.name,
            "durable": True,
            "auto_delete": False,
            "type": "stream",
            "arguments": queue_arguments(thing.arguments),
        }

    def differs(self, thing: DeclaredStream, current: DeclaredStream, _notes: list[str]) -> bool:
        if StreamArguments.parse(thing.arguments) != StreamArguments.parse(current.arguments):
            have = ", ".join(f"{name}={shown(text)}" for name, text in current.arguments.items())
            raise Needless(f"exists with other arguments, which stay: {have or 'none'}")
        return False

    def faults(self, comparison: Comparison) -> Iterable[str]:
        """Demand room for the streams that come, under the limits that there will be."""
        there = Counter(host for host, _ in comparison.current.of(self))
        coming = Counter(host for host, _ in comparison.changes.of(self))
        hosts = comparison.current.of(HOSTS) | comparison.changes.of(HOSTS)
        for name, count in coming.items():
            host = hosts.get(("", name))
            if host is None:  # its own entry has faults
                continue
            limit = host.limits.get("max-queues", -1)
            if 0 <= limit < there[name] + count:
                yield (
                    f"virtual host {shown(name)}: {there[name] + count} streams would be in it;"
                    f" its limit max-queues is {shown(limit)}"
                )

    def all_in(self, host: "VirtualHost") -> Iterable[DeclaredStream]:
        for name in host.streams.names():
            if name in host.streams:  # still
                given = host.streams.find(name).entry.arguments
                yield DeclaredStream(
                    name, {argument: str(value) for argument, value in given.items()}
                )

    async def put_in(self, host: "VirtualHost", thing: DeclaredStream) -> bool:
        try:
            await host.streams.create(thing.name, thing.arguments)
        except StreamExists:
            return False
        return True

    async def remove_from(self, host: "VirtualHost", key: Key) -> None:
        await host.streams.delete(key[1], host.streams.logs.tell_watchers)


def _arguments(entry: DefinitionEntry, given: Mapping[str, object]) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for name, value in sorted(given.items()):
        if name == "x-queue-type":
            continue
        if name not in STREAM_ARGUMENTS:
            entry.notes.append(f"argument {name[:100]} left out: streams have none such")
            continue
        require_type(f"argument {name}", value, is_text=name in TEXT_ARGUMENTS)
        text = {STREAM_ARGUMENTS[name]: str(value)}
        try:
            known = StreamArguments.parse(text).texts()
        except InvalidStreamArgument as error:
            entry.notes.append(f"argument left out: {error}")
            continue
        if not known:
            entry.notes.append(f"argument {name} left out: it is not known")
        arguments |= known
    return arguments


def queue_arguments(arguments: Mapping[str, str]) -> dict[str, object]:
    """Write a stream's arguments as those of a queue."""
    written: dict[str, object] = {"x-queue-type": "stream"}
    for argument, text in arguments.items():
        name = f"x-{argument}"
        written[name] = text if name in TEXT_ARGUMENTS else number_of(text)
    return written


STREAMS: Final = _Streams()
