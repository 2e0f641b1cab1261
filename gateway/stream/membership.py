"""A connection's part in groups: questions to its members, and the effect of their answers.

A member reads nothing before its client has answered that it starts, and nothing after it is asked
to step down. A client that does not answer in time loses its connection, so that no hand-over waits
for ever.

Source: RabbitMQ stream protocol, ConsumerUpdate; behaviour of RabbitMQ 4.3.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.broker.streams.catalogue import Stream
from gateway.server.front import Ports
from gateway.stream.consuming import CreditSubscription
from gateway.stream.context import StreamContext
from hutch.stream import messages as m
from hutch.stream.offsets import OffsetSpec

log = logging.getLogger(__name__)

_CORRELATION_IDS: Final = 1 << 32


class MemberLink(Protocol):
    """A connection, as far as its members of groups need it."""

    @property
    def host(self) -> StreamContext: ...

    @property
    def ports(self) -> Ports: ...

    @property
    def questions(self) -> "Questions":
        """The questions to its client, which do not refer to it: its members do."""
        ...

    def shown(self, stream: Stream) -> str:
        """Return a stream as logs name it."""
        ...

    def send(self, command: str, message: m.Message, correlation_id: int | None = None) -> None:
        """Queue a command that the server starts."""
        ...

    def end(self, reason: str) -> None:
        """End the connection."""
        ...


class Membership:
    """A subscription's place in its group, as the group sees it.

    Attributes:
        subscription: The subscription.
        name: Name of the group.
        spec: The place where the subscription asked to start.
        link: Its connection.
        question: The last question to the client; None before that, and once it has left.
    """

    __slots__ = ("link", "name", "question", "spec", "subscription")

    def __init__(
        self, link: MemberLink, subscription: CreditSubscription, name: str, spec: OffsetSpec
    ) -> None:
        self.subscription = subscription
        self.name = name
        self.spec = spec
        self.question: Question | None = None
        self.link = link

    @property
    def generation(self) -> int:
        """The generation of the stream."""
        return self.subscription.stream.entry.generation

    def become(self, *, active: bool) -> None:
        """Ask the client to start, or to step down; deliveries stop at once."""
        self.subscription.pause()
        self.link.questions.ask(self, active=active)


@dataclass(slots=True, eq=False)
class Question:
    """A ConsumerUpdate that was sent."""

    membership: Membership
    correlation_id: int
    is_active: bool
    cancel_time_limit: Callable[[], object]


class Questions:
    """Open questions to a connection's client; at most one for each member."""

    def __init__(self) -> None:
        self._next_id = 0
        self._open: dict[int, Question] = {}

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, membership: Membership, *, active: bool) -> None:
        """Send a ConsumerUpdate; an earlier question to the member needs no answer any more."""
        self.withdraw(membership)
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) % _CORRELATION_IDS
        subscription = membership.subscription
        link = membership.link
        limit_ms = link.host.service.consumer_update_timeout_ms
        question = Question(
            membership,
            correlation_id,
            active,
            link.ports.later(limit_ms, lambda: _time_is_up(question)),
        )
        self._open[correlation_id] = question
        membership.question = question
        log.debug(
            "asked consumer stream=%s name=%r active=%s peer=%s subscription=%d",
            link.shown(subscription.stream),
            membership.name,
            active,
            link.ports.peer,
            subscription.subscription_id,
        )
        update = m.ConsumerUpdate(subscription.subscription_id, active)
        link.send("consumer_update", update, correlation_id)

    def answered(self, correlation_id: int) -> Question | None:
        """Return the question that is answered; None if none with that id is open."""
        question = self._open.pop(correlation_id, None)
        if question is not None:
            question.cancel_time_limit()
        return question

    def withdraw(self, membership: Membership) -> None:
        """Drop the question to a member: no answer is awaited any more."""
        if membership.question is not None:
            self.answered(membership.question.correlation_id)
            membership.question = None


def _time_is_up(question: Question) -> None:
    membership = question.membership
    link = membership.link
    log.warning(
        "consumer update not answered peer=%s stream=%s name=%r active=%s limit_ms=%d",
        link.ports.peer,
        link.shown(membership.subscription.stream),
        membership.name,
        question.is_active,
        link.host.service.consumer_update_timeout_ms,
    )
    link.end("consumer update not answered")
