"""A copy by staged writes, run as a program of its own, whose tasks can be met halfway."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark_cluster import staged_copy
from tests.spark_cluster.hosts import LOCAL, Host
from tests.spark_cluster.sessions import LOG_CHARACTERS, Session
from tests.spark_cluster.standalone import Cluster, environment, settings_of
from tests.waiting import wait_until

SOURCE: Final = "bills"
TARGET: Final = "bills-copied"
PARTITIONS: Final = 3
ROWS: Final = 4_000
"""Of each partition."""
BODY_BYTES: Final = 600
BATCH_ROWS: Final = 4_000
BATCHES: Final = PARTITIONS * ROWS // BATCH_ROWS
"""With rows; the batch before them, number 0, has none."""
TASKS: Final = 3
MEET_SECONDS: Final = 300.0
"""For driver and executors to start, and for some batches."""
FINISH_SECONDS: Final = 300.0


def bodies_to_copy() -> list[list[bytes]]:
    """Return the rows of each partition; all differ."""
    rest = b"." * BODY_BYTES
    return [
        [b"%d-%d %s" % (part, number, rest) for number in range(ROWS)] for part in range(PARTITIONS)
    ]


class Copy:
    """The copy, while it runs.

    Attributes:
        driver: The session of the driver, which the caller ends.

    Args:
        server: With the streams.
        cluster: Runs it.
        folder: For its checkpoint and output.
        options: That lead to the server.
        stops: Batches in which a task stops.
        host: Of the driver.
    """

    def __init__(
        self,
        server: HutchServer,
        cluster: Cluster,
        folder: Path,
        options: Mapping[str, str],
        *,
        stops: Iterable[int],
        host: Host = LOCAL,
    ) -> None:
        self._server = server
        self._marks = {batch: folder / f"stopped-{batch}" for batch in stops}
        self._checkpoint = folder / "checkpoint"
        small = {
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
            "spark.sql.warehouse.dir": str(folder / "tables"),
        }
        reads = {"superStream": SOURCE, "startingOffsets": "earliest"}
        wanted = {
            "settings": settings_of(host) | small | {"spark.master": cluster.url},
            "source": {**options, **reads, "maxOffsetsPerTrigger": str(BATCH_ROWS)},
            "target": {**options, "stream": TARGET, "bodyFormat": "raw", "maxInFlight": "50"},
            "checkpoint": str(self._checkpoint),
            "tasks": TASKS,
            "stops": {str(batch): str(mark) for batch, mark in self._marks.items()},
        }
        command = [*host.enter, sys.executable, staged_copy.__file__, json.dumps(wanted)]
        self.driver = Session(command, folder / "driver.log", folder, environment(host=host))

    def stopped(self, batch: int) -> int:
        """Wait until a batch is staged but for the rest of the task that has stopped.

        Returns:
            The process of that task.
        """
        wait_until(lambda: self._has_stopped(batch), MEET_SECONDS)
        return int(self._marks[batch].read_text())

    def finish(self) -> int:
        """Wait until the query has ended well; return the number of its last batch."""
        self.driver.finish(FINISH_SECONDS)
        commits = (self._checkpoint / "commits").iterdir()
        return max(int(path.name) for path in commits if path.name.isdigit())

    def stages(self) -> list[dict[str, Any]]:
        """Return what is staged for the target."""
        return [stage for stage in ctl(self._server, "list_stages") if stage["stream"] == TARGET]

    def _has_stopped(self, batch: int) -> bool:
        assert self.driver.process.poll() is None, self.driver.said[-LOG_CHARACTERS:]
        if not self._marks[batch].exists():
            return False
        stages = self.stages()
        assert {stage["batch"] for stage in stages} <= {batch}, "those of earlier batches are gone"
        states = sorted(stage["state"] for stage in stages if stage["records"])
        return states == ["closed"] * (TASKS - 1) + ["open"]
