"""A result that is not there yet, for coroutines that know no event loop.

Handlers and the opening of a stream wait for the store by awaiting a Pending. The caller of
`run` goes on with the coroutine when the Pending is settled, on the same thread. A coroutine
that waits for nothing runs to its end at once, without a task.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def nothing(*_arguments: object) -> None:
    """Do nothing: called by objects that are over, in place of those they referred to."""


class Abandoned(Exception):
    """The result of a coroutine is not wanted any more: it ends where it waits."""


class Pending(Generic[T]):
    """A value or an exception, given once; awaitable, and observable by callback."""

    __slots__ = ("_callbacks", "_is_settled", "_outcome")

    def __init__(self) -> None:
        self._is_settled = False
        self._outcome: T | BaseException | None = None
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_settled(self) -> bool:
        """True if the value or exception has come."""
        return self._is_settled

    def settle(self, outcome: T | BaseException) -> None:
        """Set the value, or the exception that awaiting raises. Fits a store's `done`."""
        assert not self._is_settled
        self._is_settled = True
        self._outcome = outcome
        callbacks, self._callbacks = self._callbacks, []
        callbacks.reverse()
        while callbacks:
            callbacks.pop()()
        # An error that a callback came upon keeps this frame, and may be the outcome: a ring.
        del self, outcome, callbacks

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call `callback` once it is settled; at once if it is."""
        if self._is_settled:
            callback()
        else:
            self._callbacks.append(callback)

    def result(self) -> T:
        """Return the value or raise the exception. Only when settled."""
        assert self._is_settled
        outcome = self._outcome
        if isinstance(outcome, BaseException):
            try:
                raise outcome
            finally:
                del self, outcome  # the error's traceback has this frame: a ring
        return outcome  # type: ignore[return-value]  # settled, so it is a T

    def __await__(self) -> Generator["Pending[Any]", None, T]:
        """Wait; yields itself to the function that runs the coroutine."""
        if not self._is_settled:
            yield self
        try:
            return self.result()
        finally:
            del self  # as in `result`


def asked(call: Callable[[Callable[[T | Exception], None]], object]) -> Pending[T]:
    """Call something with a `done`; return its outcome. Awaiting that raises an error."""
    pending: Pending[T] = Pending()
    call(pending.settle)
    return pending


def run(
    coroutine: Coroutine[Pending[Any], None, T],
    done: Callable[[T | BaseException], object],
) -> None:
    """Run `coroutine` as far as it goes now, and on whenever the Pending it awaits is settled.

    `done` gets what it returned or raised (Exceptions only; anything else passes), before `run`
    returns if nothing had to be waited for.
    """
    while True:
        try:
            awaited = coroutine.send(None)
        except StopIteration as stop:
            done(stop.value)
            return
        except Exception as error:  # noqa: BLE001  # handed to `done`, the edge of the coroutine
            done(error)
            return
        if not awaited.is_settled:
            awaited.when_settled(lambda: run(coroutine, done))
            return


def start(
    coroutine: Coroutine[Pending[Any], None, T],
) -> Pending[T]:
    """Run `coroutine` and return its result as a Pending, to be awaited by several."""
    pending: Pending[T] = Pending()
    run(coroutine, pending.settle)
    return pending
