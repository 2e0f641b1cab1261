"""The protocol as one table: the only place that says which commands of RabbitMQ there are.

`pipeline.py` has a second table, of commands that a client gets by asking for them.

Look-ups, checks of version and sender, the answer to ExchangeCommandVersions, the page
`docs/protocol.md` and the property tests are derived from it. So are the states of a connection: a
row says in which states its command is legal and to which state it leads from each. `FAILED` and
`ENDED` say the same for events that are no commands. The session alone follows them.

    CONNECTED ─peer_properties→ IDENTIFIED ─sasl_handshake→ AUTHENTICATING ─sasl_authenticate→
    TUNING ─tune→ TUNED ─open→ OPEN ─close→ DONE          (open may come without the client's tune)

    OPEN ─the client breaks a rule→ CLOSING ─its answer to Close→ DONE   (before OPEN at once)

Source: RabbitMQ stream protocol, Commands; states and permissions as observed on RabbitMQ 4.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag
from types import MappingProxyType
from typing import Final, TypeAlias

from hutch.stream import messages as m

RESPONSE_BIT: Final = 0x8000


class Sender(Flag):
    """The side that may start a command; the other side answers it, if it is answered at all."""

    CLIENT = 1
    SERVER = 2
    BOTH = CLIENT | SERVER


class State(Flag):
    """State of a connection."""

    CONNECTED = 1
    """Nothing has been sent."""
    IDENTIFIED = 2
    """Peer properties were exchanged."""
    AUTHENTICATING = 4
    """The mechanisms are known, the user is not."""
    TUNING = 8
    """The user is known, and the server has sent Tune."""
    TUNED = 16
    """The client has answered Tune."""
    OPEN = 32
    """The client is in a virtual host."""
    CLOSING = 64
    """The server has sent Close; only the answer to it is read."""
    DONE = 128
    """Incoming bytes are ignored; the connection ends when all is sent."""
    ANY = CONNECTED | IDENTIFIED | AUTHENTICATING | TUNING | TUNED | OPEN


Steps: TypeAlias = Mapping[State, State]
"""The next state, for each state in which a step is legal."""


def _steps(*steps: tuple[State, State]) -> Steps:
    return MappingProxyType({each: to for states, to in steps for each in states})


def _staying(states: State) -> Steps:
    return _steps(*((each, each) for each in states))


class Permission(Enum):
    """The right that a command needs on the stream, super stream or virtual host that it names."""

    NONE = "none"
    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"
    READ_OR_WRITE = "read or write"
    MANAGE_SUPER_STREAM = "configure, write and read, on super stream and partitions"
    VIRTUAL_HOST = "access to the virtual host"


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the table.

    Attributes:
        key: u16 on the wire; the reply's is `key | 0x8000`.
        name: Lower case with underscores; handlers, metrics and logs use it.
        sender: The side that may start it.
        is_correlated: Whether a u32 correlation id follows the version, in request and reply.
        requests: The n-th is the layout of version n + 1.
        reply: The layout of the answer, or None.
        steps: The states in which it is legal, and the state that follows once it is handled.
        permission: The right that the user needs.
    """

    key: int
    name: str
    sender: Sender
    is_correlated: bool
    requests: tuple[type[m.Message], ...]
    reply: type[m.Message] | None
    steps: Steps
    permission: Permission

    @property
    def version_max(self) -> int:
        """The highest version; the lowest is 1."""
        return len(self.requests)


# The kernel reads these bodies, in one pass over many frames.
KERNEL: Final = m.KernelBody

YES: Final = True
NO: Final = False
CLIENT: Final = Sender.CLIENT
SERVER: Final = Sender.SERVER
BOTH: Final = Sender.BOTH
OPEN: Final = _staying(State.OPEN)
ANY: Final = _staying(State.ANY)
# A step may be repeated until the next one, so each is legal in two states.
GREETING: Final = _steps((State.CONNECTED | State.IDENTIFIED, State.IDENTIFIED))
CHOOSING: Final = _steps((State.IDENTIFIED | State.AUTHENTICATING, State.AUTHENTICATING))
# Once open, authenticating again renews the secret.
LOGIN: Final = _steps((State.AUTHENTICATING, State.TUNING), (State.OPEN, State.OPEN))
# A client that accepts the server's Tune as it is need not answer it before Open.
TUNE: Final = _steps((State.TUNING | State.TUNED, State.TUNED))
ENTRY: Final = _steps((State.TUNING | State.TUNED, State.OPEN))
LEAVE: Final = _steps((State.OPEN, State.DONE))
NONE: Final = Permission.NONE
CONFIGURE: Final = Permission.CONFIGURE
WRITE: Final = Permission.WRITE
READ: Final = Permission.READ
EITHER: Final = Permission.READ_OR_WRITE
MANAGE: Final = Permission.MANAGE_SUPER_STREAM
VHOST: Final = Permission.VIRTUAL_HOST

# fmt: off
COMMANDS: Final = (
    #       key   name                         sent by corr. request, one a version         reply                    steps     permission
    Command(0x01, "declare_publisher",         CLIENT, YES,  (m.DeclarePublisher,),         m.Status,                OPEN,     WRITE),
    Command(0x02, "publish",                   CLIENT, NO,   (KERNEL, KERNEL),              None,                    OPEN,     NONE),
    Command(0x03, "publish_confirm",           SERVER, NO,   (m.PublishConfirm,),           None,                    OPEN,     NONE),
    Command(0x04, "publish_error",             SERVER, NO,   (m.PublishError,),             None,                    OPEN,     NONE),
    Command(0x05, "query_publisher_sequence",  CLIENT, YES,  (m.QueryPublisherSequence,),   m.PublisherSequence,     OPEN,     READ),
    Command(0x06, "delete_publisher",          CLIENT, YES,  (m.DeletePublisher,),          m.Status,                OPEN,     NONE),
    Command(0x07, "subscribe",                 CLIENT, YES,  (m.Subscribe,),                m.Status,                OPEN,     READ),
    Command(0x08, "deliver",                   SERVER, NO,   (KERNEL, KERNEL),              None,                    OPEN,     NONE),
    Command(0x09, "credit",                    CLIENT, NO,   (m.Credit,),                   m.CreditRefused,         OPEN,     NONE),
    Command(0x0a, "store_offset",              CLIENT, NO,   (m.StoreOffset,),              None,                    OPEN,     READ),
    Command(0x0b, "query_offset",              CLIENT, YES,  (m.QueryOffset,),              m.StoredOffset,          OPEN,     READ),
    Command(0x0c, "unsubscribe",               CLIENT, YES,  (m.Unsubscribe,),              m.Status,                OPEN,     NONE),
    Command(0x0d, "create_stream",             CLIENT, YES,  (m.CreateStream,),             m.Status,                OPEN,     CONFIGURE),
    Command(0x0e, "delete_stream",             CLIENT, YES,  (m.DeleteStream,),             m.Status,                OPEN,     CONFIGURE),
    Command(0x0f, "metadata",                  CLIENT, YES,  (m.Metadata,),                 m.MetadataReply,         OPEN,     EITHER),
    Command(0x10, "metadata_update",           SERVER, NO,   (m.MetadataUpdate,),           None,                    OPEN,     NONE),
    Command(0x11, "peer_properties",           CLIENT, YES,  (m.PeerProperties,),           m.PeerPropertiesReply,   GREETING, NONE),
    Command(0x12, "sasl_handshake",            CLIENT, YES,  (m.SaslHandshake,),            m.SaslHandshakeReply,    CHOOSING, NONE),
    Command(0x13, "sasl_authenticate",         CLIENT, YES,  (m.SaslAuthenticate,),         m.SaslAuthenticateReply, LOGIN,    NONE),
    Command(0x14, "tune",                      BOTH,   NO,   (m.Tune,),                     m.Tune,                  TUNE,     NONE),
    Command(0x15, "open",                      CLIENT, YES,  (m.Open,),                     m.OpenReply,             ENTRY,    VHOST),
    Command(0x16, "close",                     BOTH,   YES,  (m.Close,),                    m.Status,                LEAVE,    NONE),
    Command(0x17, "heartbeat",                 BOTH,   NO,   (m.Heartbeat,),                None,                    ANY,      NONE),
    Command(0x18, "route",                     CLIENT, YES,  (m.Route,),                    m.StreamsReply,          OPEN,     WRITE),
    Command(0x19, "partitions",                CLIENT, YES,  (m.Partitions,),               m.StreamsReply,          OPEN,     EITHER),
    Command(0x1a, "consumer_update",           SERVER, YES,  (m.ConsumerUpdate,),           m.ConsumerUpdateReply,   OPEN,     NONE),
    Command(0x1b, "exchange_command_versions", CLIENT, YES,  (m.ExchangeCommandVersions,),  m.CommandVersionsReply,  OPEN,     NONE),
    Command(0x1c, "stream_stats",              CLIENT, YES,  (m.StreamStats,),              m.StreamStatsReply,      OPEN,     READ),
    Command(0x1d, "create_super_stream",       CLIENT, YES,  (m.CreateSuperStream,),        m.Status,                OPEN,     MANAGE),
    Command(0x1e, "delete_super_stream",       CLIENT, YES,  (m.DeleteSuperStream,),        m.Status,                OPEN,     MANAGE),
    Command(0x1f, "resolve_offset_spec",       CLIENT, YES,  (m.ResolveOffsetSpec,),        m.ResolvedOffset,        OPEN,     READ),
)
# fmt: on

FAILED: Final = _steps(
    (State.ANY & ~State.OPEN, State.DONE),
    (State.OPEN | State.CLOSING, State.CLOSING),
    (State.DONE, State.DONE),
)
"""The end because the client broke a rule; before OPEN it gets no Close."""
ENDED: Final = _steps((State.ANY | State.CLOSING | State.DONE, State.DONE))
"""The end after an answer that refuses, or after the client's answer to Close."""

# RabbitMQ lists what a client may send once it is open, but neither the renewal of the secret
# nor the exchange itself.
NOT_LISTED: Final = frozenset({"sasl_authenticate", "exchange_command_versions"})


@dataclass(frozen=True, eq=False)
class CommandTable:
    """Commands that the two sides of a session speak; codec and dispatch follow it.

    Attributes:
        commands: The rows.
        by_name: The rows by their names.
        versions: The answer to ExchangeCommandVersions.
    """

    commands: tuple[Command, ...]
    by_name: Mapping[str, Command] = field(init=False)
    versions: tuple[m.CommandVersions, ...] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {command.name: command for command in self.commands}
        object.__setattr__(self, "by_name", MappingProxyType(by_name))
        object.__setattr__(self, "versions", tuple(_listed(self.commands)))


def _listed(commands: Iterable[Command]) -> Iterator[m.CommandVersions]:
    for command in commands:
        is_sent = CLIENT in command.sender and State.OPEN in command.steps
        if is_sent and command.name not in NOT_LISTED:
            yield m.CommandVersions(command.key, 1, command.version_max)


STANDARD: Final = CommandTable(COMMANDS)
"""Commands of RabbitMQ, which every session speaks."""
BY_NAME: Final = STANDARD.by_name
