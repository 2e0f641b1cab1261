"""Names of what is created: which there may be."""

from typing import Final

from gateway.broker.errors import PreconditionFailed

_RESERVED_PREFIX: Final = "amq."


def without_line_ends(name: str) -> str:
    """Return a name without CR and LF, as whatever is created has it."""
    return name.replace("\r", "").replace("\n", "")


def check_name(name: str) -> None:
    """Raise PreconditionFailed if a stream or exchange cannot get this name."""
    if not name or name.startswith(_RESERVED_PREFIX):
        raise PreconditionFailed(f"name {name!r} is empty or reserved")


def clean_name(name: str) -> str:
    """Return a new stream's or exchange's name without CR and LF.

    Raises:
        PreconditionFailed: Nothing is left, or it is a reserved name.
    """
    name = without_line_ends(name)
    check_name(name)
    return name
