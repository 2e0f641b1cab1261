"""Steps of the rows of what users do: ordinary rates, windows and numbers of streams."""

from collections.abc import Collection
from typing import Final

from compat.bench.generator import perform
from compat.bench.jobs import Figures, Job
from compat.bench.ordinary_rows import PACE_OF_PAIRS, PACES
from compat.bench.scale import Scale
from compat.bench.servers import Server
from compat.bench.steps import STREAM, Results, Step

PAIRS: Final = 10
# A tenth of a measurement lets a server warm its buffers.
PACED_WARMUP_PART: Final = 10


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
    *(Step((f"paced_{pace}",), paced) for pace in PACES),
    Step(("paced_pairs",), paced_pairs),
)
