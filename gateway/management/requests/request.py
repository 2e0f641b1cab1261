"""A request of administrators, described by the function that does it; its rights are judged here.

The parameters of the function are the arguments of the request: their names, types and defaults
say what is taken and how it is judged. What is not among them is refused. Some types are no
arguments: `Administration` and its parts, what the request acts on; `Check`, which judges its
rights once more; and `bytes`, its body.
"""

import dataclasses
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
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

from gateway.broker.access.access import Access, Demand, refused
from gateway.broker.connections import Connections
from gateway.broker.errors import AccessError, BrokerError
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.broker.locks import Check
from gateway.broker.service import ListenerBlocked, ServiceState
from gateway.management.administration import OWNER, Actor, Administration, Role
from gateway.management.errors import NotAllowed, NotFound, WrongRequest
from gateway.management.fields import Arguments
from gateway.management.kinds import table
from gateway.management.kinds.kind import ObjectKind
from gateway.management.kinds.virtual_hosts import HostedKind
from gateway.management.requests.refusals import translated
from gateway.pending import Pending
from store.errors import StoreError

log = logging.getLogger(__name__)

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
    ServiceState: lambda administration: administration.service,
    VirtualHosts: lambda administration: administration.virtual_hosts,
}
_BODY: Final = "body"
_LOGGED: Final = (
    *("name", "user", "virtual_host", "source", "destination"),
    *("peer", "number", "resource", "timeout_ms", "dry_run"),
)
"""Arguments that are logged: they name the object, and none can hold a secret."""


class AdminRequest(NamedTuple):
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

    async def answer(
        self,
        administration: Administration,
        actor: Actor,
        given: Mapping[str, Any],
        body: bytes = b"",
    ) -> object:
        """Carry it out, with its arguments, which may be objects of the broker's types, and a body.

        Returns:
            What JSON can hold.

        Raises:
            AdministrationError: It was refused, or failed; the message is for the administrator.
        """
        actor.require(self.role, self.name)
        if body and not self.takes_body:
            raise WrongRequest(f"{self.name} takes no body")
        judge = partial(self._judge, administration, actor, given)
        try:
            judge()
            work = self.do(administration, Arguments(given, judge, body))
            patience = administration.service.patience
            result = await (work if patience is None else patience.result(work))
        except (AccessError, BrokerError, StoreError, ListenerBlocked) as error:
            raise translated(error) from error
        if self.role is Role.ADMINISTRATOR or self.needs is not None:
            line = "administration request=%s by=%r about=%r"
            told: list[object] = [self.name, actor.name or "owner", _about(given)]
            if self.tells:
                line += " answer=%r"
                told.append(result)
            log.info(line, *told)
        return result

    def _judge(
        self, administration: Administration, actor: Actor, given: Mapping[str, Any]
    ) -> None:
        """Demand the rights that it takes, of all but the owner. Raises NotAllowed."""
        if actor is OWNER:
            return
        if self.needs is None:  # the tag alone
            actor.now(administration.access).require(self.role, self.name)
            return
        virtual_host = Arguments(given).text("virtual_host", "/")
        administration.host(virtual_host)
        if not actor.may_see(virtual_host):  # as if there were none
            raise NotFound(f"there is no virtual host {virtual_host!r} for user {actor.name!r}")
        demands = self.demands(administration, Arguments(given))
        missing = refused(administration.access, actor.name, virtual_host, demands)
        if missing is not None:
            raise NotAllowed(f"user {actor.name!r} has {missing} in virtual host {virtual_host!r}")


def _about(given: Mapping[str, Any]) -> dict[str, object]:
    """Return what is logged of the arguments."""
    things = [each for each in given.values() if dataclasses.is_dataclass(each)]
    said = {name: getattr(each, name) for each in things for name in _LOGGED if hasattr(each, name)}
    said |= given
    return {name: said[name] for name in _LOGGED if name in said}


def request(
    role: Role = Role.ADMINISTRATOR,
    *,
    needs: Callable[..., Iterable[Demand]] | None = None,
    tells: bool = False,
    name: str = "",
) -> Callable[[Callable[..., Answer]], AdminRequest]:
    """Make a request of the function that does it, and has its name if there is no other.

    The rest is as in `AdminRequest`.
    """

    def made(function: Callable[..., Answer]) -> AdminRequest:
        judged = {} if needs is None else _takers(needs)
        called = name or function.__name__
        return AdminRequest(called, function, _takers(function), role, needs, judged, tells)

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
    kind: ObjectKind[Thing], take: Callable[[Arguments], Thing] | None = None
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


def listing_of(kind: HostedKind[Any]) -> AdminRequest:
    """Return the request for the objects of a kind, each with its virtual host."""

    @request(Role.MONITORING, name=f"list_{kind.name}")
    async def list_all(hosts: Hosts) -> object:
        """Return the objects of a virtual host, or of all."""
        return [
            {"virtual_host": host.name, **kind.shown(thing)}
            for host in hosts
            for thing in kind.listed_in(host)
        ]

    return list_all


class KindRequests(NamedTuple):
    """The requests on a kind."""

    all: AdminRequest
    put: AdminRequest
    remove: AdminRequest


def _to_enter() -> list[Demand]:
    """Demand nothing but the virtual host: policies have a tag of their own."""
    return []


def requests_on(kind: HostedKind[Any]) -> KindRequests:
    """Return the requests on a kind whose objects are listed, set and cleared."""
    role = Role.POLICYMAKER if kind.is_delegated else Role.ADMINISTRATOR
    needs = _to_enter if kind.is_delegated else None
    word = kind.word.replace(" ", "_")

    @request(role, needs=needs, name=f"set_{word}")
    async def put(host: Host, thing: Annotated[object, thing_of(kind, kind.asked)]) -> object:
        """Create an object, or replace the one of that name; it counts at once."""
        kind.check(thing)
        return {"is_new": await kind.put_in(host, thing)}

    @request(role, needs=needs, name=f"clear_{word}")
    async def remove(host: Host, name: str) -> None:
        """Delete an object."""
        await kind.remove_from(host, (host.name, name))

    return KindRequests(listing_of(kind), put, remove)


REQUESTS: Final = {
    kind: requests_on(kind) for kind in table.KINDS if isinstance(kind, HostedKind) and kind.path
}
"""The requests on each of the kinds that are treated alike."""
