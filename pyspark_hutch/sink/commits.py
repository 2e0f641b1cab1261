"""The commit of a batch by the driver: it publishes the stages of all tasks at once, or drops them.

An empty batch of a streaming query is not committed. It has nothing that could be doubled, so its
number need not be on record, and a connection and a synced write for it would be for nothing.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hutch.client.errors import ClientError, Refused, require_ok
from hutch.stream import pipeline as p
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.sink.stage import StagedRows
from pyspark_hutch.sink.stages import Purpose

LOG: Final = logging.getLogger(__name__)

ALONE_TIMEOUT_S: Final = 600.0
"""For the commit of a save without a number; one of 10 GiB takes a minute or two."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The result of a task that staged its rows.

    Attributes:
        purpose: The commit that they are for.
        partition: The number of the task in its batch.
        stages: The stages, closed.
    """

    purpose: Purpose
    partition: int
    stages: tuple[StagedRows, ...]

    @property
    def rows(self) -> int:
        """Rows of all stages."""
        return sum(stage.rows for stage in self.stages)


def purpose_of(staged: Sequence[Staged]) -> Purpose | None:
    """Return the commit that all tasks of a batch staged for; None if there are no tasks.

    Raises:
        ClientError: They differ.
    """
    found = sorted({one.purpose for one in staged})
    if len(found) > 1:
        told = " and ".join(f"batch {batch} of {sink!r}" for sink, batch in found[:2])
        raise ClientError(f"tasks of one batch staged rows for {told}; nothing is committed")
    return found[0] if found else None


def commit(
    cluster: Cluster, purpose: Purpose, staged: Sequence[Staged], timeout_ms: int
) -> p.StagesCommitted:
    """Publish the stages of a batch, unless the server has done so before.

    It is asked again after a lost connection, or when no answer comes: the server does it once.

    Args:
        cluster: The servers.
        purpose: The sink and the number of the batch.
        staged: The results of all tasks, in any order.
        timeout_ms: The longest wait for an answer. A save without a number waits for ten minutes at
            least, since no later try could find out its fate.

    Raises:
        Refused: The server publishes nothing; the reason names the stream.
        ClientError: The server does not come back, and nothing tells if it has committed.
    """
    parts = sorted(
        (one.partition, part.stream, part.stage) for one in staged for part in one.stages
    )
    request = p.CommitStages(*purpose, tuple(stage for _, _, stage in parts))
    timeout_s = timeout_ms / 1000 if purpose.sink else max(timeout_ms / 1000, ALONE_TIMEOUT_S)
    tries = 0

    def ask() -> p.StagesCommitted:
        nonlocal tries
        with cluster.connection() as connection:
            tries += 1
            reply = connection.request("commit_stages", request, timeout_s=timeout_s)
        assert isinstance(reply, p.StagesCommitted), "the codec gives the row's reply"
        require_ok(_about(purpose), reply.code, reply.reason)
        return reply

    try:
        return cluster.retried(_about(purpose), ask)
    except ClientError as error:
        unanswered = tries - 1 if isinstance(error, Refused) else tries
        if purpose.sink or not unanswered:
            raise
        raise ClientError(
            f"{error}; the answer to an earlier try was lost, and the rows may have been "
            "published then: look before you save again. A save with txnAppId and txnVersion can "
            "be repeated"
        ) from None


def tell(purpose: Purpose, staged: Sequence[Staged], committed: p.StagesCommitted) -> None:
    """Log a commit; aloud where it did not publish all rows now."""
    about, rows = _about(purpose), sum(one.rows for one in staged)
    if committed.is_repeat and purpose.sink:
        LOG.warning(
            "hutch: %s was committed before, as number %d; %d rows that were staged again are "
            "left out",
            about,
            committed.number,
            rows,
        )
    else:
        LOG.info("hutch: %s: %d rows, committed as number %d", about, rows, committed.number)
    if committed.dropped:
        LOG.warning(
            "hutch: %s: rows are dropped, since their streams were deleted meanwhile: %s",
            about,
            ", ".join(committed.dropped),
        )
    if committed.waiting:
        LOG.warning(
            "hutch: %s: rows are committed and not visible yet, since their streams cannot be "
            "written now: %s; the server's log says why",
            about,
            ", ".join(committed.waiting),
        )


def discard(cluster: Cluster, staged: Sequence[Staged], timeout_ms: int) -> None:
    """Drop the stages of a batch that failed, if a server can be reached now.

    Else they expire. Stages of a commit under way stay, which the server sees to.
    """
    numbers = tuple(part.stage for one in staged for part in one.stages)
    if not numbers:
        return
    with suppress(ClientError), cluster.connection() as connection:
        request = p.DiscardStages(numbers)
        connection.request("discard_stages", request, timeout_s=timeout_ms / 1000)


def _about(purpose: Purpose) -> str:
    return f"batch {purpose.batch} of {purpose.sink!r}" if purpose.sink else "the save"
