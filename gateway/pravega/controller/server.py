"""The controller's port: gRPC in, answers out."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.awaiting import awaited
from gateway.broker.access.model import Right
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.errors import (
    InvalidRequest,
    NoRight,
    NoSuchScope,
    NoSuchStream,
    NoSuchTransaction,
    Refused,
)
from gateway.pravega.controller.names import is_scope_name
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.rights import Anyone, Caller, LogIn
from gateway.pravega.controller.rpc.desk import Desk
from gateway.pravega.controller.rpc.table import CALLS, Call, subject
from store.api import SegmentStore
from store.errors import StoreError

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ControllerService"]
REQUEST_BYTES_MAX: Final = 4 << 20
_ANY_RIGHT: Final = (Right.READ, Right.WRITE, Right.CONFIGURE)
_LEASES_EVERY_S: Final = 0.5
_GRACE_S: Final = 2.0

_CODES: Final = {
    NoSuchScope: grpc.StatusCode.NOT_FOUND,
    NoSuchStream: grpc.StatusCode.NOT_FOUND,
    NoSuchTransaction: grpc.StatusCode.NOT_FOUND,
    InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NoRight: grpc.StatusCode.PERMISSION_DENIED,
}

Context = grpc.aio.ServicerContext[Any, Any]


def no_token(_caller: Caller, _scope: str, _stream: str) -> str:
    """Return the token of a server that asks for none."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The way in for callers.

    Attributes:
        caller: Lets callers in.
        token: Makes the token with which a caller reaches a stream's segments.
        hides: Tells of a scope and a stream whether clients hear nothing of it.
    """

    caller: LogIn
    token: Callable[[Caller, str, str], str] = no_token
    hides: Callable[[str, str], bool] = lambda scope, _stream: not is_scope_name(scope)


async def anyone(_authorization: str, _host: str) -> Caller:
    """Let every client in, with every right."""
    return Anyone()


OPEN: Final = Door(caller=anyone)
"""The way in for all."""


class ControllerServer:
    """The controller at a port.

    Attributes:
        controller: What answers.
        port: Where it listens, after `start`.
    """

    def __init__(
        self,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        address: Callable[[], tuple[str, int]],
        *,
        door: Door = OPEN,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Prepare it.

        Args:
            store: The open store.
            clock_ms: Milliseconds since the epoch.
            address: Gives host and port of the wire protocol, as clients reach it.
            door: Says which callers are let in.
            certificate: Key and certificates in PEM, for TLS.
        """
        self.controller = Controller(store, clock_ms, door.hides)
        self.port = 0
        self._address = address
        self._door = door
        self._certificate = certificate
        self._server: grpc.aio.Server | None = None
        self._leases: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> None:
        """Finish what was begun before, then listen. Raises StoreError, OSError."""
        await awaited(self.controller.open())
        self._server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
            ]
        )
        handlers = {name: self._handler(name, call) for name, call in CALLS.items()}
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),)
        )
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = self._bind(self._server, at)
        except RuntimeError as error:
            raise OSError(f"the controller cannot listen at {at}: {error}") from error
        await self._server.start()
        self._leases = asyncio.create_task(self._watch_leases())

    def _bind(self, server: grpc.aio.Server, at: str) -> int:
        if self._certificate is None:
            return server.add_insecure_port(at)
        return server.add_secure_port(at, grpc.ssl_server_credentials([self._certificate]))

    async def stop(self) -> None:
        """Take no more calls; end those that are under way."""
        if self._leases is not None:
            self._leases.cancel()
        if self._server is not None:
            await self._server.stop(_GRACE_S)

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(_LEASES_EVERY_S)
            await awaited(self.controller.abort_expired())

    # Calls

    def _handler(self, name: str, call: Call) -> Any:  # noqa: ANN401  # gRPC's type is generic
        method = SERVICE.methods_by_name[name]
        read = GetMessageClass(method.input_type).FromString

        async def answer(data: bytes, context: Context) -> Message:
            caller = await self._let_in(context)
            try:
                request = read(data)
            except DecodeError as error:  # gRPC itself would log a traceback for each
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            return await self._answer(call, caller, request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )

    async def _let_in(self, context: Context) -> Caller:
        """Return the caller; one that cannot log in is refused."""
        metadata = dict(context.invocation_metadata() or ())
        authorization = str(metadata.get("authorization", ""))
        caller = await self._door.caller(authorization, _host_of(context.peer()))
        if caller is None:
            text = "unknown user or wrong password; this server asks for Basic credentials"
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)
        return caller

    async def _answer(
        self, call: Call, caller: Caller, request: Message, context: Context
    ) -> Message:
        scope, stream = subject(request)
        rights = _ANY_RIGHT if call.right is None else (call.right,)
        if (stream or call.right) and not any(caller.may(each, scope, stream) for each in rights):
            text = f"no right to {' or '.join(each.value for each in rights)} {scope}/{stream}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        desk = Desk(
            controller=self.controller,
            address=self._address(),
            caller=caller,
            token=self._door.token,
        )
        try:
            return await awaited(call.answer(desk, request))
        except Refused as error:
            code = _CODES.get(type(error), grpc.StatusCode.FAILED_PRECONDITION)
            await context.abort(code, str(error))
        except StoreError as error:
            log.warning("a call of the controller failed error=%s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))


def _host_of(peer: str) -> str:
    """Return the host of a peer as gRPC names it: ipv4:127.0.0.1:40000, ipv6:%5B::1%5D:40000."""
    address = unquote(peer.partition(":")[2])
    return address.rpartition(":")[0].strip("[]")
