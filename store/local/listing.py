"""Lists of names, which are looked for in slices: there may be a million."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from store.api import Done
from store.errors import StoreError

_AT_ONCE: Final = 20_000
"""Names that are looked at in one turn, which takes some 2 ms."""


class Listing:
    """Names that begin with a prefix, sorted."""

    def __init__(
        self, prefix: str, done: Done[list[str]], call_soon: Callable[..., object]
    ) -> None:
        """`done` gets them; `call_soon` goes on in another turn."""
        self._prefix = prefix
        self._done = done
        self._call_soon = call_soon
        self._found: list[str] = []

    def begin(self, closed: StoreError | None, names: Iterable[str]) -> None:
        """Look at the names that there are now, unless the store is closed."""
        if closed is not None:
            self._done(closed)
        else:
            self._names = iter(list(names))
            self._go_on()

    def _go_on(self) -> None:
        some = list(islice(self._names, _AT_ONCE))
        self._found += [name for name in some if name.startswith(self._prefix)]
        if len(some) == _AT_ONCE:
            self._call_soon(self._go_on)
        else:
            self._done(sorted(self._found))
