"""One request to the API, as its handler sees it."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from starlette.responses import Response

from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.service import About
from gateway.management.administration import Actor, Administration, Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.fields import Arguments, JsonFields, usable_mapping, usable_text
from gateway.management.http.answers import made_answer
from gateway.management.kinds.kind import ObjectKind
from gateway.management.requests.request import AdminRequest
from gateway.pending import Pending

T = TypeVar("T")


class AwaitsBroker(Protocol):
    """Runs one of the broker's coroutines on the event loop."""

    def __call__(self, coroutine: Coroutine[Pending[Any], None, T]) -> Coroutine[Any, Any, T]: ...


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts about the server.

    Attributes:
        node: Its name, `rabbit@` and the advertised host.
        listeners: Protocol, address and port of each.
        connections_max: Of stream clients at a time.
        certificates: The files that TLS clients are shown, by RabbitMQ's names for them.
    """

    node: str
    listeners: Callable[[], list[tuple[str, str, int]]]
    connections_max: int = 0
    certificates: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApiCall(JsonFields):
    """A request whose sender is known.

    Attributes:
        administration: What it acts on.
        actor: The user that asks.
        facts: The server.
        awaits: Runs the broker's coroutines.
        path: The names in the path, decoded.
        query: What follows the question mark; the first of each name.
        body: The JSON that came along; empty where none did.
        raw_body: The same before it is parsed.
    """

    administration: Administration
    actor: Actor
    facts: ServerFacts
    awaits: AwaitsBroker
    path: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    raw_body: bytes = b""

    @property
    def about(self) -> About:
        """More facts about the server."""
        return self.administration.service.about

    async def ask(self, row: AdminRequest, body: bytes = b"", /, **arguments: object) -> Any:  # noqa: ANN401  # what JSON holds
        """Have one of the requests of administrators done. Raises AdministrationError."""
        return await self.awaits(row.answer(self.administration, self.actor, arguments, body))

    async def put(self, row: AdminRequest, /, **arguments: object) -> Response:
        """Have a request done that answers whether something is new, and answer a PUT by that."""
        return made_answer(is_new=(await self.ask(row, **arguments))["is_new"])

    def thing(self, kind: ObjectKind[T], **given: str) -> T:
        """Return the object that the body describes, and the path by our names of its fields.

        Raises:
            WrongRequest: A field is wrong, or more than a request takes.
        """
        for name, text in given.items():
            usable_text(name, text)
        return kind.taken(_Body(self), is_outer=True, **given)

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run what takes long beside everything else."""
        return await self.awaits(self.administration.done(function))

    def host(self) -> VirtualHost:
        """Return the virtual host of the path.

        Raises:
            NotFound: There is none, or the actor may not look into it.
        """
        found = self.administration.host(self.path["virtual_host"])
        if not self.actor.may_see(found.name):
            raise NotFound(f"user {self.actor.name!r} may not look into {found.name!r}")
        return found

    def hosts(self) -> list[VirtualHost]:
        """Return the virtual host of the path, or all that the actor may see. Raises as `host`."""
        if "virtual_host" in self.path:
            return [self.host()]
        hosts = self.administration.hosts(None)
        return [host for host in hosts if self.actor.may_see(host.name)]

    def watched_hosts(self) -> list[VirtualHost]:
        """The same for what monitoring sees in all virtual hosts. Raises as `host`."""
        if Role.MONITORING not in self.actor.roles:
            return self.hosts()
        return self.administration.hosts(self.path.get("virtual_host"))

    def check_node(self) -> None:
        """Check that the node of the path, if there is one in it, is this one. Raises NotFound."""
        if self.path.get("node", self.facts.node) != self.facts.node:
            raise NotFound("there is one node")

    def demand(self, *names: str) -> None:
        """Demand fields of the body. Raises WrongRequest, in RabbitMQ's words."""
        for name in names:
            if name not in self.body:
                raise WrongRequest(f"[{{key_missing,{name}}}]")

    def given(self, name: str, default: object = None) -> Any:  # noqa: ANN401  # what JSON holds
        """Return a field of the body, the default where there is none."""
        return self.body.get(name, default)

    def wrong(self, name: str, _: object, fault: str) -> WrongRequest:
        """Return what is told of a wrong field."""
        return WrongRequest(f"{name} is {fault}")

    def flag(self, name: str, *, default: bool) -> bool:
        """Take a bool out of the body, also as a text. Raises WrongRequest."""
        value = self.body.get(name)
        is_text = value in ("true", "false")
        return value == "true" if is_text else JsonFields.flag(self, name, default=default)


class _Body(Arguments):
    """The fields of a body: a flag may be a text, and an object that is missing is an empty one."""

    def __init__(self, call: ApiCall) -> None:
        super().__init__(call.body)
        self._call = call

    def flag(self, name: str, *, default: bool) -> bool:
        return self._call.flag(name, default=default)

    def mapping(self, name: str) -> dict[str, Any]:
        return usable_mapping(name, self._call.mapping(name))


Answer = Response | Mapping[str, object] | None
"""Result of a handler: an answer, one object to show, or None for what is done."""

Handler = Callable[[ApiCall], Awaitable[Answer]]
