"""Hot modules that exist compiled, and those that this process runs compiled.

The kernels are ordinary Python files that Cython can compile as they stand. Whether an import
finds the built module or the source is decided by what lies on the disk, nowhere else.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

KERNELS: Final = (
    "gateway.log.kernel.chunks",
    "gateway.log.kernel.clocks",
    "gateway.log.kernel.sealing",
    "gateway.log.kernel.soundness",
    "gateway.mewbase.wire.kernel.documents",
    "gateway.server.kernel.sending",
    "gateway.stream.wire.kernel.publish",
    "pyspark_hutch.kernel.entries",
    "store.local.kernel.file_writes",
    "store.local.kernel.journal_bytes",
    "store.local.kernel.syncing",
)
"""Every kernel module, as in the `ext-modules` of pyproject.toml."""

HOT_OBJECTS: Final = (
    "gateway.log.chunk",
    "gateway.log.clock",
    "gateway.log.cursor",
    "gateway.log.index",
    "gateway.log.log",
    "gateway.log.lookahead",
    "gateway.log.open_chunk",
    "gateway.server.connection",
    "gateway.server.delivery",
    "gateway.server.edge",
    "gateway.server.front",
    "gateway.server.inbox",
    "gateway.server.rest",
    "gateway.server.schedule",
    "gateway.stream.consuming",
    "gateway.stream.front",
    "gateway.stream.publishing",
    "store.local.catalogue",
    "store.local.changes",
    "store.local.data_file",
    "store.local.files",
    "store.local.journal",
    "store.local.reading",
    "store.local.records",
    "store.local.round",
    "store.local.rounds",
    "store.local.segment",
    "store.local.store",
    "store.local.writing",
)
"""Ordinary modules that a message passes through; the .pxd beside each types their attributes for
the compiler, and nothing else knows of it."""


def uncompiled() -> tuple[str, ...]:
    """Name what would run as plain Python: correct, but several times slower."""
    return tuple(name for name in KERNELS + HOT_OBJECTS if not _is_compiled(name))


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    origin = "" if spec is None or spec.origin is None else spec.origin
    return origin.endswith(tuple(EXTENSION_SUFFIXES))
