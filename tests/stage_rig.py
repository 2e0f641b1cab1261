"""A fake server that has stages, and what a task or a driver does with them in tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream import pipeline as p
from hutch.stream.codec import Decoded, refusal_reply
from hutch.stream.codes import ResponseCode
from pyspark_hutch.encoding.messages import messages_of
from pyspark_hutch.options.write_settings import StreamWriteSettings
from pyspark_hutch.sink.commits import Staged
from pyspark_hutch.sink.plan import plan_write
from pyspark_hutch.sink.stage import StagedRows
from pyspark_hutch.sink.stages import Purpose, TaskStaging
from pyspark_hutch.sink.task import stage_rows
from tests.chunks import SubBatch, entry_at
from tests.fake_server import OK, FakeServer, Talk
from tests.sink_rig import Sender, as_task, batch_of

PURPOSE = Purpose("query", 3)
UNKNOWN = ResponseCode.PRECONDITION_FAILED


@dataclass
class FakeStage:
    """A stage of the server: its frames by sequence, each as the records in it."""

    opened: p.OpenStage
    frames: dict[int, list[bytes]] = field(default_factory=dict)
    is_closed: bool = False

    @property
    def records(self) -> list[bytes]:
        return [record for _, frame in sorted(self.frames.items()) for record in frame]


class FakeStages(FakeServer):
    """A server with stages, which shows a stream's rows when they are committed.

    Attributes:
        shown: The rows of each stream that readers see.
        stages: By number.
        commits: Requests that published something.
        discarded: Numbers of stages that a client gave up.
        refusals: Code and reason for commands that are refused.
        is_answering: Whether frames of stages are answered as they come; else `release` does it.
        stored: How many frames of a stage outlive its end, by the number of those that it has.
        withheld: Requests that wait for their answer.
    """

    def __init__(self, *streams: str) -> None:
        super().__init__()
        self.streams = {stream: [] for stream in streams}
        self.shown: dict[str, list[bytes]] = {stream: [] for stream in streams}
        self.stages: dict[int, FakeStage] = {}
        self.commits: list[p.CommitStages] = []
        self.discarded: list[int] = []
        self.refusals: dict[str, tuple[int, str]] = {}
        self.is_answering = True
        self.stored: Callable[[int], int] = lambda count: count
        self.withheld: list[tuple[Talk, Decoded]] = []
        self.dropped: tuple[str, ...] = ()
        self.waiting: tuple[str, ...] = ()
        self._last: dict[str, tuple[int, int]] = {}
        self._lock = threading.RLock()
        self._numbers = iter(range(100, 1_000_000))
        self.handlers |= {
            "peer_properties": self._greet,
            "open_stage": self._open,
            "stage": self._stage,
            "close_stage": self._close_stage,
            "commit_stages": self.commit,
            "discard_stages": self._discard,
        }

    def forget_open(self) -> None:
        """Lose the stages that are not closed, and all connections, as a power cut may."""
        with self._lock:
            self.cut()
            self.stages = {n: one for n, one in self.stages.items() if one.is_closed}

    def restart(self) -> None:
        """Lose the frames that are not stored, and all connections."""
        with self._lock:
            self.cut()  # first: an ended server refuses nothing that is on its way
            for number, one in list(self.stages.items()):
                if one.is_closed:
                    continue
                left = self.stored(len(one.frames))
                one.frames = {n: frame for n, frame in one.frames.items() if n < left}
                if not left:
                    del self.stages[number]

    def release(self) -> None:
        """Answer what waits, and all that comes from now on."""
        with self._lock:  # a frame that an answer lets come waits for all of these
            self.is_answering = True
            waiting, self.withheld = self.withheld, []
            for talk, asked in waiting:
                self._stage(talk, asked)

    def staged(self, stream: str) -> list[bytes]:
        """The rows of all closed stages of a stream, by their numbers."""
        found = [one for _, one in sorted(self.stages.items()) if one.opened.stream == stream]
        return [record for one in found if one.is_closed for record in one.records]

    def _greet(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.PeerProperties)
        talk.reply(asked, m.PeerPropertiesReply(OK, {"product": "Hutch"} | pipeline.PROPERTIES))
        talk.table = pipeline.table_of(asked.message.properties)

    def _refuses(self, talk: Talk, asked: Decoded) -> bool:
        code, reason = self.refusals.get(asked.command.name, (OK, ""))
        if code != OK:
            talk.send(refusal_reply(asked.command, asked.correlation_id or 0, code, reason))
        return code != OK

    def _open(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, p.OpenStage)
        if self._refuses(talk, asked):
            return
        with self._lock:
            number = next(self._numbers)
            self.stages[number] = FakeStage(asked.message)
        talk.reply(asked, p.StageOpened(OK, None, number))

    def _stage(self, talk: Talk, asked: Decoded) -> None:
        if self._refuses(talk, asked):
            return
        with self._lock:
            if self.is_answering:
                self._take_frame(talk, asked)
            else:
                self.withheld.append((talk, asked))

    def _take_frame(self, talk: Talk, asked: Decoded) -> None:
        wanted = asked.message
        assert isinstance(wanted, p.StageRecords)
        stage = self.stages.get(wanted.stage)
        if stage is None or wanted.sequence > len(stage.frames):
            said = f"stage {wanted.stage} is not there, or sequence {wanted.sequence} is not next"
            talk.reply(asked, p.StageFilled(UNKNOWN, said, 0))
            return
        if wanted.sequence < len(stage.frames):
            talk.reply(asked, p.StageFilled(OK, None, self.stored(len(stage.frames))))
            return
        entries = entries_in(bytes(wanted.data))
        records = [record for entry in entries for record in records_of(entry)]
        assert (len(entries), len(records)) == (wanted.entries, wanted.records)
        stage.frames[wanted.sequence] = records
        talk.reply(asked, p.StageFilled(OK, None, self.stored(len(stage.frames))))

    def _close_stage(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, p.CloseStage)
        if self._refuses(talk, asked):
            return
        stage = self.stages[asked.message.stage]
        stage.is_closed = True
        size = sum(map(len, stage.records))
        talk.reply(asked, p.StageClosed(OK, None, len(stage.records), size))

    def commit(self, talk: Talk, asked: Decoded) -> None:
        """Publish stages, unless the batch was committed before."""
        wanted = asked.message
        assert isinstance(wanted, p.CommitStages)
        if self._refuses(talk, asked):
            return
        batch, number = self._last.get(wanted.sink, (-1, 0))
        is_repeat = bool(wanted.sink) and wanted.batch <= batch
        if not is_repeat:
            if any(stage not in self.stages for stage in wanted.stages):
                self.refusals["commit_stages"] = (UNKNOWN, "no such stage")
                self._refuses(talk, asked)
                return
            for stage in wanted.stages:
                self.shown[self.stages[stage].opened.stream] += self.stages.pop(stage).records
            self.commits.append(wanted)
            number = len(self.commits)
            self._last[wanted.sink] = (wanted.batch, number)
        answer = p.StagesCommitted(OK, None, number, is_repeat, self.dropped, self.waiting)
        talk.reply(asked, answer)

    def _discard(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, p.DiscardStages)
        for number in asked.message.stages:
            self.stages.pop(number, None)
            self.discarded.append(number)
        talk.reply(asked, p.Outcome(OK, None))


def entries_in(data: bytes) -> list[bytes | SubBatch]:
    """Take the data of a frame apart."""
    found, position = [], 0
    while position < len(data):
        entry, position = entry_at(data, position)
        found.append(entry)
    return found


def records_of(entry: bytes | SubBatch) -> list[bytes]:
    """Return the records of an entry."""
    return entry.records() if isinstance(entry, SubBatch) else [entry]


class Stager(Sender):
    """Stages raw bodies by a `TaskStaging`."""

    def __init__(
        self,
        server: FakeServer,
        *,
        timeout_ms: int = 5_000,
        frame_rows_max: int = 65_535,
        **options: Any,  # noqa: ANN401  # those of Sender
    ) -> None:
        super().__init__(server, **options)
        self.staging = TaskStaging(
            self.cluster, self.packing, PURPOSE, timeout_ms, frame_rows_max=frame_rows_max
        )

    def add(self, stream: str, bodies: Sequence[bytes]) -> None:
        messages = messages_of(batch_of(bodies), raw=True)
        numbers = pa.array(range(len(bodies)), pa.uint64()).to_numpy()
        self.staging.publish(stream, "", messages, numbers)

    def write(self, stream: str, bodies: Sequence[bytes]) -> tuple[StagedRows, ...]:
        """Stage and finish; abort as a task does if that fails."""
        try:
            self.add(stream, bodies)
            return self.staging.finish()
        except BaseException:
            self.staging.abort()
            raise


def stage(
    settings: StreamWriteSettings,
    batches: Sequence[pa.RecordBatch],
    *,
    purpose: Purpose = PURPOSE,
    partition: int = 0,
    before_batch: Callable[[int], object] = lambda _: None,
) -> Staged:
    """Stage batches as one task does, with all checks before."""
    with as_task(settings, batches, before_batch) as (cluster, handed):
        plan = plan_write(cluster, settings, batches[0].schema.names)
        assert plan.is_staged
        return stage_rows(cluster, settings, plan.targets, purpose, partition, handed)
