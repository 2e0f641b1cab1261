"""The work "drain": read a whole stream from its beginning, several times over."""

from compat.bench.connection import OFFSET_FIRST, Connection
from compat.bench.deliveries import SAMPLE_EVERY, DeliveryReader
from compat.bench.jobs import Figures, Job
from compat.bench.patience import limit_waiting
from compat.bench.stopwatch import Stopwatch


def drain(job: Job) -> Figures:
    """Read `message_count` records `repeats` times, from the first credit to the last record.

    Raises:
        CheckFailed: Offsets have a gap or go back, or a chunk is not what was written.
    """
    stopwatch = Stopwatch(job.pids)
    chunks = 0
    for _ in range(job.repeats):
        with Connection(job.address) as connection:
            connection.subscribe(0, job.stream, offset_type=OFFSET_FIRST)
            limit_waiting(connection.socket)
            reader = DeliveryReader(
                connection.socket,
                body_bytes=job.body_bytes,
                credit=job.credit,
                sample_every=1 if job.check_all else SAMPLE_EVERY,
            )
            with stopwatch:
                reader.grant()
                reader.read_until(job.message_count)
            chunks += reader.chunks
    total = job.message_count * job.repeats
    return stopwatch.figures(total) | {"records_per_chunk": total / chunks}
