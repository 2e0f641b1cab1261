"""Refusals of administrators' requests, and faults of definitions."""

from collections.abc import Sequence
from typing import Final

PROBLEMS_SHOWN_MAX: Final = 50
SHOWN_CHARACTERS_MAX: Final = 120


class AdministrationError(Exception):
    """Nothing was changed; the message says why.

    Attributes:
        code: For programs: what kind of error it is.
    """

    code = "refused"


class WrongRequest(AdministrationError):
    """There is no such request, or its arguments are not what it takes."""

    code = "wrong_request"


class UnusableDefinitions(WrongRequest):
    """The definitions cannot be imported: nothing was changed."""

    code = "unusable_definitions"


class NotFound(AdministrationError):
    """Its object does not exist."""

    code = "not_found"


class Conflict(AdministrationError):
    """It exists already, or exists otherwise."""

    code = "conflict"


class NotAllowed(AdministrationError):
    """This administrator may not do it."""

    code = "not_allowed"


class Overdue(AdministrationError):
    """It takes too long: it may still be done."""

    code = "overdue"


class Failed(AdministrationError):
    """The server could not do it."""

    code = "failed"


class DefinitionsError(Exception):
    """Definitions that cannot be imported; holds a line for each fault, the first ones of many."""

    def __init__(self, *problems: str, count: int | None = None) -> None:
        self.problems: Sequence[str] = problems[:PROBLEMS_SHOWN_MAX]
        self.count = len(problems) if count is None else count
        lines = list(self.problems)
        if self.count > len(lines):
            lines.append(f"… and {self.count - len(lines)} more")
        super().__init__("\n".join(lines))


def shown(value: object) -> str:
    """Show a value of the file in a message: bounded, in one line, nothing that moves a cursor."""
    if isinstance(value, str):
        text = repr(value[: SHOWN_CHARACTERS_MAX + 1])
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, dict):
        text = "an object"
    elif isinstance(value, list):
        text = "a list"
    else:
        text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"
