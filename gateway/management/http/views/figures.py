"""Figures of the process and its machine, and zeros for what only Erlang has.

Clients of the API decode all of these fields; those that mean nothing here are there as 0.
"""

import os
import resource
import shutil
import ssl
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

RATE: Final = {"rate": 0.0}
"""Beside every number that RabbitMQ counts: rates are not kept here."""

_PAGE_BYTES: Final = resource.getpagesize()
_STATM: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")
_KIB: Final = 1024

_CHURN: Final = (
    "connection_created",
    "connection_closed",
    "channel_created",
    "channel_closed",
    "queue_declared",
    "queue_created",
    "queue_deleted",
)
_COUNTED_BY_ERLANG: Final = (
    *("context_switches", "gc_num", "gc_bytes_reclaimed", "proc_used"),
    *("io_read_avg_time", "io_read_bytes", "io_read_count", "io_reopen_count"),
    *("io_seek_avg_time", "io_seek_count", "io_sync_avg_time", "io_sync_count"),
    *("io_write_avg_time", "io_write_bytes", "io_write_count"),
    *("mnesia_disk_tx_count", "mnesia_ram_tx_count"),
    *("msg_store_read_count", "msg_store_write_count"),
    *("queue_index_read_count", "queue_index_write_count"),
)


def counted(numbers: Iterable[tuple[str, int]]) -> dict[str, object]:
    """Show numbers, each with its rate."""
    shown: dict[str, object] = {}
    for name, number in numbers:
        shown |= {name: number, f"{name}_details": RATE}
    return shown


def churn() -> dict[str, object]:
    """Show how often things came and went: that is not counted."""
    return counted((name, 0) for name in _CHURN)


def messages(count: int) -> dict[str, object]:
    """Show how many records there are, all of them ready."""
    kinds = ("messages", count), ("messages_ready", count), ("messages_unacknowledged", 0)
    return counted(kinds)


RUNTIME: Final = {
    "erlang_version": "",
    "erlang_full_version": "",
    "crypto_lib_version": ssl.OPENSSL_VERSION,
}
"""Versions of the runtime."""

NOT_HERE: Final = {
    **RUNTIME,
    **counted((name, 0) for name in _COUNTED_BY_ERLANG),
    **churn(),
    "proc_total": 0,
    "run_queue": 0,
    "net_ticktime": 0,
    "cluster_links": [],
    "config_files": [],
    "contexts": [],
    "log_files": [],
    "metrics_gc_queue_length": {},
    "ra_open_file_metrics": {},
}
"""Fields of every RabbitMQ node that have no figure here."""

_MEMORY_OF_ERLANG: Final = (
    *("connection_readers", "connection_writers", "connection_channels", "connection_other"),
    *("stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs"),
    *("quorum_queue_procs", "quorum_queue_dlx_procs", "queue_procs", "plugins", "metadata_store"),
    *("other_proc", "metrics", "mgmt_db", "quorum_ets", "mnesia", "metadata_store_ets"),
    *("other_ets", "binary", "msg_index", "code", "atom"),
    *("allocated_unused", "reserved_unallocated"),
)
"""Parts of the memory of every RabbitMQ node; what this process takes is not divided."""


def machine_figures(data: Path) -> dict[str, object]:
    """Ask the system how much of everything this process has; call it beside the event loop.

    Args:
        data: The directory whose disk counts.
    """
    descriptors_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = 0
    with suppress(OSError):
        free = shutil.disk_usage(data).free
    return {
        **counted((("mem_used", _resident_bytes()), ("disk_free", free))),
        "mem_calculation_strategy": "rss",
        "mem_limit": os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES,
        "disk_free_limit": 0,
        "db_dir": str(data),
        **counted((("fd_used", _open_descriptors()),)),
        "fd_total": descriptors_max,
        "processors": os.cpu_count() or 1,
    }


def memory_figures() -> dict[str, object]:
    """Ask the system for the memory of this process, in bytes; call it beside the event loop.

    All of it is `other_system`, so that the parts have the sum that RabbitMQ's have.
    """
    resident = _resident_bytes()
    return {
        **dict.fromkeys(_MEMORY_OF_ERLANG, 0),
        "other_system": resident,
        "strategy": "rss",
        "total": {"erlang": 0, "rss": resident, "allocated": 0},
    }


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text("ascii").split()[1]) * _PAGE_BYTES
    except OSError:  # not Linux; the most it ever had
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def _open_descriptors() -> int:
    try:
        return sum(1 for _ in _DESCRIPTORS.iterdir())
    except OSError:
        return 0
