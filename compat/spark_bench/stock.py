"""A stock client, `rstream`, that publishes as fast as it can, in a process of its own.

    python -m compat.spark_bench.stock < job

The job is a line of JSON.
"""

import asyncio
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Final

from rstream import ConfirmationStatus, Producer

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.frames import body_of
from compat.bench.machine import REPOSITORY

TITLE: Final = "rstream"
BATCH: Final = 100
UNCONFIRMED_MAX: Final = 10_000
TIMEOUT_S: Final = 600
PATIENCE_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Messages to publish: so many of `body_bytes`, in batches, to a stream that is there."""

    address: Address
    stream: str
    count: int
    body_bytes: int


def publish(job: Job) -> None:
    """Publish, and wait until all is confirmed.

    Raises:
        BenchError: The client failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "compat.spark_bench.stock"],
        input=json.dumps(asdict(job)),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise BenchError(f"{TITLE} failed: {done.stderr.strip()[-500:]}")


async def _publish(job: Job) -> None:
    address = job.address
    confirmed = 0
    came = asyncio.Event()

    def note(status: ConfirmationStatus) -> None:
        nonlocal confirmed
        if not status.is_confirmed:
            raise BenchError(f"message {status.message_id} was refused")
        confirmed += 1
        came.set()

    async def at_most(unconfirmed: int) -> None:
        while sent - confirmed > unconfirmed:
            came.clear()
            await asyncio.wait_for(came.wait(), PATIENCE_S)

    sent = 0
    body = body_of(job.body_bytes)
    async with Producer(
        address.host, address.port, username=address.user, password=address.password
    ) as producer:
        while sent < job.count:
            batch = [body] * min(BATCH, job.count - sent)
            await producer.send_batch(job.stream, batch, on_publish_confirm=note)
            sent += len(batch)
            await at_most(UNCONFIRMED_MAX)
        await at_most(0)


def main() -> None:
    """Do the job that standard input describes."""
    fields = json.loads(sys.stdin.read())
    asyncio.run(_publish(Job(**fields | {"address": Address(*fields["address"])})))


if __name__ == "__main__":
    main()
