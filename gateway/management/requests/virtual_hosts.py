"""Requests on virtual hosts."""

from typing import Annotated, TypeAlias

from gateway.broker.access.access import Access
from gateway.broker.access.model import UserPermission
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.management.administration import Administration, Role
from gateway.management.fields import Arguments
from gateway.management.kinds.virtual_hosts import HOSTS, Host
from gateway.management.requests.request import Limits, request, thing_of


def _host(arguments: Arguments) -> Host:
    return Host(
        arguments.text("name"),
        arguments.text("description", ""),
        arguments.texts("tags"),
        arguments.optional_text("default_queue_type"),
    )


Described: TypeAlias = Annotated[Host, thing_of(HOSTS, _host)]
"""A virtual host that is described; its limits are set by another request."""


@request(Role.MONITORING)
async def list_vhosts(administration: Administration) -> object:
    """Return all virtual hosts."""
    result = []
    for name in administration.virtual_hosts.names():
        entry = administration.virtual_hosts.entry(name)
        result.append(
            {
                "name": name,
                "description": entry.description,
                "tags": list(entry.tags),
                "default_queue_type": entry.default_queue_type,
                "limits": dict(administration.access.virtual_host_limits(name)),
                "streams": len(administration.host(name).streams),
                "connections": administration.connections.count_of_virtual_host(name),
            }
        )
    return result


@request()
async def add_vhost(virtual_hosts: VirtualHosts, host: Described) -> None:
    """Create a virtual host; no user may enter it yet."""
    await virtual_hosts.create(host.name, **host.described)


@request()
async def put_vhost(administration: Administration, user: str, host: Described) -> object:
    """Create a virtual host, in which a user may do everything; or describe one that is there."""
    is_new = await HOSTS.describe(administration, host)
    if is_new:
        everything = dict.fromkeys(("configure", "write", "read"), ".*")
        await administration.access.put_permission(
            UserPermission(user=user, virtual_host=host.name, **everything)
        )
    return {"is_new": is_new}


@request()
async def delete_vhost(virtual_hosts: VirtualHosts, name: str) -> None:
    """Delete a virtual host with all of its streams."""
    await virtual_hosts.delete(name)


@request()
async def set_vhost_limits(access: Access, name: str, limits: Limits) -> object:
    """Replace the limits of a virtual host, or set one of them."""
    return {"is_new": await access.change_virtual_host_limits(name, limits)}
