"""Requests on policies, and on those that operators set beside them."""

from typing import Annotated, TypeAlias

from gateway.broker.access.authorisation import Demand
from gateway.broker.access.errors import Unusable
from gateway.broker.patterns import length_fault
from gateway.broker.rules.policies import Policy, check_operator_policy
from gateway.broker.rules.policy_settings import check_known, check_values
from gateway.management.administration import Administration, Role
from gateway.management.kinds import POLICIES
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.row import Host, Hosts, listed_by_host, request


@request(Role.MONITORING)
async def list_policies(hosts: Hosts) -> object:
    """Return the policies of a virtual host, or of all."""
    return listed_by_host(hosts, POLICIES, lambda host: host.policies.all())


@request(Role.MONITORING)
async def list_operator_policies(hosts: Hosts) -> object:
    """Return the operators' policies of a virtual host, or of all."""
    return listed_by_host(hosts, POLICIES, lambda host: host.policies.operators.all())


def _policy(_: Administration, arguments: Arguments, __: str) -> Policy:
    policy = POLICIES.taken(arguments, apply_to=arguments.text("apply_to", "streams"))
    if fault := length_fault(policy.pattern):
        raise Unusable(f"the pattern of policy {policy.name!r} {fault}")
    return policy


Said: TypeAlias = Annotated[Policy, _policy]


def _to_enter() -> list[Demand]:
    """Demand nothing but the virtual host: policies have a tag of their own."""
    return []


@request(Role.POLICYMAKER, needs=_to_enter)
async def set_policy(host: Host, policy: Said) -> None:
    """Create a policy, or replace the one of that name; it counts at once."""
    check_known(policy.definition)
    check_values(policy.definition)
    await host.policies.put(policy)


@request()
async def set_operator_policy(host: Host, policy: Said) -> None:
    """Create an operators' policy, or replace the one of that name; it counts at once."""
    check_operator_policy(policy)
    check_values(policy.definition)
    await host.policies.operators.put(policy)


@request(Role.POLICYMAKER, needs=_to_enter)
async def clear_policy(host: Host, name: str) -> None:
    """Delete a policy."""
    await host.policies.delete(name)


@request()
async def clear_operator_policy(host: Host, name: str) -> None:
    """Delete an operators' policy."""
    await host.policies.operators.delete(name)
