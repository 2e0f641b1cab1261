"""The appenders of one connection: their set-ups, their levels and their blocks.

The offset behind a block is its event number in the store, so resends and successors are told apart
there: a block is stored once, and an appender that was overtaken stores nothing more.
"""

from uuid import UUID

from gateway.pending import Pending, asked, run
from gateway.pravega.early.context import EarlyConnection
from gateway.pravega.segments import check_room
from hutch.pravega import early_messages as m
from hutch.pravega.early_block import Block
from store.api import Appended, Writer
from store.errors import NoSuchSegment, SegmentExists, StoreError


class _Appender:
    """A writer's session.

    Attributes:
        writer: The session with the store.
        stored: Offset behind the last block that is stored.
        taken: Offset behind the last block that is stored or under way.
    """

    __slots__ = ("stored", "taken", "writer")

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.stored = self.taken = max(writer.event_number, 0)


class Appenders:
    """Takes set-ups and blocks, and acknowledges them."""

    def __init__(self, connection: EarlyConnection) -> None:
        self._connection = connection
        self._appenders: dict[UUID, _Appender] = {}

    # Set-ups

    def set_up(self, request: m.SetupAppend) -> None:
        """Open an appender; the next frame waits for it. One of the same id is replaced."""
        most = self._connection.context.wire.set_ups_max
        if request.connection_id not in self._appenders and len(self._appenders) >= most:
            self._connection.close(f"more than {most} appenders on one connection")
        elif self._connection.may_touch(request.segment):
            self._connection.hold()
            self._open(request, may_make=self._connection.context.settings.makes_segments)

    async def _make(self, segment: str) -> None:
        """Create a segment, if there is room and the client is there. Raises StoreError."""
        store = self._connection.context.store
        await check_room(store, segment)
        if not self._connection.is_over:
            made: Pending[None] = asked(lambda done: store.create_segment(segment, done=done))
            await made

    def _open(self, request: m.SetupAppend, *, may_make: bool) -> None:
        connection, store = self._connection, self._connection.context.store

        def opened(outcome: Writer | StoreError) -> None:
            if connection.is_over:
                return
            if isinstance(outcome, NoSuchSegment) and may_make:
                run(self._make(request.segment), made)
            elif isinstance(outcome, StoreError):
                connection.close(outcome)
            else:
                appender = self._appenders[request.connection_id] = _Appender(outcome)
                level = appender.stored
                connection.reply(m.AppendSetup(request.segment, request.connection_id, level))
                connection.release()

        def made(outcome: BaseException | None) -> None:
            if connection.is_over:
                return
            if outcome is None or isinstance(outcome, SegmentExists):
                self._open(request, may_make=False)
            else:
                assert isinstance(outcome, StoreError)
                connection.close(outcome)

        store.open_writer(request.segment, request.connection_id, done=opened)

    # Blocks

    def begin(self, request: m.BeginAppendBlock) -> None:
        """Refuse a block at its beginning if nothing can take it."""
        appender = self._appenders.get(request.connection_id)
        if appender is None:
            self._connection.close(f"a block of {request.connection_id}, which is not set up")
        elif request.offset > appender.taken:
            self._connection.close(f"a block at {request.offset} where {appender.taken} comes next")

    def store(self, block: Block) -> None:
        """Store a whole block and acknowledge it, or acknowledge that it is stored already."""
        appender = self._appenders[block.connection_id]
        if block.end <= appender.stored:
            self._connection.reply(m.DataAppended(block.connection_id, appender.stored))
        elif block.start == appender.taken:
            self._append(appender, block)
        elif block.end > appender.taken or block.start < appender.stored:
            self._connection.close(
                f"a block from {block.start} to {block.end} across what is stored"
            )
        # What is left is under way, and will be acknowledged as soon as it is stored.

    def _append(self, appender: _Appender, block: Block) -> None:
        connection, end, size = self._connection, block.end, len(block.data)
        connection_id = block.connection_id

        def done(outcome: Appended | StoreError) -> None:
            connection.under_way.end(size)
            if connection.is_over:
                return
            connection.ports.settled(1)
            if self._appenders[connection_id] is not appender:
                return  # its successor has been told the level
            if isinstance(outcome, StoreError):
                connection.close(outcome)
                return
            appender.stored = end
            connection.reply(m.DataAppended(connection_id, end))

        appender.taken = end
        connection.under_way.begin(size)
        appender.writer.append(block.data, end, done=done)
        connection.ports.taken(1, connection.under_way)
