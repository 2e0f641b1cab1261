"""Objects of kinds that all administrators treat alike: policies of either kind."""

from dataclasses import dataclass
from typing import Any

from gateway.management.errors import NotFound
from gateway.management.http.call import Answer, Call
from gateway.management.http.listing import listed_whole
from gateway.management.kinds.virtual_hosts import InHost
from gateway.management.requests.kinds import KindRequests


@dataclass(frozen=True, slots=True)
class KindViews:
    """Show and change objects of one kind.

    Attributes:
        kind: The kind.
        requests: Those on it.
    """

    kind: InHost[Any]
    requests: KindRequests

    async def all(self, call: Call) -> Answer:
        """List all objects, or those of a virtual host."""
        found = [(host.name, thing) for host in call.hosts() for thing in self.kind.all_in(host)]
        return await listed_whole(call, found, lambda one: self._shown(*one))

    def _shown(self, host: str, thing: object) -> dict[str, object]:
        return {"vhost": host, **self.kind.outer(thing)}

    async def get(self, call: Call) -> Answer:
        """Show one object."""
        host = call.host().name
        thing = self.kind.find(call.administration, (host, call.path["policy"]))
        if thing is None:
            raise NotFound(f"there is no such {self.kind.word}")
        return self._shown(host, thing)

    async def put(self, call: Call) -> Answer:
        """Create an object, or replace the one of that name."""
        host = call.host().name
        call.demand(*self.kind.demanded)
        thing = call.thing(self.kind, name=call.path["policy"])
        return await call.put(self.requests.put, virtual_host=host, thing=thing)

    async def delete(self, call: Call) -> None:
        """Delete an object."""
        host = call.host().name
        await call.ask(self.requests.remove, virtual_host=host, name=call.path["policy"])
