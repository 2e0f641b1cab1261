"""One open connection: requests with their answers, many at a time, and what the server pushes."""

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from pyspark_hutch.client.channel import Channel
from pyspark_hutch.client.errors import BadAnswer, ClientError, refusal
from pyspark_hutch.client.login import shake_hands
from pyspark_hutch.options.settings import ConnectionSettings, Endpoint
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codec import encode_request
from pyspark_hutch.shared.wire.codes import ResponseCode
from pyspark_hutch.shared.wire.commands import BY_NAME
from pyspark_hutch.shared.wire.offsets import OffsetSpec

PIPELINED_MAX: Final = 128
"""Requests under way at once. More would only fill buffers."""

_DELIVER: Final = BY_NAME["deliver"].key.to_bytes(2, "big")
_CONFIRM: Final = BY_NAME["publish_confirm"].key.to_bytes(2, "big")
_BODY: Final = 4
"""Position of the first field in a frame without a correlation id."""

_CONFIRM_IDS: Final = _BODY + 5
"""Position of the first id of a PublishConfirm, behind publisher and count."""

M = TypeVar("M", bound=m.Message)


class Delivery(NamedTuple):
    """A Deliver frame.

    Attributes:
        subscription_id: As given at Subscribe.
        chunk: Header and data of a chunk; valid until the connection is used again.
    """

    subscription_id: int
    chunk: memoryview


class Confirmed(NamedTuple):
    """A PublishConfirm frame: how many of a publisher's entries are stored now."""

    publisher_id: int
    entries: int


class Connection(Channel):
    """An open connection: requests and answers, a subscription, confirms.

    Attributes:
        product: What the server says it is.
        subscription_id: That of the subscription under way.
        frame_bytes_max: The largest frame that the server takes, without its size; 0: any.
    """

    def __init__(self, endpoint: Endpoint, settings: ConnectionSettings, name: str) -> None:
        """Connect and log in.

        Args:
            endpoint: Where to.
            settings: User, password, virtual host, TLS, time limits.
            name: Shown to administrators of the server.

        Raises:
            ClientError: In one line, why not.
        """
        super().__init__(endpoint, settings)
        self.frame_bytes_max = 0
        self.subscription_id = 0
        self._next_id = 1
        try:
            self.product: Final = shake_hands(self, endpoint, settings, name)
        except BaseException:
            self.disconnect()
            raise

    def close(self) -> None:
        """Say goodbye if that is still possible, and disconnect."""
        try:
            if not self.is_broken:
                self.request("close", m.Close(ResponseCode.OK, "done"))
        except ClientError:
            pass  # the other side may have gone first
        finally:
            self.disconnect()

    # ---- requests ----------------------------------------------------------------------------

    def request(self, name: str, message: m.Message) -> m.Message:
        """Send a request and return its answer."""
        return next(self.requests([(name, message)]))

    def ask(self, kind: type[M], name: str, message: m.Message) -> M:
        """Send a request and return its answer, which is of this class; raises BadAnswer if not."""
        answer = self.request(name, message)
        if not isinstance(answer, kind):
            raise BadAnswer(f"{self.endpoint} answered {name} with {answer}")
        return answer

    def must(self, name: str, message: m.Message, about: str) -> None:
        """Send a request; raise Refused, telling `about` what, unless the answer is OK."""
        code = int(getattr(self.request(name, message), "code", 0))
        if code != ResponseCode.OK:
            raise refusal(f"{self.endpoint}: {about}", code)

    def requests(self, wanted: Sequence[tuple[str, m.Message]]) -> Iterator[m.Message]:
        """Send requests, many before the first answer, and yield the answers in their order.

        Raises:
            ClientError: The connection is of no further use then.
        """
        for first in range(0, len(wanted), PIPELINED_MAX):
            ids = []
            frames = []
            for name, message in wanted[first : first + PIPELINED_MAX]:
                ids.append(self._next_id)
                frames.append(encode_request(name, message, correlation_id=self._next_id))
                self._next_id = self._next_id % 0x7FFFFFFF + 1
            self.send_bytes(b"".join(frames))
            answers: dict[int, m.Message] = {}
            deadline = time.monotonic() + self.timeout_s
            awaited = set(ids)
            while awaited:
                correlation_id, message = self._answer(deadline)
                if correlation_id not in awaited:
                    self.is_broken = True
                    raise BadAnswer(f"{self.endpoint} answered what was not asked: {message}")
                awaited.remove(correlation_id)
                answers[correlation_id] = message
            for correlation_id in ids:
                yield answers.pop(correlation_id)

    def _answer(self, deadline: float) -> tuple[int, m.Message]:
        """Return the next answer and what it is to; what the server pushes meanwhile is kept."""
        while True:
            frame = self.frame(deadline)
            if frame[:2] != _DELIVER:
                decoded = self.decode(frame)
                if decoded.is_response and decoded.correlation_id is not None:
                    return decoded.correlation_id, decoded.message
            elif not self.is_subscribed(frame):
                continue
            if not self.inbox.keep(frame):
                self.is_broken = True
                raise BadAnswer(f"{self.endpoint} pushes more than it may instead of an answer")

    def tune(self) -> m.Tune:
        """Return the limits that the server proposes, which it does by itself."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            frame = self.inbox.take() if self.inbox else self.frame(deadline)
            message = self.decode(frame).message
            if isinstance(message, m.Tune):
                self.frame_bytes_max = message.frame_bytes_max
                return message

    # ---- what the server pushes --------------------------------------------------------------

    def subscribe(
        self, stream: str, offset: OffsetSpec, credit: int, properties: dict[str, str]
    ) -> int:
        """Begin a subscription, the only one of this connection; return its id."""
        self.inbox.clear()  # it belongs to whatever was done before on this connection
        self.subscription_id = (self.subscription_id + 1) % 256
        request = m.Subscribe(self.subscription_id, stream, offset, credit, properties)
        self.must("subscribe", request, f"stream {stream!r}")
        return self.subscription_id

    def unsubscribe(self) -> None:
        """End the subscription; what comes late of it is dropped."""
        ended = m.Unsubscribe(self.subscription_id)
        self.subscription_id = (self.subscription_id + 1) % 256
        self.inbox.clear()
        self.request("unsubscribe", ended)

    def is_subscribed(self, deliver: memoryview | bytes) -> bool:
        """Tell whether a Deliver belongs to the subscription that is under way."""
        return len(deliver) > _BODY and deliver[_BODY] == self.subscription_id

    def receive(self, deadline: float) -> Delivery | Confirmed | m.Message:
        """Return the next chunk of the subscription, or whatever else the server pushes.

        Args:
            deadline: A moment of `time.monotonic()`.

        Raises:
            ServerSilent: Nothing came until then; the connection may be used further.
            ClientError: The connection is of no further use.
        """
        while True:
            if self.inbox:
                frame: memoryview | bytes = self.inbox.take()
            else:
                frame = self.frame(deadline)
            if frame[:2] == _CONFIRM and len(frame) >= _CONFIRM_IDS:
                return self._confirmed(frame)
            if frame[:2] != _DELIVER:
                return self.decode(frame).message
            if self.is_subscribed(frame):
                chunk = memoryview(frame)[_BODY + 1 :]
                return Delivery(self.subscription_id, chunk)

    def _confirmed(self, frame: memoryview | bytes) -> Confirmed:
        entries = int.from_bytes(frame[_CONFIRM_IDS - 4 : _CONFIRM_IDS], "big")
        if len(frame) != _CONFIRM_IDS + 8 * entries:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} sent a confirm of {entries} ids that has others")
        return Confirmed(frame[_BODY], entries)
