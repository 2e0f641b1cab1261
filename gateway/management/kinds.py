"""Each kind of object that administrators see and change, described once.

The fields of a kind are those of the broker's own type: their names, types and defaults. What a
request takes, what a list shows, what HTTP and definitions read and write follow from them, so a
field that is added to the type is there in all of them. A kind says only what differs outside.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_origin, get_type_hints

from gateway.broker.access.model import Permission
from gateway.broker.rules.policies import Policy
from gateway.broker.topology.exchange import Binding, Exchange
from gateway.management.fields import Fields

Thing = TypeVar("Thing")


def _text(reader: Fields, name: str, default: object) -> object:
    return reader.text(name, default if isinstance(default, str) else None)


def _flag(reader: Fields, name: str, default: object) -> object:
    return reader.flag(name, default=bool(default))


def _number(reader: Fields, name: str, default: object) -> object:
    assert isinstance(default, int | float)
    return reader.number(name, default)


def _mapping(reader: Fields, name: str, _: object) -> object:
    return reader.mapping(name)


_TAKEN: Final[Mapping[object, Callable[[Fields, str, object], object]]] = {
    str: _text,
    bool: _flag,
    float: _number,
    Mapping: _mapping,
}
"""The function that takes a field of a type."""


class Field(NamedTuple):
    """A field of a kind.

    Attributes:
        name: Ours: of the broker's type, of requests, of the columns of `hutch ctl`.
        outer: Its name in HTTP and in definitions.
        type: One of the keys of `_TAKEN`.
        default: What it is where it is left out; MISSING if it must be there.
    """

    name: str
    outer: str
    type: object
    default: object


class Kind(Generic[Thing]):
    """A kind of object.

    Attributes:
        word: Its name in messages.
        fields: Of its objects, in the order in which they are shown.
    """

    def __init__(
        self, word: str, thing: Callable[..., Thing], outer: Mapping[str, str] | None = None
    ) -> None:
        """Take the fields of a type.

        Args:
            word: The kind's name in messages, as "policy".
            thing: The broker's type, a dataclass.
            outer: Names of fields in HTTP and definitions, where they differ from ours.
        """
        self.word = word
        self._thing = thing
        hints, outer = get_type_hints(thing), outer or {}
        self.fields: Final = tuple(
            Field(
                each.name,
                outer.get(each.name, each.name),
                get_origin(hints[each.name]) or hints[each.name],
                each.default,
            )
            for each in dataclasses.fields(thing)  # type: ignore[arg-type]
            if each.init
        )

    def shown(self, thing: Thing) -> dict[str, Any]:
        """Return an object by our names, as JSON can hold it; a copy."""
        return {field.name: _plain(getattr(thing, field.name)) for field in self.fields}

    def outer(self, thing: Thing) -> dict[str, Any]:
        """Return an object by the names of HTTP and definitions, as JSON can hold it; a copy."""
        return {field.outer: _plain(getattr(thing, field.name)) for field in self.fields}

    def taken(self, reader: Fields, *, is_outer: bool = False, **given: object) -> Thing:
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
        return self._thing(**taken, **given)

    def names(self, without: Collection[str] = ()) -> list[str]:
        """Return our names of the fields, but for some."""
        return [field.name for field in self.fields if field.name not in without]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


PERMISSIONS: Final = Kind("permission", Permission, {"virtual_host": "vhost"})
POLICIES: Final = Kind("policy", Policy, {"apply_to": "apply-to"})
OPERATOR_POLICIES: Final = Kind("operator policy", Policy, {"apply_to": "apply-to"})
EXCHANGES: Final = Kind("exchange", Exchange)
BINDINGS: Final = Kind("binding", Binding)
