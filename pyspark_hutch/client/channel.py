"""One socket with frames both ways: heartbeats, the server's Close, and what breaks."""

import threading
import time
from typing import Final, NoReturn

from pyspark_hutch.client.both_ways import send_both_ways
from pyspark_hutch.client.errors import BadAnswer, ClientError, ServerGone, ServerSilent
from pyspark_hutch.client.frames import FrameReader
from pyspark_hutch.client.inbox import Inbox
from pyspark_hutch.client.login import HEARTBEAT_S, connect
from pyspark_hutch.options.settings import ConnectionSettings, Endpoint
from pyspark_hutch.shared.wire import messages as m
from pyspark_hutch.shared.wire.codec import Decoded, decode_reply, encode_reply, encode_request
from pyspark_hutch.shared.wire.commands import BY_NAME
from pyspark_hutch.shared.wire.errors import ProtocolError

BEAT_S: Final = HEARTBEAT_S / 3
"""After so long without a word of ours a heartbeat is due."""

_LOOK_S: Final = 0.001
_LOOKS_S: Final = 1.0
_HEARTBEAT: Final = BY_NAME["heartbeat"].key.to_bytes(2, "big")
_CLOSE: Final = BY_NAME["close"].key.to_bytes(2, "big")


class Channel:
    """Frames of one connection, used by one thread; another may send heartbeats meanwhile.

    Attributes:
        endpoint: The address that was connected to.
        lock: Held while something is sent or awaited; by its user also for longer.
        is_broken: Whether an error has left it in a state that nothing can be asked in.
        timeout_s: The longest wait for an answer, or for the server to take a frame.
        inbox: What the server pushed while something else was awaited.
    """

    def __init__(self, endpoint: Endpoint, settings: ConnectionSettings) -> None:
        """Connect; raises ClientError."""
        self.endpoint: Final = endpoint
        self.lock: Final = threading.RLock()
        self.is_broken = False
        self.timeout_s: Final = settings.request_timeout_ms / 1000
        self.inbox: Final = Inbox()
        self._socket: Final = connect(endpoint, settings)
        self._frames: Final = FrameReader(self._socket, str(endpoint))
        self._spoke_at = time.monotonic()

    def disconnect(self) -> None:
        """Drop the connection without a word."""
        self.is_broken = True
        self._socket.close()

    def is_alive(self) -> bool:
        """Look whether the server has ended the connection meanwhile; drops what has come."""
        end = time.monotonic() + _LOOKS_S
        try:
            while time.monotonic() < end:
                self.frame(time.monotonic() + _LOOK_S)
        except ServerSilent:
            return True
        except ClientError:
            pass
        return False

    def send(self, name: str, message: m.Message) -> None:
        """Send a command that is not answered."""
        self.send_bytes(encode_request(name, message))

    def send_bytes(
        self, data: bytes | bytearray | memoryview, timeout_s: float | None = None
    ) -> None:
        """Send whole frames as they are; the server may take its time, up to a limit."""
        with self.lock:
            try:
                self._socket.settimeout(self.timeout_s if timeout_s is None else timeout_s)
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
            raise self._farewell(self.decode(frame))
        if frame[:2] != _HEARTBEAT and not self.inbox.keep(frame):
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} pushes more than it may while it takes nothing")

    def fileno(self) -> int:
        """Return the socket's number, to wait for several connections at once."""
        return self._socket.fileno()

    def beat(self) -> None:
        """Send a heartbeat if one is due."""
        if time.monotonic() - self._spoke_at >= BEAT_S:
            self.send("heartbeat", m.Heartbeat())

    def frame(self, deadline: float) -> memoryview:
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
                self._take_leave(self.decode(frame))
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

    def decode(self, frame: memoryview | bytes) -> Decoded:
        """Return what a frame says; raises BadAnswer."""
        try:
            return decode_reply(frame)
        except ProtocolError as error:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} broke the protocol: {error}") from None
