"""Requests on virtual hosts, and on who is connected to them."""

from typing import Final

from gateway.broker.access.errors import VirtualHostExists
from gateway.broker.access.model import (
    VIRTUAL_HOST_LIMITS,
    Permission,
    check_limits,
    with_limit,
)
from gateway.management.administration import Administration, Role, Row
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.requests.arguments import Arguments


async def list_vhosts(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Return all virtual hosts."""
    arguments.end()
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


async def add_vhost(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a virtual host; nobody may enter it yet."""
    name = arguments.text("name")
    description, tags = arguments.text("description", ""), arguments.texts("tags")
    queue_type = arguments.optional_text("default_queue_type")
    arguments.end()
    await administration.virtual_hosts.create(
        name, description=description, tags=tags, default_queue_type=queue_type
    )
    return None


async def put_vhost(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Create a virtual host, in which a user may do everything; or describe one that is there."""
    name, user = arguments.text("name"), arguments.text("user")
    description, tags = arguments.text("description", ""), arguments.texts("tags")
    queue_type = arguments.optional_text("default_queue_type")
    arguments.end()
    hosts = administration.virtual_hosts
    try:
        await hosts.create(name, description=description, tags=tags, default_queue_type=queue_type)
    except VirtualHostExists:
        await hosts.describe(
            name,
            description=description,
            tags=tags,
            default_queue_type=queue_type,
            metadata=hosts.entry(name).metadata,
        )
        return {"is_new": False}
    await administration.access.put_permission(Permission(user, name, ".*", ".*", ".*"))
    return {"is_new": True}


async def delete_vhost(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Delete a virtual host with all of its streams."""
    name = arguments.text("name")
    arguments.end()
    await administration.virtual_hosts.delete(name)
    return None


async def set_vhost_limits(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Replace the limits of a virtual host."""
    name, limits = arguments.text("name"), arguments.mapping("limits")
    arguments.end()
    check_limits(limits, VIRTUAL_HOST_LIMITS)
    await administration.access.set_virtual_host_limits(name, limits)
    return None


async def set_vhost_limit(administration: Administration, arguments: Arguments, _: bytes) -> object:
    """Set one limit of a virtual host, or take it away; the others stay."""
    name, limit = arguments.text("name"), arguments.text("limit")
    value = arguments.optional_integer("value")
    arguments.end()
    changed = with_limit(limit, value, VIRTUAL_HOST_LIMITS)
    await administration.access.change_virtual_host_limits(name, changed)
    return None


async def list_connections(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """Return who is connected, the longest connected first."""
    user, virtual_host = arguments.optional_text("user"), arguments.optional_text("virtual_host")
    arguments.end()
    return [
        {
            "number": administration.connections.number_of(connection),
            "name": f"{connection.peer} -> {connection.local}",
            "peer": connection.peer,
            "user": connection.user,
            "virtual_host": connection.virtual_host_name,
            "client_properties": dict(connection.client_properties),
        }
        for connection in administration.connections.of(user=user, virtual_host=virtual_host)
    ]


async def close_connections(
    administration: Administration, arguments: Arguments, _: bytes
) -> object:
    """End a connection by its peer's address or its number, or all of a user or a virtual host."""
    peer, number = arguments.optional_text("peer"), arguments.optional_integer("number")
    user, virtual_host = arguments.optional_text("user"), arguments.optional_text("virtual_host")
    reason = arguments.text("reason", "closed by an administrator")
    arguments.end()
    if peer is None and number is None and user is None and virtual_host is None:
        raise WrongRequest("say which: a peer, a number, a user or a virtual host")
    connections = administration.connections
    found = [
        connection
        for connection in connections.of(user=user, virtual_host=virtual_host)
        if peer in (None, connection.peer) and number in (None, connections.number_of(connection))
    ]
    if not found and (peer is not None or number is not None):
        raise NotFound(f"there is no such connection: {number if peer is None else repr(peer)}")
    for connection in found:
        connection.end(reason)
    return {"closed": len(found)}


ROWS: Final = (
    Row("list_vhosts", list_vhosts, Role.MONITORING),
    Row("add_vhost", add_vhost),
    Row("put_vhost", put_vhost),
    Row("delete_vhost", delete_vhost),
    Row("set_vhost_limits", set_vhost_limits),
    Row("set_vhost_limit", set_vhost_limit),
    Row("list_connections", list_connections, Role.MONITORING),
    Row("close_connections", close_connections),
)
