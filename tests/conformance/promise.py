"""Names the promise of store/api.py that a test holds, so that one without a test is found out."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from store import api, errors

F = TypeVar("F", bound=Callable[..., object])

INTERFACES: Final = (api.SegmentStore, api.Writer, api.Reader)

KEPT: Final[dict[str, set[str]]] = {}
"""What the tests name: promise → the tests."""


def promises() -> Iterator[str]:
    """Give what must be named: each method, and each error that its docstring speaks of."""
    for interface in INTERFACES:
        for name in dir(interface):
            if name.startswith("_"):
                continue
            method = f"{interface.__name__}.{name}"
            yield method
            text = inspect.getdoc(getattr(interface, name)) or ""
            for word in sorted(set(re.findall(r"\b[A-Z]\w+", text))):
                kind = getattr(errors, word, None)
                if inspect.isclass(kind) and errors.StoreError in kind.__bases__:
                    yield f"{method}: {word}"


ALL: Final = frozenset(promises())


def promise(method: str, *refusals: type[errors.StoreError]) -> Callable[[F], F]:
    """Say that a test holds what the docstring of `method` promises.

    Args:
        method: `Writer.append`, say; a method of the seam.
        refusals: The errors of its docstring that the test provokes.
    """
    assert method in ALL, f"{method} is not of the seam"

    def mark(test: F) -> F:
        for kept in (method, *(f"{method}: {refusal.__name__}" for refusal in refusals)):
            KEPT.setdefault(kept, set()).add(f"{test.__module__}.{test.__qualname__}")
        return test

    return mark
