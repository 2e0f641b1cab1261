"""Streams as data frames: `spark.read.format("hutch")` and its writer, in Python alone.

Spark imports every package named `pyspark_*` to find its data sources and takes `DefaultSource`
from it. So this module loads nothing until a name is asked for, and cannot fail before.

    DefaultSource     the format itself
    lag               number of rows that a streaming query is behind, by stream
    left_out          number of offsets that a batch has passed without a row of them
    OffsetListener    stores the position of `consumerName` after a query's last batch too
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "DefaultSource": "pyspark_hutch.datasource",
    "OffsetListener": "pyspark_hutch.listener",
    "lag": "pyspark_hutch.progress",
    "left_out": "pyspark_hutch.progress",
}

__all__ = ["DefaultSource", "OffsetListener", "lag", "left_out"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the protocol of modules
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
