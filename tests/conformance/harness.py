"""Runs a segment store on a tiny event loop on the test's own thread, and watches how it answers.

It is no asyncio: callbacks in a deque, so that a test decides when the loop turns.
"""

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

import pytest

from store.api import Reader, SegmentStore, Writer
from store.errors import StoreClosed, StoreError
from tests.waiting import HANG_S

E = TypeVar("E", bound=StoreError)

ASK_AGAIN_S: Final = 0.05
LOOK_S: Final = 0.005
"""Time between two looks at whether other threads work."""

FILLER: Final = UUID(int=0xF111E4)
"""The writer of bytes whose writer does not matter."""


class Loop:
    """What a store needs of an event loop: callbacks in order on one thread, handed in by any."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._ready: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._watches: dict[int, tuple[threading.Event, threading.Thread]] = {}

    def watch(self, fileno: int, readable: Callable[[], object] | None) -> None:
        """Call a function on this thread whenever a descriptor can be read; None ends that."""
        if readable is None:
            stop, thread = self._watches.pop(fileno)
            stop.set()
            thread.join()
            return
        stop = threading.Event()
        thread = threading.Thread(target=self._look, args=(fileno, readable, stop), daemon=True)
        self._watches[fileno] = stop, thread
        thread.start()

    def _look(self, fileno: int, readable: Callable[[], object], stop: threading.Event) -> None:
        handled = threading.Event()

        def handle() -> None:
            readable()
            handled.set()

        while not stop.is_set():
            if select.select([fileno], [], [], 0.01)[0]:
                self.call_soon_threadsafe(handle)
                while not handled.wait(0.01) and not stop.is_set():
                    pass
                handled.clear()

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        assert threading.get_ident() == self.thread, "call_soon from another thread"
        self.call_soon_threadsafe(callback, *arguments)

    def call_soon_threadsafe(self, callback: Callable[..., object], *arguments: object) -> None:
        with self._changed:
            self._ready.append(lambda: callback(*arguments))
            self._changed.notify()

    def turn(self) -> None:
        """Run what is ready now, but not what that makes ready."""
        for _ in range(len(self._ready)):
            self._ready.popleft()()

    def run_until(self, is_done: Callable[[], bool], timeout_s: float = HANG_S) -> None:
        """Turn until `is_done`; AssertionError after the time limit.

        What another thread does, such as removing a file, may be done without a word to the loop:
        so `is_done` is asked again also when nothing became ready.
        """
        deadline = time.monotonic() + timeout_s
        while not is_done():
            with self._changed:
                if not self._ready:
                    left_s = deadline - time.monotonic()
                    assert left_s > 0, f"no result within {timeout_s} s"
                    self._changed.wait(min(left_s, ASK_AGAIN_S))
            self.turn()

    def run_for(self, seconds: float) -> None:
        """Turn until nothing has happened for a while, and no other thread has work.

        On a busy machine a thread may get no processor for longer than the while.
        """
        deadline, left_s = time.monotonic() + HANG_S, seconds
        while left_s > 0:
            began = time.monotonic()
            assert began < deadline, f"something still happens after {HANG_S} s"
            with self._changed:
                if not self._ready:
                    self._changed.wait(min(left_s, LOOK_S))
            if self._ready:
                self.turn()
            elif not _others_work():
                left_s -= min(time.monotonic() - began, LOOK_S)


def _others_work() -> bool:
    """Return whether another thread has work: it runs, waits for a processor, or for a disk."""
    own = threading.get_native_id()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            if state in {"R", "D"} and int(thread.name) != own:
                return True
    return False


class Pending:
    """The `done` of one call, and what came of it."""

    def __init__(self, loop: Loop, label: str, then: Callable[["Pending"], None]) -> None:
        self.label = label
        self.is_done = False
        self.result: Any = None
        self.returned: Any = None
        """What the call itself returned: the `Cancel` of a read."""
        self.violations: list[str] = []
        self._is_called = False
        self._loop = loop
        self._then = then

    def __call__(self, result: object) -> None:
        if not self._is_called:
            self.violations.append(f"{self.label}: done came from inside the call")
        if threading.get_ident() != self._loop.thread:
            self.violations.append(f"{self.label}: done came on another thread")
        if self.is_done:
            self.violations.append(f"{self.label}: done came twice")
        self.is_done = True
        self.result = result
        self._then(self)

    def call_has_returned(self) -> None:
        self._is_called = True

    @property
    def value(self) -> Any:  # noqa: ANN401 - whatever the operation takes and gives
        """The result, which must not be an error."""
        assert self.is_done, f"{self.label}: no result yet"
        if isinstance(self.result, StoreError):
            raise self.result
        return self.result

    def error(self, kind: type[E]) -> E:
        """The result, which must be an error of exactly this kind."""
        assert self.is_done, f"{self.label}: no result yet"
        assert type(self.result) is kind, f"{self.label}: {self.result!r}"
        assert str(self.result), f"{self.label}: an error without a message"
        return self.result


def _ignore(_: Pending) -> None:
    """Nobody is waiting."""


def wrap_operation(
    patch: pytest.MonkeyPatch, store: SegmentStore, name: str, wrapper: Callable[..., None]
) -> None:
    """Put `wrapper` around an operation; it gets the real one and the arguments of each call."""
    for operations in (store, store.for_removal):
        patch.setattr(operations, name, partial(wrapper, getattr(operations, name)))


class OpenStore(Protocol):
    """Opens the store of one test, again and again."""

    def __call__(self, loop: Loop) -> SegmentStore: ...


class Rig:
    """One store on one loop. Checks the rules of all calls by the way, see `violations`."""

    def __init__(self, open_store: OpenStore, loop: Loop | None = None) -> None:
        self.loop = loop or Loop()
        self._open_store = open_store
        self.store = open_store(self.loop)
        self.violations: list[str] = []
        self._is_open = True
        # Operations of each segment that are not answered, in the order of the calls.
        self._waiting: dict[str, list[Pending]] = {}
        self._name_of_session: dict[int, str] = {}
        self._sessions: list[object] = []  # keeps the ids above unique

    def start(
        self,
        call: Callable[..., object],
        *arguments: object,
        then: Callable[[Pending], None] = _ignore,
        **options: object,
    ) -> Pending:
        """Call an operation; the result comes when the loop turns, and `then` is told."""
        names = () if options.get("wait") else self._names_of(call, arguments)
        label = f"{call.__name__}{arguments!r:.120}"

        def on_done(pending: Pending) -> None:
            self._on_done(pending, names)
            then(pending)

        pending = Pending(self.loop, label, on_done)
        for name in names:
            self._waiting.setdefault(name, []).append(pending)
        pending.returned = call(*arguments, done=pending, **options)
        pending.call_has_returned()
        return pending

    def do(self, call: Callable[..., object], *arguments: object, **options: Any) -> Any:  # noqa: ANN401 - whatever the operation takes and gives
        """Call an operation and give its value."""
        return self.settle(self.start(call, *arguments, **options))

    def refused(
        self,
        kind: type[E],
        call: Callable[..., object],
        *arguments: object,
        **options: Any,  # noqa: ANN401 - whatever the operation takes
    ) -> E:
        """Call an operation that must fail, and give its error."""
        pending = self.start(call, *arguments, **options)
        self.wait(pending)
        return pending.error(kind)

    def wait(self, *pending: Pending) -> None:
        """Turn the loop until all of these have a result."""
        self.loop.run_until(lambda: all(each.is_done for each in pending))

    def settle(self, pending: Pending) -> Any:  # noqa: ANN401 - whatever the operation takes and gives
        """Wait for a result that must be a value."""
        self.wait(pending)
        return pending.value

    def reopen(self) -> None:
        """Close the store and open it again."""
        self.close()
        self.store = self._open_store(self.loop)
        self._is_open = True

    def close(self, *, may_fail: bool = False) -> None:
        """Close the store; with `may_fail` it may tell that it could not write everything."""
        if self._is_open:
            self._is_open = False
            pending = self.start(self.store.close)
            self.wait(pending)
            assert pending.result is None or may_fail or type(pending.result) is StoreClosed

    # What most tests begin with

    def create(self, name: str, data: bytes = b"") -> str:
        """Create a segment that holds `data`."""
        self.do(self.store.create_segment, name)
        if data:
            self.fill(name, data)
        return name

    def fill(self, name: str, data: bytes) -> None:
        """Append by a writer of nobody else's."""
        session = self.writer(name, FILLER)
        number = max(session.event_number, 0) + 1
        self.do(session.append, data, number)

    def writer(self, name: str, writer: UUID) -> Writer:
        session: Writer = self.do(self.store.open_writer, name, writer)
        return session

    def reader(self, name: str) -> Reader:
        reader: Reader = self.do(self.store.open_reader, name)
        return reader

    def content(self, name: str) -> bytes:
        """All bytes of a segment, by as many reads as it takes."""
        info = self.do(self.store.info, name)
        content = bytearray()
        while (position := info.start + len(content)) < info.length:
            piece = self.do(self.store.read, name, position, info.length - position)
            assert piece.position == position
            assert piece.data, f"an empty read at {position} of {info.length}"
            content += piece.data
        return bytes(content)

    # The rules that hold for every call

    def _names_of(
        self, call: Callable[..., object], arguments: tuple[object, ...]
    ) -> Sequence[str]:
        session = getattr(call, "__self__", None)
        if id(session) in self._name_of_session:
            return [self._name_of_session[id(session)]] if call.__name__ == "append" else []
        count = {"close": 0, "merge_segments": 2}.get(call.__name__, 1)
        return [str(name) for name in dict.fromkeys(arguments[:count])]

    def _on_done(self, pending: Pending, names: Sequence[str]) -> None:
        for name in names:
            queue = self._waiting.get(name, [])
            if pending not in queue:
                continue
            if queue[0] is not pending:
                self.violations.append(
                    f"{pending.label} answered ({pending.result!r:.80}) before {queue[0].label}"
                )
            queue.remove(pending)
        if pending.label.startswith(("open_writer", "open_reader")) and not isinstance(
            pending.result, StoreError
        ):
            self._name_of_session[id(pending.result)] = names[0]
            self._sessions.append(pending.result)
        self.violations += pending.violations
