"""One raw connection of a script: it sends bytes and keeps what comes."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field

from compat.differential import frames
from compat.differential.normal import CONFIRM, DELIVER, FIN, HEARTBEAT, Arrived, arrived
from compat.differential.script import Login, Reached, Wait, framed
from hutch.client.channel import Channel
from hutch.client.errors import ConnectionLost, ServerSilent
from hutch.client.login import Endpoint, connect

CONNECT_TIMEOUT_S = 10.0
HANDSHAKE_TIMEOUT_S = 20.0
TIMED_OUT = "(not all that was waited for came)"
CANNOT_SEND = "(cannot be sent: the connection has ended)"


class HandshakeFailed(Exception):
    """The script could not begin."""


@dataclass(slots=True)
class Collected:
    """Frames that came during one step."""

    events: list[Arrived | str] = field(default_factory=list)
    frames: int = 0
    confirmed: int = 0
    records: int = 0
    chunks: int = 0
    has_ended: bool = False

    def add(self, event: Arrived) -> None:
        """Count and keep one frame."""
        self.events.append(event)
        if event.key == CONFIRM:
            self.confirmed += len(event.confirmed)
        elif event.key == DELIVER and event.delivery is not None:
            self.chunks += 1
            self.records += event.delivery.record_count
        else:
            self.frames += 1

    def suffices(self, wait: Wait) -> bool:
        """Return whether everything that a step waits for has come."""
        if self.has_ended:
            return True
        return not wait.fin and all(
            has >= wanted
            for has, wanted in (
                (self.frames, wait.frames),
                (self.confirmed, wait.confirmed),
                (self.records, wait.records),
                (self.chunks, wait.chunks),
            )
        )


class Connection(Channel):
    """A connection to one server, that answers nothing by itself."""

    def __init__(self, address: tuple[str, int], run: bytes, *, keeps_heartbeats: bool) -> None:
        endpoint = Endpoint(*address)
        super().__init__(endpoint, connect(endpoint, CONNECT_TIMEOUT_S), CONNECT_TIMEOUT_S)
        self.run = run
        self.keeps_heartbeats = keeps_heartbeats
        self.has_ended = False

    def close(self) -> None:
        """Drop the connection."""
        self.disconnect()
        self.has_ended = True

    def half_close(self) -> None:
        """Send the end of what this side has to say."""
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, data: bytes, piece_bytes: int = 0) -> bool:
        """Send bytes, in pieces if a size is given; False if the connection has ended."""
        if self.has_ended:
            return False
        data = data.replace(frames.RUN, self.run)
        size = piece_bytes or len(data)
        try:
            for position in range(0, len(data), size):
                self.send_bytes(data[position : position + size])
        except ConnectionLost:
            return False
        return True

    def collect(self, wait: Wait, linger_s: float) -> Collected:
        """Take in what comes until everything waited for is there, then listen on a little."""
        found = Collected(has_ended=self.has_ended)
        if self.has_ended:
            return found
        self.receive_until(found, wait, time.monotonic() + wait.timeout_s)
        if not found.suffices(wait):
            found.events.append(TIMED_OUT)
        elif linger_s and not found.has_ended:
            self.receive_until(found, Wait(fin=True), time.monotonic() + linger_s)
        return found

    def receive_until(self, found: Collected, wait: Wait, deadline: float) -> None:
        """Take in frames until enough came or the time is up, and what came with the last one."""
        while True:
            try:
                frame = bytes(self.any_frame(0.0 if found.suffices(wait) else deadline))
            except ServerSilent:
                return
            except ConnectionLost:
                self.has_ended = found.has_ended = True
                if self.rest:
                    found.events.append(f"(ended inside a frame: {self.rest[:80].hex()})")
                found.events.append(FIN)
                return
            event = arrived(frame, port=self.endpoint.port, run=self.run)
            if event.key != HEARTBEAT or self.keeps_heartbeats:
                found.add(event)

    def reach(self, state: Reached, tuning: tuple[int, int], login: Login) -> None:
        """Go through the handshake as far as `state`.

        Raises:
            HandshakeFailed: An answer is missing, or refuses.
        """
        steps = (
            (Reached.PROPERTIES, frames.peer_properties({"product": "differential"}), 1),
            (Reached.MECHANISMS, frames.sasl_handshake(), 1),
            (Reached.AUTHENTICATED, frames.plain(login.user, login.password), 2),
            (Reached.TUNED, frames.tune(*tuning), 0),
            (Reached.OPEN, frames.open_host(login.virtual_host), 1),
        )
        for reached, frame, count in steps:
            self.send(framed(frame))
            wait = Wait(frames=count, timeout_s=HANDSHAKE_TIMEOUT_S)
            found = self.collect(wait, linger_s=0.0)
            if found.frames != count or TIMED_OUT in found.events or found.has_ended:
                raise HandshakeFailed(f"{reached.value}: {found.events}")
            if reached is state:
                return
