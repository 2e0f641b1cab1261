"""docs/spark.md: its Python and SQL run as printed, and its tables are complete."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hutch.stream import messages as m
from pyspark_hutch.columns import (
    BAD_SUB_BATCH_FIELDS,
    COLUMNS,
    HEADER_FIELDS,
    PROPERTY_FIELDS,
)
from tests.spark.conftest import Place
from tests.spark.naming import kept_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
TEXT = PAGE.read_text(encoding="utf-8")
ADDRESS = "localhost:5552"
"""The address in the page; a run puts that of its own server there."""
SERIES = "orders-by-day"
"""The name of a series of saves, which a server remembers; each run has its own."""
NEEDS_HUTCH = "txnAppId"
"""A word of the code that works with Hutch only."""

WRITTEN_FOLDERS = ("checkpoints", "landed")


Changes = dict[str, str]


class Block(NamedTuple):
    """Code of the page.

    Attributes:
        kind: `python` or `sql`.
        code: As printed.
        shown: The output that the page shows under it; None: none.
        line: The number of its first line in the page.
    """

    kind: str
    code: str
    shown: str | None
    line: int


def blocks() -> Iterator[Block]:
    """Yield the code of the page in its order."""
    pattern = r"^```(python|sql)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    for found in re.finditer(pattern, TEXT, re.MULTILINE | re.DOTALL):
        yield Block(found[1], found[2], found[3], TEXT.count("\n", 0, found.start()) + 2)


@pytest.fixture
def clean(spark: SparkSession, either: Place) -> Iterator[Place]:
    """Give a server without the page's streams, and a session that knows nothing of them."""
    for folder in WRITTEN_FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    with either.client() as client:
        for stream in re.findall(r'\bstream="(\w+)"', TEXT):
            client.code_of("delete_stream", m.DeleteStream(stream))
        client.code_of("delete_super_stream", m.DeleteSuperStream("trips"))
    yield either
    spark.sql("DROP TABLE IF EXISTS streams")
    for view in ("counts", "new_orders", "orders"):
        spark.catalog.dropTempView(view)


def printed(block: Block, spark: SparkSession, names: dict[str, Any], changes: Changes) -> str:
    """Run a block; return its output, or the rows of its query as `show` prints them."""
    code = block.code
    for text, ours in changes.items():
        code = code.replace(text, ours)
    out = io.StringIO()
    with redirect_stdout(out):
        if block.kind == "sql":
            rows = spark.sql(code)
            if block.shown is not None:
                rows.show(truncate=False)
        else:
            exec(compile(code, f"{PAGE}:{block.line}", "exec"), names)
    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE).strip("\n")


def test_the_code_of_the_page_runs_as_printed(spark: SparkSession, clean: Place) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    changes = {ADDRESS: f"{clean.host}:{clean.port}", SERIES: f"{SERIES}-{os.urandom(4).hex()}"}
    variables = dict(os.environ)
    wrong = []
    try:
        with kept_name():
            for block in blocks():
                if NEEDS_HUTCH in block.code and clean.product != "hutch":
                    continue
                said = printed(block, spark, names, changes)
                if block.shown is not None and said != block.shown.strip("\n"):
                    wrong.append(f"line {block.line} prints\n{said}")
    finally:
        os.environ.clear()
        os.environ.update(variables)

    assert not wrong, "\n\n".join(wrong)


def test_every_column_and_field_is_in_the_table_of_columns() -> None:
    table = TEXT.split("## What is read")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE))

    assert rows == {
        column.name: column.spark if not column.spark.startswith("struct") else "struct"
        for column in COLUMNS
    }
    for name, kind, _ in HEADER_FIELDS + PROPERTY_FIELDS + BAD_SUB_BATCH_FIELDS:
        assert (f"`{name}`" if kind == "string" else f"`{name}` {kind}") in TEXT
