"""A request of administrators, described by the function that does it.

The parameters of the function are the arguments of the request: their names, types and defaults
say what is taken and how it is judged. What is not among them is refused. Some types are no
arguments: `Administration` and its parts, what the request acts on; `Check`, which judges its
rights once more; and `bytes`, its body.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from gateway.broker.access.access import Access
from gateway.broker.access.authorisation import Demand
from gateway.broker.connections import Connections
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.locks import Check
from gateway.broker.service import Service
from gateway.management.administration import Administration, Role
from gateway.management.kinds.kind import Kind
from gateway.management.kinds.virtual_hosts import InHost
from gateway.management.requests.arguments import Arguments
from gateway.pending import Pending

Thing = TypeVar("Thing")
Answer: TypeAlias = Coroutine[Pending[Any], None, object]
Taker: TypeAlias = Callable[..., Any]
"""Takes a parameter: called with the administration, the arguments, its name and its default."""
LimitChange: TypeAlias = Callable[[Mapping[str, int]], Mapping[str, int]]
"""Makes the limits that are to be of those there are."""


def _host(administration: Administration, arguments: Arguments, _: str) -> VirtualHost:
    return administration.host(arguments.text("virtual_host", "/"))


def _hosts(administration: Administration, arguments: Arguments, _: str) -> list[VirtualHost]:
    return administration.hosts(arguments.optional_text("virtual_host"))


def _name(_: Administration, arguments: Arguments, name: str, default: str | None = None) -> str:
    return arguments.name(name, default)


def _offset(_: Administration, arguments: Arguments, name: str) -> int | None:
    return arguments.optional_offset(name)


def _limits(_: Administration, arguments: Arguments, name: str) -> LimitChange:
    limit = arguments.optional_text("limit")
    if limit is None:
        limits = arguments.mapping(name)
        return lambda _: limits
    value = arguments.optional_integer("value")
    kept = {} if value is None else {limit: value}
    return lambda known: {each: known[each] for each in known if each != limit} | kept


Host: TypeAlias = Annotated[VirtualHost, _host]
"""The virtual host that the argument `virtual_host` names, which is / if it is left out."""
Hosts: TypeAlias = Annotated[list[VirtualHost], _hosts]
"""The virtual host that the argument `virtual_host` names; all if it is left out."""
Name: TypeAlias = Annotated[str, _name]
"""The name of something that clients make, which need not be UTF-8."""
Offset: TypeAlias = Annotated[int | None, _offset]
"""An offset of a stream, any u64; one behind the end means the end."""
Limits: TypeAlias = Annotated[LimitChange, _limits]
"""A change of limits: all of them are replaced by the argument; or one, which `limit` names, is
set to `value`, or removed where there is no value."""

_TAKERS: Final[Mapping[object, Callable[..., Any]]] = {
    str: Arguments.text,
    str | None: lambda arguments, name, _=None: arguments.optional_text(name),
    int | None: lambda arguments, name, _=None: arguments.optional_integer(name),
    bool: lambda arguments, name, default: arguments.flag(name, default=default),
    tuple[str, ...]: lambda arguments, name, _=(): arguments.texts(name),
    dict[str, Any]: Arguments.mapping,
}
_PARTS: Final[Mapping[object, Callable[[Administration], object]]] = {
    Administration: lambda administration: administration,
    Access: lambda administration: administration.access,
    Connections: lambda administration: administration.connections,
    Service: lambda administration: administration.service,
    VirtualHosts: lambda administration: administration.virtual_hosts,
}
_BODY: Final = "body"


class Row(NamedTuple):
    """A request there is.

    Attributes:
        name: As it is asked for.
        function: Does it; called with everything by name.
        takers: How each parameter is taken.
        role: The tag that it takes.
        needs: Says which rights it takes in its virtual host, where the tag does not stand in for
            them; its parameters are taken like those of the function.
        judged: How each of those is taken.
        tells: Whether the answer is logged too.
    """

    name: str
    function: Callable[..., Answer]
    takers: Mapping[str, Taker]
    role: Role
    needs: Callable[..., Iterable[Demand]] | None
    judged: Mapping[str, Taker]
    tells: bool

    @property
    def takes_body(self) -> bool:
        """True if the request may have a body."""
        return _BODY in self.takers

    async def do(self, administration: Administration, arguments: Arguments) -> object:
        """Take the arguments and do it. Raises what is wrong with them, and what fails."""
        given = _taken(self.takers, administration, arguments)
        arguments.end()
        return await self.function(**given)

    def demands(self, administration: Administration, arguments: Arguments) -> Iterable[Demand]:
        """Return the rights that it takes. Raises what is wrong with the arguments they are of."""
        assert self.needs is not None
        return self.needs(**_taken(self.judged, administration, arguments))


def request(
    role: Role = Role.ADMINISTRATOR,
    *,
    needs: Callable[..., Iterable[Demand]] | None = None,
    tells: bool = False,
    name: str = "",
) -> Callable[[Callable[..., Answer]], Row]:
    """Make a request of the function that does it.

    Args:
        role: The tag that it takes.
        needs: As in `Row`.
        tells: As in `Row`.
        name: Its name; that of the function if it is left out.
    """

    def made(function: Callable[..., Answer]) -> Row:
        judged = {} if needs is None else _takers(needs)
        called = name or function.__name__
        return Row(called, function, _takers(function), role, needs, judged, tells)

    return made


def _takers(function: Callable[..., object]) -> dict[str, Taker]:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return {name: _taker(each, hints[name]) for name, each in parameters.items()}


def _taken(
    takers: Mapping[str, Taker], administration: Administration, arguments: Arguments
) -> dict[str, Any]:
    return {name: take(administration, arguments, name) for name, take in takers.items()}


def _taker(parameter: inspect.Parameter, hint: object) -> Taker:
    default = () if parameter.default is parameter.empty else (parameter.default,)
    if (part := _PARTS.get(hint)) is not None:
        return lambda administration, _, __: part(administration)
    if hint == Check:
        return lambda _, arguments, __: arguments.judge
    if hint is bytes:
        return lambda _, arguments, __: arguments.body
    if get_origin(hint) is Annotated:
        own: Taker = get_args(hint)[1]
        return lambda administration, arguments, name: own(
            administration, arguments, name, *default
        )
    take = _TAKERS[hint]
    return lambda _, arguments, name: take(arguments, name, *default)


def thing_of(
    kind: Kind[Thing], take: Callable[[Arguments], Thing] | None = None
) -> Callable[[Administration, Arguments, str], Thing]:
    """Return what takes an object of a kind: one that was made already, or one of its fields.

    Args:
        kind: The kind.
        take: Makes one of the fields, where that takes more than their types.
    """

    def taken(_: Administration, arguments: Arguments, name: str) -> Thing:
        made: Thing | None = arguments.thing(name, kind.thing)
        if made is not None:
            return made
        return kind.taken(arguments) if take is None else take(arguments)

    return taken


def listed_by_host(hosts: Iterable[VirtualHost], kind: InHost[Any]) -> list[dict[str, Any]]:
    """Return the objects of a kind in some virtual hosts, each with its host."""
    return [
        {"virtual_host": host.name, **kind.shown(thing)}
        for host in hosts
        for thing in kind.listed_in(host)
    ]
