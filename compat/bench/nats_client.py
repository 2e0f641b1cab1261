"""The works of a cluster's peer: nats-py, with a stream of three replicas on the log's servers."""

import asyncio
import time
from array import array
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import body_of
from compat.bench.jobs import Figures, Job
from compat.bench.latency import percentiles
from compat.bench.stopwatch import Stopwatch

if TYPE_CHECKING:
    from nats.js import JetStreamContext

REPLICAS: Final = 3
ANSWER_S: Final = 10.0
LIMIT_S: Final = 600.0
# As much as Hutch lets its client of NATS hold.
PENDING_BYTES: Final = 64 << 20


def nats_publish(job: Job) -> Figures:
    """Publish at full speed, with `window` messages unacknowledged at most.

    From the first send to the last acknowledgement.

    Raises:
        CheckFailed: The stream does not have every message.
        BenchError: The servers cannot be used, or did not acknowledge.
    """
    return _run(_publish, job)


def nats_latency(job: Job) -> Figures:
    """Time one message after the other, from its publish to its acknowledgement.

    Raises:
        CheckFailed: The stream does not have every message.
        BenchError: The servers cannot be used, or did not acknowledge.
    """
    return _run(_one_by_one, job)


def _run(work: Callable[[Job], Coroutine[Any, Any, Figures]], job: Job) -> Figures:
    import nats.errors  # noqa: PLC0415 - the rows of other servers do without it

    try:
        return asyncio.run(asyncio.wait_for(work(job), LIMIT_S))
    except TimeoutError as error:
        raise BenchError(f"nats-py was not done within {LIMIT_S:.0f} s") from error
    except nats.errors.Error as error:
        raise BenchError(f"nats-py: {error!r}") from error


async def _publish(job: Job) -> Figures:
    body = body_of(job.body_bytes)

    async def send(count: int) -> None:
        sent = [await context.publish_async(job.stream, body) for _ in range(count)]
        await asyncio.gather(*sent)

    async with _stream(job) as context:
        await send(job.warmup_count)
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            await send(job.message_count)
    return stopwatch.figures(job.message_count)


async def _one_by_one(job: Job) -> Figures:
    body = body_of(job.body_bytes)
    times = array("q")
    async with _stream(job) as context:
        for _ in range(job.warmup_count):
            await context.publish(job.stream, body)
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            for _ in range(job.message_count):
                began = time.perf_counter_ns()
                await context.publish(job.stream, body)
                times.append(time.perf_counter_ns() - began)
    return stopwatch.figures(job.message_count) | percentiles(times)


@asynccontextmanager
async def _stream(job: Job) -> AsyncIterator["JetStreamContext"]:
    """Yield a new stream, which has what was to be published when the block is left."""
    import nats  # noqa: PLC0415 - as above
    from nats.js.api import StorageType, StreamConfig  # noqa: PLC0415

    url = f"nats://{job.address.host}:{job.address.port}"
    client = await nats.connect(url, pending_size=PENDING_BYTES)
    try:
        context = client.jetstream(timeout=ANSWER_S, publish_async_max_pending=job.window)
        await context.add_stream(
            StreamConfig(
                name=job.stream,
                subjects=[job.stream],
                storage=StorageType.FILE,
                num_replicas=REPLICAS,
            )
        )
        yield context
        total = job.warmup_count + job.message_count
        found = (await context.stream_info(job.stream)).state.messages
        if found != total:
            raise CheckFailed(f"the stream has {found} of {total} messages")
        await context.delete_stream(job.stream)
    finally:
        await client.close()
