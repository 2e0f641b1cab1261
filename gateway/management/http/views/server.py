"""The server itself, as one node."""

import asyncio
import os
import time
from typing import Final

from gateway.broker.service import ScarceResource
from gateway.management.http.answers import in_slices, value_answer
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed_whole
from gateway.management.http.views.connections import visible_connections
from gateway.management.http.views.figures import (
    NOT_HERE,
    RUNTIME,
    churn,
    counted,
    machine_figures,
    memory_figures,
    messages,
)
from gateway.management.http.views.streams import count_messages
from gateway.management.kinds.topology import TYPES
from gateway.management.requests import users

_EXCHANGE_TYPES: Final = [{"name": name, "description": "", "enabled": True} for name in TYPES]


async def whoami(call: ApiCall) -> Answer:
    """Show the user that asks."""
    user = call.administration.access.user(call.actor.name)
    tags = [] if user is None else list(user.tags)
    return {"name": call.actor.name, "tags": tags, "is_internal_user": True}


async def version(call: ApiCall) -> Answer:
    """Show the version of RabbitMQ whose behaviour this is."""
    return value_answer(call.about.peer_properties["version"])


async def cluster_name(call: ApiCall) -> Answer:
    """Show the name that a cluster would have."""
    return {"name": call.about.peer_properties["cluster_name"]}


async def _node_view(call: ApiCall) -> dict[str, object]:
    now_ms = time.time_ns() // 1_000_000
    cluster = call.administration.service.cluster
    figures = await asyncio.to_thread(machine_figures, call.about.data)
    return {
        **NOT_HERE,
        **figures,
        **counted([("sockets_used", len(call.administration.connections))]),
        "sockets_total": figures["fd_total"],
        "name": call.facts.node,
        "type": "disc",
        "running": True,
        "being_drained": call.administration.service.is_draining,
        "cluster_members": [] if cluster is None else cluster.members(),
        "uptime": now_ms - call.about.started_ms,
        "os_pid": str(os.getpid()),
        "mem_alarm": ScarceResource.MEMORY in call.administration.service.alarms,
        "disk_free_alarm": ScarceResource.DISK in call.administration.service.alarms,
        "rates_mode": "none",
        "hutch_version": call.about.version,
        "rabbitmq_version": call.about.peer_properties["version"],
        "partitions": [],
        "applications": [],
        "auth_mechanisms": [],
        "exchange_types": _EXCHANGE_TYPES,
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_stream", "rabbitmq_stream_management"],
    }


async def list_nodes(call: ApiCall) -> Answer:
    """List this server, the only node."""
    return await listed_whole(call, [await _node_view(call)], dict)


async def get_node(call: ApiCall) -> Answer:
    """Show this server by its name."""
    call.check_node()
    return await _node_view(call)


async def get_memory(call: ApiCall) -> Answer:
    """Show how much memory this server takes."""
    call.check_node()
    return {"memory": await asyncio.to_thread(memory_figures)}


async def overview(call: ApiCall) -> Answer:
    """Show how many objects there are of each kind."""
    hosts, facts, connections = call.hosts(), call.facts, visible_connections(call)
    properties = call.about.peer_properties
    reading = [len(each.consumer_details()) async for each in in_slices(connections)]
    return {
        "hutch_version": call.about.version,
        "management_version": properties["version"],
        "rabbitmq_version": properties["version"],
        "product_name": "Hutch",
        "product_version": call.about.version,
        "cluster_name": properties["cluster_name"],
        "node": facts.node,
        "rates_mode": "none",
        "disable_stats": False,
        "default_queue_type": "stream",
        "exchange_types": _EXCHANGE_TYPES,
        **RUNTIME,
        "cluster_tags": {},
        "node_tags": {},
        "enable_queue_totals": False,
        "is_op_policy_updating_enabled": True,
        "require_definition_json_extension": False,
        "sample_retention_policies": {},
        "statistics_db_event_queue": 0,
        "object_totals": {
            "connections": len(connections),
            "channels": 0,
            "exchanges": sum(1 + len(host.exchanges.all()) for host in hosts),
            "queues": sum(len(host.streams) for host in hosts),
            "consumers": sum(reading),
        },
        "queue_totals": messages(sum([await count_messages(call, host) for host in hosts])),
        "message_stats": {},
        "churn_rates": churn(),
        "listeners": [
            {
                "node": facts.node,
                "protocol": protocol,
                "ip_address": address,
                "port": port,
                "tls": protocol.endswith("/ssl"),
            }
            for protocol, address, port in facts.listeners()
        ],
        "contexts": [],
    }


async def list_attempts(by: str, call: ApiCall) -> Answer:
    """List the numbers of logins by protocol, or by address and protocol."""
    call.check_node()
    found: list[dict[str, object]] = await call.ask(users.list_auth_attempts, by=by)
    return await listed_whole(call, found, dict)


async def reset_attempts(call: ApiCall) -> None:
    """Count logins from 0 again."""
    call.check_node()
    await call.ask(users.reset_auth_attempts)


async def nothing(call: ApiCall) -> Answer:
    """List things that RabbitMQ has and this server does not."""
    return await listed_whole(call, [], dict)
