"""Requests with their answers, many at a time; frames that the server pushes in between."""

import socket
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from hutch.client.channel import Channel
from hutch.client.errors import BadAnswer, ClientError, require_ok
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, encode_request
from hutch.stream.commands import BY_NAME, Command

PIPELINED_MAX: Final = 128
"""Requests under way at once. More would only fill buffers."""

DELIVER: Final = BY_NAME["deliver"].key.to_bytes(2, "big")
BODY: Final = 4
"""Position of the first field in a frame without a correlation id."""

M = TypeVar("M", bound=m.Message)


class Conversation(Channel):
    """A channel on which requests are answered; frames pushed meanwhile wait in the inbox.

    Attributes:
        subscribed: Ids of the subscriptions that are under way; Delivers of others are dropped.
    """

    def __init__(self, endpoint: Endpoint, connected: socket.socket, timeout_s: float) -> None:
        super().__init__(endpoint, connected, timeout_s)
        self.subscribed: Final[set[int]] = set()
        self._next_id = 1

    def request(
        self, name: str, message: m.Message, *, version: int = 1, timeout_s: float | None = None
    ) -> m.Message:
        """Send a request and return its answer.

        Args:
            name: Of the command.
            message: Of the class that the command has in this version.
            version: Of the command.
            timeout_s: The longest wait, if not that of the connection.

        Raises:
            ClientError: The connection is of no further use then.
        """
        correlation_id = self.send_request(name, message, version=version)
        return self._answers([correlation_id], timeout_s)[correlation_id]

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        """Send a request and return its answer, which is of this class; raises BadAnswer if not."""
        answer = self.request(name, message)
        if not isinstance(answer, kind):
            raise BadAnswer(f"{self.endpoint} answered {name} with {answer}")
        return answer

    def must(self, name: str, message: m.Message, about: str = "") -> None:
        """Send a request; raise Refused, with `about` as its subject, unless the answer is OK."""
        self.check(self.request(name, message), about or name)

    def check(self, answer: m.Message, about: str) -> None:
        """Raise Refused unless an answer is OK; `about` begins the text."""
        code, reason = int(getattr(answer, "code", 0)), getattr(answer, "reason", None)
        require_ok(f"{self.endpoint}: {about}", code, reason)

    def send_request(
        self, name: str, message: m.Message, *, version: int = 1, timeout_s: float | None = None
    ) -> int:
        """Send a command; return its correlation id (0 if the command has none).

        The server may take up to `timeout_s` to take it, if not as long as the connection waits.
        """
        row = self._row(name)
        correlation_id = self._new_id() if row.is_correlated else None
        frame = encode_request(row, message, correlation_id=correlation_id, version=version)
        self.send_bytes(frame, timeout_s)
        return correlation_id or 0

    def _row(self, name: str) -> Command:
        row = self.table.by_name.get(name)
        if row is None:
            raise ClientError(f"{self.endpoint} does not serve {name} on this connection")
        return row

    def requests(self, wanted: Sequence[tuple[str, m.Message]]) -> Iterator[m.Message]:
        """Send requests, many before the first answer, and yield the answers in their order.

        Raises:
            ClientError: The connection is of no further use then.
        """
        for first in range(0, len(wanted), PIPELINED_MAX):
            batch = [(self._new_id(), *one) for one in wanted[first : first + PIPELINED_MAX]]
            frames = (
                encode_request(self._row(name), asked, correlation_id=n) for n, name, asked in batch
            )
            self.send_bytes(b"".join(frames))
            answers = self._answers([n for n, _, _ in batch])
            for correlation_id, _, _ in batch:
                yield answers[correlation_id]

    def _new_id(self) -> int:
        found = self._next_id
        self._next_id = found % 0x7FFFFFFF + 1
        return found

    def _answers(self, ids: Sequence[int], timeout_s: float | None = None) -> dict[int, m.Message]:
        """Await the answers to requests that are under way."""
        deadline = self.deadline(timeout_s)
        awaited = set(ids)
        answers: dict[int, m.Message] = {}
        while awaited:
            correlation_id, message = self.next_answer(deadline)
            if correlation_id not in awaited:
                self.is_broken = True
                raise BadAnswer(
                    f"{self.endpoint} answered a question that was not asked: {message}"
                )
            awaited.remove(correlation_id)
            answers[correlation_id] = message
        return answers

    def next_answer(self, deadline: float) -> tuple[int, m.Message]:
        """Return the correlation id of a request that `send_request` has sent, and its answer.

        Frames that the server pushes meanwhile are kept. Answers may come in any order.

        Args:
            deadline: A moment of `time.monotonic()`.

        Raises:
            ServerSilent: None came until then; the connection may be used further.
            ClientError: The connection is of no further use.
        """
        while True:
            frame = self.frame(deadline)
            if frame[:2] != DELIVER:
                decoded = self.decode(frame)
                if decoded.is_response and decoded.correlation_id is not None:
                    return decoded.correlation_id, decoded.message
            elif not self.is_subscribed(frame):
                continue
            self.keep(frame, "instead of an answer")

    def next_of(self, name: str, timeout_s: float | None = None) -> Decoded:
        """Return the next thing of one kind that the server pushes; the others are kept.

        Raises:
            ServerSilent: None came in time.
            ClientError: The connection is of no further use.
        """
        key = BY_NAME[name].key.to_bytes(2, "big")
        kept = self.inbox.take_first(lambda frame: frame[:2] == key)
        if kept is not None:
            return self.decode(kept)
        deadline = self.deadline(timeout_s)
        while True:
            frame = self.frame(deadline)
            if frame[:2] == key:
                return self.decode(frame)
            self.keep(frame, f"instead of {name}")

    def is_subscribed(self, deliver: memoryview | bytes) -> bool:
        """Return whether a Deliver belongs to a subscription that is under way."""
        return len(deliver) > BODY and deliver[BODY] in self.subscribed
