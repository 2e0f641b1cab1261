"""The work "ingest": publish into one new stream, from the first send to the last confirm."""

from compat.bench.connection import Connection
from compat.bench.errors import CheckFailed
from compat.bench.frames import PublishBlock
from compat.bench.jobs import Figures, Job
from compat.bench.pump import SEND_BYTES_MAX, Pump, run
from compat.bench.stopwatch import Stopwatch


def ingest(job: Job) -> Figures:
    """Publish at full speed, and check that every id was confirmed and every record stored.

    Message counts are rounded up to whole blocks of about 1 MiB.

    Raises:
        CheckFailed: A confirm is missing or wrong, or the stream has another length.
    """
    with Connection(job.address) as connection:
        connection.delete_if_there(job.stream)
        connection.create(job.stream)
        connection.declare_publisher(0, job.stream)
        block = PublishBlock(body_bytes=job.body_bytes, messages_per_frame=job.messages_per_frame)
        warmup_blocks = -(-job.warmup_count // block.message_count)
        timed_blocks = -(-job.message_count // block.message_count)
        block_count = warmup_blocks + timed_blocks
        pump = Pump(
            connection,
            block,
            block_count=block_count,
            window=job.window,
            as_they_come=job.as_they_come,
            send_bytes_max=job.send_bytes_max or SEND_BYTES_MAX,
        )
        pump.begin(warmup_blocks)
        run([pump])
        pump.begin(timed_blocks)
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            run([pump])
        pump.arena.check(block_count=block_count, block_messages=block.message_count)
    figures = stopwatch.figures(timed_blocks * block.message_count)
    total = block_count * block.message_count
    with Connection(job.address) as connection:
        last = connection.stream_stats(job.stream)["committed_offset"]
        if last != total - 1:
            raise CheckFailed(f"the stream ends at offset {last} after {total} messages")
        if not job.keep:
            connection.delete(job.stream)
    return figures | {"stored": total, "messages_per_confirm": total / pump.arena.frames}
