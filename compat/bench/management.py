"""Work that asks for long lists over HTTP while another client is served."""

import base64
import http.client
import json
import math
import time
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from typing import Final

from compat.bench.connection import Connection
from compat.bench.crowd import allow_descriptors, open_connections, settle
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.jobs import Figures, Job

CREDENTIALS: Final = base64.b64encode(b"guest:guest").decode("ascii")
HTTP_TIMEOUT_S: Final = 60.0
# RabbitMQ gathers what it says of connections and queues every 5 s.
STATISTICS_S: Final = 15.0
LOOK_S: Final = 0.5
BESIDE_S_MAX: Final = 1.0


def management(job: Job) -> Figures:
    """Open connections, create streams, and list both `repeats` times.

    Opening ends after a minute, with as many connections as there are by then.

    Returns:
        `connections`, how many there were; `connections_s` and `streams_s`, how long a list took
        (the slowest); `wait_p50`, `wait_p99` and `wait_max`, how long another connection waited for
        answers meanwhile, in microseconds; `beside_max`, the longest it waited in a second without
        lists.

    Raises:
        CheckFailed: A list does not have everything.
    """
    if not job.management_port:
        raise BenchError("the port of its management API is not known")
    allow_descriptors(job.connection_count)
    names = [f"{job.stream}-{index}" for index in range(job.stream_count)]
    with ExitStack() as stack:
        admin = stack.enter_context(Connection(job.address))
        for name in names:
            admin.delete_if_there(name)
            admin.create(name)
        count = len(open_connections(job, stack))
        settle(job)
        _await_list(job, "connections", count)
        _await_list(job, "queues", job.stream_count)
        figures = _listed_beside(job, names[0])
        for name in names:
            admin.delete(name)
    return {"connections": count, **figures}


def _listed_beside(job: Job, stream: str) -> Figures:
    """List while a process of its own asks the server something small, again and again."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    beside = context.Process(target=ask_beside, args=(job, stream, theirs), daemon=True)
    beside.start()
    try:
        if not ours.poll(HTTP_TIMEOUT_S):
            raise BenchError("no other client could be served beside the lists")
        ours.recv()  # it is connected
        time.sleep(min(BESIDE_S_MAX, job.seconds))
        ours.send("alone no more")
        took: dict[str, list[float]] = {"connections": [], "queues": []}
        for _ in range(job.repeats):
            for path, times in took.items():
                began = time.perf_counter()
                listed(job, path)
                times.append(time.perf_counter() - began)
        ours.send("that was all")
        alone, waits = ours.recv()
    finally:
        beside.terminate()
        beside.join()
    waits.sort()
    return {
        "connections_s": max(took["connections"]),
        "streams_s": max(took["queues"]),
        "wait_p50": 1e6 * waits[len(waits) // 2],
        "wait_p99": 1e6 * waits[math.ceil(len(waits) * 0.99) - 1],
        "wait_max": 1e6 * waits[-1],
        "beside_max": 1e6 * max(alone),
    }


def ask_beside(job: Job, stream: str, pipe: Pipe) -> None:
    """Ask for a stream's statistics until told to stop; the main of a process."""
    phases: list[list[float]] = [[], []]
    with Connection(job.address) as connection:
        pipe.send("ready")
        for waits in phases:
            while not waits or not pipe.poll():
                began = time.perf_counter()
                connection.stream_stats(stream)
                waits.append(time.perf_counter() - began)
            pipe.recv()
    pipe.send(phases)


def listed(job: Job, path: str) -> bytes:
    """Return a list as it came. Raises BenchError."""
    connection = http.client.HTTPConnection(
        job.address.host, job.management_port, timeout=HTTP_TIMEOUT_S
    )
    try:
        connection.request("GET", f"/api/{path}", headers={"Authorization": f"Basic {CREDENTIALS}"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise BenchError(f"/api/{path} was answered {answer.status}")
    return body


def _await_list(job: Job, path: str, count: int) -> None:
    """Wait until a list has everything. Raises CheckFailed."""
    deadline = time.monotonic() + STATISTICS_S
    while (found := len(json.loads(listed(job, path)))) < count:
        if time.monotonic() > deadline:
            raise CheckFailed(f"/api/{path} has {found} of {count}")
        time.sleep(LOOK_S)
