"""One open connection: requests with their answers, many at a time, and what the server pushes."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, NoReturn, TypeVar

from pyspark_hutch.client.both_ways import send_both_ways
from pyspark_hutch.client.errors import (
    BadAnswer,
    ClientError,
    ServerGone,
    ServerSilent,
    refusal,
)
from pyspark_hutch.client.frames import FrameReader
from pyspark_hutch.client.inbox import Inbox
from pyspark_hutch.client.login import HEARTBEAT_S, connect, shake_hands
from pyspark_hutch.options.settings import ConnectionSettings, Endpoint
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codec import Decoded, decode_reply, encode_reply, encode_request
from pyspark_hutch.shared.wire.codes import ResponseCode
from pyspark_hutch.shared.wire.commands import BY_NAME
from pyspark_hutch.shared.wire.errors import ProtocolError
from pyspark_hutch.shared.wire.offsets import OffsetSpec

BEAT_S: Final = HEARTBEAT_S / 3
"""After so long without a word of ours a heartbeat is due."""

PIPELINED_MAX: Final = 128
"""Requests under way at once. More would only fill buffers."""

_LOOK_S: Final = 0.001
_LOOKS_S: Final = 1.0
_DELIVER: Final = BY_NAME["deliver"].key.to_bytes(2, "big")
_CONFIRM: Final = BY_NAME["publish_confirm"].key.to_bytes(2, "big")
_HEARTBEAT: Final = BY_NAME["heartbeat"].key.to_bytes(2, "big")
_CLOSE: Final = BY_NAME["close"].key.to_bytes(2, "big")
_BODY: Final = 4
"""Where a frame's fields begin that has no correlation id."""

_CONFIRM_IDS: Final = _BODY + 5
"""Where the ids of a PublishConfirm begin, behind publisher and count."""

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


class Connection:
    """One open connection, used by one thread; another may send heartbeats meanwhile.

    Attributes:
        endpoint: The address that was connected to.
        product: What the server says it is.
        lock: Held while something is sent or awaited; by its user also for longer.
        is_broken: Whether an error has left it in a state that nothing can be asked in.
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
        self.endpoint: Final = endpoint
        self.lock: Final = threading.RLock()
        self.is_broken = False
        self.frame_bytes_max = 0
        self._timeout_s: Final = settings.request_timeout_ms / 1000
        self._socket: Final = connect(endpoint, settings)
        self._frames: Final = FrameReader(self._socket, str(endpoint))
        self._inbox: Final = Inbox()
        self._next_id = 1
        self.subscription_id = 0
        self._spoke_at = time.monotonic()
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

    def disconnect(self) -> None:
        """Drop the connection without a word."""
        self.is_broken = True
        self._socket.close()

    def is_alive(self) -> bool:
        """Look whether the server has ended the connection meanwhile; drops what has come."""
        end = time.monotonic() + _LOOKS_S
        try:
            while time.monotonic() < end:
                self._frame(time.monotonic() + _LOOK_S)
        except ServerSilent:
            return True
        except ClientError:
            pass
        return False

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
            deadline = time.monotonic() + self._timeout_s
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
            frame = self._frame(deadline)
            if frame[:2] != _DELIVER:
                decoded = self._decode(frame)
                if decoded.is_response and decoded.correlation_id is not None:
                    return decoded.correlation_id, decoded.message
            elif not self.is_subscribed(frame):
                continue
            if not self._inbox.keep(frame):
                self.is_broken = True
                raise BadAnswer(f"{self.endpoint} pushes more than it may instead of an answer")

    def tune(self) -> m.Tune:
        """Return the limits that the server proposes, which it does by itself."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            frame = self._inbox.take() if self._inbox else self._frame(deadline)
            message = self._decode(frame).message
            if isinstance(message, m.Tune):
                self.frame_bytes_max = message.frame_bytes_max
                return message

    # ---- what the server pushes --------------------------------------------------------------

    def subscribe(
        self, stream: str, offset: OffsetSpec, credit: int, properties: dict[str, str]
    ) -> int:
        """Begin a subscription, the only one of this connection; return its id."""
        self._inbox.clear()  # it belongs to whatever was done before on this connection
        self.subscription_id = (self.subscription_id + 1) % 256
        request = m.Subscribe(self.subscription_id, stream, offset, credit, properties)
        self.must("subscribe", request, f"stream {stream!r}")
        return self.subscription_id

    def unsubscribe(self) -> None:
        """End the subscription; what comes late of it is dropped."""
        ended = m.Unsubscribe(self.subscription_id)
        self.subscription_id = (self.subscription_id + 1) % 256
        self._inbox.clear()
        self.request("unsubscribe", ended)

    @property
    def has_pushed(self) -> bool:
        """Whether something that the server pushed waits to be received."""
        return bool(self._inbox)

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
            if self._inbox:
                frame: memoryview | bytes = self._inbox.take()
            else:
                frame = self._frame(deadline)
            if frame[:2] == _CONFIRM and len(frame) >= _CONFIRM_IDS:
                return self._confirmed(frame)
            if frame[:2] != _DELIVER:
                return self._decode(frame).message
            if self.is_subscribed(frame):
                chunk = memoryview(frame)[_BODY + 1 :]
                return Delivery(self.subscription_id, chunk)

    def _confirmed(self, frame: memoryview | bytes) -> Confirmed:
        entries = int.from_bytes(frame[_CONFIRM_IDS - 4 : _CONFIRM_IDS], "big")
        if len(frame) != _CONFIRM_IDS + 8 * entries:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} sent a confirm of {entries} ids that has others")
        return Confirmed(frame[_BODY], entries)

    # ---- frames ------------------------------------------------------------------------------

    def send(self, name: str, message: m.Message) -> None:
        """Send a command that is not answered."""
        self.send_bytes(encode_request(name, message))

    def send_bytes(
        self, data: bytes | bytearray | memoryview, timeout_s: float | None = None
    ) -> None:
        """Send whole frames as they are; the server may take its time, up to a limit."""
        with self.lock:
            try:
                self._socket.settimeout(self._timeout_s if timeout_s is None else timeout_s)
                self._socket.sendall(data)
            except OSError as error:
                self.is_broken = True
                raise ServerGone(f"the connection to {self.endpoint} broke: {error}") from None
            self._spoke_at = time.monotonic()

    def publish(self, data: bytes | bytearray | memoryview, timeout_s: float) -> None:
        """Send Publish frames; what the server pushes meanwhile is kept for `receive`.

        Some servers take nothing more while their confirms are not read.
        """
        deadline = time.monotonic() + timeout_s
        with self.lock:
            try:
                send_both_ways(self._socket, data, deadline, self._keep_pushed)
            except OSError as error:
                self.is_broken = True
                raise ServerGone(f"the connection to {self.endpoint} broke: {error}") from None
            self._spoke_at = time.monotonic()

    def _keep_pushed(self) -> None:
        try:
            frame = self._frames.next(time.monotonic() + _LOOK_S)
        except ServerSilent:
            return
        except ClientError:
            self.is_broken = True
            raise
        if frame[:2] == _CLOSE:
            raise self._farewell(self._decode(frame))
        if frame[:2] != _HEARTBEAT and not self._inbox.keep(frame):
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} pushes more than it may while it takes nothing")

    def fileno(self) -> int:
        """Return the socket's number, to wait for several connections at once."""
        return self._socket.fileno()

    def beat(self) -> None:
        """Send a heartbeat if one is due."""
        if time.monotonic() - self._spoke_at >= BEAT_S:
            self.send("heartbeat", m.Heartbeat())

    def _frame(self, deadline: float) -> memoryview:
        """Return the next frame that is no heartbeat and no Close."""
        while True:
            self.beat()
            pause = min(deadline, self._spoke_at + BEAT_S)
            try:
                with self.lock:
                    frame = self._frames.next(pause)
            except ServerSilent:
                if time.monotonic() >= deadline:
                    raise
                continue
            except ClientError:
                self.is_broken = True
                raise
            key = frame[:2]
            if key == _CLOSE:
                self._take_leave(self._decode(frame))
            if key != _HEARTBEAT:
                return frame

    def _take_leave(self, close: Decoded) -> NoReturn:
        """Answer the server's Close."""
        self.send_bytes(encode_reply("close", close.correlation_id, m.OK))
        raise self._farewell(close)

    def _farewell(self, close: Decoded) -> ServerGone:
        self.is_broken = True
        reason = close.message.reason if isinstance(close.message, m.Close) else ""
        return ServerGone(f"{self.endpoint} closed the connection: {reason!r:.200}")

    def _decode(self, frame: memoryview | bytes) -> Decoded:
        try:
            return decode_reply(frame)
        except ProtocolError as error:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} broke the protocol: {error}") from None
