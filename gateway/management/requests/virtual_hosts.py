"""Requests on virtual hosts."""

from typing import Annotated, Any, TypeAlias

from gateway.broker.access.access import Access
from gateway.broker.access.errors import VirtualHostExists
from gateway.broker.access.model import Permission
from gateway.broker.hosts.virtual_hosts import VirtualHosts
from gateway.management.administration import Administration, Role
from gateway.management.requests.arguments import Arguments
from gateway.management.requests.row import Limits, request


def _description(_: Administration, arguments: Arguments, __: str) -> dict[str, Any]:
    return {
        "description": arguments.text("description", ""),
        "tags": arguments.texts("tags"),
        "default_queue_type": arguments.optional_text("default_queue_type"),
    }


Description: TypeAlias = Annotated[dict[str, Any], _description]
"""The description of a virtual host, as the broker takes it."""


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
async def add_vhost(virtual_hosts: VirtualHosts, name: str, description: Description) -> None:
    """Create a virtual host; no user may enter it yet."""
    await virtual_hosts.create(name, **description)


@request()
async def put_vhost(
    administration: Administration, name: str, user: str, description: Description
) -> object:
    """Create a virtual host, in which a user may do everything; or describe one that is there."""
    hosts = administration.virtual_hosts
    try:
        await hosts.create(name, **description)
    except VirtualHostExists:
        await hosts.describe(name, **description, metadata=hosts.entry(name).metadata)
        return {"is_new": False}
    await administration.access.put_permission(
        Permission(user=user, virtual_host=name, configure=".*", write=".*", read=".*")
    )
    return {"is_new": True}


@request()
async def delete_vhost(virtual_hosts: VirtualHosts, name: str) -> None:
    """Delete a virtual host with all of its streams."""
    await virtual_hosts.delete(name)


@request()
async def set_vhost_limits(access: Access, name: str, limits: Limits) -> None:
    """Replace the limits of a virtual host, or set one of them."""
    await access.change_virtual_host_limits(name, limits)
