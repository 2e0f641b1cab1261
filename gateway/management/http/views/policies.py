"""Policies, and those that operators set beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.rules.policies import Policy, PolicyTable
from gateway.management.errors import NotFound
from gateway.management.http.answers import made_answer
from gateway.management.http.call import Answer, Call
from gateway.management.http.listing import listed_whole
from gateway.management.kinds import OPERATOR_POLICIES, POLICIES, Kind


@dataclass(frozen=True, slots=True)
class PolicyViews:
    """Show and change policies of one kind.

    Attributes:
        kind: Of policies.
        table: Those of a virtual host.
    """

    kind: Kind[Policy]
    table: Callable[[VirtualHost], PolicyTable]

    def _shown(self, host: VirtualHost, policy: Policy) -> dict[str, object]:
        return {"vhost": host.name, **self.kind.outer(policy)}

    async def _ask(self, verb: str, call: Call, **arguments: object) -> None:
        await call.ask(f"{verb}_{self.kind.word.replace(' ', '_')}", **arguments)

    async def all(self, call: Call) -> Answer:
        """List all policies, or those of a virtual host."""
        found = [(host, policy) for host in call.hosts() for policy in self.table(host).all()]
        return await listed_whole(call, found, lambda one: self._shown(*one))

    async def get(self, call: Call) -> Answer:
        """Show one policy."""
        host = call.host()
        policy = self.table(host).find(call.path["policy"])
        if policy is None:
            raise NotFound(f"there is no such {self.kind.word}")
        return self._shown(host, policy)

    async def put(self, call: Call) -> Answer:
        """Create a policy, or replace the one of that name."""
        host, name = call.host(), call.path["policy"]
        is_new = self.table(host).find(name) is None
        call.demand("pattern", "definition")
        policy = self.kind.shown(self.kind.taken(call, is_outer=True, name=name))
        await self._ask("set", call, virtual_host=host.name, **policy)
        return made_answer(is_new=is_new)

    async def delete(self, call: Call) -> None:
        """Delete a policy."""
        host = call.host().name
        await self._ask("clear", call, virtual_host=host, name=call.path["policy"])


USERS: Final = PolicyViews(POLICIES, lambda host: host.policies)
OPERATORS: Final = PolicyViews(OPERATOR_POLICIES, lambda host: host.policies.operators)
