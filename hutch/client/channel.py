"""One socket with frames both ways: heartbeats, the server's Close, lost connections."""

import socket
import threading
import time
from contextlib import suppress
from typing import Final, NoReturn, Self

from hutch.client.errors import BadAnswer, ClientError, ClosedByServer, ConnectionLost, ServerSilent
from hutch.client.frames import FrameReader, PushedFrames, send_both_ways
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded, decode_reply, encode_reply, encode_request
from hutch.stream.commands import BY_NAME, STANDARD, CommandTable
from hutch.stream.errors import ProtocolError

BEATS: Final = 3
"""Heartbeats sent in each interval that the server expects one in."""

_LOOK_S: Final = 0.001
_LOOKS_S: Final = 1.0
_HEARTBEAT: Final = BY_NAME["heartbeat"].key.to_bytes(2, "big")
_CLOSE: Final = BY_NAME["close"].key.to_bytes(2, "big")


class Channel:
    """Frames of one connection, used by one thread; another may send heartbeats meanwhile.

    Attributes:
        endpoint: The address that was connected to.
        socket: The connected socket, which is the channel's own from now on.
        lock: Held while something is sent or awaited; the user may hold it for longer.
        is_broken: True after an error; the channel is of no further use.
        timeout_s: The longest wait for an answer, or for the server to take a frame.
        heartbeat_s: Agreed with the server; 0: none are sent.
        inbox: Frames that the server pushed while something else was awaited.
        table: The commands that both sides speak.
    """

    def __init__(self, endpoint: Endpoint, connected: socket.socket, timeout_s: float) -> None:
        """Take over a connected socket."""
        self.endpoint: Final = endpoint
        self.socket: Final = connected
        self.lock: Final = threading.RLock()
        self.is_broken = False
        self.timeout_s = timeout_s
        self.heartbeat_s = 0
        self.inbox: Final = PushedFrames()
        self.table: CommandTable = STANDARD
        self._frames: Final = FrameReader(connected, str(endpoint))
        self._spoke_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Drop the connection without a word."""
        self.is_broken = True
        self.socket.close()

    def is_alive(self) -> bool:
        """Return whether the connection still stands; frames that have come are dropped."""
        end = time.monotonic() + _LOOKS_S
        try:
            while time.monotonic() < end:
                self.frame(time.monotonic() + _LOOK_S)
        except ServerSilent:
            return True
        except ClientError:
            pass
        return False

    def send_bytes(
        self, data: bytes | bytearray | memoryview, timeout_s: float | None = None
    ) -> None:
        """Send whole frames as they are; the server may take its time, up to a limit."""
        with self.lock:
            try:
                self.socket.settimeout(self.timeout_s if timeout_s is None else timeout_s)
                self.socket.sendall(data)
            except OSError as error:
                raise self._lost(error) from None
            self._spoke_at = time.monotonic()

    def send_much(
        self, data: bytes | bytearray | memoryview, timeout_s: float | None = None
    ) -> None:
        """Send whole frames; the inbox keeps those that the server pushes meanwhile.

        Some servers take nothing more while their confirms are not read.
        """
        deadline = self.deadline(timeout_s)
        with self.lock:
            try:
                send_both_ways(self.socket, data, deadline, self._keep_pushed)
            except ClientError:
                raise
            except OSError as error:
                raise self._lost(error) from None
            self._spoke_at = time.monotonic()

    def deadline(self, timeout_s: float | None) -> float:
        """Return the moment at which a wait ends; None: one of the usual time limit."""
        return time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)

    def _lost(self, error: OSError) -> ConnectionLost:
        self.is_broken = True
        return ConnectionLost(f"the connection to {self.endpoint} broke: {error}")

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
        if frame[:2] != _HEARTBEAT:
            self.keep(frame, "while it takes nothing")

    def keep(self, frame: memoryview, moment: str) -> None:
        """Put a frame into the inbox; raises BadAnswer, telling the moment, if it is full."""
        if not self.inbox.keep(frame):
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} pushes more than it may {moment}")

    def fileno(self) -> int:
        """Return the socket's number, to wait for several connections at once."""
        return self.socket.fileno()

    def beat(self) -> None:
        """Send a heartbeat if one is due."""
        if time.monotonic() >= self._beats_at():
            self.send_bytes(encode_request("heartbeat", m.Heartbeat()))

    def _beats_at(self) -> float:
        return self._spoke_at + self.heartbeat_s / BEATS if self.heartbeat_s else float("inf")

    def frame(self, deadline: float) -> memoryview:
        """Return the next frame that is no heartbeat and no Close.

        Args:
            deadline: A moment of `time.monotonic()`.

        Returns:
            The frame without its size; its memory is valid until the next call.

        Raises:
            ServerSilent: None came until then; the channel may be used further.
            ClientError: The channel is of no further use.
        """
        while True:
            self.beat()
            try:
                frame = self.any_frame(min(deadline, self._beats_at()))
            except ServerSilent:
                if time.monotonic() >= deadline:
                    raise
                continue
            key = frame[:2]
            if key == _CLOSE:
                self._take_leave(self.decode(frame))
            if key != _HEARTBEAT:
                return frame

    def any_frame(self, deadline: float) -> memoryview:
        """Return the next frame, whatever it is; the rest is as with `frame`."""
        try:
            with self.lock:
                return self._frames.next(deadline)
        except ServerSilent:
            raise
        except ClientError:
            self.is_broken = True
            raise

    @property
    def rest(self) -> bytes:
        """Bytes that have come and are in no frame yet."""
        return self._frames.rest

    def _take_leave(self, close: Decoded) -> NoReturn:
        """Answer the server's Close."""
        with suppress(ClientError):  # it may have gone at once
            self.send_bytes(encode_reply("close", close.correlation_id, m.OK))
        raise self._farewell(close)

    def _farewell(self, close: Decoded) -> ClosedByServer:
        self.is_broken = True
        said = close.message if isinstance(close.message, m.Close) else m.Close(0, "")
        text = f"{self.endpoint} closed the connection: {said.reason!r:.200}"
        return ClosedByServer(text, said.code, said.reason)

    def decode(self, frame: memoryview | bytes) -> Decoded:
        """Decode a frame; raises BadAnswer."""
        try:
            return decode_reply(frame, self.table)
        except ProtocolError as error:
            self.is_broken = True
            raise BadAnswer(f"{self.endpoint} broke the protocol: {error}") from None
