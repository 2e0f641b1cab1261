"""Virtual hosts, and what kinds of objects within them have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.access.model import VIRTUAL_HOST_LIMITS
from gateway.broker.errors import NoSuchVirtualHost, VirtualHostExists
from gateway.management.fields import JsonFields
from gateway.management.kinds.entry import Context, DefinitionEntry, usable_name
from gateway.management.kinds.kind import Key, ObjectKind, Thing

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.broker.hosts.virtual_host import VirtualHost
    from gateway.management.administration import Administration


@dataclass(frozen=True, slots=True)
class Host:
    """A virtual host with its limits."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, Any]:
        """Its description, as the broker takes it."""
        return {
            "description": self.description,
            "tags": self.tags,
            "default_queue_type": self.default_queue_type,
        }


class _Hosts(ObjectKind[Host]):
    name, word = "hosts", "virtual host"
    thing = Host
    section, component = "vhosts", "vhost-limits"
    in_host, is_of_cluster, is_replaced, is_in_steps = False, True, True, True
    at_once = 1
    removal = 0  # with all that is in it

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Host]:
        """Read a virtual host; newer exports keep what describes it under `metadata`."""
        is_named = "name" in entry or context.virtual_host is None
        name = entry.name() if is_named else context.virtual_host
        assert name is not None
        usable_name(name, self.word)
        about = DefinitionEntry(dict(entry.mapping("metadata")))
        if not any(field in about for field in ("description", "tags", "default_queue_type")):
            about = entry
        queue_type = about.text("default_queue_type", "")
        return ("", name), Host(
            name,
            about.text("description", ""),
            about.tags(),
            None if queue_type in ("", "undefined") else queue_type,
            entry.limits("limits", VIRTUAL_HOST_LIMITS),
        )

    def written(self, thing: Host) -> dict[str, Any]:
        about: dict[str, object] = {"description": thing.description, "tags": list(thing.tags)}
        if thing.default_queue_type is not None:
            about["default_queue_type"] = thing.default_queue_type
        return {"name": thing.name, **about, "metadata": about, "limits": dict(thing.limits)}

    def parameters(self, limits: Mapping[str, int]) -> list[dict[str, object]]:
        """Return limits as older versions read them: the parameter that has them, if there are."""
        value = dict(limits)
        return [{"component": self.component, "name": "limits", "value": value}] if value else []

    def packed(self, _key: Key, thing: Host) -> object:
        return astuple(thing)

    def unpacked(self, packed: Any) -> tuple[Key, Host]:  # noqa: ANN401  # what JSON holds
        name, description, tags, queue_type, limits = packed
        return ("", name), Host(name, description, tuple(tags), queue_type, limits)

    def all(self, administration: "Administration") -> Iterable[tuple[Key, Host]]:
        for each in administration.hosts(None):
            key = "", each.name
            if (found := self.find(administration, key)) is not None:  # it may go meanwhile
                yield key, found

    def find(self, administration: "Administration", key: Key) -> Host | None:
        if administration.virtual_hosts.find(key[1]) is None:
            return None
        entry = administration.virtual_hosts.entry(key[1])
        limits = dict(administration.access.virtual_host_limits(key[1]))
        return Host(entry.name, entry.description, entry.tags, entry.default_queue_type, limits)

    async def put(
        self, administration: "Administration", things: Mapping[Key, Host], made: set[Key]
    ) -> None:
        access = administration.access
        for key, host in things.items():
            if await self.describe(administration, host):
                made.add(key)
            if host.limits != access.virtual_host_limits(host.name):
                await access.set_virtual_host_limits(host.name, host.limits)

    async def describe(self, administration: "Administration", host: Host) -> bool:
        """Create a virtual host, or describe the one that is there; its limits stay.

        Returns:
            Whether it is new.
        """
        hosts = administration.virtual_hosts
        try:
            await hosts.create(host.name, **host.described)
        except VirtualHostExists:
            metadata = hosts.entry(host.name).metadata
            await hosts.describe(host.name, **host.described, metadata=metadata)
            return False
        return True

    async def remove(self, administration: "Administration", key: Key) -> None:
        await administration.virtual_hosts.delete(key[1])


HOSTS: Final = _Hosts()


class HostedKind(ObjectKind[Thing]):
    """A kind of object in virtual hosts.

    Attributes:
        path: That of its objects in the HTTP API; empty if requests and paths of its own are
            written out.
        is_delegated: Whether policymakers may change its objects; else administrators alone.
        demanded: Fields that a body in the HTTP API must have.
    """

    path = ""
    is_delegated = False
    demanded: tuple[str, ...] = ()

    def asked(self, arguments: JsonFields) -> Thing:
        """Return an object that the arguments of a request describe."""
        return self.taken(arguments)

    def check(self, thing: Thing) -> None:
        """Refuse what no administrator may set, though definitions may have it. Raises Unusable."""

    def needs(self, key: Key) -> Sequence[tuple[ObjectKind[Any], Key]]:
        return ((HOSTS, ("", key[0])),)

    def all(self, administration: "Administration") -> Iterable[tuple[Key, Thing]]:
        for host in administration.hosts(None):
            for each in self.all_in(host):
                yield self.key(host.name, each), each

    @abstractmethod
    def all_in(self, host: "VirtualHost") -> Iterable[Thing]:
        """Return the objects of a virtual host that definitions have, by name."""

    def listed_in(self, host: "VirtualHost") -> Iterable[Thing]:
        """Return all objects of a virtual host, also those that definitions leave out."""
        return self.all_in(host)

    @abstractmethod
    async def put_in(self, host: "VirtualHost", thing: Thing) -> bool:
        """Write an object, and return whether it is new, judged when the change has its turn.

        Raises:
            AccessError, BrokerError, StoreError: It could not be written.
        """

    @abstractmethod
    async def remove_from(self, host: "VirtualHost", key: Key) -> None:
        """Remove an object. Raises as `put_in`."""

    async def put(
        self, administration: "Administration", things: Mapping[Key, Thing], made: set[Key]
    ) -> None:
        for key, thing in things.items():
            if await self.put_in(host_of(administration, key), thing) or self.is_replaced:
                made.add(key)

    async def remove(self, administration: "Administration", key: Key) -> None:
        await self.remove_from(host_of(administration, key), key)


def host_of(administration: "Administration", key: Key) -> "VirtualHost":
    """Return the virtual host of an object. Raises NoSuchVirtualHost."""
    found = administration.virtual_hosts.find(key[0])
    if found is None:
        raise NoSuchVirtualHost(key[0])
    return found
