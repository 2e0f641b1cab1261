"""Events of one connection into one channel, and the answers when they are stored."""

from collections import deque
from collections.abc import Callable

from gateway.broker.connections import PublisherDetails
from gateway.broker.streams.catalogue import Stream
from gateway.log.log import StreamLog
from gateway.log.records.writing import RecordWriter
from gateway.mewbase.events import record_of
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import RESPONSE
from gateway.server.front import Ports


class ChannelPublisher:
    """Puts events of one connection into one channel.

    Attributes:
        stream: The channel's stream.
    """

    def __init__(
        self, stream: Stream, log: StreamLog, ports: Ports, errors_as_text: Callable[[], bool]
    ) -> None:
        """Begin; `errors_as_text` tells how the client wants the number of an error."""
        self.stream = stream
        self._log = log
        self._ports = ports
        self._answers = _Answers(stream.name, ports, errors_as_text)
        self._writer = RecordWriter(log, self._answers)

    @property
    def has_failed(self) -> bool:
        """True if the log takes nothing more."""
        return self._log.failure is not None

    @property
    def is_idle(self) -> bool:
        """True if no event waits for its answer."""
        return not self._answers.waiting

    def put(self, event: bytes, request_id: int) -> None:
        """Put an event behind all earlier ones; its answer comes when it is stored.

        Raises:
            NoRoom: Too much is under way.
            RecordTooLarge: It fits into no chunk.
            StoreError: The log has failed, or can only be read.
        """
        self._writer.put(record_of(event))
        self._answers.waiting.append(request_id)
        self._ports.taken(1, self._log)

    def when_room(self, callback: Callable[[], object]) -> None:
        """Call `callback` once `put` has room again."""
        self._writer.when_room(callback)

    def details(self, number: int) -> PublisherDetails:
        """Return the details that administrators see."""
        answers = self._answers
        settled = answers.stored_count + answers.lost_count
        return PublisherDetails(
            number=number,
            reference="",
            stream=self.stream,
            published=settled + len(answers.waiting),
            confirmed=answers.stored_count,
            errored=answers.lost_count,
        )


class _Answers:
    """The answers to a publisher's requests; a `RecordSink`.

    The writer refers to its sink, so this is not the publisher, which refers to the writer.
    """

    def __init__(self, channel: str, ports: Ports, errors_as_text: Callable[[], bool]) -> None:
        self._channel = channel
        self._ports = ports
        self._errors_as_text = errors_as_text
        self.waiting: deque[int] = deque()
        self.stored_count = 0
        self.lost_count = 0

    def committed(self, count: int) -> None:
        """Answer the oldest `count` requests: their events are stored."""
        self.stored_count += count
        take = self.waiting.popleft
        self._ports.send(b"".join([writing.stored(take()) for _ in range(count)]))
        self._ports.settled(count)

    def lost(self, count: int) -> None:
        """Answer the oldest `count` requests: their events will never be stored."""
        self.lost_count += count
        reason = f"the event could not be stored in channel {self._channel}"
        failed = writing.failure(Code.NOT_STORED, reason, as_text=self._errors_as_text())
        for _ in range(count):
            request_id = self.waiting.popleft()
            self._ports.send(writing.answer(RESPONSE, rID=request_id, **failed))
        self._ports.settled(count)
