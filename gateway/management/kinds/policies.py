"""Policies, and those that operators set beside them."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.errors import UnusableValue
from gateway.broker.patterns import length_fault
from gateway.broker.rules.policies import (
    APPLY_TO,
    Policy,
    PolicyTable,
    check_operator_policy,
    check_policy,
)
from gateway.broker.rules.policy_settings import DEFINED, check_known, check_values, not_of_streams
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.management.errors import shown
from gateway.management.fields import JsonFields
from gateway.management.kinds.entry import (
    Context,
    DefinitionEntry,
    Fault,
    Skip,
    require_type,
    required_pattern,
    usable_name,
)
from gateway.management.kinds.kind import PARAMETERS, Key
from gateway.management.kinds.virtual_hosts import HostedKind

if TYPE_CHECKING:  # all of the broker, which a command line does without
    from gateway.broker.hosts.virtual_host import VirtualHost
    from gateway.management.administration import Administration

_KEYS: Final = frozenset(DEFINED)
"""Keys of a policy that mean something to a stream."""
_TEXTS: Final = frozenset({"max-age"})
_STREAM_TARGETS: Final = frozenset({"all", "queues", "streams"})


class PolicyKind(HostedKind[Policy]):
    """The kind of policies."""

    name, word = "policies", "policy"
    thing = Policy
    outer_names: Mapping[str, str] = {"apply_to": "apply-to"}
    section = path = "policies"
    is_replaced = is_delegated = True
    demanded = ("pattern", "definition")

    def table(self, host: "VirtualHost") -> PolicyTable:
        """Return those of a virtual host."""
        return host.policies

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Policy]:
        """Read a policy; also what it says of other things than streams, to be given back.

        A policy without a word about streams is kept too: of those that fit a name only the one of
        the highest priority counts, so another would take its place.
        """
        taken = self._read(entry, check_policy)
        return (context.host_of(entry), taken.name), taken

    def _read(self, entry: DefinitionEntry, check: Callable[[Policy], object]) -> Policy:
        taken = self.taken(entry, is_outer=True, name=entry.name())
        apply_to, definition = taken.apply_to, taken.definition
        for key in sorted(_KEYS & definition.keys()):
            require_type(f"definition.{key}", definition[key], is_text=key in _TEXTS)
        required_pattern(entry, "pattern")
        if apply_to not in APPLY_TO:
            raise Fault(f"apply-to is {shown(apply_to)}")
        usable_name(taken.name, "policy")
        try:
            check(taken)
            check_values(definition)
        except UnusableValue as error:
            raise Skip(str(error)) from None
        if apply_to == "exchanges" and definition.keys() == {ALTERNATE_EXCHANGE}:
            pass  # it acts here as there
        elif apply_to not in _STREAM_TARGETS:
            entry.notes.append(f"is for {apply_to}: kept for an export, no more")
        elif why := not_of_streams(definition):
            entry.notes.append(f"does not apply to streams because of {', '.join(why)}"[:200])
        elif others := sorted(definition.keys() - _KEYS):
            entry.notes.append(
                f"means nothing to a stream, kept for an export: {', '.join(others)}"[:200]
            )
        return taken

    def asked(self, arguments: JsonFields) -> Policy:
        return self.taken(arguments, apply_to=arguments.text("apply_to", "streams"))

    def check(self, thing: Policy) -> None:
        if fault := length_fault(thing.pattern):
            raise UnusableValue(f"the pattern of policy {thing.name!r} {fault}")
        self._check_definition(thing)
        check_values(thing.definition)

    def _check_definition(self, policy: Policy) -> None:
        check_known(policy.definition)

    def all_in(self, host: "VirtualHost") -> Iterable[Policy]:
        return self.table(host).all()

    def find(self, administration: "Administration", key: Key) -> Policy | None:
        host = administration.virtual_hosts.find(key[0])
        return None if host is None else self.table(host).find(key[1])

    async def put_in(self, host: "VirtualHost", thing: Policy) -> bool:
        return await self.table(host).put(thing)

    async def remove_from(self, host: "VirtualHost", key: Key) -> None:
        await self.table(host).delete(key[1])


class OperatorPolicyKind(PolicyKind):
    """The kind of policies that operators set."""

    name, word = "operator_policies", "operator policy"
    section, component = PARAMETERS, "operator_policy"
    path, is_delegated = "operator-policies", False

    def table(self, host: "VirtualHost") -> PolicyTable:
        return host.policies.operators

    def read(self, entry: DefinitionEntry, context: Context) -> tuple[Key, Policy]:
        """Read a parameter that is an operators' policy."""
        said = DefinitionEntry({**entry.mapping("value"), "name": entry.name()})
        taken = self._read(said, check_operator_policy)
        entry.notes.extend(said.notes)
        return (context.host_of(entry), taken.name), taken

    def written(self, thing: Policy) -> dict[str, Any]:
        value = self.outer(thing)
        return {"component": self.component, "name": value.pop("name"), "value": value}

    def _check_definition(self, policy: Policy) -> None:
        check_operator_policy(policy)


POLICIES: Final = PolicyKind()
OPERATOR_POLICIES: Final = OperatorPolicyKind()
