"""Requests on virtual hosts."""

from typing import Any

from gateway.broker.access.access import Access
from gateway.broker.access.errors import VirtualHostExists
from gateway.broker.access.model import VIRTUAL_HOST_LIMITS, Permission, check_limits, with_limit
from gateway.broker.virtual_hosts import VirtualHosts
from gateway.management.administration import Administration, Role
from gateway.management.requests.row import request


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
async def add_vhost(
    virtual_hosts: VirtualHosts,
    name: str,
    tags: tuple[str, ...],
    default_queue_type: str | None,
    description: str = "",
) -> None:
    """Create a virtual host; no user may enter it yet."""
    await virtual_hosts.create(
        name, description=description, tags=tags, default_queue_type=default_queue_type
    )


@request()
async def put_vhost(
    administration: Administration,
    name: str,
    user: str,
    tags: tuple[str, ...],
    default_queue_type: str | None,
    description: str = "",
) -> object:
    """Create a virtual host, in which a user may do everything; or describe one that is there."""
    hosts = administration.virtual_hosts
    described: dict[str, Any] = {
        "description": description,
        "tags": tags,
        "default_queue_type": default_queue_type,
    }
    try:
        await hosts.create(name, **described)
    except VirtualHostExists:
        await hosts.describe(name, **described, metadata=hosts.entry(name).metadata)
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
async def set_vhost_limits(access: Access, name: str, limits: dict[str, Any]) -> None:
    """Replace the limits of a virtual host."""
    check_limits(limits, VIRTUAL_HOST_LIMITS)
    await access.set_virtual_host_limits(name, limits)


@request()
async def set_vhost_limit(access: Access, name: str, limit: str, value: int | None) -> None:
    """Set one limit of a virtual host, or take it away; the others stay."""
    changed = with_limit(limit, value, VIRTUAL_HOST_LIMITS)
    await access.change_virtual_host_limits(name, changed)
