"""Definitions: RabbitMQ's own, out and in."""

import logging
from http import HTTPStatus
from typing import Final

from gateway.management.definitions.report import ImportOutcome
from gateway.management.errors import NotFound, WrongRequest
from gateway.management.http.answers import ApiRefusal, Listed, sliced_answer
from gateway.management.http.call import Answer, ApiCall
from gateway.management.requests import definitions as requests

log = logging.getLogger(__name__)

LOGGED_MAX: Final = 50


async def get(call: ApiCall) -> Answer:
    """Export everything, or what is in a virtual host, in slices."""
    try:
        exported = await call.ask(requests.export_definitions, **call.path)
    except NotFound:
        raise WrongRequest("vhost_not_found") from None
    warnings = exported["warnings"]
    for warning in warnings[:LOGGED_MAX]:
        log.warning("exported not as it is reason=%s", warning)
    if len(warnings) > LOGGED_MAX:
        log.warning("exported not as it is count=%d", len(warnings))
    sections = exported["definitions"].items()
    return sliced_answer(
        {
            name: Listed(value, dict) if isinstance(value, list) else value
            for name, value in sections
        }
    )


async def post(call: ApiCall) -> None:
    """Import definitions: all of them or nothing, since there is no report to say what is left."""
    host = call.path.get("virtual_host")
    if host is not None and call.administration.virtual_hosts.find(host) is None:
        raise ApiRefusal(HTTPStatus.NOT_FOUND, "not_found", "vhost_not_found")
    answer = await call.ask(
        requests.import_definitions, call.raw_body or b"{}", whole=True, **call.path
    )
    changed = [row for row in answer["rows"] if row[3] != ImportOutcome.IMPORTED.value]
    for kind, virtual_host, name, outcome, reason in changed[:LOGGED_MAX]:
        log.info(
            "definition %s kind=%s virtual_host=%r name=%r reason=%s",
            *(outcome, kind, virtual_host, name, reason),
        )
    if len(changed) > LOGGED_MAX:
        log.info("definitions not all as written count=%d", len(changed))
