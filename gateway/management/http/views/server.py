"""The server as such."""

import asyncio
import os
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from gateway.broker.connections import OpenConnection
from gateway.broker.service import Resource
from gateway.management.administration import Role
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.http.answers import SLICE, empty_answer, value_answer
from gateway.management.http.call import Call
from gateway.management.http.listing import listed_whole, object_answer
from gateway.management.http.views.connections import visible_connections
from gateway.management.http.views.figures import (
    NOT_HERE,
    RUNTIME,
    churn,
    counted,
    machine_figures,
    messages,
)
from gateway.management.http.views.streams import count_messages

_EXCHANGE_TYPES: Final = [
    {"name": name, "description": "", "enabled": True} for name in ("direct", "fanout", "topic")
]
UNHEALTHY: Final = HTTPStatus.SERVICE_UNAVAILABLE


async def whoami(call: Call) -> Response:
    """Who asks."""
    user = call.administration.access.user(call.actor.name)
    tags = [] if user is None else list(user.tags)
    return object_answer(call, {"name": call.actor.name, "tags": tags, "is_internal_user": True})


async def version(call: Call) -> Response:
    """The version of RabbitMQ whose behaviour this is."""
    return value_answer(call.facts.version)


async def cluster_name(call: Call) -> Response:
    """What a cluster would be called."""
    return object_answer(call, {"name": call.facts.cluster_name})


async def _node_view(call: Call) -> dict[str, object]:
    now_ms = time.time_ns() // 1_000_000
    figures = await asyncio.to_thread(machine_figures, call.facts.data)
    return {
        **NOT_HERE,
        **figures,
        **counted([("sockets_used", len(call.administration.connections))]),
        "sockets_total": figures["fd_total"],
        "name": call.facts.node,
        "type": "disc",
        "running": True,
        "being_drained": call.administration.service.is_draining,
        "uptime": now_ms - call.facts.started_ms,
        "os_pid": str(os.getpid()),
        "mem_alarm": Resource.MEMORY in call.administration.service.alarms,
        "disk_free_alarm": Resource.DISK in call.administration.service.alarms,
        "rates_mode": "none",
        "rabbitmq_version": call.facts.version,
        "partitions": [],
        "applications": [],
        "auth_mechanisms": [],
        "exchange_types": _EXCHANGE_TYPES,
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_stream", "rabbitmq_stream_management"],
    }


async def list_nodes(call: Call) -> Response:
    """This server, as the one node there is."""
    call.require(Role.MONITORING)
    return await listed_whole(call, [await _node_view(call)], lambda node: node)


async def get_node(call: Call) -> Response:
    """The same, by its name."""
    call.require(Role.MONITORING)
    if call.path["node"] != call.facts.node:
        raise NotFound("there is one node")
    return object_answer(call, await _node_view(call))


async def _consumers(connections: Sequence[OpenConnection]) -> int:
    """Count who reads; others are served meanwhile, there may be ten thousand."""
    count = 0
    for start in range(0, len(connections), SLICE):
        count += sum(len(each.consumer_details()) for each in connections[start : start + SLICE])
        await asyncio.sleep(0)
    return count


async def overview(call: Call) -> Response:
    """What there is, in numbers."""
    hosts = call.hosts()
    facts, connections = call.facts, visible_connections(call)
    return object_answer(
        call,
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
                "consumers": await _consumers(connections),
            },
            "queue_totals": messages(sum([await count_messages(host) for host in hosts])),
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
        },
    )


# Health


async def _healthy(call: Call) -> Response:
    del call
    return value_answer({"status": "ok"})


def _failed(reason: str, **more: object) -> Response:
    return value_answer({"status": "failed", "reason": reason, **more}, UNHEALTHY)


async def check_alarms(call: Call) -> Response:
    """Whether an alarm is set."""
    alarms = [resource.value for resource in call.administration.service.alarms]
    if alarms:
        return _failed("There are alarms in effect", alarms=alarms)
    return await _healthy(call)


async def check_service(call: Call) -> Response:
    """Whether clients are let in."""
    service = call.administration.service
    if service.is_draining or service.is_stopped:
        return _failed("this node is not in service")
    return await _healthy(call)


async def check_connections(call: Call) -> Response:
    """Whether one more connection is let in."""
    limit, count = call.facts.connections_max, len(call.administration.connections)
    if count >= limit:
        reason = "node connection limit is reached"
        return _failed(reason, limit=limit, connections=count)
    return await _healthy(call)


async def check_store(call: Call) -> Response:
    """Whether what is known of streams and users is read: it is, or there were no answer."""
    return await _healthy(call)


async def check_quorum_queues(call: Call) -> Response:
    """Whether quorum queues are without a leader: there are no such queues."""
    return await _healthy(call)


async def check_hosts(call: Call) -> Response:
    """Whether the virtual hosts are open: they are, or there were no answer."""
    return await _healthy(call)


async def check_quorum(call: Call) -> Response:
    """Whether others depend on this node: there are none."""
    del call
    return value_answer({"status": "ok", "reason": "single node cluster"})


async def check_port(call: Call) -> Response:
    """Whether somebody listens on a port."""
    text = call.path["port"]
    if not (text.isascii() and text.isdecimal()):
        raise WrongRequest("a port is a number")
    ports = [port for _, _, port in call.facts.listeners()]
    if int(text[:6]) in ports:
        return value_answer({"status": "ok", "port": int(text)})
    return _failed("No active listener", ports=ports, missing=int(text[:6]))


async def check_protocol(call: Call) -> Response:
    """Whether a protocol is spoken."""
    wanted = call.path["protocol"].split(",")
    spoken = sorted({protocol for protocol, _, _ in call.facts.listeners()})
    missing = [protocol for protocol in wanted if protocol not in spoken]
    if missing:
        return _failed("No active listener", protocols=spoken, missing=missing)
    return value_answer({"status": "ok", "protocols": spoken})


def _attempted_at(call: Call) -> None:
    """Demand what figures of logins take. Raises NotFound, NotAllowed."""
    call.require(Role.MONITORING)
    if call.path["node"] != call.facts.node:
        raise NotFound("there is one node")


async def list_attempts(call: Call) -> Response:
    """How often somebody tried to log in, by protocol."""
    _attempted_at(call)
    found: list[dict[str, object]] = await call.ask("list_auth_attempts", {"by": "protocol"})
    return await listed_whole(call, found, lambda attempts: attempts)


async def list_attempts_by_source(call: Call) -> Response:
    """The same by address and protocol."""
    _attempted_at(call)
    found: list[dict[str, object]] = await call.ask("list_auth_attempts", {"by": "address"})
    return await listed_whole(call, found, lambda attempts: attempts)


async def reset_attempts(call: Call) -> Response:
    """Count from 0 again, by both."""
    _attempted_at(call)
    await call.ask("reset_auth_attempts")
    return empty_answer(HTTPStatus.NO_CONTENT)


async def aliveness(call: Call) -> Response:
    """Whether a virtual host is there."""
    call.host()
    return await _healthy(call)


async def nothing(call: Call) -> Response:
    """A list of what RabbitMQ has and this server does not."""
    return await listed_whole(call, [], dict)
