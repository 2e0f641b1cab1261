"""Things by their names, which are listed in order, some at a time."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, MutableMapping
from time import perf_counter
from typing import Final, Protocol, TypeVar

from gateway.server.loop.awaiting import next_turn

T = TypeVar("T")

LOOKS_A_TURN: Final = 500
"""Names that are looked at before others have their turn, or fewer that take long."""
_TURN_S: Final = 0.005


class Looks:
    """Gives others their turn while a call looks at a great many names.

    A look at one may take long: up to 10 ms for the pattern of each right.
    """

    def __init__(self) -> None:
        self._count = 0
        self._began_s = perf_counter()

    async def give(self) -> None:
        """Let others have their turn if it is time; called once for each name."""
        self._count += 1
        if self._count == LOOKS_A_TURN or perf_counter() - self._began_s > _TURN_S:
            await next_turn()
            self._count, self._began_s = 0, perf_counter()


class Directory(MutableMapping[str, T]):
    """A dict by name whose names are in order."""

    def __init__(self) -> None:
        self._things: dict[str, T] = {}
        self._names: list[str] = []

    def __getitem__(self, name: str) -> T:
        return self._things[name]

    def __setitem__(self, name: str, thing: T) -> None:
        if name not in self._things:
            insort(self._names, name)
        self._things[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._things[name]
        del self._names[bisect_left(self._names, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def after(self, name: str) -> str | None:
        """Return the name that follows another, which need not be there; None at the end."""
        place = bisect_right(self._names, name)
        return self._names[place] if place < len(self._names) else None


class Names(Protocol):
    """Names in order."""

    def after(self, name: str) -> str | None:
        """Return the name that follows another, which need not be there; None at the end."""
        ...


async def wanted(
    names: Names, is_wanted: Callable[[str], bool], *, behind: str = "", most: int | None = None
) -> list[str]:
    """Return the wanted names behind another, in order, `most` of them at most.

    Others have their turn meanwhile: what is made or goes then may be among them or not.
    """
    found: list[str] = []
    looks = Looks()
    name = names.after(behind)
    while name is not None and (most is None or len(found) < most):
        if is_wanted(name):
            found.append(name)
        await looks.give()
        name = names.after(name)
    return found
