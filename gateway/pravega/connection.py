"""One connection as the handlers of its requests see it."""

import logging
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

from gateway.broker.access.refusals import RefusedLogin
from gateway.network.addresses import host_of
from gateway.pending import Pending, run
from gateway.pravega.access.guard import EXPIRED, REFUSED, Verdict
from gateway.pravega.access.tokens import USER_CHANGED
from gateway.pravega.context import PROTOCOL, WireContext
from gateway.pravega.reads import Reads
from gateway.pravega.refusals import ILLEGAL_ARGUMENT, OTHER, refusal
from gateway.pravega.transients import OwnTransients
from gateway.pravega.writer import SetUp
from gateway.server.front import Ports
from hutch.pravega.codec import encode
from hutch.pravega.error_messages import AuthTokenCheckFailed, ErrorMessage
from hutch.pravega.errors import WireError
from hutch.pravega.layout import TooLong, WireMessage, layout_of
from hutch.pravega.messages import UNKNOWN, SetupAppend
from store.api import Done, Operations
from store.errors import StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")


class SegmentConnection:
    """One connection: takes its replies, and holds its writers, reads and transient segments.

    Handlers call the store with a `done` and reply from it; they never wait.

    Attributes:
        context: Store and clock behind all connections.
        set_ups: The writers that the connection has set up, by their ids' bytes.
        reads: Its reads.
        transients: The segments that go with it.
        is_over: Whether the connection has ended.
        is_held: Whether the next frame waits until `release`.
        is_trusted: Whether the client is known: by a token, or because none are asked for.
        token_expires_ms: When the token of the last request expires, in milliseconds since the
            epoch; None: never.
        user: The user that this token names; '' if it names none.
    """

    def __init__(self, context: WireContext, ports: Ports) -> None:
        self.context = context
        self.set_ups: dict[bytes, SetUp] = {}
        self.is_over = False
        self.is_held = False
        self.is_trusted = False
        self.token_expires_ms: int | None = None
        self.user = ""
        self._ports = ports
        self.reads = Reads(self, ports, context.wire.reads_max)
        self.transients = OwnTransients(context.transients)
        self._forgo: dict[bytes, Callable[[], object]] = {}
        self._users: set[str] = set()
        self._unwatch: Callable[[], object] | None = None

    @property
    def store(self) -> Operations:
        """The store that requests go to."""
        return self.context.store

    # Out

    def reply(self, message: WireMessage) -> None:
        """Send a message; nothing once the connection is over. Raises ValueError as `encode`."""
        if not self.is_over:
            self._ports.send(encode(message))

    def refuse(
        self, request_id: int, segment: str, error: StoreError, *, offset: int = UNKNOWN
    ) -> None:
        """Send the refusal for an error of the store; see `refusal`."""
        self.reply(refusal(request_id, segment, error, offset=offset))

    def answering(
        self,
        request_id: int,
        segment: str,
        reply: Callable[[T], WireMessage],
        *,
        offset: int = UNKNOWN,
    ) -> Done[T]:
        """Return a `done` that sends the reply to a result, or the refusal for an error.

        A reply that is too large for a frame becomes an ErrorMessage that says so.
        """

        def done(outcome: T | StoreError) -> None:
            if isinstance(outcome, StoreError):
                self.refuse(request_id, segment, outcome, offset=offset)
                return
            try:
                self.reply(reply(outcome))
            except ValueError as error:
                self.reply(ErrorMessage(request_id, segment, str(error), OTHER))

        return done

    def close(self, reason: str) -> None:
        """Log why, send the queue, and end the connection; nothing more is taken from it."""
        if self.is_over:
            return
        peer = self._ports.peer
        line = "protocol error peer=%s error=%s"
        self.context.say(log.warning, host_of(peer), line, peer, reason)
        self._finish()

    def _finish(self) -> None:
        self.over()
        self._ports.finish()

    # In

    def admits(self, request: WireMessage) -> bool:
        """Return whether a request may be done; refuse it if not."""
        if isinstance(request, TooLong):
            ids = request.request_id, request.segment
            self.reply(ErrorMessage(*ids, request.reason, ILLEGAL_ARGUMENT))
            return False
        verdict = self.context.guard.verdict(request, self.context.clock_ms())
        refusal, self.token_expires_ms = verdict.refusal, verdict.expires_ms
        self.user = verdict.user or ""
        self._trust(verdict)
        if refusal is not None:
            self._refuse_token(refusal)
        if refusal is not None and isinstance(request, SetupAppend):
            # Appends that follow meant the segment that was asked for, not one set up before.
            self.keep_writer(request.writer_id.bytes, None)
            if refusal.error_code == EXPIRED:
                self.close(refusal.stack_trace)
        return refusal is None

    def admits_by_head(self, kind: type[WireMessage], payload: memoryview) -> bool:
        """Return whether the bytes of a request so far bring a right token; False: not yet.

        Raises:
            WireError: It brings a token that is refused, which is replied.
        """
        fields = layout_of(kind).decode_until("token", payload)
        if fields is None or self.context.guard.is_open:
            return self.context.guard.is_open
        verdict = self.context.guard.verdict_of(
            kind, SimpleNamespace(**fields), self.context.clock_ms()
        )
        if verdict.refusal is not None:
            self._refuse_token(verdict.refusal)
            raise WireError("a large request without a right token")
        self._trust(verdict)
        return verdict.is_trusted

    def _refuse_token(self, refusal: AuthTokenCheckFailed) -> None:
        """Send a refusal; log that of a token, but for one that its client has to renew."""
        self.reply(refusal)
        if refusal.error_code == REFUSED:
            peer = self._ports.peer
            RefusedLogin(
                address=host_of(peer),
                peer=peer,
                protocol=PROTOCOL,
                reason=refusal.stack_trace,
                helps="a token of the controller, see wire.controller_port and wire.token_key_file",
            ).tell(self.context.say)

    def _trust(self, verdict: Verdict) -> None:
        """Note on whose token the connection rests from now on."""
        self.is_trusted = self.is_trusted or verdict.is_trusted
        if verdict.user is None:
            return
        self._users.add(verdict.user)
        if self._unwatch is None:
            self._unwatch = self.context.standings.watch(self._users_changed)

    def _users_changed(self, users: Collection[str]) -> None:
        """End the connection if it rests on the token of a user that has changed.

        Its writers and the reads that wait are told that the token has expired: a client that may
        go on fetches another one.
        """
        if self.is_over or self._users.isdisjoint(users):
            return
        set_ups = [set_up.request_id for set_up in self.set_ups.values()]
        for request_id in (*set_ups, *self.reads.open_requests):
            self.reply(AuthTokenCheckFailed(request_id, USER_CHANGED, EXPIRED))
        line = "connection ended peer=%s user=%r reason=the user was changed or deleted"
        log.info(line, self._ports.peer, min(self._users.intersection(users)))
        self._finish()

    def keep_writer(self, writer_id: bytes, session: SetUp | None) -> None:
        """Keep a writer's session in the place of its last one; None: it has none any more.

        Appends bring no token: the connection ends when that of a writer's set-up expires.
        """
        forgo = self._forgo.pop(writer_id, None)
        if forgo is not None:
            forgo()
        if session is None:
            self.set_ups.pop(writer_id, None)
            return
        self.set_ups[writer_id] = session
        if session.expires_ms is not None:
            delay_ms = max(session.expires_ms - self.context.clock_ms(), 0)
            close = partial(self.close, "the token of a writer has expired")
            self._forgo[writer_id] = self._ports.later(delay_ms, close)

    def hold(self) -> None:
        """Let the next frame wait until `release`: it depends on the answer to this one."""
        self.is_held = True

    def in_next_turn(self, action: Callable[[], object]) -> None:
        """Do something when others had their turn: to read the request took long enough."""
        self._ports.later(0, action)

    def release(self) -> None:
        """Take the next frame."""
        self.is_held = False
        self._ports.end_command()

    def hold_for(self, work: Coroutine[Pending[Any], None, T], done: Done[T]) -> None:
        """Let the next frame wait until work of several steps is done, and `done` has the outcome.

        What it raises other than a StoreError is a programming error.
        """

        def over(outcome: T | BaseException) -> None:
            try:
                if isinstance(outcome, BaseException) and not isinstance(outcome, StoreError):
                    raise outcome
                done(outcome)
            finally:
                self.release()

        self.hold()
        run(work, over)

    # The end

    def over(self) -> None:
        """Note that the connection is over, and release all that it holds."""
        self.is_over = True
        if self._unwatch is not None:
            self._unwatch()
        self.reads.stop()
        self.set_ups.clear()
        self.transients.over()
        timers, self._forgo = self._forgo, {}
        for forgo in timers.values():
            forgo()
