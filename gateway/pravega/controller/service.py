"""The controller as a service of gRPC: requests in, answers out, with the rights of the caller."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.broker.access.model import Right
from gateway.grpc.status import CallRefused, CallStatus
from gateway.pending import Pending
from gateway.pravega.access.callers import Anyone, Caller, LogIn
from gateway.pravega.controller.controller import Controller
from gateway.pravega.controller.errors import (
    Busy,
    ChangeRefused,
    InvalidRequest,
    NoRight,
    NoSuchGroup,
    NoSuchScope,
    NoSuchStream,
    NoSuchTable,
    NoSuchTransaction,
)
from gateway.pravega.controller.rights import Minting
from gateway.pravega.controller.rounds.marks import MarkRights
from gateway.pravega.controller.rounds.scaling import MINUTE_MS, TICKS
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.pravega.controller.rpc.table import CALLS, CallEntry, subject
from gateway.pravega.names import MARK, is_scope_name, marked, names_with_rights
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
    Busy: CallStatus.UNAVAILABLE,
    NoSuchScope: CallStatus.NOT_FOUND,
    NoSuchStream: CallStatus.NOT_FOUND,
    NoSuchTable: CallStatus.NOT_FOUND,
    NoSuchTransaction: CallStatus.NOT_FOUND,
    NoSuchGroup: CallStatus.NOT_FOUND,
    InvalidRequest: CallStatus.INVALID_ARGUMENT,
    NoRight: CallStatus.PERMISSION_DENIED,
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
        hides: Returns of a scope and a stream whether clients hear nothing of it.
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
class RoundIntervals:
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
        """Time between two looks at the counts of writes."""
        return self.scaling_minute_ms / 1_000 / TICKS


EVERY: Final = RoundIntervals()
"""As often as Pravega's."""


class _Method(NamedTuple):
    """A call of the service: its handler, and the form of its request."""

    name: str
    call: CallEntry
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
        access: CallerAccess = OPEN,
        traffic: Traffic | None = None,
        rounds: RoundIntervals = EVERY,
    ) -> None:
        """Prepare it.

        Args:
            store: The open store.
            clock_ms: Milliseconds since the epoch.
            address: Gives host and port of the wire protocol, as clients reach it.
            access: Says which callers are let in.
            traffic: What clients write; scaling acts on it.
            rounds: How often the controller works by itself.
        """
        self.controller = Controller(
            store, clock_ms, access.hides, traffic, rounds.scaling_minute_ms
        )
        self._address = address
        self._access = access
        self._rounds = rounds
        self._watches: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._under_way = 0

    async def open(self) -> None:
        """Finish changes begun before; watch over leases and policies. Raises StoreError."""
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
            raise CallRefused(CallStatus.UNIMPLEMENTED, f"there is no call {path[:200]}")
        return _LONG_BYTES_MAX if method.name in _LONG else _REQUEST_BYTES_MAX

    def let_in(self, authorization: str, host: str) -> Coroutine[Pending[Any], None, Caller]:
        """Return the caller. Raises CallRefused."""
        return self._let_in(authorization, host)

    async def _let_in(self, authorization: str, host: str) -> Caller:
        if self._is_stopping:
            raise CallRefused(CallStatus.UNAVAILABLE, "the server stops")
        try:
            caller = await self._access.caller(authorization, host)
        except ChangeRefused as error:
            raise _refused(error) from None
        if caller is None:
            text = "unknown user or wrong password; this server asks for Basic credentials"
            raise CallRefused(CallStatus.UNAUTHENTICATED, text)
        return MarkRights(caller)

    def answer(
        self, path: str, caller: Caller, request: bytes
    ) -> Coroutine[Pending[Any], None, bytes]:
        """Return the answer to a request. Raises CallRefused."""
        return self._answer(_METHODS[path], caller, request)

    async def _answer(self, method: _Method, caller: Caller, data: bytes) -> bytes:
        try:
            request = method.read(data)
        except DecodeError as error:
            raise CallRefused(CallStatus.INVALID_ARGUMENT, str(error)) from None
        _check_rights(method.call, caller, *subject(request))
        context = CallContext(
            controller=self.controller,
            address=self._address(),
            caller=caller,
            token=self._access.token,
        )
        self._under_way += 1
        try:
            answer = await method.call.answer(context, request)
        except ChangeRefused as error:
            raise _refused(error) from None
        except StoreError as error:
            log.warning("a call of the controller failed error=%s", error)
            raise CallRefused(CallStatus.UNAVAILABLE, str(error)) from None
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


def _refused(error: ChangeRefused) -> CallRefused:
    return CallRefused(_STATUSES.get(type(error), CallStatus.FAILED_PRECONDITION), str(error))


def _check_rights(call: CallEntry, caller: Caller, scope: str, stream: str) -> None:
    """Raise CallRefused if a caller may not make its request."""
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
        raise CallRefused(CallStatus.PERMISSION_DENIED, text)
