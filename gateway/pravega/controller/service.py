"""The controller as a service of gRPC: requests in, answers out, with the rights of the caller."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.broker.access.model import Right
from gateway.grpc.status import CallRefused, Status
from gateway.pending import Pending
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.errors import (
    Busy,
    InvalidRequest,
    NoRight,
    NoSuchGroup,
    NoSuchScope,
    NoSuchStream,
    NoSuchTable,
    NoSuchTransaction,
    Refused,
)
from gateway.pravega.controller.names import MARK, is_scope_name, marked
from gateway.pravega.controller.policies.scaling import MINUTE_MS, TICKS
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.readers.marks import Reading
from gateway.pravega.controller.rights import Anyone, Caller, LogIn, Minting
from gateway.pravega.controller.rpc.desk import Desk
from gateway.pravega.controller.rpc.table import CALLS, Call, subject
from gateway.pravega.controller.tables.names import names_with_rights
from gateway.pravega.traffic import Traffic
from gateway.server.loop.awaiting import awaited
from store.api import SegmentStore
from store.errors import StoreError

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ControllerService"]
_REQUEST_BYTES_MAX: Final = 64 * 1024
_LONG_BYTES_MAX: Final = 1024 * 1024
_LONG: Final = frozenset(
    (
        *("createStream", "updateStream", "truncateStream", "scale"),
        *("getSegmentsBetween", "isStreamCutValid"),
        "noteTimestampFromWriter",
        *("createReaderGroup", "updateReaderGroup", "updateSubscriberStreamCut"),
    )
)
"""Calls whose requests have tags, cuts or ranges of keys."""
_ANY_RIGHT: Final = (Right.READ, Right.WRITE, Right.CONFIGURE)
_DONE: Final = 0
"""Status of all answers to what was done."""
_LEASES_EVERY_S: Final = 0.5
_LOOK_S: Final = 0.01

_STATUSES: Final = {
    Busy: Status.UNAVAILABLE,
    NoSuchScope: Status.NOT_FOUND,
    NoSuchStream: Status.NOT_FOUND,
    NoSuchTable: Status.NOT_FOUND,
    NoSuchTransaction: Status.NOT_FOUND,
    NoSuchGroup: Status.NOT_FOUND,
    InvalidRequest: Status.INVALID_ARGUMENT,
    NoRight: Status.PERMISSION_DENIED,
}


def no_token(_caller: Caller, _scope: str, _stream: str, /, *, has_table: bool = False) -> str:  # noqa: ARG001
    """Return the token of a server that asks for none."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerAccess:
    """The way in for callers.

    Attributes:
        caller: Lets callers in.
        token: Makes the token with which a caller reaches a stream's segments.
        hides: Tells of a scope and a stream whether clients hear nothing of it.
    """

    caller: LogIn
    token: Minting = no_token
    hides: Callable[[str, str], bool] = lambda scope, _stream: not is_scope_name(scope)


async def anyone(_authorization: str, _host: str) -> Caller:
    """Let every client in, with every right."""
    return Anyone()


OPEN: Final = CallerAccess(caller=anyone)
"""The way in for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Intervals at which the controller works by itself.

    Attributes:
        retention_s: Time between two rounds of retention.
        watermarks_s: Time between two watermarks.
        scaling_minute_ms: How long a minute of the policies of scaling takes.
    """

    retention_s: float = 1_800
    watermarks_s: float = 10
    scaling_minute_ms: int = MINUTE_MS

    @property
    def scaling_tick_s(self) -> float:
        """Time between two looks at what was written."""
        return self.scaling_minute_ms / 1_000 / TICKS


EVERY: Final = Rounds()
"""As often as Pravega's."""


class _Method(NamedTuple):
    """A call of the service: what answers it, and the form of its request."""

    name: str
    call: Call
    read: Callable[[bytes], Message]


_METHODS: Final = {
    f"/{SERVICE.full_name}/{name}": _Method(
        name, call, GetMessageClass(SERVICE.methods_by_name[name].input_type).FromString
    )
    for name, call in CALLS.items()
}


class ControllerService:
    """The controller's calls.

    Attributes:
        controller: What answers.
    """

    def __init__(
        self,
        store: SegmentStore,
        clock_ms: Callable[[], int],
        address: Callable[[], tuple[str, int]],
        *,
        door: CallerAccess = OPEN,
        traffic: Traffic | None = None,
        rounds: Rounds = EVERY,
    ) -> None:
        """Prepare it.

        Args:
            store: The open store.
            clock_ms: Milliseconds since the epoch.
            address: Gives host and port of the wire protocol, as clients reach it.
            door: Says which callers are let in.
            traffic: What clients write; scaling acts on it.
            rounds: How often the controller works by itself.
        """
        self.controller = Controller(store, clock_ms, door.hides, traffic, rounds.scaling_minute_ms)
        self._address = address
        self._door = door
        self._rounds = rounds
        self._watches: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._under_way = 0

    async def open(self) -> None:
        """Finish what was begun before; watch over leases and policies. Raises StoreError."""
        await awaited(self.controller.open())
        rounds = self._rounds
        self._watches = [
            asyncio.create_task(_every(_LEASES_EVERY_S, self.controller.abort_expired)),
            asyncio.create_task(_every(rounds.retention_s, self.controller.retain)),
            asyncio.create_task(_every(rounds.watermarks_s, self.controller.mark)),
            asyncio.create_task(_every(rounds.scaling_tick_s, self.controller.rescale)),
        ]

    async def stop(self) -> None:
        """Take no more calls; wait for those that are under way."""
        self._is_stopping = True
        for watch in self._watches:
            watch.cancel()
        while self._under_way:  # noqa: ASYNC110  # once, at the end of the process
            await asyncio.sleep(_LOOK_S)

    # Calls, as `gateway.grpc` asks for them

    def request_bytes_max(self, path: str) -> int:
        """Return the size of the largest request of a call. Raises CallRefused."""
        method = _METHODS.get(path)
        if method is None:
            raise CallRefused(Status.UNIMPLEMENTED, f"there is no call {path[:200]}")
        return _LONG_BYTES_MAX if method.name in _LONG else _REQUEST_BYTES_MAX

    def let_in(self, authorization: str, host: str) -> Coroutine[Pending[Any], None, Caller]:
        """Return the caller. Raises CallRefused."""
        return self._let_in(authorization, host)

    async def _let_in(self, authorization: str, host: str) -> Caller:
        if self._is_stopping:
            raise CallRefused(Status.UNAVAILABLE, "the server stops")
        try:
            caller = await self._door.caller(authorization, host)
        except Refused as error:
            raise _refused(error) from None
        if caller is None:
            text = "unknown user or wrong password; this server asks for Basic credentials"
            raise CallRefused(Status.UNAUTHENTICATED, text)
        return Reading(caller)

    def answer(
        self, path: str, caller: Caller, request: bytes
    ) -> Coroutine[Pending[Any], None, bytes]:
        """Return the answer to a request. Raises CallRefused."""
        return self._answer(_METHODS[path], caller, request)

    async def _answer(self, method: _Method, caller: Caller, data: bytes) -> bytes:
        try:
            request = method.read(data)
        except DecodeError as error:
            raise CallRefused(Status.INVALID_ARGUMENT, str(error)) from None
        _check_rights(method.call, caller, *subject(request))
        desk = Desk(
            controller=self.controller,
            address=self._address(),
            caller=caller,
            token=self._door.token,
        )
        self._under_way += 1
        try:
            answer = await method.call.answer(desk, request)
        except Refused as error:
            raise _refused(error) from None
        except StoreError as error:
            log.warning("a call of the controller failed error=%s", error)
            raise CallRefused(Status.UNAVAILABLE, str(error)) from None
        finally:
            self._under_way -= 1
        if method.call.done and answer.status == _DONE:  # type: ignore[attr-defined]  # all have one
            name = "/".join(filter(None, subject(request)))
            log.info("%s name=%s by=%r", method.call.done, name, caller.name)
        return answer.SerializeToString()


async def _every(pause_s: float, work: Callable[[], Coroutine[Pending[Any], None, None]]) -> None:
    while True:
        await asyncio.sleep(pause_s)
        try:
            await awaited(work())
        except Exception:  # one stream must not end the rounds of all
            log.exception("a round of the controller failed")


def _refused(error: Refused) -> CallRefused:
    return CallRefused(_STATUSES.get(type(error), Status.FAILED_PRECONDITION), str(error))


def _check_rights(call: Call, caller: Caller, scope: str, stream: str) -> None:
    """Raise CallRefused if a caller may not do what it asks for."""
    rights = _ANY_RIGHT if call.right is None else (call.right,)
    names = names_with_rights(stream) if stream and call.is_of_table else (stream,)
    if call.takes_marks and (of := marked(stream)) is not None:
        names = (of,)
    if (stream or call.right) and not any(
        caller.may(each, scope, name) for each in rights for name in names
    ):
        text = f"no right to {' or '.join(each.value for each in rights)} {scope}/{stream}"
        if marked(stream) is not None and call.right in (Right.CONFIGURE, Right.WRITE):
            text += f": a stream {MARK}… is the server's own"
        raise CallRefused(Status.PERMISSION_DENIED, text)
