"""Streams as data frames: `spark.read.format("hutch")` and its writer, in Python alone.

Spark imports every package named `pyspark_*` to find its data sources and takes `DefaultSource`
from it. So this module loads nothing until that name is asked for, and cannot fail before.
"""

from typing import Any

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the protocol of modules
    if name == "DefaultSource":
        from pyspark_hutch.datasource import DefaultSource

        return DefaultSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
