"""The append of a commit's part to its stream: once, as one unit, or not at all."""

import logging
from typing import Final

from gateway.broker.commits.commit_order import CommitPart, PartOutcome
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.sources import StageLost
from gateway.broker.errors import BrokerError, StreamDoesNotExist, StreamNotAvailable
from gateway.broker.streams.catalogue import Stream
from gateway.log import names
from gateway.log.damage.errors import LogError
from gateway.log.units import UnitSegments, append_unit
from gateway.logs import NameInHost
from store.api import APPEND_BYTES_MAX
from store.errors import CorruptSegment, DiskFull, StoreClosed, StoreError

log = logging.getLogger(__name__)

_TRIES: Final = 2
"""A log that has failed is opened anew at once, and tried once more."""


async def enter(ports: CommitsPorts, part: CommitPart) -> PartOutcome:
    """Bring a part into its stream, unless the stream has it already."""
    shown = NameInHost(part.stream, ports.virtual_host)
    reason: Exception | None = None
    size = min(part.source.size, APPEND_BYTES_MAX)  # a larger one is read in pieces
    for _ in range(_TRIES):
        await ports.usage.append_room.take(size)
        try:
            await _append(ports, part)
        except StreamDoesNotExist:
            log.warning(
                "part of a commit is dropped, its stream was deleted stream=%s number=%d",
                shown,
                part.commit,
            )
            return PartOutcome.DROPPED
        except StageLost as error:
            log.error(  # noqa: TRY400  # for the operator
                "part of a commit is lost stream=%s number=%d error=%s", shown, part.commit, error
            )
            return PartOutcome.DROPPED
        except (StoreError, LogError, BrokerError) as error:
            reason = error
            if isinstance(error, StoreError):
                ports.refused(error)
            if isinstance(error, DiskFull | StoreClosed | BrokerError):
                break
        else:
            return PartOutcome.ENTERED
        finally:
            ports.usage.append_room.give(size)
    log.warning(
        "part of a commit waits, its stream cannot be written stream=%s number=%d error=%s",
        shown,
        part.commit,
        reason,
    )
    return PartOutcome.WAITING


async def _append(ports: CommitsPorts, part: CommitPart) -> None:
    stream = target_of(ports, part)
    stream_log = await ports.streams.logs.of(stream)
    if stream_log.mark >= part.commit:
        return
    if stream_log.read_only is not None:
        raise StreamNotAvailable(str(stream_log.read_only))
    if not stream_log.sequences.is_mark_known:
        # Of the two faults, to lose records is the worse one.
        log.error(
            "damage took the last mark, so a commit may be there already and is appended stream=%s"
            " number=%d",
            NameInHost(part.stream, ports.virtual_host),
            part.commit,
        )
    segments = UnitSegments(
        ports.streams.storage.names_of(stream.entry).data_segment,
        names.unit_segment(ports.virtual_host, part.commit, part.generation),
    )
    try:
        await append_unit(ports.store, stream_log, segments, part.source, mark=part.commit)
    except (StoreError, LogError) as error:
        target_of(ports, part)  # a stream that was deleted meanwhile is no fault
        if isinstance(error, CorruptSegment) and stream_log.failure is None:
            raise StageLost(str(error)) from error
        raise


def target_of(ports: CommitsPorts, part: CommitPart) -> Stream:
    """Return the stream of a part. Raises StreamDoesNotExist: it was deleted."""
    stream = ports.streams.find(part.stream)
    if stream.entry.generation != part.generation:
        raise StreamDoesNotExist(part.stream)
    return stream
