"""Scripts: steps on named connections, each with the answers that it waits for.

    script("an unknown publisher", opened("A"), ask("A", frames.delete_publisher(9)))

A step never says what the answer must be, only how much of an answer to wait for: the other
server's answer is the expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from compat.differential.administration import Change, hashed

# Long enough for a broker that is busy with other scripts to create a stream.
ANSWER_TIMEOUT_S = 10.0
# Of every user that a script makes.
PASSWORD = "secret"


class Action(Enum):
    """Kinds of steps."""

    CONNECT = "connect"
    REACH = "reach"
    SEND = "send"
    HEAR = "hear"
    MARK = "mark"
    ADMINISTER = "administer"
    PAUSE = "pause"
    DROP = "drop"
    HALF_CLOSE = "half close"


class Reached(Enum):
    """States of a connection when the script begins; the answers until then are not compared."""

    PROPERTIES = "peer properties exchanged"
    MECHANISMS = "mechanisms known"
    AUTHENTICATED = "authenticated, Tune received"
    TUNED = "Tune answered"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Frames and records that end a step; all of them, or the time is up.

    Attributes:
        frames: Frames other than confirms and deliveries.
        confirmed: Publishing ids in confirms, however they are grouped.
        records: Records in deliveries, however they are grouped.
        chunks: Delivered chunks, where their number is the point.
        fin: The end of the connection.
        timeout_s: When the time is up.
    """

    frames: int = 0
    confirmed: int = 0
    records: int = 0
    chunks: int = 0
    fin: bool = False
    timeout_s: float = ANSWER_TIMEOUT_S


class Login(NamedTuple):
    """User and virtual host of a connection; `~` stands for the run."""

    user: str = "guest"
    password: str = "guest"
    virtual_host: str = "/"


GUEST = Login()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        action: What it does.
        connection: On which connection; a letter, by habit.
        data: The bytes to send, sizes included.
        wait: What to wait for after that.
        label: Names the step in the list of expected differences.
        is_timed: Compare how long it took, to the second.
        linger_s: How long to listen for more than was waited for.
        reached: For `REACH`.
        tuning: For `REACH`: the frame limit and heartbeat that the client answers.
        login: For `REACH`: user and virtual host.
        change: For `ADMINISTER`.
        may_fail: For `ADMINISTER`: compare whether it is refused, in whatever words.
        piece_bytes: Send in pieces of this size, a write each; 0 sends everything at once.
    """

    action: Action
    connection: str = ""
    data: bytes = b""
    wait: Wait = field(default_factory=Wait)
    label: str = ""
    is_timed: bool = False
    linger_s: float = 0.0
    reached: Reached = Reached.OPEN
    tuning: tuple[int, int] = (1 << 20, 0)
    login: Login = GUEST
    change: Change | None = None
    may_fail: bool = False
    piece_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation, played from a clean start with stream names of its own.

    Attributes:
        name: What it shows, as a sentence.
        steps: In order.
        has_exact_chunks: Compare chunk by chunk. For scripts in which every chunk is one entry
            that was confirmed before the next was sent; elsewhere the grouping is free.
        heartbeats: Compare heartbeats too; elsewhere they are left out.
        has_free_offsets: Leave out the offsets of delivered records, which stored offsets shift in
            RabbitMQ.
    """

    name: str
    steps: tuple[Step, ...]
    has_exact_chunks: bool = False
    heartbeats: bool = False
    has_free_offsets: bool = False

    @property
    def is_administered(self) -> bool:
        """Return whether the script changes users or virtual hosts."""
        return any(step.change is not None for step in self.steps)

    @property
    def exchange_count(self) -> int:
        """Number of sendings."""
        return sum(step.action is Action.SEND for step in self.steps)


def script(name: str, *steps: Step, exact_chunks: bool = False, heartbeats: bool = False) -> Script:
    """Return a script."""
    return Script(name, steps, has_exact_chunks=exact_chunks, heartbeats=heartbeats)


def framed(*bodies: bytes) -> bytes:
    """Return frames with their sizes in front, one behind the other."""
    return b"".join(len(body).to_bytes(4) + body for body in bodies)


# ----------------------------------------------------------------------------------------- steps

# How long a step that awaits an answer listens on, for an answer too many.
LINGER_S = 0.03


def connected(connection: str) -> Step:
    """Connect, say nothing."""
    return Step(action=Action.CONNECT, connection=connection)


def reached(connection: str, state: Reached, *, user: str = "guest") -> Step:
    """Connect and go through the handshake as far as `state`."""
    return Step(
        action=Action.REACH, connection=connection, reached=state, login=login_of(user, "/")
    )


def login_of(user: str, virtual_host: str) -> Login:
    """Return how a user logs in."""
    return Login(user, "guest" if user == "guest" else PASSWORD, virtual_host)


def administer(request: str, /, **arguments: object) -> Step:
    """Change users, permissions or virtual hosts, in the words of Hutch's admin socket."""
    return Step(action=Action.ADMINISTER, change=Change(request, arguments))


def judged(request: str, /, *, label: str = "", **arguments: object) -> Step:
    """Do as `administer` does, and compare whether the change is taken or refused."""
    return Step(
        action=Action.ADMINISTER, change=Change(request, arguments), may_fail=True, label=label
    )


def add_user(name: str, password: str = PASSWORD) -> Step:
    """Create a user without rights; without a password if that is empty."""
    return administer("add_user", name=name, password_hash=hashed(password))


def allow(
    user: str, configure: str = "", write: str = "", read: str = "", *, virtual_host: str = "/"
) -> Step:
    """Say what a user may do."""
    return administer(
        "set_permissions",
        user=user,
        virtual_host=virtual_host,
        configure=configure,
        write=write,
        read=read,
    )


def opened(
    connection: str,
    *,
    frame_bytes_max: int = 1 << 20,
    heartbeat_s: int = 0,
    user: str = "guest",
    virtual_host: str = "/",
) -> Step:
    """Connect and go through the whole handshake; users but guest have PASSWORD."""
    return Step(
        action=Action.REACH,
        connection=connection,
        tuning=(frame_bytes_max, heartbeat_s),
        login=login_of(user, virtual_host),
    )


def ask(connection: str, *bodies: bytes, label: str = "", wait: Wait | None = None) -> Step:
    """Send frames in one piece and await as many answers."""
    return Step(
        action=Action.SEND,
        connection=connection,
        data=framed(*bodies),
        wait=wait or Wait(frames=len(bodies)),
        label=label,
        linger_s=LINGER_S,
    )


def in_pieces(connection: str, size: int, *bodies: bytes) -> Step:
    """Do as `ask` does, in pieces of `size` bytes."""
    return Step(
        action=Action.SEND,
        connection=connection,
        data=framed(*bodies),
        wait=Wait(frames=len(bodies)),
        linger_s=LINGER_S,
        piece_bytes=size,
    )


def timed(connection: str, *bodies: bytes, label: str = "", wait: Wait | None = None) -> Step:
    """Do as `ask` does, and compare how many seconds it took."""
    return Step(
        action=Action.SEND,
        connection=connection,
        data=framed(*bodies),
        wait=wait or Wait(frames=len(bodies)),
        label=label,
        is_timed=True,
    )


def tell(connection: str, *bodies: bytes) -> Step:
    """Send frames in one piece and go on."""
    return Step(action=Action.SEND, connection=connection, data=framed(*bodies))


def ending(connection: str, *bodies: bytes, label: str = "") -> Step:
    """Send frames in one piece and record everything up to the end of the connection."""
    wait = Wait(fin=True, timeout_s=2.0)
    return Step(
        action=Action.SEND, connection=connection, data=framed(*bodies), wait=wait, label=label
    )


def refused(connection: str, *bodies: bytes, label: str = "") -> Step:
    """Send frames that the server answers with Close or FIN."""
    wait = Wait(frames=1, timeout_s=2.0)
    return Step(
        action=Action.SEND,
        connection=connection,
        data=framed(*bodies),
        wait=wait,
        label=label,
        linger_s=LINGER_S,
    )


def raw(connection: str, data: bytes, *, wait: Wait | None = None, label: str = "") -> Step:
    """Send bytes as they are."""
    return Step(
        action=Action.SEND,
        connection=connection,
        data=data,
        wait=wait or Wait(),
        label=label,
        linger_s=LINGER_S if wait else 0.0,
    )


def hear(connection: str, *, label: str = "", linger_s: float = LINGER_S, **parts: int) -> Step:
    """Wait for something without sending anything."""
    wait = Wait(**parts)  # type: ignore[arg-type]  # counts only; the time limit is not passed on
    return Step(
        action=Action.HEAR, connection=connection, wait=wait, label=label, linger_s=linger_s
    )


def silence(connection: str, for_s: float = 0.2, *, label: str = "") -> Step:
    """Listen for a while; whatever comes is compared, and nothing may be what comes."""
    return Step(action=Action.HEAR, connection=connection, linger_s=for_s, label=label)


def until_end(connection: str, within_s: float, *, label: str = "", is_timed: bool = True) -> Step:
    """Record everything up to the end of the connection, and how long it took."""
    wait = Wait(fin=True, timeout_s=within_s)
    return Step(
        action=Action.HEAR, connection=connection, wait=wait, label=label, is_timed=is_timed
    )


def marked(letter: str) -> Step:
    """Remember this instant for `frames.at_mark`, with distance to what was before and after."""
    return Step(action=Action.MARK, connection=letter)


def pause(for_s: float) -> Step:
    """Do nothing for a while."""
    return Step(action=Action.PAUSE, linger_s=for_s)


def half_closed(connection: str) -> Step:
    """Say that nothing more will be sent, and go on listening."""
    return Step(action=Action.HALF_CLOSE, connection=connection)


def drop(connection: str) -> Step:
    """End the connection without a word."""
    return Step(action=Action.DROP, connection=connection)
