"""Stages of one task: frames out, answers in, and all that may be lost again after a broken line.

Nothing of it is visible before the driver commits. The frames of a task are kept up to a bound. So
a small task begins its stages anew when the server, or the connection to it, is gone for a moment.
A larger task keeps the frames that the server has not stored yet, and goes on with its stages. It
fails if the server has lost what was stored, as by a power cut with `store.durability` os.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Final, NamedTuple

from hutch.client.connection import Connection
from hutch.client.errors import (
    BadAnswer,
    ClientError,
    ServerGone,
    ServerSilent,
    require_ok,
)
from hutch.formats.chunk import ENTRIES_MAX
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.encoding.frames import SIZE_BYTES, FrameLimits, Ids, PublishFrame
from pyspark_hutch.encoding.messages import Messages
from pyspark_hutch.encoding.sub_batches import Packing
from pyspark_hutch.sink.stage import SentFrame, StagedRows, TaskStage

LOG: Final = logging.getLogger(__name__)

FRAME_BYTES: Final = 512 << 10
"""Bytes of a frame, which the server stores as one chunk: large ones are read faster."""
UNANSWERED_MAX: Final = 8
"""Requests under way: 4 MiB, so that neither side waits for the other."""
KEPT_BYTES_MAX: Final = 32 << 20
"""Bytes of frames that are kept though the server has stored them; a task of some 300,000 small
rows."""
WAITING_BYTES_MAX: Final = 64 << 20
"""Memory of rows that wait for their sub-batch to be full, of all streams."""

_HEAD_BYTES: Final = SIZE_BYTES + 2 + 2 + 4 + 8 + 4 + 2 + 4 + 4
"""Size, key, version, correlation id, stage, sequence, entries, records, size of the data."""
_LAST_WORDS_S: Final = 2.0
"""For the request to discard the stages of a task that failed; else they expire."""
_TRANSIENT: Final = (ServerGone, ServerSilent)


class Purpose(NamedTuple):
    """The commit that rows are staged for.

    Attributes:
        sink: Spark's id of the streaming query, or the name of a series of saves; empty for a save
            that counts alone.
        batch: The number in it; the server commits each number once.
    """

    sink: str
    batch: int


Answered = Callable[[m.Message], None]


class TaskStaging:
    """Stages the rows of one task; the driver may commit them after `finish` has returned."""

    def __init__(
        self,
        cluster: Cluster,
        packing: Packing,
        purpose: Purpose,
        timeout_ms: int,
        *,
        frame_rows_max: int = ENTRIES_MAX,
    ) -> None:
        """Prepare; a connection is made with the first row.

        Args:
            cluster: The servers.
            packing: How rows become entries.
            purpose: The commit that will publish the rows.
            timeout_ms: The longest wait for an answer.
            frame_rows_max: Most rows of a frame, which the server stores as one chunk.
        """
        self._cluster = cluster
        self._frame_rows_max = frame_rows_max
        self._packing = packing
        self._purpose = purpose
        self._timeout_s = timeout_ms / 1000
        self._stages: dict[str, TaskStage] = {}
        self._loan = ExitStack()
        self._connection: Connection | None = None
        self._unanswered: dict[int, Answered] = {}
        self._pauses = cluster.pauses()
        self._kept_bytes = 0
        self._kept_bytes_max = KEPT_BYTES_MAX
        self._waiting_bytes = 0

    def open(self, streams: Sequence[str], _reference: str) -> None:
        """Open stages for streams that have none.

        Raises:
            ClientError: The server refuses, or does not come back.
        """
        new = [stream for stream in streams if stream not in self._stages]
        if not new:
            return
        limits = self._limits()
        for stream in new:
            self._stages[stream] = TaskStage(stream, self._packing.packer(stream, None, limits))
        stages = [self._stages[stream] for stream in new]
        self._do(partial(self._attach, stages), is_attached=True)

    def publish(self, stream: str, reference: str, messages: Messages, ids: Ids) -> None:
        """Stage rows of one stream; waits while too much is unanswered.

        Args:
            stream: The target.
            reference: Empty: a stage has no producer.
            messages: The rows.
            ids: Any numbers, as many; they are not stored.

        Raises:
            ClientError: The server refuses, or does not come back.
            EncodingError: A row does not fit.
        """
        self.open([stream], reference)
        stage = self._stages[stream]
        self._send_all(stage, stage.packer.add(messages, ids))
        while self._waiting_bytes > WAITING_BYTES_MAX:
            fullest = max(self._stages.values(), key=lambda each: each.waiting_bytes)
            self._send_all(fullest, fullest.packer.flush())

    def finish(self) -> tuple[StagedRows, ...]:
        """Stage the rows that wait, close all stages, and give the connection back.

        Raises:
            ClientError: The server refuses, or does not come back.
        """
        for stage in self._stages.values():
            self._send_all(stage, stage.packer.flush())
        self._do(self._close_all)
        self._loan.close()
        return tuple(stage.closed() for stage in self._stages.values())

    def abort(self) -> None:
        """Discard the stages if the server can be reached now; else it drops them in time."""
        numbers = tuple(s.number for s in self._stages.values() if s.number is not None)
        connection = self._connection
        if connection is not None and not connection.is_broken and numbers:
            deadline = time.monotonic() + _LAST_WORDS_S
            with suppress(ClientError):
                asked = connection.send_request("discard_stages", p.DiscardStages(numbers))
                while connection.next_answer(deadline)[0] != asked:
                    pass
        self._drop()

    # ---- sending and waiting -----------------------------------------------------------------

    def _send_all(self, stage: TaskStage, frames: Iterator[PublishFrame]) -> None:
        """Send frames as the packer makes them, and count the rows that it keeps."""
        for frame in frames:
            sent = stage.add(frame)
            self._kept_bytes += len(frame.data)
            self._do(partial(self._send, stage, sent), is_attached=True)
            if self._kept_bytes > self._kept_bytes_max:
                self._forget()
        self._waiting_bytes -= stage.waiting_bytes
        stage.waiting_bytes = stage.packer.waiting_bytes
        self._waiting_bytes += stage.waiting_bytes

    def _forget(self) -> None:
        """Drop the frames that the server has stored; it bounds those that it has in memory."""
        stages = self._stages.values()
        self._kept_bytes -= sum(stage.forget_stored() for stage in stages)
        behind = [stage for stage in stages if stage.answered_bytes]
        if sum(stage.answered_bytes for stage in behind) > KEPT_BYTES_MAX // 2:
            self._do(partial(self._ask_stored, behind), is_attached=True)
            self._kept_bytes -= sum(stage.forget_stored() for stage in stages)
        self._kept_bytes_max = max(KEPT_BYTES_MAX, 2 * self._kept_bytes)

    def _ask_stored(self, stages: Sequence[TaskStage]) -> None:
        for stage in stages:
            self._ask("stage", stage.question(), partial(_filled, stage))
        self._await_all()

    def _send(self, stage: TaskStage, sent: SentFrame) -> None:
        def answered(reply: m.Message) -> None:
            _filled(stage, reply)
            if sent.is_progress:
                self._pauses = self._cluster.pauses()
            sent.is_answered, sent.is_progress = True, False

        self._ask("stage", stage.request(sent), answered)

    def _ask(self, name: str, request: m.Message, answered: Answered) -> None:
        """Send a request; its answer is taken later, when there are many or all are awaited."""
        while len(self._unanswered) >= UNANSWERED_MAX:
            self._take_answer()
        asked = self._connected().send_request(name, request, timeout_s=self._timeout_s)
        self._unanswered[asked] = answered

    def _await_all(self) -> None:
        while self._unanswered:
            self._take_answer()

    def _take_answer(self) -> None:
        connection = self._connected()
        asked, reply = connection.next_answer(time.monotonic() + self._timeout_s)
        answered = self._unanswered.pop(asked, None)
        if answered is None:
            raise BadAnswer(f"{connection.endpoint} answered what was not asked: {reply}")
        answered(reply)

    # ---- stages ------------------------------------------------------------------------------

    def _attach(self, stages: Sequence[TaskStage]) -> None:
        """Open stages, anew if all of their frames are here, and send those that may be missing."""
        lost = tuple(s.number for s in stages if s.number is not None and s.is_whole)
        if lost:
            self._ask("discard_stages", p.DiscardStages(lost), lambda _reply: None)
        for stage in stages:
            if stage.is_whole:
                self._open(stage)
        self._await_all()
        for stage in stages:
            for sent in stage.to_send():
                self._send(stage, sent)

    def _open(self, stage: TaskStage) -> None:
        def answered(reply: m.Message) -> None:
            _check(reply, stage)
            assert isinstance(reply, p.StageOpened), "the codec gives the row's reply"
            stage.number = reply.stage

        stage.number, stage.stored = None, 0
        self._ask("open_stage", p.OpenStage(*self._purpose, stage.stream), answered)

    def _close_all(self) -> None:
        for stage in self._stages.values():
            if not stage.is_closed:
                self._close(stage)
        self._await_all()

    def _close(self, stage: TaskStage) -> None:
        def answered(reply: m.Message) -> None:
            _check(reply, stage)
            assert isinstance(reply, p.StageClosed), "the codec gives the row's reply"
            if reply.records != stage.rows:
                raise BadAnswer(
                    f"stream {stage.stream!r}: {stage.rows} rows were staged, and the server has "
                    f"{reply.records} of them"
                )
            stage.size_bytes, stage.is_closed = reply.size_bytes, True

        self._ask("close_stage", p.CloseStage(stage.open_number), answered)

    # ---- the connection ----------------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._loan.enter_context(self._cluster.connection())
        return self._connection

    def _limits(self) -> FrameLimits:
        """Return the bounds of a frame, among them the largest that the server takes."""
        sizes: list[int] = []
        self._do(lambda: sizes.append(self._connected().frame_bytes_max))
        entries_max = max(1, self._frame_rows_max // self._packing.sub_batch_size)
        return FrameLimits(sizes[-1], FRAME_BYTES, min(entries_max, ENTRIES_MAX), _HEAD_BYTES)

    def _drop(self) -> None:
        self._unanswered.clear()
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
        self._loan.close()

    def _do(self, work: Callable[[], None], *, is_attached: bool = False) -> None:
        """Do some work; after a lost connection attach all stages anew, and do it again.

        Args:
            work: Sends requests, which may be sent twice.
            is_attached: Whether attaching the stages does all of it.
        """
        try:
            work()
        except _TRANSIENT as error:
            self._recover(error, (lambda: None) if is_attached else work)

    def _recover(self, error: ClientError, work: Callable[[], None]) -> None:
        """Attach all stages anew and go on with the work.

        The pauses grow until a frame is answered that never was, so a server that comes back and
        goes again ends the task too.

        Raises:
            ClientError: The server refuses, or stays away.
        """
        while (pause_s := next(self._pauses, None)) is not None:
            self._drop()
            LOG.warning("staging: %s; another try in %.1f s", error, pause_s)
            time.sleep(pause_s)
            try:
                self._attach([s for s in self._stages.values() if not s.is_closed])
                work()
            except _TRANSIENT as again:
                error = again
            else:
                return
        rows = sum(stage.rows for stage in self._stages.values())
        raise ClientError(f"{error}; the task's {rows} rows were not staged") from None


def _filled(stage: TaskStage, reply: m.Message) -> None:
    _check(reply, stage)
    assert isinstance(reply, p.StageFilled), "the codec gives the row's reply"
    stage.stored = reply.stored


def _check(reply: m.Message, stage: TaskStage) -> None:
    """Raise the error that an answer stands for."""
    code = getattr(reply, "code", None)
    if code is None:
        raise BadAnswer(f"stream {stage.stream!r}: a stage was answered with {reply}")
    about = f"stream {stage.stream!r} cannot be published to: it"
    require_ok(about, code, getattr(reply, "reason", None))
