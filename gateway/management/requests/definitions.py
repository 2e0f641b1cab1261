"""Requests to import and export definitions."""

import logging
from functools import partial

from gateway.broker.locks import Check
from gateway.management.administration import Administration
from gateway.management.definitions.exporting import export_definitions as written
from gateway.management.definitions.importing import current_definitions, import_read
from gateway.management.definitions.reading import read_with_problems
from gateway.management.definitions.unfinished import ImportSource
from gateway.management.errors import DefinitionsError, UnusableDefinitions
from gateway.management.requests.request import request

log = logging.getLogger(__name__)


@request()
async def import_definitions(
    administration: Administration,
    *,
    dry_run: bool = False,
    whole: bool = False,
    virtual_host: str | None,
    body: bytes,
    judge: Check,
) -> object:
    """Import RabbitMQ's definitions, or only say what that would do."""
    read = partial(read_with_problems, body, virtual_host=virtual_host)
    try:
        plan = await import_read(
            administration,
            await administration.in_thread(read),
            dry_run=dry_run,
            is_whole=whole,
            source=ImportSource(body, virtual_host),
            check=judge,
        )
    except DefinitionsError as error:
        raise UnusableDefinitions(str(error)) from error
    return {
        "changes": plan.change_count,
        "is_dry_run": dry_run,
        "rows": [
            [row.kind, row.virtual_host, row.name, row.outcome.value, row.reason]
            for row in plan.rows
        ],
    }


@request()
async def export_definitions(administration: Administration, virtual_host: str | None) -> object:
    """Return definitions in RabbitMQ's form, and what of them RabbitMQ cannot use."""
    if virtual_host is not None:
        administration.host(virtual_host)
    current = await current_definitions(administration)
    tree, warnings = await administration.in_thread(
        partial(written, current, virtual_host=virtual_host)
    )
    return {"definitions": tree, "warnings": warnings}
