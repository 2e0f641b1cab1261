"""State of one connection, and the limits that were agreed on; no I/O.

The session owns both. The command table says in which states a step is legal and where it leads;
the session refuses all other steps.

Before OPEN an illegal frame gets no answer: the connection ends. Later the server sends Close
first. Steps of the handshake in the wrong order are answered, as RabbitMQ does, and then end the
connection.

Source: RabbitMQ stream protocol, Authentication; behaviour of RabbitMQ 4.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hutch.stream import pipeline
from hutch.stream.codec import Decoded
from hutch.stream.commands import (
    ENDED,
    FAILED,
    STANDARD,
    Command,
    CommandTable,
    State,
    Steps,
)
from hutch.stream.errors import UnexpectedCommand

UNLIMITED_FRAME_BYTES: Final = 16 * 1024 * 1024
"""The limit if none is set: a frame must fit into memory, and its largest entry into a chunk."""

HEARTBEAT_S_MAX: Final = 4_294_967
"""A larger heartbeat cannot be kept in milliseconds of 32 bits: the connection ends."""

_ANSWERED_BY_CLIENT: Final = frozenset(("tune", "consumer_update"))
_ANSWERED_OUT_OF_ORDER: Final = frozenset(
    ("peer_properties", "sasl_handshake", "sasl_authenticate")
)


@dataclass(slots=True)
class Session:
    """State of one connection.

    Attributes:
        frame_bytes_max: The server's setting, 0 for none; after Open the agreed limit.
        initial_frame_bytes_max: The limit before Open.
        heartbeat_s: The server's proposal; after Tune the client's value, which counts.
        table: The commands that the client may send.
    """

    frame_bytes_max: int
    initial_frame_bytes_max: int
    heartbeat_s: int
    state: State = State.CONNECTED
    client_properties: Mapping[str, str] = field(default_factory=dict)
    table: CommandTable = STANDARD
    mechanism: str = ""
    user: str = ""
    virtual_host: str = ""
    deliver_version: int = 1
    server_frame_bytes_max: int = field(init=False)
    frame_limit: int = field(init=False)
    """Largest size field accepted now, in bytes."""
    _tuned_frame_bytes_max: int = field(init=False)

    def __post_init__(self) -> None:
        self.server_frame_bytes_max = self.frame_bytes_max
        self._tuned_frame_bytes_max = self.frame_bytes_max
        configured = self.frame_bytes_max or UNLIMITED_FRAME_BYTES
        self.frame_limit = min(self.initial_frame_bytes_max or UNLIMITED_FRAME_BYTES, configured)

    @property
    def is_open(self) -> bool:
        """True if commands on streams are legal."""
        return self.state is State.OPEN

    @property
    def is_closing(self) -> bool:
        """True if the server has sent Close and waits for the answer."""
        return self.state is State.CLOSING

    @property
    def is_done(self) -> bool:
        """True if incoming frames are no longer handled."""
        return self.state is State.DONE

    @property
    def has_entered(self) -> bool:
        """True if it has ever been open."""
        return bool(self.virtual_host)

    # State

    def check(self, decoded: Decoded) -> bool:
        """Return whether a frame is legal now.

        Returns:
            False for a handshake step in the wrong order: answer it, then end the connection.

        Raises:
            UnexpectedCommand: It is not legal, and gets no answer of its own.
        """
        name = decoded.command.name
        # The server asks for nothing but Tune, Close and ConsumerUpdate.
        is_asked = not decoded.is_response or name in _ANSWERED_BY_CLIENT
        if is_asked and self.state in decoded.command.steps:
            return True
        if not self.is_open and not decoded.is_response and name in _ANSWERED_OUT_OF_ORDER:
            return False
        raise UnexpectedCommand(name, (self.state.name or "").lower())

    def advance(self, command: Command) -> None:
        """Go to the state to which a legal command leads, after it was handled without refusal."""
        self._go(command.steps, command.name)

    def fail(self) -> None:
        """End because the client broke a rule; once it is open, the server's Close comes first."""
        self._go(FAILED, "failure")

    def end(self) -> None:
        """End: only queued frames are still sent."""
        self._go(ENDED, "end")

    def _go(self, steps: Steps, event: str) -> None:
        to = steps.get(self.state)
        if to is None:
            raise UnexpectedCommand(event, (self.state.name or "").lower())
        self.state = to

    # Agreements

    def greet(self, client_properties: Mapping[str, str]) -> None:
        """Note the properties that the client says of itself; they may ask for more commands."""
        self.client_properties = client_properties
        self.table = pipeline.table_of(client_properties)

    def log_in(self, user: str, mechanism: str) -> None:
        """Note the client's user, and the mechanism of its login."""
        self.user = user
        self.mechanism = mechanism

    def tune(self, frame_bytes_max: int, heartbeat_s: int) -> None:
        """Note the client's answer to Tune: the smaller frame limit, and its heartbeat as it is."""
        limits = [limit for limit in (self.server_frame_bytes_max, frame_bytes_max) if limit]
        self._tuned_frame_bytes_max = min(limits, default=0)
        self.heartbeat_s = heartbeat_s

    def enter(self, virtual_host: str) -> None:
        """Note the virtual host; from here on the agreed frame limit holds."""
        self.virtual_host = virtual_host
        self.frame_bytes_max = self._tuned_frame_bytes_max
        self.frame_limit = min(self.frame_bytes_max or UNLIMITED_FRAME_BYTES, UNLIMITED_FRAME_BYTES)

    def take_deliver(self, version: int) -> None:
        """Note the version of Deliver that the client knows."""
        self.deliver_version = version
