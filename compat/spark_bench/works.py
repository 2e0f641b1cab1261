"""The works: what is measured, against what."""

import shutil
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from compat.bench.servers import Server
from compat.spark_bench import stock
from compat.spark_bench.commits import confirms_of_a_neighbour, longest_confirm
from compat.spark_bench.micro_batches import trigger_times
from compat.spark_bench.rows import DRAWN, FIXED_100, FIXED_1024, GZIP, PROPERTIES, Rows
from compat.spark_bench.stage import Stage
from compat.spark_bench.waits import Wait
from compat.spark_bench.work import Servers, Side, Sides, Target, Work
from pyspark_hutch.columns import DEFAULT

TWO: Final = ("offset", "body")
WITH_PROPERTIES: Final = (*TWO, "properties", "application_properties")


def _scan(title: str, frame: DataFrame, server: Server | None) -> Side:
    return Side(title, frame.write.format("noop").mode("overwrite").save, server)


def _reads(rows: Rows, columns: Sequence[str]) -> Sides:
    """Read all rows into a sink that drops them: from Hutch, and from Parquet."""

    def sides(stage: Stage, servers: Servers) -> tuple[Side, ...]:
        return (
            _scan("Hutch", stage.stream(servers.hutch, rows, columns), servers.hutch),
            _scan("Parquet", stage.parquet(servers.hutch, rows, columns), None),
        )

    return sides


def _reads_alone(rows: Rows, columns: Sequence[str]) -> Sides:
    def sides(stage: Stage, servers: Servers) -> tuple[Side, ...]:
        return (_scan("Hutch", stage.stream(servers.hutch, rows, columns), servers.hutch),)

    return sides


def _reads_drawn(stage: Stage, servers: Servers) -> tuple[Side, ...]:
    hutch = servers.hutch
    return (
        _scan("Hutch", stage.stream(hutch, DRAWN, TWO), hutch),
        _scan("Hutch, 100 B", stage.stream(hutch, FIXED_100, TWO), hutch),
    )


def _reads_of_both(stage: Stage, servers: Servers) -> tuple[Side, ...]:
    sides = [_scan("Hutch", stage.stream(servers.hutch, FIXED_100, TWO), servers.hutch)]
    if servers.rabbitmq is not None:
        frame = stage.stream(servers.rabbitmq, FIXED_100, TWO)
        sides.append(_scan("RabbitMQ", frame, servers.rabbitmq))
    return tuple(sides)


def _writes(delivery: str) -> Sides:
    """Write bodies that are read from Parquet: to a stream, and to Parquet."""

    def sides(stage: Stage, servers: Servers) -> tuple[Side, ...]:
        source = stage.parquet(servers.hutch, FIXED_100, ("body",))
        options = stage.new_stream(servers.hutch, "written") | {"delivery": delivery}
        path = stage.new_folder("written.parquet")
        return (
            Side(
                "Hutch",
                source.write.format("hutch").options(**options).mode("append").save,
                servers.hutch,
                prepare=lambda: stage.new_stream(servers.hutch, "written"),
                clean=lambda: stage.drop_stream(servers.hutch, "written"),
            ),
            Side(
                "Parquet",
                lambda: source.write.parquet(str(path)),
                clean=lambda: shutil.rmtree(path),
            ),
        )

    return sides


READ: Final = "Columns `offset` and `body` of random bodies, into Spark's sink `noop`"

WORKS: Final = (
    Work(
        "read_100",
        "read, 100 B",
        FIXED_100,
        _reads(FIXED_100, TWO),
        f"{READ}; against Spark's scan of Parquet files that it has written of the same rows.",
        (Target("rate", 0.55), Target("cpu", 2)),
    ),
    Work(
        "read_1024",
        "read, 1 KiB",
        FIXED_1024,
        _reads(FIXED_1024, TWO),
        f"{READ}; against Spark's scan of Parquet files that it has written of the same rows.",
        (Target("rate", 0.55), Target("cpu", 2)),
    ),
    Work(
        "read_seven",
        "read, 100 B, seven columns",
        FIXED_100,
        _reads(FIXED_100, DEFAULT),
        "The same with the columns of a read that asks for none.",
        (Target("rate", 0.45),),
    ),
    Work(
        "read_drawn",
        "read, 50 to 150 B",
        DRAWN,
        _reads_drawn,
        f"{READ}, of sizes drawn from 50 to 150 B; against our own figure for 100 B.",
        (Target("rate", 0.8),),
    ),
    Work(
        "read_gzip",
        "read, 100 B in sub-batches",
        GZIP,
        _reads_alone(GZIP, TWO),
        "Bodies of hexadecimal digits in sub-batches of 1,000, compressed by gzip.",
    ),
    Work(
        "read_properties",
        "read, 100 B with properties",
        PROPERTIES,
        _reads_alone(PROPERTIES, WITH_PROPERTIES),
        "Messages with three properties, each message's id its own, and two application "
        "properties; these are columns too.",
    ),
    Work(
        "read_rabbitmq",
        "read, 100 B, from RabbitMQ",
        FIXED_100,
        _reads_of_both,
        "The job of the first row, from Hutch and from RabbitMQ; the CPU of either counts.",
        (Target("rate", 1),),
        needs_rabbitmq=True,
    ),
    Work(
        "write_100",
        "write, 100 B",
        FIXED_100,
        _writes("none"),
        "Bodies read from Parquet files, written to a new stream with `delivery=none`; against "
        "writing them to Parquet.",
        (Target("rate", 0.6),),
    ),
    Work(
        "write_staged",
        "staged write, 100 B",
        FIXED_100,
        _writes("staged"),
        "The same with `delivery=staged`: the time ends with the commit, which shows the rows.",
        (Target("rate", 0.5),),
    ),
)

WAITS: Final = (
    Wait(
        name="commit_live",
        title="commit of 100 MB to a live stream",
        figure="longest confirm",
        bound=1_000,
        meaning=(
            "A client publishes 1,000 messages of 100 B a second to a stream. Rows of 1 KiB are "
            "staged for the same stream, 100 MB at a time, and committed. The longest time from a "
            "message's send to its confirm counts."
        ),
        measure=longest_confirm,
    ),
    Wait(
        name="commit_neighbour",
        title="commits of 100 MB beside a live stream",
        figure="p99 of confirms",
        other=stock.TITLE,
        bound=2,
        meaning=(
            "The same client on a stream beside the one that is committed to; against its confirms "
            f"while the stock client `{stock.TITLE}` publishes the same bytes, as fast as it can."
        ),
        measure=confirms_of_a_neighbour,
    ),
    Wait(
        name="micro_batches",
        title="micro-batches of 1,000 rows",
        figure="median trigger",
        other="noop",
        bound=1.5,
        meaning=(
            "A streaming query of Spark's source `rate-micro-batch` into a stream, staged and "
            "committed; against the same query into Spark's sink `noop`. `triggerExecution` of "
            "Spark's own progress counts, once both are warm."
        ),
        measure=trigger_times,
        needs_spark=True,
    ),
)
TITLES: Final = {row.name: row.title for row in (*WORKS, *WAITS)}
