"""A kind of object that administrators see and change: all that differs from kind to kind.

The fields of a kind are those of the broker's own type: their names, types and defaults. What a
request takes, what a list shows, what HTTP and definitions read and write follow from them, so a
field that is added to the type is there in all of them. A kind says only what differs outside.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_origin,
    get_type_hints,
)

from gateway.management.errors import shown
from gateway.management.fields import JsonFields
from gateway.management.kinds.entry import Context, DefinitionEntry

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.management.administration import Administration

Thing = TypeVar("Thing")
Key: TypeAlias = tuple[str, ...]
"""The virtual host, empty for users and virtual hosts; the name; the rest of a binding."""

PARAMETERS: Final = "parameters"
"""The section of definitions that has objects of several kinds, and says which in `component`."""
AT_ONCE: Final = 256
"""Most objects that are on their way to the store together: they share its syncs."""


_TAKEN: Final[Mapping[object, Callable[[JsonFields, str, Any], object]]] = {
    str: lambda reader, name, default: reader.text(
        name, default if isinstance(default, str) else None
    ),
    bool: lambda reader, name, default: reader.flag(name, default=default),
    float: JsonFields.number,
    Mapping: lambda reader, name, _: reader.mapping(name),
}
"""The function that takes a field of a type."""


class KindField(NamedTuple):
    """A field of a kind.

    Attributes:
        name: Ours: of the broker's type, of requests, of the columns of `hutch ctl`.
        outer: Its name in HTTP and in definitions.
        type: Those that can be taken are the keys of `_TAKEN`.
        default: What it is where it is left out; MISSING if it must be there.
    """

    name: str
    outer: str
    type: object
    default: object


class ObjectKind(ABC, Generic[Thing]):
    """A kind of object.

    Attributes:
        name: Its name in what is written down of an import.
        word: Its name in messages.
        outer_word: The same of what definitions have and the server has not.
        thing: The broker's type, a dataclass.
        outer_names: Names of fields in HTTP and definitions, where they differ from ours.
        fields: Of its objects, in the order in which they are shown.
        section: Its list in definitions.
        component: Its component of PARAMETERS, if it has one.
        named_by: The field that names an entry of definitions.
        in_host: Whether its objects are in virtual hosts.
        is_of_cluster: Whether the definitions of one virtual host leave it out.
        is_replaced: Whether an import writes over an object that is there.
        is_in_steps: Whether an object is written in several steps, of which one may fail.
        at_once: How many groups of objects may be written at a time.
        removal: Its place among kinds when an import is rolled back; the lowest goes first.
    """

    name: str
    word: str
    outer_word: str
    thing: Any
    outer_names: Mapping[str, str] = {}
    section: str
    component: str | None = None
    named_by = "name"
    in_host = True
    is_of_cluster = False
    is_replaced = False
    is_in_steps = False
    at_once = AT_ONCE
    removal = 4

    def __init__(self) -> None:
        self.outer_word = getattr(self, "outer_word", self.word)
        hints = get_type_hints(self.thing)
        self.fields: Final = tuple(
            KindField(
                each.name,
                self.outer_names.get(each.name, each.name),
                get_origin(hints[each.name]) or hints[each.name],
                each.default,
            )
            for each in dataclasses.fields(self.thing)
            if each.init
        )

    def shown(self, thing: Thing) -> dict[str, Any]:
        """Return an object by our names, as JSON can hold it; a copy."""
        return {field.name: _plain(getattr(thing, field.name)) for field in self.fields}

    def outer(self, thing: Thing) -> dict[str, Any]:
        """Return an object by the names of HTTP and definitions, as JSON can hold it; a copy."""
        return {field.outer: _plain(getattr(thing, field.name)) for field in self.fields}

    def taken(self, reader: JsonFields, *, is_outer: bool = False, **given: object) -> Thing:
        """Make an object of fields that a reader takes.

        Args:
            reader: Raises what is wrong with a field.
            is_outer: The fields have the names of HTTP and definitions.
            given: Fields that are known already, by our names.
        """
        taken = {
            field.name: _TAKEN[field.type](
                reader, field.outer if is_outer else field.name, field.default
            )
            for field in self.fields
            if field.name not in given
        }
        made: Thing = self.thing(**taken, **given)
        return made

    def names(self, without: Collection[str] = ()) -> list[str]:
        """Return our names of the fields, but for some."""
        return [field.name for field in self.fields if field.name not in without]

    # In messages

    def called(self, key: Key) -> str:
        """Name an object in a message, without its virtual host."""
        return f"{self.word} {shown(key[1])}"

    def named(self, key: Key) -> str:
        """Name an object in a message."""
        where = f" in virtual host {shown(key[0])}" if self.in_host else ""
        return f"{self.called(key)}{where}"

    def place_of(self, key: Key) -> tuple[str, str]:
        """Return the virtual host and the name under which a person looks for an object."""
        return key[0], key[1]

    def name_in(self, content: Mapping[str, object]) -> object:
        """Return the name of an entry of definitions, whatever that is."""
        return content.get(self.named_by)

    # In definitions

    def key(self, virtual_host: str, thing: Thing) -> Key:
        """Return the key of an object."""
        name: str = getattr(thing, self.named_by)
        return (virtual_host, name) if self.in_host else ("", name)

    @abstractmethod
    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Thing]:
        """Read an entry.

        What is taken in another form than written is noted with the entry.

        Raises:
            Fault: It makes no sense.
            Skip: It has no counterpart here.
        """

    def finish(self, definitions: "Definitions", notes: "Notes") -> None:
        """Change objects by others of the file, after all are read."""

    def written(self, thing: Thing) -> dict[str, Any]:
        """Return the entry of an object, without its virtual host."""
        return self.outer(thing)

    def loss(self, _thing: Thing) -> str:
        """Return what RabbitMQ cannot use of an object; empty for nothing."""
        return ""

    # In an import

    def needs(self, _key: Key) -> Sequence[tuple["ObjectKind[Any]", Key]]:
        """Return the objects that an object needs: first its virtual host, if it has one."""
        return ()

    def goes_with(self, key: Key) -> Sequence[tuple["ObjectKind[Any]", Key]]:
        """Return those of the objects that it needs with which an object goes: its host."""
        return self.needs(key)[:1]

    def is_built_in(self, _key: Key) -> bool:
        """Return whether an object is there though no definitions have it."""
        return False

    def differs(self, thing: Thing, current: Thing, notes: list[str]) -> bool:
        """Return whether the object that is there has to be written over.

        Raises:
            Skip: It has to, and cannot be.
        """
        del notes
        return thing != current

    def over(self, thing: Thing, current: Thing | None) -> Thing:
        """Return an object of a file with what of the one that is there no export can hold."""
        del current
        return thing

    def faults(self, _comparison: "Comparison") -> Iterable[str]:
        """Return what is wrong with all objects together."""
        return ()

    def packed_key(self, key: Key) -> object:
        """Return a key as JSON can hold it."""
        return key if self.in_host else key[1]

    def unpacked_key(self, packed: Any) -> Key:  # noqa: ANN401  # what JSON holds
        """Undo `packed_key`."""
        return tuple(packed) if self.in_host else ("", packed)

    def packed(self, key: Key, thing: Thing) -> object:
        """Return an object as JSON can hold it."""
        text: str = thing.pack().decode()  # type: ignore[attr-defined]
        return text if self.is_of_cluster else [key[0], text]

    def unpacked(self, packed: Any) -> tuple[Key, Thing]:  # noqa: ANN401  # what JSON holds
        """Undo `packed`."""
        host, text = ("", packed) if self.is_of_cluster else packed
        thing: Thing = self.thing.unpack(text.encode())
        return self.key(host, thing), thing

    # On the server

    @abstractmethod
    def all(self, administration: "Administration") -> Iterable[tuple[Key, Thing]]:
        """Return the objects. Nothing changes them."""

    def find(self, administration: "Administration", key: Key) -> Thing | None:
        """Return an object that may be written over; None if there is none."""
        del administration, key
        return None

    def group(self, key: Key) -> Hashable:
        """Return the same for keys whose objects are written in one update."""
        return key

    @abstractmethod
    async def put(
        self, administration: "Administration", things: Mapping[Key, Thing], made: set[Key]
    ) -> None:
        """Write the objects of a group; add those to `made` that a rollback has to care about.

        Raises:
            AccessError, BrokerError, StoreError: They could not be written.
        """

    @abstractmethod
    async def remove(self, administration: "Administration", key: Key) -> None:
        """Remove an object. Raises as `put`."""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


Notes: TypeAlias = dict[tuple[str, Key], list[str]]
"""Changes that were made to objects of a file, by the name of the kind and the key."""


class Definitions:
    """Objects by kind and key, without a server."""

    def __init__(self, things: Mapping[ObjectKind[Any], Mapping[Key, Any]] | None = None) -> None:
        self._things: defaultdict[str, dict[Key, Any]] = defaultdict(dict)
        for kind, some in (things or {}).items():
            self.of(kind).update(some)

    def of(self, kind: ObjectKind[Thing]) -> dict[Key, Thing]:
        """Return the objects of a kind."""
        return self._things[kind.name]

    @property
    def count(self) -> int:
        """The number of objects."""
        return sum(map(len, self._things.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definitions) and self._some() == other._some()

    __hash__ = None  # type: ignore[assignment]

    def _some(self) -> dict[str, dict[Key, Any]]:
        return {name: things for name, things in self._things.items() if things}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A file compared with the server.

    Attributes:
        wanted: What the file has.
        current: What the server has.
        changes: What is to be created or overwritten.
        partitions_max: Most partitions of one super stream.
    """

    wanted: Definitions
    current: Definitions
    changes: Definitions
    partitions_max: int
