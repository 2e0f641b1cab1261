"""Steps of the rows of what users do: ordinary rates, windows and numbers of streams."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from compat.bench.generator import perform
from compat.bench.jobs import Figures, Job
from compat.bench.ordinary_rows import (
    CONNECTIONS_OF_STREAMS,
    FRAMES_OF_EACH_STREAM,
    PACE_OF_PAIRS,
    PACES,
    STREAMS,
    WINDOW_OF_STREAMS,
    WINDOWED,
)
from compat.bench.scale import Scale
from compat.bench.servers import Server
from compat.bench.steps import STREAM, WARMUP_PART, Results, Step, ingest_job

PAIRS: Final = 10
# A tenth of a measurement lets a server warm its buffers.
PACED_WARMUP_PART: Final = 10


def windowed(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Publish with small windows and sends as they come."""
    results = {}
    for case in WINDOWED:
        if case.row in wanted:
            count = scale.windowed_messages[case.body_bytes, case.per_frame]
            job = ingest_job(server, case.body_bytes, case.per_frame, count)
            results[case.row] = perform(
                replace(
                    job,
                    window=case.window,
                    as_they_come=True,
                    send_bytes_max=case.send_bytes_max,
                )
            )
    return results


def streams(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Write many streams at once."""
    results = {}
    for called, per_frame in STREAMS:
        row = f"streams_{called}x{per_frame}"
        if row in wanted:
            results[row] = perform(streams_job(server, scale, called, per_frame))
    return results


def paced(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Publish at each pace to one stream that is read meanwhile."""
    return {
        row: _paced(server, scale, pace, streams=1, connections=2)
        for pace in PACES
        if (row := f"paced_{pace}") in wanted
    }


def paced_pairs(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Publish to several streams on a connection each, which reads as well."""
    figures = _paced(server, scale, PACE_OF_PAIRS, streams=PAIRS, connections=PAIRS)
    return {"paced_pairs": figures}


def streams_job(server: Server, scale: Scale, called: int, per_frame: int) -> Job:
    """Return the job of streams that are written at once, by the number they are called after."""
    stream_count, count = scale.streams[called], scale.streams_messages[called, per_frame]
    frames = FRAMES_OF_EACH_STREAM * stream_count // CONNECTIONS_OF_STREAMS
    return Job(
        work="many_streams",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        stream_count=stream_count,
        connection_count=CONNECTIONS_OF_STREAMS,
        messages_per_frame=per_frame,
        message_count=count,
        warmup_count=count // WARMUP_PART,
        window=min(WINDOW_OF_STREAMS, frames * per_frame),
    )


def _paced(
    server: Server, scale: Scale, messages_per_s: int, *, streams: int, connections: int
) -> Figures:
    count = int(messages_per_s * scale.paced_s)
    return perform(
        Job(
            work="paced",
            address=server.address,
            pids=server.pids,
            stream=STREAM,
            stream_count=streams,
            connection_count=connections,
            messages_per_s=messages_per_s,
            message_count=count,
            warmup_count=count // PACED_WARMUP_PART,
        )
    )


ORDINARY_STEPS: Final = (
    *(Step((case.row,), windowed) for case in WINDOWED),
    *(Step((f"paced_{pace}",), paced) for pace in PACES),
    Step(("paced_pairs",), paced_pairs),
    *(Step((f"streams_{called}x{per_frame}",), streams) for called, per_frame in STREAMS),
)
