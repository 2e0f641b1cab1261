"""`python -m compat.bench`: measure, print the table, write the page.

The exit status tells whether everything could be measured and every check held, not
whether the targets are reached: figures differ between machines, and the table says it.
"""

import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from compat.bench import plots, report
from compat.bench.begun_anew import BegunAnew
from compat.bench.campaign import Outcome, measure
from compat.bench.cluster_rows import CLUSTER_ROWS
from compat.bench.errors import BenchError
from compat.bench.hutch import Hutch
from compat.bench.left_out import split_rows
from compat.bench.machine import describe_machine, fsync_ms_of
from compat.bench.rabbitmq import Rabbitmq
from compat.bench.servers import (
    ACKNOWLEDGING,
    CLUSTER,
    NATS,
    PRAVEGA,
    RABBITMQ,
    TITLES,
    Server,
    properties_of,
)
from compat.bench.settings import Settings, parse
from compat.bench.surroundings import busy_cores, warm_memory
from compat.nats_servers import version as nats_version


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    settings = parse(arguments)
    rows, skipped = split_rows(settings.rows)
    for line in skipped:
        _say(f"skipped {line}")
    if not rows:
        return 0
    settings.data.mkdir(parents=True, exist_ok=True)
    busy = busy_cores()
    if busy >= report.DISTURBED_SHARE:
        _say(f"warning: {report.busy_warning(busy)}")
    warm_memory(settings.scale.touched_part, _say)
    fsync_ms = fsync_ms_of(settings.data)
    servers = _servers(settings, rows)
    try:
        outcome = measure(servers, settings.scale, rows, _say)
        versions = {TITLES[server.name]: _version_of(server) for server in servers}
    except BenchError as error:
        _say(f"bench: {error}")
        return 1
    finally:
        for server in servers:
            server.stop()
    run = report.Run(
        medians=outcome.medians(),
        rounds=settings.scale.rounds,
        machine=describe_machine(settings.data, fsync_ms),
        versions=versions,
        command=shlex.join(["python", "-m", "compat.bench", *arguments]),
        date=datetime.now(UTC).date().isoformat(),
        fsync_ms=fsync_ms,
        failures=outcome.failures,
        skipped=skipped,
        busy_cores=busy,
    )
    _show(run, judges=not settings.scale.is_quick)
    if settings.json is not None:
        _write_samples(settings.json, outcome, run)
    if settings.page is not None and not outcome.failures:
        _write_page(settings.page, run)
    return 1 if outcome.failures else 0


def _servers(settings: Settings, rows: Collection[str]) -> list[Server]:
    servers: list[Server] = []
    for mode in ("os", "disk"):
        if mode in settings.modes:
            folder = Path(tempfile.mkdtemp(prefix=f"bench-{mode}-", dir=settings.data))
            servers.append(Hutch(settings.hutch_command, folder, mode))
    if settings.with_rabbitmq:
        servers.append(Rabbitmq(settings.rabbitmq))
    if settings.with_pravega:
        servers += BegunAnew(PRAVEGA), BegunAnew(ACKNOWLEDGING)
    if "disk" in settings.modes and any(row.name in rows for row in CLUSTER_ROWS):
        servers += (BegunAnew(name, settings.data / name) for name in (CLUSTER, NATS))
    return servers


def _version_of(server: Server) -> str:
    if server.name == ACKNOWLEDGING:
        return "stores nothing"
    if server.name == PRAVEGA:
        return "0.13.0, standalone"
    if server.name == CLUSTER:
        return f"two members, and three servers of {nats_version()}"
    if server.name == NATS:
        return metadata.version("nats-py")
    said = properties_of(server.address)
    wanted = ("product", "version", "platform")
    text = ", ".join(said[key] for key in wanted if key in said)
    return text if server.name == RABBITMQ else f"says {text}"


def _show(run: report.Run, *, judges: bool) -> None:
    _say("")
    for line in report.tables_of(run.medians):
        _say(line)
    _say(report.LEGEND)
    _say("")
    for line in report.verdicts_of(run.medians, run.fsync_ms) if judges else ():
        _say(line)
    for line in report.warnings_of(run):
        _say(f"WARNING {line}")
    for line in run.failures:
        _say(f"FAILED {line}")


def _write_samples(path: Path, outcome: Outcome, run: report.Run) -> None:
    content = {
        "machine": dict(run.machine),
        "versions": dict(run.versions),
        "command": run.command,
        "date": run.date,
        "fsync_ms": run.fsync_ms,
        "busy_cores": run.busy_cores,
        "medians": run.medians,
        "samples": outcome.samples,
        "failures": outcome.failures,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def _write_page(page: Path, run: report.Run) -> None:
    """Write the page, and the plots beside it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    try:
        drawn = plots.draw(run.medians, page.parent)
    except ImportError:
        drawn = []
        _say("no plots: matplotlib is missing (make bench installs it)")
    run = replace(run, plots={name: plots.TEXTS[name] for name in drawn})
    page.write_text(report.page_of(run))
    _say(f"wrote {', '.join([page.name, *drawn])}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    # A polite end must stop the servers as well as an interrupt from the keyboard does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
