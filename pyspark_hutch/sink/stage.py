"""One stage of a task: rows for one stream that no reader sees, and the frames that may be lost."""

from dataclasses import dataclass, field
from typing import NamedTuple

from hutch.stream import pipeline as p
from pyspark_hutch.encoding.frames import Packer, PublishFrame


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
        is_answered: Whether the server has it, if only in memory.
        is_progress: Whether no server has answered it so far.
    """

    sequence: int
    frame: PublishFrame
    is_answered: bool = False
    is_progress: bool = True


@dataclass(slots=True, eq=False)
class TaskStage:
    """A stage that a task fills.

    Attributes:
        stream: The target.
        packer: Makes its frames.
        number: Its name at the server; None before it is opened.
        kept: Frames that can be sent again, the oldest first.
        is_whole: Whether all of its frames are kept.
        stored: Frames, from the first one on, that outlive the end of the server.
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
    stored: int = 0
    rows: int = 0
    next_sequence: int = 0
    waiting_bytes: int = 0
    size_bytes: int = 0
    is_closed: bool = False

    def add(self, frame: PublishFrame) -> SentFrame:
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

    def question(self) -> p.StageRecords:
        """Return a request that adds nothing: its answer says how much is stored by now."""
        return p.StageRecords(self.open_number, 0, 0, 0, b"")

    @property
    def answered_bytes(self) -> int:
        """Bytes of the frames kept that the server has."""
        return sum(len(sent.frame.data) for sent in self.kept if sent.is_answered)

    def to_send(self) -> list[SentFrame]:
        """Return the frames that the server may not have; all of a stage that is opened anew."""
        found = [sent for sent in self.kept if sent.sequence >= self.stored]
        for sent in found:
            sent.is_answered = False
        return found

    def forget_stored(self) -> int:
        """Drop the frames that outlive the end of the server; return their bytes."""
        gone = sum(len(sent.frame.data) for sent in self.kept if sent.sequence < self.stored)
        if gone:
            self.kept = [sent for sent in self.kept if sent.sequence >= self.stored]
            self.is_whole = False
        return gone

    def closed(self) -> StagedRows:
        """Return the stage as the driver is to know it."""
        assert self.is_closed, "only a closed stage can be committed"
        return StagedRows(self.stream, self.open_number, self.rows, self.size_bytes)
