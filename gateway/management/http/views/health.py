"""Health checks."""

from http import HTTPStatus

from starlette.responses import Response

from gateway.management.errors import WrongRequest
from gateway.management.http.answers import value_answer
from gateway.management.http.call import Call


def passed(**more: object) -> Response:
    """Answer that a check passed."""
    return value_answer({"status": "ok", **more})


def failed(reason: str, **more: object) -> Response:
    """Answer why a check failed."""
    answer = {"status": "failed", "reason": reason, **more}
    return value_answer(answer, HTTPStatus.SERVICE_UNAVAILABLE)


async def fine(_: Call) -> Response:
    """Pass a check that cannot fail while the server answers."""
    return passed()


async def aliveness(call: Call) -> Response:
    """Answer that a virtual host is there."""
    call.host()
    return passed()


async def alarms(call: Call) -> Response:
    """Answer whether an alarm is set, or work that should go on has ended."""
    service = call.administration.service
    alarms = [resource.value for resource in service.alarms]
    if alarms:
        return failed("There are alarms in effect", alarms=alarms)
    ended = service.ended
    return (
        failed("work of the server has ended: its log says why", ended=ended) if ended else passed()
    )


async def node(call: Call) -> Response:
    """Check for alarms, and answer in the words of RabbitMQ's oldest check."""
    call.check_node()
    alarms = [resource.value for resource in call.administration.service.alarms]
    named = ",".join(f"{{resource_limit,{each},{call.facts.node}}}" for each in alarms)
    return failed(f"resource alarm(s) in effect:[{named}]") if alarms else passed()


async def service(call: Call) -> Response:
    """Return whether clients are let in."""
    service = call.administration.service
    is_out = service.is_draining or service.is_stopped
    return failed("this node is not in service") if is_out else passed()


async def connections(call: Call) -> Response:
    """Return whether one more connection is let in."""
    limit, count = call.facts.connections_max, len(call.administration.connections)
    if count < limit:
        return passed()
    return failed("node connection limit is reached", limit=limit, connections=count)


async def quorum(_: Call) -> Response:
    """Return whether others depend on this node: there are none."""
    return passed(reason="single node cluster")


async def port(call: Call) -> Response:
    """Return whether a port is listened on."""
    text = call.path["port"]
    if not (text.isascii() and text.isdecimal()):
        raise WrongRequest("a port is a number")
    ports = [port for _, _, port in call.facts.listeners()]
    if int(text[:6]) in ports:
        return passed(port=int(text))
    return failed("No active listener", ports=ports, missing=int(text[:6]))


async def protocol(call: Call) -> Response:
    """Return whether some protocols are spoken."""
    spoken = sorted({protocol for protocol, _, _ in call.facts.listeners()})
    missing = [each for each in call.path["protocol"].split(",") if each not in spoken]
    if missing:
        return failed("No active listener", protocols=spoken, missing=missing)
    return passed(protocols=spoken)
