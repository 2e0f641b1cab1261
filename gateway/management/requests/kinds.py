"""Requests on objects of kinds that all administrators treat alike: policies of either kind."""

from typing import Annotated, Any, Final, NamedTuple

from gateway.broker.access.authorisation import Demand
from gateway.management.administration import Role
from gateway.management.kinds import table
from gateway.management.kinds.virtual_hosts import InHost
from gateway.management.requests.row import (
    Host,
    Hosts,
    Row,
    listed_by_host,
    request,
    thing_of,
)


class KindRequests(NamedTuple):
    """The requests on a kind."""

    all: Row
    put: Row
    remove: Row


def _to_enter() -> list[Demand]:
    """Demand nothing but the virtual host: policies have a tag of their own."""
    return []


def requests_on(kind: InHost[Any]) -> KindRequests:
    """Return the requests on a kind whose objects are listed, set and cleared."""
    role = Role.POLICYMAKER if kind.is_delegated else Role.ADMINISTRATOR
    needs = _to_enter if kind.is_delegated else None
    word = kind.word.replace(" ", "_")

    @request(Role.MONITORING, name=f"list_{kind.name}")
    async def list_all(hosts: Hosts) -> object:
        """Return the objects of a virtual host, or of all."""
        return listed_by_host(hosts, kind)

    @request(role, needs=needs, name=f"set_{word}")
    async def put(host: Host, thing: Annotated[object, thing_of(kind, kind.asked)]) -> object:
        """Create an object, or replace the one of that name; it counts at once."""
        kind.check(thing)
        return {"is_new": await kind.put_in(host, thing)}

    @request(role, needs=needs, name=f"clear_{word}")
    async def remove(host: Host, name: str) -> None:
        """Delete an object."""
        await kind.remove_from(host, (host.name, name))

    return KindRequests(list_all, put, remove)


REQUESTS: Final = {
    kind: requests_on(kind) for kind in table.KINDS if isinstance(kind, InHost) and kind.path
}
"""The requests on each of the kinds that are treated alike."""
