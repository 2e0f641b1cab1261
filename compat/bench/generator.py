"""The generator's own process: reads one job from standard input, does it, prints figures.

Started by the benchmark as `python -m compat.bench.generator`, once for every
measurement, so that no run inherits memory or a clock from another. Prints one line of
JSON, `{"figures": …}` or `{"error": …}`.
"""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from compat.bench.connection import Connection
from compat.bench.crowd import idle_connections, idle_cpu, many_streams, super_stream
from compat.bench.drain import drain
from compat.bench.errors import BenchError
from compat.bench.fanout import fanout
from compat.bench.ingest import ingest
from compat.bench.jobs import Figures, Job, Work
from compat.bench.latency import confirm_latency, delivery_latency, fill_single
from compat.bench.machine import REPOSITORY
from compat.bench.management import management
from compat.bench.mewbase import mewbase_deliver, mewbase_publish, mewbase_stalled
from compat.bench.paced import paced
from compat.bench.records import records
from compat.bench.selection import drain_filtered, fill_filtered
from compat.bench.wire import wire_append, wire_beside, wire_latency, wire_read, wire_tail

JOB_TIMEOUT_S: Final = 900


def delete(job: Job) -> Figures:
    """Delete a stream that an earlier job was told to keep."""
    with Connection(job.address) as connection:
        connection.delete_if_there(job.stream)
    return {}


WORKS: Final[dict[Work, Callable[[Job], Figures]]] = {
    "ingest": ingest,
    "fill_single": fill_single,
    "drain": drain,
    "confirm_latency": confirm_latency,
    "delivery_latency": delivery_latency,
    "idle_connections": idle_connections,
    "idle_cpu": idle_cpu,
    "many_streams": many_streams,
    "super_stream": super_stream,
    "fanout": fanout,
    "paced": paced,
    "fill_filtered": fill_filtered,
    "drain_filtered": drain_filtered,
    "management": management,
    "records": records,
    "wire_append": wire_append,
    "wire_beside": wire_beside,
    "wire_latency": wire_latency,
    "wire_read": wire_read,
    "wire_tail": wire_tail,
    "mewbase_publish": mewbase_publish,
    "mewbase_deliver": mewbase_deliver,
    "mewbase_stalled": mewbase_stalled,
    "delete": delete,
}


def perform(job: Job) -> Figures:
    """Do a job in a process of its own.

    Raises:
        BenchError: The job failed, or took longer than its limit.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "compat.bench.generator"],
            input=job.to_json(),
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=False,
            timeout=JOB_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{job.work} took more than {JOB_TIMEOUT_S} s") from error
    if done.returncode != 0 or not done.stdout:
        raise BenchError(f"the generator died: {done.stderr.strip()[-500:]}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise BenchError(answer["error"])
    figures: Figures = answer["figures"]
    return figures


def main() -> None:
    """Do the job that standard input describes."""
    job = Job.from_json(sys.stdin.read())
    # Nothing here makes cycles, and a collection in the timed part would be noise.
    gc.disable()
    try:
        answer: dict[str, object] = {"figures": WORKS[job.work](job)}
    except (BenchError, OSError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
