"""The server as such."""

import os
import time

from starlette.responses import Response

from gateway.admin.answers import list_answer, value_answer
from gateway.admin.call import Call
from gateway.broker.administration.errors import NotFound


async def whoami(call: Call) -> Response:
    """Who asks."""
    user = call.administration.access.user(call.actor.name)
    tags = [] if user is None else list(user.tags)
    return value_answer({"name": call.actor.name, "tags": tags, "is_internal_user": True})


async def version(call: Call) -> Response:
    """The version of RabbitMQ whose behaviour this is."""
    return value_answer(call.facts.version)


async def cluster_name(call: Call) -> Response:
    """What a cluster would be called."""
    return value_answer({"name": call.facts.cluster_name})


def _node_view(call: Call) -> dict[str, object]:
    now_ms = time.time_ns() // 1_000_000
    return {
        "name": call.facts.node,
        "type": "disc",
        "running": True,
        "being_drained": False,
        "uptime": now_ms - call.facts.started_ms,
        "os_pid": str(os.getpid()),
        "mem_alarm": False,
        "disk_free_alarm": False,
        "rates_mode": "none",
        "rabbitmq_version": call.facts.version,
        "partitions": [],
        "applications": [],
        "auth_mechanisms": [],
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_stream", "rabbitmq_stream_management"],
    }


async def list_nodes(call: Call) -> Response:
    """This server, as the one node there is."""
    return list_answer([None], lambda _: _node_view(call))


async def get_node(call: Call) -> Response:
    """The same, by its name."""
    if call.path["node"] != call.facts.node:
        raise NotFound("there is one node")
    return value_answer(_node_view(call))


async def overview(call: Call) -> Response:
    """What there is, in numbers."""
    hosts = call.hosts()
    names = frozenset(host.name for host in hosts)
    seen = [
        connection
        for connection in call.administration.connections
        if connection.virtual_host_name in names and call.actor.may_see_of(connection.user)
    ]
    facts = call.facts
    return value_answer(
        {
            "management_version": facts.version,
            "rabbitmq_version": facts.version,
            "product_name": facts.peer_properties["product"],
            "product_version": facts.version,
            "cluster_name": facts.cluster_name,
            "node": facts.node,
            "rates_mode": "none",
            "disable_stats": False,
            "default_queue_type": "stream",
            "exchange_types": [
                {"name": name, "description": "", "enabled": True}
                for name in ("direct", "fanout", "topic")
            ],
            "object_totals": {
                "connections": len(seen),
                "channels": 0,
                "exchanges": sum(1 + len(host.exchanges.all()) for host in hosts),
                "queues": sum(len(host.streams) for host in hosts),
                "consumers": 0,
            },
            "queue_totals": {},
            "message_stats": {},
            "churn_rates": {},
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
    )
