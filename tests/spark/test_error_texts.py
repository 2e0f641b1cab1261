"""The errors that docs/spark.md explains: each is provoked, and has the text that the page says.

Most come from the source alone. Those of `THROUGH_SPARK` come through a session: some of each way
that an error takes, and all that rest on what Spark does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from hutch.stream import messages as m
from tests.chunks import GZIP, SubBatch
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark import in_process
from tests.spark.conftest import Place
from tests.spark.proxy import Change, Proxy, without_pipeline
from tests.spark.publishing import create_super_stream, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark.md"
LATER: Final = "2099-01-01T00:00:00Z"
DEDUP: Final = {"delivery": "dedup", "producerName": "texts"}
NUMBERED: Final = DEDUP | {"publishingIdColumn": "number", "producerKeyColumn": "key"}


def texts() -> list[str]:
    """Return the first text of each row of the page's table of errors."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("## When something fails")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)


def four(**columns: object) -> pa.Table:
    """Make four rows; a column is a list of four, or the same value in each."""
    lists = (value if isinstance(value, list) else [value] * 4 for value in columns.values())
    return pa.table(dict(zip(columns, lists, strict=True)))


BODIES: Final = four(body="x")
NUMBERS: Final = four(body="x", number=[0, 1, 2, 3], key="k")


class Trials:
    """Actions that fail.

    Attributes:
        spark: Runs the actions; None: reads and writes are made in this process.
    """

    def __init__(
        self,
        spark: SparkSession | None,
        server: HutchServer,
        place: Place,
        stream: str,
        folder: Path,
    ) -> None:
        self._spark = spark
        self.server = server
        self.place = place
        self.stream = stream
        self.folder = folder

    @property
    def spark(self) -> SparkSession:
        assert self._spark is not None, "the text is one of THROUGH_SPARK"
        return self._spark

    def read(self, schema: StructType | None = None, /, **options: str) -> None:
        options = self.place.options | options
        if self._spark is None:
            in_process.read(options, schema)
            return
        reader = self._spark.read.format("hutch").options(**options)
        (reader if schema is None else reader.schema(schema)).load().collect()

    def write(self, rows: pa.Table = BODIES, mode: str = "append", **options: str) -> None:
        options = self.place.options | options
        if self._spark is None:
            assert mode == "append"
            in_process.write(options, rows)
            return
        frame = self._spark.createDataFrame(rows).repartition(2)
        writer = frame.write.format("hutch").options(**options)
        (writer.mode(mode) if mode else writer).save()

    def route(self, key: str | None, column: str = "routing_key", **options: str) -> None:
        with self.place.client() as client:
            create_super_stream(client, f"{self.stream}-super", 2)
        keys = pa.array([key] * 4, pa.string())
        rows = BODIES.append_column(column, keys)
        self.write(rows, superStream=f"{self.stream}-super", **options)

    def login(self, *, reads: str = "", writes: str = "") -> dict[str, str]:
        """Add a user with these rights; give the options with which it logs in."""
        user = f"clerk-{os.urandom(4).hex()}"
        ctl(self.server, "add_user", user, stdin=b"secret\n")
        ctl(self.server, "set_permissions", user, "", writes, reads)
        return {"username": user, "password": "secret"}

    def read_garbage(self) -> None:
        with self.place.client() as client:
            client.declare(1, self.stream)
            client.publish(1, {1: SubBatch(GZIP, 4, 28, b"garbage")})
            client.confirmed_ids(1)
        self.read(stream=self.stream)

    def write_without_confirms(self) -> None:
        with Proxy(self.place.host, self.place.port) as proxy:
            proxy.on_answer = lambda name, frame: b"" if name == "publish_confirm" else frame
            options = {"confirmTimeoutMs": "100", "delivery": "none"} | proxy.options
            self.write(stream=self.stream, **options)

    def read_through(self, change: Change, **options: str) -> None:
        """Read from a server whose answers a proxy changes."""
        with Proxy(self.place.host, self.place.port) as proxy:
            proxy.on_answer = change
            self.read(**proxy.options, **options)

    def write_through(self, change: Change, **options: str) -> None:
        """Write with a server whose answers a proxy changes."""
        with Proxy(self.place.host, self.place.port) as proxy:
            proxy.on_answer = change
            self.write(stream=self.stream, **proxy.options, **options)

    def stage_too_much(self) -> None:
        small = {"HUTCH_PIPELINE__STAGED_BYTES_MAX": str(1 << 20)}
        with HutchServer(self.folder / "data", environment=small) as server:
            place = Place("hutch", server.host, server.port)
            options = place.options | {"stream": "s", "createStream": "true"}
            self.write(four(body="x" * 900_000), **options)

    def stream_with_a_number(self) -> None:
        options = self.place.options | {"stream": self.stream}
        rows = self.spark.readStream.format("hutch").options(**options).load().select("body")
        writing = rows.writeStream.format("hutch").options(**options, txnAppId="a")
        writing.option("checkpointLocation", f"{self.folder}/checkpoint").start().awaitTermination()

    def speculate(self) -> None:
        """Say that the session speculates, which Spark refuses to change while it runs."""
        changes = {"spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false"}
        for name, value in (changes | {"spark.speculation": "true"}).items():
            self.spark.conf.set(name, value)
        try:
            self.write(NUMBERS, stream=self.stream, **NUMBERED)
        finally:
            for name in ("spark.speculation", *changes):
                self.spark.conf.unset(name)

    def look_elsewhere(self) -> None:
        """Look for the format in a Python without it, as where no environment is active."""
        bare = self.folder / "bare"
        venv.create(bare, symlinks=True)
        lookup = "SparkSession.builder.getOrCreate().read.format('hutch').load()"
        code = f"from pyspark.sql import SparkSession; {lookup}"
        self.run("-c", code, PYSPARK_PYTHON=str(bare / "bin" / "python"), PYTHONPATH="")

    def insert_text(self) -> None:
        options = self.place.options | {"stream": self.stream}
        listed = ", ".join(f"{name} '{value}'" for name, value in options.items())
        view = f"{self.stream.split('[')[0]}_view"
        self.spark.sql(f"CREATE TEMPORARY VIEW {view} (body BINARY) USING hutch OPTIONS ({listed})")
        try:
            self.spark.sql(f"INSERT INTO {view} SELECT 'text'")
        finally:
            self.spark.catalog.dropTempView(view)

    def lose(self) -> None:
        reader = self.spark.read.format("hutch").options(**self.place.options, stream=self.stream)
        planned = reader.load()
        planned.count()
        with self.place.client() as client:
            client.must("delete_stream", m.DeleteStream(self.stream))
            client.create(self.stream)
        planned.count()

    def start_without_a_checkpoint(self) -> None:
        reader = self.spark.readStream.format("hutch").options(**self.place.options)
        rows = reader.option("stream", self.stream).load()
        rows.writeStream.format("parquet").option("path", f"{self.folder}/rows").start()

    def run(self, *arguments: str, **variables: str) -> None:
        """Run Python in a process of its own, and fail with what it says."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        raise AssertionError(done.stdout + done.stderr)


def busy(name: str, frame: bytearray) -> bytearray:
    """Let a server look as if very many wrong passwords had reached it."""
    if name == "sasl_authenticate":
        frame[12:14] = b"\0\6"
    return frame


def damaged(name: str, frame: bytearray) -> bytearray:
    """Change the last byte of a chunk."""
    if name == "deliver":
        frame[-1] ^= 1
    return frame


def without_closed_stages(name: str, frame: bytearray) -> bytes | bytearray:
    return b"" if name == "close_stage" else frame


def without_commits(name: str, frame: bytearray) -> bytearray | None:
    """End the connection instead of the answer to a commit."""
    return None if name == "commit_stages" and frame[12:14] == b"\0\1" else frame


def field(name: str, kind: DataType, *, nullable: bool = True) -> StructType:
    """Make a schema of one field."""
    return StructType([StructField(name, kind, nullable)])


Trial = Callable[[Trials], object]

TRIALS: Final[Mapping[str, Trial]] = {
    "[JAVA_GATEWAY_EXITED]": lambda t: t.run(
        "-c",
        "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()",
        JAVA_HOME=str(t.folder),
    ),
    "Failed to find the data source": lambda t: t.look_elsewhere(),
    "No module named 'pyspark_hutch'": lambda t: t.run("-I", "-S", "-c", "import pyspark_hutch"),
    "cannot connect to …: Connection refused": lambda t: t.read(
        stream="a", endpoints="127.0.0.1:1"
    ),
    "cannot connect to …: Name": lambda t: t.read(stream="a", endpoints="nowhere.invalid"),
    "… refused user": lambda t: t.read(stream="a", password="wrong"),
    "… is busy, and did not compare": lambda t: t.read_through(busy, stream=t.stream),
    "option username='…' needs": lambda t: t.read(stream="a", username="ben"),
    "virtual host": lambda t: t.read(stream="a", vhost="other"),
    "stream '…' does not exist": lambda t: t.read(stream="no-such"),
    "super stream '…' does not exist": lambda t: t.read(superStream="no-such"),
    "option … is unknown": lambda t: t.read(stream="a", startingOffset="earliest"),
    "option stream is missing": lambda t: t.read(),
    "option streamPattern": lambda t: t.read(streamPattern="["),
    "option maxBytesPerPartition": lambda t: t.read_through(
        without_pipeline, stream="a", maxBytesPerPartition="1m"
    ),
    "option maxOffsetsPerTrigger": lambda t: t.read(stream="a", maxOffsetsPerTrigger="5"),
    "option startingOffsets: offset": lambda t: t.read(
        stream=t.stream, startingOffsets=f'{{"{t.stream}": 99}}'
    ),
    "option startingOffsets: must name": lambda t: t.read(
        stream=t.stream, startingOffsets='{"other": 1}'
    ),
    "stream '…' has no row of this time": lambda t: t.read(
        stream=t.stream, startingTimestamp=LATER
    ),
    "schema: no column": lambda t: t.read(field("ofset", LongType()), stream=t.stream),
    "schema: column 'body' has type": lambda t: t.read(
        field("body", StringType()), stream=t.stream
    ),
    "schema: column '…' is not null": lambda t: t.read(
        field("offset", LongType(), nullable=False), stream=t.stream
    ),
    "Set failOnDataLoss": lambda t: t.lose(),
    "a publisher sent a sub-batch": lambda t: t.read_garbage(),
    "is damaged at offset": lambda t: t.read_through(damaged, stream=t.stream),
    'The data source "hutch" cannot': lambda t: t.write(mode="", stream=t.stream),
    "mode overwrite": lambda t: t.write(mode="overwrite", stream=t.stream),
    "column 'body': missing": lambda t: t.write(four(value="x"), stream=t.stream),
    "column '…': (…) no such": lambda t: t.write(four(body="x", id=1), stream=t.stream),
    "column 'body': null": lambda t: t.write(
        BODIES.set_column(0, "body", pa.nulls(4, pa.string())), stream=t.stream
    ),
    "column '…': is": lambda t: t.write(four(body="x", filter_value=1), stream=t.stream),
    "column '…': null in row": lambda t: t.route(None),
    "routing key '…' is bound": lambda t: t.route("mars", routing="key"),
    "column 'stream': '…' is no": lambda t: t.route("mars", "stream", routing="column"),
    "cannot be written together with option delivery": lambda t: t.write(
        four(body="x", filter_value="v"), stream=t.stream, delivery="staged"
    ),
    "has no staged writing": lambda t: t.write_through(without_pipeline, delivery="staged"),
    "option txnAppId='…' needs": lambda t: t.write(stream=t.stream, txnAppId="a"),
    "option txnAppId='…': is for": lambda t: t.stream_with_a_number(),
    "the task's … rows were not": lambda t: t.write_through(
        without_closed_stages, confirmTimeoutMs="100"
    ),
    "pipeline.staged_bytes_max": lambda t: t.stage_too_much(),
    "the answer to an earlier try": lambda t: t.write_through(without_commits),
    "cannot be written together with option compression": lambda t: t.write(
        four(body="x", filter_value="v"), stream=t.stream, compression="gzip"
    ),
    "stream '…' exists": lambda t: t.write(
        stream=t.stream, createStream="true", **{"retention.maxAge": "1h"}
    ),
    "stream '…' cannot be": lambda t: t.write(stream=t.stream, **t.login(reads=".*")),
    "a message needs a frame": lambda t: t.write(four(body="x" * 2_000_000), stream=t.stream),
    "… rows were not": lambda t: t.write_without_confirms(),
    "rows have no target": lambda t: t.write(),
    "option createStream='true' needs": lambda t: t.write(
        four(body="x", routing_key="k"), superStream="new", createStream="true"
    ),
    "option delivery='dedup' needs": lambda t: t.write(stream=t.stream, **DEDUP),
    "numbers must ascend": lambda t: t.write(
        four(body="x", number=5, key="k"), stream=t.stream, **NUMBERED
    ),
    "rows of '…' for stream": lambda t: t.write(NUMBERS, stream=t.stream, **NUMBERED),
    "spark.speculation runs": lambda t: t.speculate(),
    "delivery=dedup with": lambda t: t.write(
        NUMBERS,
        stream=t.stream,
        compression="gzip",
        **NUMBERED,
        **t.login(writes=".*"),
    ),
    "a catalog table's options": lambda t: t.spark.sql(
        "CREATE TABLE texts USING hutch OPTIONS (endpoints 'localhost:5552', stream 'orders')"
    ),
    "Cannot safely cast": lambda t: t.insert_text(),
    "checkpointLocation must be": lambda t: t.start_without_a_checkpoint(),
}
"""The beginning of each text of the page, and an action that fails with it."""


THROUGH_SPARK: Final = (
    # As a read is loaded, as it is planned, and in a task.
    "option … is unknown",
    "stream '…' does not exist",
    "Set failOnDataLoss",
    "a publisher sent a sub-batch",
    # As a write is prepared, in a task, and as it is committed.
    "mode overwrite",
    "numbers must ascend",
    "rows of '…' for stream",
    # Of a streaming query.
    "option txnAppId='…': is for",
    # What Spark says itself, or makes of a setting or a statement.
    'The data source "hutch" cannot',
    "spark.speculation runs",
    "a catalog table's options",
    "Cannot safely cast",
    "checkpointLocation must be",
)


def pattern_of(text: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(part) for part in text.split("…")), re.DOTALL)


def goes_through_spark(text: str) -> bool:
    return text.startswith(THROUGH_SPARK)


def id_of(text: str) -> str:
    return re.sub(r"[^a-z]+", "-", text[:40].lower())


def test_every_text_of_the_page_has_its_trial() -> None:
    found = [[start for start in TRIALS if text.startswith(start)] for text in texts()]

    assert [len(starts) for starts in found] == [1] * len(TRIALS), found
    assert TRIALS.keys() >= set(THROUGH_SPARK)


@pytest.fixture
def filled(place: Place, stream: str) -> str:
    with place.client() as client:
        publish(client, stream, [b"row"])
    return stream


def check(text: str, trials: Trials) -> None:
    """Provoke an error, and check its text."""
    trial = next(trial for start, trial in TRIALS.items() if text.startswith(start))

    with pytest.raises(Exception) as caught:  # noqa: PT011  # Spark has a class for each kind
        trial(trials)

    assert pattern_of(text).search(str(caught.value)), str(caught.value)


@pytest.mark.parametrize("text", [*filter(goes_through_spark, texts())], ids=id_of)
def test_spark_passes_a_text_of_the_page_on(
    spark: SparkSession, hutch: HutchServer, place: Place, filled: str, tmp_path: Path, text: str
) -> None:
    check(text, Trials(spark, hutch, place, filled, tmp_path))


@pytest.mark.parametrize("text", [*filterfalse(goes_through_spark, texts())], ids=id_of)
def test_an_error_has_the_text_that_the_page_says(
    hutch: HutchServer, place: Place, filled: str, tmp_path: Path, text: str
) -> None:
    check(text, Trials(None, hutch, place, filled, tmp_path))
