"""Names of new streams, exchanges and the like: which there may be."""

from typing import Final
from unicodedata import category

from gateway.broker.errors import PreconditionFailed

_RESERVED_PREFIX: Final = "amq."
NAME_BYTES_MAX: Final = 255
"""Longest name that administrators and settings give; stream clients may give a longer one."""
_SHOWN_CHARACTERS: Final = 40
_NO_TEXT: Final = frozenset(("Cc", "Cs"))
"""Control characters, and those that stand for bytes that are no UTF-8."""


def without_line_ends(name: str) -> str:
    """Return a name without CR and LF, as whatever is created has it."""
    return name.replace("\r", "").replace("\n", "")


def check_name(name: str) -> None:
    """Raise PreconditionFailed if a stream or exchange cannot get this name."""
    if not name or name.startswith(_RESERVED_PREFIX):
        raise PreconditionFailed(f"name {name!r} is empty or reserved")


def check_given_name(name: str) -> None:
    """Raise PreconditionFailed if an administrator or a setting cannot give something this name.

    The stream port takes names of any size, as RabbitMQ's does.
    """
    check_name(name)
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > NAME_BYTES_MAX:
        start = f"{name[:_SHOWN_CHARACTERS]}…"
        raise PreconditionFailed(f"name {start!r} has {size} bytes, more than {NAME_BYTES_MAX}")


def is_text(name: str) -> bool:
    """Return whether a name is Unicode text without control characters."""
    return not any(category(character) in _NO_TEXT for character in name)


def clean_name(name: str) -> str:
    """Return a new stream's or exchange's name without CR and LF.

    Raises:
        PreconditionFailed: Nothing is left, or it is a reserved name.
    """
    name = without_line_ends(name)
    check_name(name)
    return name
