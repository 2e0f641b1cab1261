"""The name of the session that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_name() -> Iterator[None]:
    """Give the session its name back: a script that asks for a session names the one there is."""
    from pyspark.sql import SparkSession

    name = SparkSession.active().conf.get("spark.app.name")
    assert name is not None
    try:
        yield
    finally:
        SparkSession.builder.appName(name).getOrCreate()
