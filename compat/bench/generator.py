"""The generator's own process: does one job, and answers with figures.

Each measurement has a process of its own, so that no run inherits memory or a clock from another.
It is a copy of one that has imported the works and has done nothing else.
"""

import gc
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from typing import Final

from compat.bench.connection import Connection
from compat.bench.crowd import idle_connections, idle_cpu, many_streams, super_stream
from compat.bench.drain import drain
from compat.bench.errors import BenchError
from compat.bench.fanout import fanout, fanout_stored
from compat.bench.ingest import ingest
from compat.bench.java_client import java_latency, java_read, java_write
from compat.bench.jobs import Figures, Job, Work
from compat.bench.latency import confirm_latency, delivery_latency, fill_single
from compat.bench.management import management
from compat.bench.mewbase import mewbase_deliver, mewbase_publish, mewbase_stalled
from compat.bench.nats_client import nats_latency, nats_publish
from compat.bench.paced import paced
from compat.bench.records import records
from compat.bench.selection import drain_filtered, fill_filtered
from compat.bench.wire import wire_append, wire_beside, wire_latency, wire_read, wire_tail

JOB_TIMEOUT_S: Final = 900
_PROCESSES: Final = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])


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
    "fanout_stored": fanout_stored,
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
    "java_write": java_write,
    "java_latency": java_latency,
    "java_read": java_read,
    "mewbase_publish": mewbase_publish,
    "mewbase_deliver": mewbase_deliver,
    "mewbase_stalled": mewbase_stalled,
    "nats_publish": nats_publish,
    "nats_latency": nats_latency,
    "delete": delete,
}


def perform(job: Job) -> Figures:
    """Do a job in a process of its own.

    Raises:
        BenchError: The job failed, or took longer than its limit.
    """
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_answer, args=(job, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(JOB_TIMEOUT_S):
            raise BenchError(f"{job.work} took more than {JOB_TIMEOUT_S} s")
        answer: Figures | str = ours.recv()
    except EOFError as error:
        raise BenchError(f"the generator died in {job.work}") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(answer, str):
        raise BenchError(answer)
    return answer


def _answer(job: Job, pipe: Pipe) -> None:
    """Do a job and send its figures, or the reason that there are none."""
    # Nothing here makes cycles, and a collection in the timed part would be noise.
    gc.disable()
    try:
        pipe.send(WORKS[job.work](job))
    except (BenchError, OSError) as error:
        pipe.send(f"{type(error).__name__}: {error}")
