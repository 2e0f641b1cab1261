"""A protocol for tests: lines of text, echoed. The first one logs in, as `user password`.

`again 3 text` is delivered three times, by a source. `EchoPort` is the port that a server has with
`EchoPort` among its ports, and with `WithEcho` for settings.
"""

from typing import Final, NamedTuple, Self

from pydantic import BaseModel

from gateway.broker.access.authentication import LoginRefused, Peer
from gateway.broker.connections import ConnectionDetails
from gateway.broker.hosts.broker import BrokerBackend
from gateway.broker.hosts.client_session import ClientSession, SessionContext
from gateway.network.addresses import shown
from gateway.network.listening import ListenPlace
from gateway.pending import run
from gateway.server.endpoint import PortEndpoint, TlsEndpoint
from gateway.server.front import ConnectionLimits, DeliverySource, Ports, SendPiece
from gateway.server.port import Port
from gateway.settings.model import Settings

LINE_BYTES_MAX = 256 * 1024
STEP_MS = 1_500
ROOM = 3
"""Clients, on both ports together."""
BACKLOG_PAUSE_BYTES = 64 * 1024
LIMITS: Final = ConnectionLimits(
    close_timeout_ms=1_500,
    unconfirmed_max=10,
    unconfirmed_resume=5,
    backlog_pause_bytes=BACKLOG_PAUSE_BYTES,
    backlog_bytes_max=64 << 20,
)


class Again(DeliverySource):
    def __init__(self, count: int, text: bytes) -> None:
        super().__init__()
        self.left, self.text = count, text

    def wants_more(self) -> bool:
        return self.left > 0

    def next(self, scratch: bytearray) -> SendPiece:  # noqa: ARG002 - it has its text
        self.left -= 1
        return SendPiece(self.text)


class Echo(ClientSession):
    def __init__(self, host: SessionContext, ports: Ports) -> None:
        super().__init__(host, ports, "echo")
        self.host, self.ports = host, ports

    def start(self) -> None:
        self.ports.limit(STEP_MS, "new")

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        line_end = buffer.find(b"\n", position, end) + 1
        if (line_end or end) - position > LINE_BYTES_MAX:
            self.ports.send(b"too long\n")
            self.ports.finish()
        elif line_end:
            line = bytes(buffer[position:line_end])
            (self.echo if self.user else self.log_in)(line)
        return line_end or position

    def frame_bytes(self, *_: int | bytearray, **__: int | bytearray) -> int:
        return 0  # nothing says how long a line will be

    def log_in(self, line: bytes) -> None:
        def done(outcome: str | BaseException) -> None:
            if isinstance(outcome, LoginRefused) or self.reason_to_refuse(str(outcome), "/"):
                self.ports.send(b"refused\n")
                self.ports.finish()
            elif virtual_host := self.host.virtual_hosts("/"):
                self.begin(str(outcome), virtual_host)
                self.ports.logged_in()
                self.ports.admitted()
                self.ports.send(b"welcome\n")
            self.ports.end_command()

        self.ports.begin_command()
        data = b"\0" + line.strip().replace(b" ", b"\0")
        peer = Peer(self.ports.peer_is_loopback, self.address, "echo", self.ports.certificate_user)
        run(self.host.authentication.log_in("PLAIN", data, peer), done)

    def echo(self, line: bytes) -> None:
        if line.startswith(b"again "):
            _, count, text = line.split(b" ", 2)
            self.ports.wake(Again(int(count), text))
        else:
            self.ports.send(line)

    def unfinished(self) -> int:
        return 0

    def held_bytes(self) -> int:
        return 0

    def farewell(self) -> None:
        self.ports.send(b"bye\n")

    def lost(self) -> None:
        self.close()

    def details(self) -> ConnectionDetails:
        return ConnectionDetails("PLAIN", 0, LINE_BYTES_MAX, self.ports.transport)


class EchoKind(NamedTuple):
    host: SessionContext
    limits: ConnectionLimits
    name: str = "echo"

    def meet(self, ports: Ports) -> Echo:
        return Echo(self.host, ports)


class EchoSettings(BaseModel):
    host: str = "127.0.0.1"
    port: int | None = None
    tls_port: int | None = None


class WithEcho(Settings):
    echo: EchoSettings = EchoSettings()


class EchoPort(Port[BrokerBackend]):
    @classmethod
    def configured(cls, settings: Settings) -> Self | None:
        echo = settings.echo if isinstance(settings, WithEcho) else EchoSettings()
        made: list[PortEndpoint] = []
        if echo.port is not None:
            made.append(PortEndpoint(ListenPlace(echo.host, echo.port, "echo.host", "echo.port")))
        if echo.tls_port is not None:
            place = ListenPlace(echo.host, echo.tls_port, "echo.host", "echo.tls_port")
            made.append(TlsEndpoint(place, settings.tls))
        return cls(made) if made else None

    async def serve(self, backend: BrokerBackend) -> None:
        broker = backend.broker
        host = SessionContext(
            access=broker.access,
            authentication=broker.authentication,
            connections=broker.connections,
            virtual_hosts=broker.virtual_hosts.find,
            service=broker.service,
            has_room=lambda: broker.connections.count_of_protocol("echo") < ROOM,
        )
        for each in self.endpoints:
            each.listen(self.context, EchoKind(host, LIMITS))

    @property
    def ready(self) -> str:
        return " ".join(f"echo={shown(*each.address)}" for each in self.endpoints)
