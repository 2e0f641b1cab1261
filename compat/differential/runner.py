"""Playing a script on one server."""

from __future__ import annotations

import contextlib
import math
import secrets
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from compat.comparison import Played
from compat.differential import frames
from compat.differential.administration import Administration, Change, ChangeFailed
from compat.differential.normal import NAMES, words
from compat.differential.script import GUEST, Action, Reached, Script, Step, Wait
from compat.differential.wire import CANNOT_SEND, Collected, Connection, HandshakeFailed
from hutch.client.errors import ClientError

_SOONER_S = 0.25
# So that an instant is told apart from the chunks before and after it, whose times are in ms.
MARK_DISTANCE_S = 0.03
FINAL_LINGER_S = 0.08
CREATE = 0x0D
CREATE_SUPER = 0x1D
HEAD_BYTES = 8
# Scripts mostly wait; more of them at once would make a small machine's broker late.
PARALLEL = 6
Address = tuple[str, int]


def play(
    script: Script,
    address: tuple[str, int],
    run: bytes,
    administration: Administration | None = None,
) -> list[Played]:
    """Play a script and return every step's outcome; what comes afterwards is the last.

    Args:
        script: What to play.
        address: Host and stream port of the server.
        run: 8 bytes that stand in the stream names of this play and of no other.
        administration: Makes the changes of an administered script.

    Raises:
        ChangeFailed: A change could not be made.
        HandshakeFailed: A connection could not be brought where the script begins.
    """
    assert len(run) == len(frames.RUN)
    stage = Stage(script, address, run, administration)
    try:
        played = [stage.take(number, step) for number, step in enumerate(script.steps, start=1)]
        return [*played, *stage.leftovers(len(script.steps) + 1)]
    finally:
        stage.clear()


def play_all(
    scripts: Sequence[Script],
    address: tuple[str, int],
    administration: Administration | None = None,
) -> dict[str, list[Played]]:
    """Play scripts, several at once; return their outcomes by name.

    Args:
        scripts: What to play.
        address: Host and stream port of the server.
        administration: Of that server, for administered scripts.
    """
    # Tells this play from earlier ones on the same server.
    tag = secrets.token_hex(2)

    def one(numbered: tuple[int, Script]) -> tuple[str, list[Played]]:
        number, script = numbered
        try:
            return script.name, play(
                script, address, f"{tag}-{number:03x}".encode(), administration
            )
        except (HandshakeFailed, ChangeFailed, ClientError, OSError) as error:
            return script.name, [Played(0, "begin", "", (f"(could not begin: {error})",))]

    with ThreadPoolExecutor(PARALLEL) as pool:
        return dict(pool.map(one, enumerate(scripts)))


class Stage:
    """The connections of one script while it is played."""

    def __init__(
        self,
        script: Script,
        address: tuple[str, int],
        run: bytes,
        administration: Administration | None,
    ) -> None:
        self.administration = administration
        self.undoing: list[Change] = []
        self.script = script
        self.address = address
        self.run = run
        self.connections: dict[str, Connection] = {}
        self.marks: dict[bytes, bytes] = {}
        self.outcome = ""

    def take(self, number: int, step: Step) -> Played:
        """Do one step."""
        found = Collected()
        began = time.monotonic()
        match step.action:
            case Action.CONNECT | Action.REACH:
                self.connect(step)
            case Action.SEND | Action.HEAR:
                found = self.send_and_hear(step)
            case _:
                self.do(step)
        lines = self.words(found)
        if step.may_fail:
            lines.append(self.outcome)
        if step.is_timed:
            # Timers end at whole and half seconds, and never early: a quarter is left for delays.
            lines.append(f"after {math.floor(time.monotonic() - began + _SOONER_S)} s")
        return Played(number, title(step), step.label, tuple(lines))

    def words(self, found: Collected) -> list[str]:
        """Return what is compared of what came."""
        return words(
            found.events,
            has_exact_chunks=self.script.has_exact_chunks,
            has_free_offsets=self.script.has_free_offsets,
        )

    def do(self, step: Step) -> None:
        """Do a step to which there is no answer."""
        match step.action:
            case Action.MARK:
                self.remember_now(step.connection)
            case Action.ADMINISTER:
                self.administer(step)
            case Action.PAUSE:
                time.sleep(step.linger_s)
            case Action.HALF_CLOSE:
                self.connections[step.connection].half_close()
            case Action.DROP:
                self.connections[step.connection].close()

    def connect(self, step: Step) -> None:
        """Connect, and go as far through the handshake as the step says."""
        connection = Connection(self.address, self.run, keeps_heartbeats=self.script.heartbeats)
        self.connections[step.connection] = connection
        if step.action is Action.REACH:
            connection.reach(step.reached, step.tuning, step.login)

    def send_and_hear(self, step: Step) -> Collected:
        """Send what the step sends, and collect what it waits for."""
        connection = self.connections[step.connection]
        data = step.data
        for token, instant in self.marks.items():
            data = data.replace(token, instant)
        if data and not connection.send(data, step.piece_bytes) and connection.has_ended:
            return Collected(events=[CANNOT_SEND])
        return connection.collect(step.wait, step.linger_s)

    def administer(self, step: Step) -> None:
        """Make the change of a step."""
        if self.administration is None or step.change is None:
            raise ChangeFailed("nobody to make the change")
        change = step.change.of_run(self.run.decode())
        if (undoing := change.undone()) is not None:
            self.undoing.insert(0, undoing)
        self.outcome = "taken"
        try:
            self.administration.make(change)
        except ChangeFailed:
            if not step.may_fail:
                raise
            self.outcome = "refused"

    def remember_now(self, letter: str) -> None:
        """Mark this instant, keeping its distance from what is stored before and after."""
        time.sleep(MARK_DISTANCE_S)
        self.marks[frames.mark(letter)] = struct.pack(">q", int(time.time() * 1000))
        time.sleep(MARK_DISTANCE_S)

    def leftovers(self, number: int) -> list[Played]:
        """Return what came on any connection after the last step, where something did."""
        played = []
        for letter, connection in sorted(self.connections.items()):
            found = connection.collect(Wait(), FINAL_LINGER_S)
            if lines := self.words(found):
                played.append(Played(number, f"{letter} afterwards", "", tuple(lines)))
        return played

    def clear(self) -> None:
        """Drop the connections and delete the streams that the script made."""
        for connection in self.connections.values():
            connection.close()
        for change in self.undoing:
            assert self.administration is not None
            with contextlib.suppress(ChangeFailed, OSError):  # the script may have done it
                self.administration.make(change)
        if not (made := created_names(self.script)):
            return
        with contextlib.suppress(HandshakeFailed, ClientError):
            sweeper = Connection(self.address, self.run, keeps_heartbeats=False)
            with contextlib.closing(sweeper):
                sweeper.reach(Reached.OPEN, (0, 0), GUEST)
                requests = [delete_request(key, name) for key, name in made]
                sweeper.send(b"".join(requests))
                sweeper.collect(Wait(frames=len(requests)), 0.0)


def created_names(script: Script) -> list[tuple[int, bytes]]:
    """Return key and name of everything that a script may create, each once."""
    names: dict[tuple[int, bytes], None] = {}
    for step in script.steps:
        position = 0
        while position + 14 <= len(step.data):  # size, head, and the length of a name
            size = int.from_bytes(step.data[position : position + 4])
            body = step.data[position + 4 : position + 4 + size]
            key = int.from_bytes(body[:2])
            if key in (CREATE, CREATE_SUPER) and len(body) > HEAD_BYTES + 2:
                name_bytes = int.from_bytes(body[HEAD_BYTES : HEAD_BYTES + 2])
                name = body[HEAD_BYTES + 2 : HEAD_BYTES + 2 + name_bytes]
                if frames.RUN in name:  # our own, and never the empty name
                    # RabbitMQ removes line breaks when it creates, and only then.
                    names[key, name.replace(b"\r", b"").replace(b"\n", b"")] = None
            position += 4 + size
    return list(names)


def delete_request(key: int, name: bytes) -> bytes:
    """Return the request, with its size, that deletes what the other key created."""
    body = struct.pack(">HHIH", key + 1, 1, 1, len(name)) + name
    return len(body).to_bytes(4) + body


def title(step: Step) -> str:
    """Return a step in a few words, for reports."""
    if step.change is not None:
        return f"{step.change.name} {dict(step.change.arguments)}"
    if step.action is not Action.SEND:
        return f"{step.connection} {step.action.value}".strip()
    key = int.from_bytes(step.data[4:6])
    name = NAMES.get(key & 0x7FFF, "bytes")
    return f"{step.connection} {name} {step.data[:120].hex()}"
