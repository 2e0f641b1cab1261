"""Stages that were open when the server stopped: found at the start, counted at their next use."""

from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.sources import StageLost, StagesSource
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stage_segment import StageSegment
from gateway.log.unit import parts_of
from gateway.pending import Pending
from store.api import SegmentInfo
from store.errors import NoSuchSegment


async def find_segment(ports: CommitsPorts, number: int) -> SegmentInfo | None:
    """Return how much of a stage is stored; None if it has no segment. Raises StoreError."""
    found: Pending[SegmentInfo] = Pending()
    ports.store.info(ports.segment_of(number), done=found.settle)
    try:
        return await found
    except NoSuchSegment:
        return None


async def resume(ports: CommitsPorts, stage: Stage, source: StagesSource) -> StageSegment:
    """Count the frames and records of an open stage; return its segment, to go on writing.

    Every chunk is checked: the client does not send again what it was told is stored.

    Raises:
        StageLost: Bytes of it are damaged or gone.
        StoreError: It cannot be read now.
    """
    position = sequence = records = 0
    while position < source.size:
        data = await source.read(position)
        parts = parts_of(data, stage.seal_seed)
        if not parts:
            raise StageLost(f"stage {stage.number} is damaged at byte {position}")
        position += len(data)
        sequence += len(parts)
        records += sum(part.records for part in parts)
    segment = StageSegment(ports.store, ports.segment_of(stage.number), ports.usage)
    await segment.go_on(sequence)
    stage.sequence, stage.records = sequence, records
    return segment
