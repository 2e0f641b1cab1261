"""One stage of a task: rows for one stream that no reader sees, and the frames that may be lost."""

from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark_hutch.encoding.frames import Frame, Packer
from pyspark_hutch.shared.stream.wire import pipeline_messages as p


class StagedRows(NamedTuple):
    """A closed stage, as the driver gets to know it.

    Attributes:
        stream: The target.
        stage: Its number at the server.
        rows: In it.
        size_bytes: Of the rows as they are stored.
    """

    stream: str
    stage: int
    rows: int
    size_bytes: int


@dataclass(slots=True, eq=False)
class SentFrame:
    """A frame of a stage that was sent, and is kept in case that the server loses it.

    Attributes:
        sequence: Its number in the stage, from 0.
        frame: Its entries.
        is_answered: Whether the server has it, in the stage as it is open now.
        is_progress: Whether no server has answered it so far.
        is_again: Whether it was sent to this stage before, so that the server may have it.
    """

    sequence: int
    frame: Frame
    is_answered: bool = False
    is_progress: bool = True
    is_again: bool = False


@dataclass(slots=True, eq=False)
class Stage:
    """A stage that a task fills.

    Attributes:
        stream: The target.
        packer: Makes its frames.
        number: Its name at the server; None before it is opened.
        kept: Frames that would have to be sent again, the oldest first.
        is_whole: Whether all of its frames are kept.
        rows: In frames so far.
        next_sequence: Of the next frame.
        waiting_bytes: Memory of the rows in the packer that are in no frame yet.
        size_bytes: Of the rows as they are stored; known when it is closed.
        is_closed: Whether the server has it as durably as its setting says.
    """

    stream: str
    packer: Packer
    number: int | None = None
    kept: list[SentFrame] = field(default_factory=list)
    is_whole: bool = True
    rows: int = 0
    next_sequence: int = 0
    waiting_bytes: int = 0
    size_bytes: int = 0
    is_closed: bool = False

    def add(self, frame: Frame) -> SentFrame:
        """Take the next frame, which is to be sent."""
        sent = SentFrame(self.next_sequence, frame)
        self.next_sequence += 1
        self.rows += frame.records
        self.kept.append(sent)
        return sent

    def request(self, sent: SentFrame) -> p.StageRecords:
        """Return the request that carries a frame of it."""
        frame = sent.frame
        return p.StageRecords(
            self.open_number, sent.sequence, len(frame.ids), frame.records, bytes(frame.data)
        )

    @property
    def open_number(self) -> int:
        """The number, after the server has opened it."""
        assert self.number is not None, "an open stage has one"
        return self.number

    def to_send(self) -> list[SentFrame]:
        """Return the frames that the server may not have; all of a stage that is opened anew."""
        for sent in self.kept:
            sent.is_again = not self.is_whole
            sent.is_answered = sent.is_answered and sent.is_again
        return [sent for sent in self.kept if not sent.is_answered]

    def forget_answered(self) -> int:
        """Drop the frames that the server has; return their bytes."""
        gone = sum(len(sent.frame.data) for sent in self.kept if sent.is_answered)
        if gone:
            self.kept = [sent for sent in self.kept if not sent.is_answered]
            self.is_whole = False
        return gone

    def closed(self) -> StagedRows:
        """Return the stage as the driver is to know it."""
        assert self.is_closed, "only a closed stage can be committed"
        return StagedRows(self.stream, self.open_number, self.rows, self.size_bytes)
