"""Definitions for tests: real exports of RabbitMQ 4.3, and small ones made here."""

import json
from pathlib import Path
from typing import Any

from gateway.management.definitions.planning import ImportPlan, plan_import
from gateway.management.definitions.reading import ReadDefinitions, read_definitions
from gateway.management.definitions.report import ReportRow
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.table import KINDS
from gateway.management.kinds.virtual_hosts import HOSTS, Host

HERE = Path(__file__).parent
FULL = (HERE / "rabbitmq-4.3.json").read_bytes()
ONE_HOST = (HERE / "rabbitmq-4.3-one-host.json").read_bytes()


def read(**sections: object) -> ReadDefinitions:
    return read_definitions(json.dumps({"vhosts": [{"name": "/"}]} | sections).encode())


def with_default_host() -> Definitions:
    return Definitions({HOSTS: {("", "/"): Host("/")}})


def plan(current: Definitions | None = None, **sections: object) -> ImportPlan:
    return plan_import(read(**sections), current or with_default_host())


def row(rows: list[ReportRow], name: str, kind: str | None = None) -> ReportRow:
    found = [row for row in rows if row.name == name and kind in (None, row.kind)]
    assert len(found) == 1, found
    return found[0]


def applied(plan: ImportPlan, current: Definitions) -> Definitions:
    """What there would be after an import."""
    after = Definitions({kind: current.of(kind) for kind in KINDS})
    for kind in KINDS:
        for key, thing in plan.changes.of(kind).items():
            after.of(kind)[key] = kind.over(thing, current.of(kind).get(key))
    return after


def queue(
    name: str = "log", arguments: dict[str, object] | None = None, **fields: object
) -> dict[str, Any]:
    return {
        "name": name,
        "vhost": "/",
        "durable": True,
        "auto_delete": False,
        "type": "stream",
        "arguments": {"x-queue-type": "stream"} | (arguments or {}),
    } | fields
