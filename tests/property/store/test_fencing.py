"""However sessions take over: none is acknowledged for bytes that it did not store."""

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from store.api import Appended, AttributeUpdate, Durability
from store.errors import StoreError
from tests.conformance.harness import Pending
from tests.property.store.twin import Twin, TwinSession

WRITERS = (UUID(int=1), UUID(int=2))
NAME = "fenced"
SESSIONS_MAX = 5


@dataclass
class Sent:
    """An append that was called: by which session, and what it wanted stored."""

    session: TwinSession
    number: int
    data: bytes
    pending: Pending


@dataclass
class Owned:
    """Bytes that were acknowledged."""

    session: TwinSession
    number: int
    data: bytes


@dataclass
class Ledger:
    """Who was acknowledged for which bytes."""

    sent: list[Sent] = field(default_factory=list)
    owned: dict[tuple[int, UUID, int], Owned] = field(default_factory=dict)
    """(position, writer, event number) → whose they are."""
    empty: set[tuple[TwinSession, int]] = field(default_factory=set)
    """Appends without bytes, by session and event number. They belong to none: where the number
    was set back, several sessions can have them at one place."""

    def settle(self) -> None:
        for sent in self.sent:
            result = sent.pending.result
            if isinstance(result, StoreError):
                continue
            assert isinstance(result, Appended)
            self._own(sent, result)
        self.sent.clear()

    def _own(self, sent: Sent, appended: Appended) -> None:
        assert appended.event_number == sent.number
        if appended.size == 0:
            if not sent.data:
                self.empty.add((sent.session, sent.number))
            assert (sent.session, sent.number) in self.empty
            return
        owned = self.owned.setdefault(
            (appended.position, sent.session.writer, sent.number),
            Owned(sent.session, sent.number, sent.data),
        )
        # A second acknowledgement of the same bytes is a resend by the session that stored them.
        assert owned.session is sent.session
        assert appended.size == len(owned.data)

    def check(self, content: bytes) -> None:
        """Every acknowledged byte is where it was said to be, once, and there are no others."""
        end = 0
        places = [(position, len(each.data), each) for (position, *_), each in self.owned.items()]
        for position, _, owned in sorted(places, key=lambda place: place[:2]):
            assert position == end
            assert content[position : position + len(owned.data)] == owned.data
            end += len(owned.data)
        assert end == len(content)


class Fencing(RuleBasedStateMachine):
    """A few sessions of two writers on one segment, several appends under way at once."""

    @initialize(durability=st.sampled_from(Durability))
    def open(self, durability: Durability) -> None:
        self.twin = Twin(durability)
        self.twin.call("create_segment", NAME)
        self.sessions: list[TwinSession] = []
        self.ledger = Ledger()
        self.counter = 0
        self.history: list[tuple[TwinSession, int, bytes]] = []

    @rule(writer=st.sampled_from(WRITERS))
    def open_session(self, writer: UUID) -> None:
        self.sessions = [*self.sessions[-SESSIONS_MAX:], self.twin.open_writer(NAME, writer)]

    def _send(
        self, session: TwinSession, number: int, data: bytes, expected: int | None = None
    ) -> None:
        pending = session.append(data, number, expected)
        assert pending is not None
        self.ledger.sent.append(Sent(session, number, data, pending))
        self.history.append((session, number, data))

    def _fresh(self, size: int) -> bytes:
        self.counter += 1
        return (b"<%d>" % self.counter * size)[:size]

    @precondition(lambda self: self.sessions)
    @rule(
        index=st.integers(0, SESSIONS_MAX),
        step=st.sampled_from([1, 1, 1, 2, 0, -1]),
        size=st.sampled_from([0, 1, 10, 600]),
    )
    def append(self, index: int, step: int, size: int) -> None:
        session = self.sessions[index % len(self.sessions)]
        assert session.model is not None
        number = max(session.model.event_number, 0) + step
        self._send(session, max(number, 0), self._fresh(size))

    @precondition(lambda self: self.sessions)
    @rule(index=st.integers(0, SESSIONS_MAX), off=st.sampled_from([0, 0, 1, -1]))
    def append_if(self, index: int, off: int) -> None:
        session = self.sessions[index % len(self.sessions)]
        assert session.model is not None
        number = max(session.model.event_number, 0) + 1
        self._send(session, number, self._fresh(5), max(0, session.model.length + off))

    @precondition(lambda self: self.history)
    @rule(back=st.integers(1, 6), in_session=st.integers(0, SESSIONS_MAX), is_own=st.booleans())
    def send_again(self, back: int, in_session: int, *, is_own: bool) -> None:
        """Resend what was sent before: in the same session, or in another."""
        session, number, data = self.history[-min(back, len(self.history))]
        if not is_own or not session.is_current:
            if not self.sessions:
                return
            session = self.sessions[in_session % len(self.sessions)]
        # A resend has the same bytes; in another session it may well be another writer's append.
        self._send(session, number, data)

    @rule(writer=st.sampled_from(WRITERS), value=st.integers(0, 6))
    def set_number(self, writer: UUID, value: int) -> None:
        self.twin.call("update_attributes", NAME, [AttributeUpdate(writer, value)])

    @rule()
    def settle(self) -> None:
        self.twin.settle()
        self.ledger.settle()

    @rule(is_killed=st.booleans())
    def die(self, *, is_killed: bool) -> None:
        self.settle()
        if is_killed:
            self.twin.kill()
        else:
            self.twin.reopen()
        self.sessions.clear()
        self.history.clear()
        self.check()

    def check(self) -> None:
        self.settle()
        self.twin.compare([NAME], WRITERS)
        self.ledger.check(self.twin.model.segments[NAME].data)

    def teardown(self) -> None:
        if hasattr(self, "twin"):
            self.check()
            self.twin.close()


def test_sessions_can_have_empty_appends_under_one_number_at_one_place() -> None:
    fencing = Fencing()
    fencing.open(Durability.OS)
    fencing.open_session(WRITERS[0])
    fencing.append(index=0, step=2, size=0)
    fencing.settle()
    fencing.set_number(WRITERS[0], 1)
    fencing.open_session(WRITERS[0])
    fencing.append(index=1, step=1, size=0)
    fencing.settle()

    assert [number for _, number in fencing.ledger.empty] == [2, 2]
    fencing.teardown()


TestFencing = Fencing.TestCase
# An example is 40 steps on a real store: three hundred of them would take minutes.
TestFencing.settings = settings(
    deadline=None,
    stateful_step_count=40,
    max_examples=min(settings().max_examples, 60),
)
TestFencing.pytestmark = [pytest.mark.timeout(240)]  # type: ignore[attr-defined]
