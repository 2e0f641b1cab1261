"""A streaming query that copies a super stream to a stream by staged writes, ready for a kill.

    staged_copy.py '{"settings": {…}, "source": {…}, "target": {…}, "checkpoint": "…", …}'

Each batch is dealt out anew to `tasks` tasks. In a batch that `stops` names, one task writes the id
of its process into a file in the midst of its rows, and waits there to be killed.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

STOP_AT = 5
"""Arrow batches that the task has passed on when it stops."""
WAIT_S = 600.0


def stopping(
    stops: Mapping[str, str],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what passes rows on, and stops once in each of these batches."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        stop = stops.get(str(context.getLocalProperty("streaming.sql.batchId")))
        for number, batch in enumerate(batches):
            if stop is not None and number == STOP_AT and context.partitionId() == 0:
                mark = Path(stop)
                if not mark.exists():
                    mark.with_suffix(".new").write_text(str(os.getpid()))
                    mark.with_suffix(".new").rename(mark)
                    time.sleep(WAIT_S)
            yield batch

    return pass_on


def main() -> None:
    """Copy what is there."""
    wanted = json.loads(sys.argv[1])
    builder = SparkSession.builder
    for name, value in wanted["settings"].items():
        builder = builder.config(name, value)
    rows = builder.getOrCreate().readStream.format("hutch").options(**wanted["source"]).load()
    dealt = rows.select("body").repartition(wanted["tasks"])
    writing = dealt.mapInArrow(stopping(wanted["stops"]), "body binary").writeStream
    writing = writing.format("hutch").options(**wanted["target"])
    writing = writing.option("checkpointLocation", wanted["checkpoint"])
    writing.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
